"""The committee paragraph of Flat Techniques: does voting gain accuracy, and the rarest class macro-F1?

    python benchmarks/papers/flat_committee.py DATA [--measure] [--quick]

PA-II, four seeds × passes 5, 6, 7, last weights, as in the paper, which reports a gain of about 0.005, the best
macro-F1 for the rarest class voted for, and about 10% of the top classes changing between passes. It is judged on all
three sets, although 20 newsgroups has no rare class.
"""

from again import prototype
from beside import FLAT, Row, present

SETS = ("news20", "wordnet_hypernym", "tib_ddc")


def is_papers(row: Row) -> bool:
    """Whether a row is about the papers' members, the last weights."""
    told = row["finding"] if "finding" in row else str(row["setting"].get("members", ""))
    return "last weights" in told


if __name__ == "__main__":
    measuring = prototype("committees", SETS)
    tables = [f"Committees on {name}" for name in SETS]
    present(__doc__, FLAT, "committee paragraph", "prototypes", tables, measuring, wanted=is_papers)

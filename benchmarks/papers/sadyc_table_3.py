"""Table 3 of Sequential Dynamic Classification: is SaDyC ahead at a complexity ratio of 0.2, even of one-vs-all?

    python benchmarks/papers/sadyc_table_3.py DATA [--measure] [--quick]

Subsets of 1,000 classes of tib_ddc (``budget.py``) in the place of the paper's five of DMOZ.
"""

from again import script
from beside import SEQUENTIAL, present

if __name__ == "__main__":
    present(
        __doc__,
        SEQUENTIAL,
        "table 3",
        "budget",
        ["Accuracy at a complexity ratio of 0.2"],
        script("budget", quick=("--subsets", "1", "--steps", "accuracy", "report")),
    )

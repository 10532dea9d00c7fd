"""Figure 3 of Flat Techniques: does PA level off after a few passes, and does OOZ gain from more edges a feature?

    python benchmarks/papers/flat_figure_3.py DATA [--measure] [--quick]

Part (b) is ``ooz_degree.py``'s table; part (a) is R1 on held-out rows after each pass of PA-II as printed, which
``prototypes.py`` records. The paper has a plot, on 12,294 classes of web pages: PA reaches 0.46, OOZ gains 0.015 to
0.02 from d = 100 to 3000.
"""

from pathlib import Path

from again import script
from beside import FLAT, RESULTS, Row, Verdict, all_findings, newest, present, read_rows, show

MEASURING = script("ooz_degree", "--sets", "tib_ddc", quick=("--sets", "wordnet_hypernym"))


def passes_of_pa(path: Path) -> list[Row]:
    """The curves of PA-II as printed that ``prototypes.py`` recorded."""
    rows = newest(read_rows(path)) if path.exists() else []
    return [
        row
        for row in rows
        if row["table"].startswith("Choosing on") and row["setting"].get("learner") == "PA-II as printed"
    ]


def judge(rows: list[Row]) -> Verdict:
    """Part (b) by its findings; part (a): most of what is gained is gained within three passes."""
    holds, text = all_findings(rows)
    curves = passes_of_pa(RESULTS / "prototypes.jsonl")
    show(curves)
    early = [
        values[min(2, len(values) - 1)] - values[0] >= max(values) - values[min(2, len(values) - 1)]
        for values in (list(row["figures"].values()) for row in curves)
    ]
    told = f"PA gains most within three passes in {sum(early)} of {len(early)} runs" if early else "PA: not measured"
    return holds and all(early) and bool(early), f"{text}; {told}"


if __name__ == "__main__":
    present(__doc__, FLAT, "figure 3", "ooz_degree", ["Figure 3(b)"], MEASURING, judge)

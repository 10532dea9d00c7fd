"""Table 2 of Sequential Dynamic Classification: is SaDyC ahead at a complexity ratio of 0.04?

    python benchmarks/papers/sadyc_table_2.py DATA [--measure] [--quick]

The paper has all 12,294 classes of DMOZ; here it is ``budget.py``'s subsets of 1,000 classes of tib_ddc, at 0.05, its
nearest mark, and for H-SC at the lowest ratio that it has. Paper, in percent: OAA 38.28, ontology 38.05, SaDyC 36.49,
H-SC 32.09, E-Hamming 33.68, E-LossBased 35.08.
"""

from again import script
from beside import SEQUENTIAL, Row, Verdict, figures, present

PAPER = {"OAA": 38.28, "ontology tree": 38.05, "SaDyC": 36.49, "H-SC": 32.09, "E-Hamming": 33.68, "E-LossBased": 35.08}


def judge(rows: list[Row]) -> Verdict:
    found = figures(rows)
    nearest = {}
    for name in PAPER:
        mine = [row for row in found if row["method"] == name]
        if mine:
            nearest[name] = min(mine, key=lambda row: abs(row["ratio"] - 0.05))
    rivals = [row["accuracy"] for name, row in nearest.items() if name in ("H-SC", "E-Hamming", "E-LossBased")]
    told = ", ".join(
        f"{name} {100 * row['accuracy']:.2f} at {row['ratio']:.3f} (paper {PAPER[name]})"
        for name, row in nearest.items()
    )
    if "SaDyC" not in nearest or not rivals:
        return False, "SaDyC is not measured"
    return nearest["SaDyC"]["accuracy"] > max(rivals), f"SaDyC is above H-SC and both output codes ({told})"


if __name__ == "__main__":
    tables = ["Accuracy against complexity ratio"]
    present(
        __doc__,
        SEQUENTIAL,
        "table 2",
        "budget",
        tables,
        script("budget", quick=("--subsets", "1", "--steps", "accuracy", "report")),
        judge,
    )

"""Table 3 of Recursive Regularization: are HR models above their flat counterparts, and CLEF as printed?

    python benchmarks/papers/recursive_table_3.py DATA [--measure] [--quick]

CLEF is ``clef.py``'s tables, of which that of ten folds says which is above; tib_ddc in DMOZ's place and
wordnet_hypernym are ``recursive.py``'s. Paper, DMOZ-2010, macro-F1 and micro-F1 in percent: SVM 32.64, 45.36; HR-SVM
33.12, 46.02; LR 31.58, 45.40; HR-LR 32.42, 45.84.
"""

from again import script
from beside import RECURSIVE, RESULTS, Row, Verdict, beside, newest, present, read_rows, show

CLEF, ORDER = "CLEF", "Order on CLEF"
SLACK = 1.0
"""Points of F1 that ours may be below the paper's."""


def judge(rows: list[Row]) -> Verdict:
    path = RESULTS / "recursive.jsonl"
    others = (
        [row for row in newest(read_rows(path)) if row["table"].startswith("HR and flat, each")]
        if path.exists()
        else []
    )
    show(others)
    below, learners = [], {}
    for row in rows:
        pairs = {key: pair for key in ("micro-F1", "macro-F1") if (pair := beside(row, key))}
        if pairs:
            learners[row["setting"]["learner"]] = pairs
            below += [row["setting"]["learner"]] if any(a < b - SLACK for a, b in pairs.values()) else []
    in_folds = {row["setting"]["learner"]: row["figures"] for row in rows if row["table"] == ORDER and "figures" in row}
    on_test = {name: {key: pair[0] for key, pair in pairs.items()} for name, pairs in learners.items()}
    ahead = hr_is_ahead(in_folds)
    findings = [row["finding"] for row in others if "finding" in row]
    held = sum(text.startswith("reproduced") for text in findings)
    told = (
        f"CLEF: {len(learners)} of 8 learners measured, more than a point below the paper: {', '.join(below) or 'none'}"
    )
    told += f"; HR above flat in ten folds: {listed(ahead)}, on the test rows: {listed(hr_is_ahead(on_test))}"
    told += f"; text sets: {held} of {len(findings)} comparisons" if findings else "; text sets: not measured"
    complete = len(learners) == 8 and len(ahead) == 2 and bool(findings)
    return complete and not below and all(ahead.values()) and held == len(findings), told


def hr_is_ahead(figures: dict[str, Row]) -> dict[str, bool]:
    """Whether HR is above its flat counterpart in both measures."""
    return {
        flat: all(figures[f"HR-{flat}"][key] > figures[flat][key] for key in ("micro-F1", "macro-F1"))
        for flat in ("SVM", "LR")
        if flat in figures and f"HR-{flat}" in figures
    }


def listed(found: dict[str, bool]) -> str:
    return " and ".join(f"{name} {'yes' if holds else 'no'}" for name, holds in found.items()) or "open"


def is_as_chosen(row: Row) -> bool:
    """Whether a row is of columns as cross-validation chose them, and not as they are for all."""
    return row["table"] == CLEF or row["table"].removesuffix(", test rows") == ORDER


if __name__ == "__main__":
    measure = script("clef", quick=("--only", "SVM", "HR-SVM"))
    present(__doc__, RECURSIVE, "table 3", "clef", [CLEF, ORDER], measure, judge, is_as_chosen)

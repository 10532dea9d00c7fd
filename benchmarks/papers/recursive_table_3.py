"""Table 3 of Recursive Regularization: are HR models above their flat counterparts, and CLEF as printed?

    python benchmarks/papers/recursive_table_3.py DATA [--measure] [--quick]

CLEF is ``clef.py``'s table; tib_ddc in DMOZ's place and wordnet_hypernym are ``recursive.py``'s. Paper, DMOZ-2010,
macro-F1 and micro-F1 in percent: SVM 32.64, 45.36; HR-SVM 33.12, 46.02; LR 31.58, 45.40; HR-LR 32.42, 45.84.
"""

from again import script
from beside import RECURSIVE, RESULTS, Row, Verdict, beside, newest, present, read_rows, show

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
    ahead = {
        flat: all(learners[f"HR-{flat}"][key][0] > learners[flat][key][0] for key in ("micro-F1", "macro-F1"))
        for flat in ("SVM", "LR")
        if flat in learners and f"HR-{flat}" in learners
    }
    findings = [row["finding"] for row in others if "finding" in row]
    held = sum(text.startswith("reproduced") for text in findings)
    told = (
        f"CLEF: {len(learners)} of 8 learners measured, more than a point below the paper: {', '.join(below) or 'none'}"
    )
    told += "; HR above flat: " + (", ".join(f"{flat} {'yes' if up else 'no'}" for flat, up in ahead.items()) or "open")
    told += f"; text sets: {held} of {len(findings)} comparisons" if findings else "; text sets: not measured"
    complete = len(learners) == 8 and len(ahead) == 2 and bool(findings)
    return complete and not below and all(ahead.values()) and held == len(findings), told


if __name__ == "__main__":
    present(__doc__, RECURSIVE, "table 3", "clef", ["CLEF"], script("clef", quick=("--only", "SVM", "HR-SVM")), judge)

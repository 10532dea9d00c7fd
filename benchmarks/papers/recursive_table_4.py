"""Table 4 of Recursive Regularization: do HR models cost a small multiple of the flat ones?

    python benchmarks/papers/recursive_table_4.py DATA [--measure] [--quick]

Seconds of ``recursive.py``. The paper, on 32 cores: HR-SVM takes 1.92 times as long as SVM on average, HR-LR 2.87 times
as long as LR; on DMOZ-2010 8.23 against 5.12 minutes, and 123.22 against 97.24.
"""

from again import script
from beside import RECURSIVE, Row, Verdict, figures, present

MOST = 4
WORDS = ("--tables", "seconds", "--costs", "1")


def judge(rows: list[Row]) -> Verdict:
    found = [row for row in figures(rows) if "HR/flat" in row]
    told = ", ".join(f"{row['loss']}, C {row['C']:g}: {row['HR/flat']:.2f}" for row in found)
    holds = bool(found) and all(row["HR/flat"] <= MOST for row in found)
    return holds, f"HR takes at most {MOST} times as long as flat ({told}; the paper: 1.92 for SVM, 2.87 for LR)"


if __name__ == "__main__":
    measuring = script("recursive", *WORDS, quick=("--sets", "wordnet_hypernym"))
    present(__doc__, RECURSIVE, "table 4", "recursive", ["Seconds of HR and flat"], measuring, judge)

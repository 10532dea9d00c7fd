"""A table or figure of a paper beside ours, and one line that says whether its finding is reproduced.

Most are measured by a benchmark already: then a script here shows that benchmark's newest rows. It measures itself
where there are no rows, with ``--measure`` anew, and with ``--quick`` on few rows without recording anything.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from record import RESULTS, Recorder  # noqa: E402 - the folder of the benchmarks has just been named
from write_results import newest, read_rows, table_lines  # noqa: E402

CONCEPTS = "Learning When Concepts Abound"
FLAT = "Large-Scale Many-Class Prediction via Flat Techniques"
SEQUENTIAL = "Sequential Dynamic Classification"
RECURSIVE = "Recursive Regularization"

Row = dict[str, Any]
Verdict = tuple[bool, str]


class Collecting(Recorder):
    """A recorder that keeps the rows in memory until all are there: half a table would pass for a whole one."""

    def __init__(self, question: str, asked: str, data: Path, keep: bool) -> None:
        super().__init__(question, asked, data, keep)
        self.facts["command"] = f"python benchmarks/papers/{Path(sys.argv[0]).name} DATA --measure"
        self.rows: list[Row] = []

    def append(self, entry: Row) -> None:
        self.rows.append(self.facts | entry)

    def write(self) -> None:
        """Put the rows on disk."""
        for row in self.rows:
            super().append(row)


def present(
    about: str | None,
    paper: str,
    figure: str,
    question: str,
    tables: Sequence[str],
    measure: Callable[[Recorder, Path, bool], None],
    judge: Callable[[list[Row]], Verdict] | None = None,
    wanted: Callable[[Row], bool] = lambda row: True,
) -> None:
    """Show the tables of a question whose names begin as ``tables`` say, and the verdict.

    ``judge`` says from the rows whether the finding is reproduced; without one, all findings that the tables end with
    must be.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--measure", action="store_true", help="measure anew, even if there are rows")
    parser.add_argument("--quick", action="store_true", help="measure on few rows, nothing recorded")
    arguments = parser.parse_args()

    def chosen(rows: list[Row]) -> list[Row]:
        return [row for row in rows if row["table"].startswith(tuple(tables)) and wanted(row)]

    path = RESULTS / f"{question}.jsonl"
    rows = chosen(newest(read_rows(path))) if path.exists() else []
    if arguments.quick or arguments.measure or not rows:
        recorder = Collecting(question, question_of(question, about), arguments.data, keep=not arguments.quick)
        measure(recorder, arguments.data, arguments.quick)
        recorder.write()
        rows = chosen(newest(recorder.rows))
    else:
        show(rows)
    holds, text = (judge or all_findings)(rows)
    verdict = "reproduced" if holds else "not reproduced"
    print(f"\n{verdict}: {paper}, {figure}: {text}")
    summary = Recorder("papers", "Which findings of the papers are reproduced?", keep=not arguments.quick)
    summary.facts["command"] = f"python benchmarks/papers/{Path(sys.argv[0]).name} DATA"
    entry = {"table": paper, "note": "", "setting": {"table or figure": figure}}
    summary.append(entry | {"figures": {"verdict": verdict, "what": text, "measured by": question}})


def question_of(question: str, about: str | None) -> str:
    """Return the text of the benchmark that a question belongs to."""
    script = HERE.parent / f"{question}.py"
    return (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) if script.exists() else about) or ""


def show(rows: list[Row]) -> None:
    """Print recorded rows, the paper's figures beside ours."""
    for name in dict.fromkeys(row["table"] for row in rows):
        mine = [row for row in rows if row["table"] == name]
        print(f"\n{name}\n{mine[-1].get('note', '')}")
        print("\n".join(table_lines([row for row in mine if "figures" in row])))
        for row in mine:
            if "finding" in row:
                print(f"  {row['finding']}")


def all_findings(rows: list[Row]) -> Verdict:
    """Whether all findings of the tables hold; the text names those that do not, or else all."""
    found = [row["finding"].split(": ", 1) for row in rows if "finding" in row]
    if not found:
        return False, "no finding is recorded"
    failed = [text for word, text in found if word not in ("reproduced", "holds")]
    return not failed, "; ".join(failed or [text for _, text in found])


def figures(rows: list[Row]) -> list[Row]:
    """The rows that have figures, setting and figures together."""
    return [row["setting"] | row["figures"] for row in rows if "figures" in row]


def number(value: Any) -> float:
    """Return a figure as a number; of mean ± standard deviation, the mean."""
    return float(re.split(r"\s*±", value)[0]) if isinstance(value, str) else float(value)


def beside(row: Row, measure: str) -> tuple[float, float] | None:
    """Our figure and the paper's, where a row has both."""
    if measure in row.get("figures", {}) and measure in row.get("paper", {}):
        return number(row["figures"][measure]), number(row["paper"][measure])
    return None

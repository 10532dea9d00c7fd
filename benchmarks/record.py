"""One way to record a measurement: a JSON line in ``results/<question>.jsonl``, and a line of a table on the screen.

    recorder = Recorder("austen", __doc__, data=arguments.data)
    table = recorder.table("FF on Jane Austen")
    table.row({"margin": 0}, {"R1": 0.28}, paper={"R1": 0.272})
    table.finding(0.28 >= 0.272, "R1 is at least the paper's")

A line keeps what was asked, the figures, the paper's figures, the exact command, versions, machine, load and date.
``write_results.py`` makes ``RESULTS.md`` of these lines. No folder of this machine is kept: the data folder is shown
as DATA.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import abound

RESULTS = Path(__file__).parent / "results"
Figures = Mapping[str, Any]


class Recorder:
    """Writes the rows of one question; with ``keep=False`` (quick runs) they are only printed."""

    def __init__(self, question: str, asked: str | None, data: Path | None = None, keep: bool = True) -> None:
        self.path = RESULTS / f"{question}.jsonl"
        self.keep = keep
        self.facts = {
            "question": question,
            "asked": (asked or "").strip().splitlines()[0],
            "command": shown_command(sys.argv, data),
            "versions": versions(),
            "machine": {"cpu": cpu_model(), "cores": os.cpu_count()},
            "load": round(os.getloadavg()[0], 2),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def table(self, name: str, note: str = "") -> Table:
        """Begin a table; ``note`` says how its figures were measured."""
        print(f"\n{name}" + (f"\n{note}" if note else ""), flush=True)
        return Table(self, name, note)

    def append(self, entry: dict[str, Any]) -> None:
        """Keep a row."""
        if self.keep:
            RESULTS.mkdir(exist_ok=True)
            with open(self.path, "a", encoding="utf-8") as lines:
                lines.write(json.dumps(self.facts | entry, ensure_ascii=False) + "\n")


class Table:
    """Rows with the same columns, under one heading."""

    def __init__(self, recorder: Recorder, name: str, note: str) -> None:
        self.recorder, self.name, self.note = recorder, name, note
        self.columns: list[str] = []

    def row(self, setting: Figures, figures: Figures, paper: Figures | None = None, plot: str | None = None) -> None:
        """Add a row: what was set, what came out, and what the paper has for it."""
        entry = {"table": self.name, "note": self.note, "setting": dict(setting), "figures": dict(figures)}
        entry |= {"paper": dict(paper)} if paper else {}
        entry |= {"plot": plot} if plot else {}
        self.recorder.append(entry)
        cells = flat_row(entry)
        if list(cells) != self.columns:
            self.columns = list(cells)
            print("  " + "".join(f"{name:>{width(name)}}" for name in cells))
        print("  " + "".join(f"{shown(value):>{width(name)}}" for name, value in cells.items()), flush=True)

    def finding(self, holds: bool, what: str, **about: Any) -> None:
        """End the table with whether the paper's finding holds here; ``about`` says for which rows if not for all."""
        self._end(f"{'reproduced' if holds else 'not reproduced'}: {what}", about)

    def target(self, holds: bool, what: str, **about: Any) -> None:
        """End the table with whether what this library promises holds; ``about`` says for which rows if not for all."""
        self._end(f"{'holds' if holds else 'does not hold'}: {what}", about)

    def _end(self, text: str, about: Figures) -> None:
        self.recorder.append({"table": self.name, "note": self.note, "setting": dict(about), "finding": text})
        print(f"  {text}", flush=True)


def flat_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's cells by column: the setting, the figures, and beside them the paper's."""
    cells = {name: f"{value:g}" if isinstance(value, float) else value for name, value in entry["setting"].items()}
    paper = entry.get("paper", {})
    for name, value in entry["figures"].items():
        cells[name] = value
        if name in paper:
            cells[f"{name} (paper)"] = paper[name]
    return cells


def shown(value: Any) -> str:
    """Write a figure as a table shows it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return str(value)
        if value.is_integer() and abs(value) >= 100:
            return f"{value:,.0f}"
        return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def width(name: str) -> int:
    """Width of a column on the screen."""
    return max(15, len(name) + 2)


def shown_command(argv: Sequence[str], data: Path | None) -> str:
    """Return the command as another person would type it."""
    script = Path(argv[0])
    words = ["DATA" if data is not None and word == str(data) else word for word in argv[1:]]
    return " ".join(["python", f"{script.parent.name or 'benchmarks'}/{script.name}", *words])


def versions() -> dict[str, str]:
    """Return the versions that a measurement depends on."""
    packages = {name: version(name) for name in ("numpy", "scipy", "numba", "scikit-learn")}
    return {"abound": abound.__version__, **packages, "python": platform.python_version()}


def cpu_model() -> str:
    """Return the processor's name as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

"""Write ``RESULTS.md`` from the rows in ``results/``: the newest row of each setting, the paper's figures beside ours.

python benchmarks/write_results.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from record import RESULTS, flat_row, shown

TARGET = Path(__file__).parent / "RESULTS.md"
PEERS = "against_peers"
FIRST = "defaults"
"""What users get who set nothing."""
FINAL = "Peers on "
"""How the tables of final runs begin, before the name of the data."""

HEAD = """# Results

Made by `python benchmarks/write_results.py` from the rows in `results/`; what each script asks is in
[README.md](README.md). For every setting the newest row is shown. DATA is the folder with the data sets. Columns marked
"paper" are the figures that the method's authors print, on their data and machine.
"""


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def newest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last row of each setting, in the order in which settings were last measured.

    A run's findings follow from its rows: those of the last run are kept, or of the last about the same rows.
    """

    def key_of(row: dict[str, Any], *more: Any) -> str:
        return json.dumps([row["table"], row["setting"], *more], sort_keys=True)

    last: dict[str, dict[str, Any]] = {}
    last_run = {key_of(row): row["date"] for row in rows if "finding" in row}
    for row in rows:
        if "finding" in row and row["date"] != last_run[key_of(row)]:
            continue
        key = key_of(row, row.get("finding"))
        last.pop(key, None)
        last[key] = row
    return list(last.values())


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return a Markdown table with all columns that some row has."""
    cells = [flat_row(row) for row in rows]
    columns = sorted_columns(cells)
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(shown(row[c]) if c in row else "" for c in columns) + " |" for row in cells]
    return lines


def sorted_columns(cells: list[dict[str, Any]]) -> list[str]:
    """Return the columns of all rows, each after the one that it follows in its row."""
    columns: list[str] = []
    for row in cells:
        place = 0
        for name in row:
            if name in columns:
                place = columns.index(name) + 1
            else:
                columns.insert(place, name)
                place += 1
    return columns


def missing_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return what the comparison with other packages found missing, which is to be read before all else."""
    failed = [row["finding"] for row in newest(rows) if row.get("finding", "").startswith("does not hold")]
    if not failed:
        return []
    lines = ["## Where no learner of ours is as accurate as a peer in at most half its training time", ""]
    return [*lines, *(f"- {text.split(': ', 1)[1]}" for text in failed), ""]


def unmeasured_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Return the peers that nothing can be said of, by data set: they did not end, or failed."""
    found: dict[str, list[str]] = {}
    for row in newest(rows):
        status = row.get("figures", {}).get("status", "measured")
        if row["table"].startswith(FINAL) and not status.startswith(("measured", "not applicable")):
            told = f"{row['setting']['system']} ({status.split(':')[0]})"
            found.setdefault(row["table"].removeprefix(FINAL), []).append(told)
    if not found:
        return []
    lines = ["## Peers that ended with no model within the limits of time and memory", ""]
    return [*lines, *(f"- {name}: {', '.join(systems)}" for name, systems in found.items()), ""]


def section(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of one question."""
    newest_rows = newest(rows)
    last = rows[-1]
    commands = list(dict.fromkeys(row["command"] for row in newest_rows))
    lines = [f"## {last['question']}", "", last["asked"], "", "```", *commands, "```", ""]
    for name in dict.fromkeys(row["table"] for row in newest_rows):
        mine = [row for row in newest_rows if row["table"] == name]
        lines += [f"**{name}**", ""] if name else []
        lines += [mine[-1]["note"], ""] if mine[-1].get("note") else []
        measured = [row for row in mine if "figures" in row]
        lines += [*table_lines(measured), ""] if measured else []
        for row in mine:
            if "plot" in row:
                lines += [f"![{name}]({row['plot']})", ""]
            if "printed" in row:
                lines += ["```", *row["printed"].rstrip("\n").splitlines(), "```", ""]
            if "finding" in row:
                lines += [row["finding"][0].upper() + row["finding"][1:] + ".", ""]
    return [*lines, conditions(newest_rows), ""]


def conditions(rows: list[dict[str, Any]]) -> str:
    """Return a sentence about the machine, the versions and the load."""
    last = rows[-1]
    days = sorted({row["date"][:10] for row in rows})
    loads = sorted({row["load"] for row in rows})
    named = ", ".join(f"{name} {number}" for name, number in last["versions"].items())
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    load = f"{loads[0]}" if len(loads) == 1 else f"{loads[0]} to {loads[-1]}"
    machine = last["machine"]
    return f"Measured {span}, {machine['cpu']}, {machine['cores']} cores, load at the start {load}; {named}."


def main() -> None:
    lines = [HEAD]
    peers = RESULTS / f"{PEERS}.jsonl"
    if peers.exists():
        lines += missing_lines(read_rows(peers)) + unmeasured_lines(read_rows(peers))
    for path in sorted(RESULTS.glob("*.jsonl"), key=lambda path: (path.stem != FIRST, path.stem)):
        rows = read_rows(path)
        if rows:
            lines += section(rows)
    TARGET.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")
    print(f"wrote {TARGET.name}: {sum(line.startswith('## ') for line in lines)} questions")


if __name__ == "__main__":
    main()

"""``abound journal``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from abound.serve.commands.options import JsonOption, ModelArgument, TrustOption
from abound.serve.output import make_table, show, write_json

LONGEST = 60
"""Characters of a text that a table shows."""


class Action(StrEnum):
    """What to do with the journal."""

    list = "list"
    export = "export"
    undo = "undo"
    retrain = "retrain"


def journal(
    model: ModelArgument,
    action: Annotated[Action, typer.Argument(help="What to do.")] = Action.list,
    entries: Annotated[
        list[int] | None, typer.Argument(metavar="ENTRY...", help="For undo: which.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="For export: .tsv, .csv, .jsonl or .svm; for retrain."),
    ] = None,
    last: Annotated[int | None, typer.Option(metavar="N", min=1, help="For list: the last N only.")] = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """List, export or undo the corrections of MODEL, or train it anew with them.

    Corrections are what people told `abound serve`. The server may be running: it follows what is undone. `retrain`
    writes a model that has learned all corrections which were not undone.
    """
    from abound.serve import journaling

    if (action is Action.undo) != bool(entries):
        raise typer.BadParameter("undo needs the numbers of entries, and only undo", param_hint="ENTRY")
    if (action in (Action.export, Action.retrain)) != (output is not None):
        raise typer.BadParameter("export and retrain need a file to write, and only they", param_hint="--output")
    if action is Action.list:
        _show_entries(journaling.list_entries(model), last, json)
    elif action is Action.undo:
        undone = journaling.undo_entries(model, entries or [], trust=trust)
        if json:
            write_json({"undone": entries, "entries": undone})
        else:
            show(f"undone: {', '.join(str(entry) for entry in entries or [])}")
    elif output is not None and action is Action.export:
        n_written = journaling.export_entries(model, output, trust=trust)
        if json:
            write_json({"output": output, "corrections": n_written})
        else:
            show(f"{n_written:,} corrections; {output}")
    elif output is not None:
        report = journaling.retrain(model, output, trust=trust)
        if json:
            write_json({"model": output, **report})
        else:
            show(f"{report['corrections']:,} corrections learned, up to entry {report['entry']}; {output}")


def _show_entries(entries: list[dict[str, Any]], last: int | None, json: bool) -> None:
    entries = entries if last is None else entries[-last:]
    if json:
        write_json({"entries": entries})
        return
    rows = [
        (
            entry["entry"],
            entry["at"],
            entry["version"],
            ", ".join(str(label) for label in entry["labels"]),
            _short(entry.get("text", entry.get("features"))),
            "" if entry["undone"] is None else f"undone by {entry['undone']}",
        )
        for entry in entries
    ]
    show(make_table("", ("entry", "at", "version", "labels", "text", ""), rows))


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

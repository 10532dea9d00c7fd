"""``abound data``: data sets as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from abound.serve.commands.options import JsonOption
from abound.serve.output import make_table, megabytes, show, write_json


def data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="austen or icd10.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write to.")],
    text: Annotated[
        Path | None, typer.Option(metavar="FILE", help="austen: any plain text, such as the novels.")
    ] = None,
    split: Annotated[str, typer.Option(metavar="SPLIT", help="icd10: official or random.")] = "official",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of a random split.")] = 0,
    json: JsonOption = False,
) -> None:
    """Write a data set as files: austen or icd10.

    austen is the task to predict each word of a text from its neighbours, made from any plain text. icd10 is the
    built-in set of diagnosis phrases and codes.
    """
    from abound.serve.datafiles import write_icd10, write_word_task

    if name == "austen":
        if text is None:
            raise typer.BadParameter("austen needs the text to make windows of", param_hint="--text")
        files = write_word_task(text, output, random_state=seed)
    elif name == "icd10":
        if split not in ("official", "random"):
            raise typer.BadParameter(f"{split!r} is neither official nor random", param_hint="--split")
        files = write_icd10(output, split, random_state=seed)
    else:
        raise typer.BadParameter(f"there is no data set {name!r}; there are austen and icd10", param_hint="NAME")
    sizes = {file.name: file.stat().st_size for file in files}
    if json:
        write_json({"folder": output, "files": sizes})
        return
    show(make_table(str(output), ("file", "size"), [(name, megabytes(size)) for name, size in sizes.items()]))

"""``abound predict`` and ``abound explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from abound.serve.commands.options import (
    DataArgument,
    FeaturesOption,
    JobsOption,
    JsonOption,
    ModelArgument,
    ReadOption,
    TrustOption,
    load_model,
    read_options,
)
from abound.serve.output import make_table, show, write_bytes, write_json

KOption = Annotated[int, typer.Option("-k", metavar="K", min=1, help="How many classes.")]


def predict(
    model: ModelArgument,
    data: DataArgument,
    k: KOption = 5,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; .jsonl for JSON, .gz to compress."),
    ] = None,
    jobs: JobsOption = None,
    read: ReadOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Rank the classes of each row of DATA.

    Prints a line a row: label and score, label and score, best first, with tabs between. Labels in DATA are not needed.
    """
    from abound.read.compression import written_beside
    from abound.read.sniff import suffix_format
    from abound.serve.inputs import iter_data
    from abound.serve.predicting import json_lines, rank_chunks, tsv_lines

    options = read_options(read)
    loaded = load_model(model, jobs, trust)
    as_json = json if output is None else suffix_format(output.name) == "jsonl"
    write = json_lines(loaded.titles) if as_json else tsv_lines
    rankings = rank_chunks(loaded, iter_data(loaded, data, options, labelled=False), k)
    if output is None:
        for topk in rankings:
            write_bytes(write(topk))
        return
    n_rows = 0
    with written_beside(output) as file:
        for topk in rankings:
            file.write(write(topk))
            n_rows += len(topk.labels)
    if json:
        write_json({"output": output, "rows": n_rows})
    else:
        show(f"{n_rows:,} rows ranked; {output}")


def explain(
    model: ModelArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="The text, - for standard input; for a vector model index:value ...")
    ],
    label: Annotated[str | None, typer.Option(metavar="LABEL", help="Explain this class only.")] = None,
    k: KOption = 5,
    words: Annotated[int, typer.Option(metavar="N", min=1, help="How many words for each class.")] = 8,
    features: FeaturesOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Show the words that vote for a class."""
    from dataclasses import asdict

    from abound.serve.explaining import explain_ranking
    from abound.serve.features import read_names
    from abound.serve.inputs import label_like

    loaded = load_model(model, None, trust)
    names = None if features is None else read_names(features)
    text = typer.get_text_stream("stdin").read() if text == "-" else text
    chosen = None if label is None else label_like(loaded, label)
    reasons = explain_ranking(loaded, text, k, label=chosen, names=names)
    if json:
        write_json({"text": text, "classes": [asdict(reason) for reason in reasons]})
        return
    rows = [
        (
            reason.label,
            reason.title,
            f"{reason.score:.3g}",
            ", ".join(f"{name} {value:.3g}" for name, value in reason.votes[:words]) or "no feature votes",
        )
        for reason in reasons
    ]
    show(make_table("", ("class", "title", "score", "votes"), rows))

"""``abound evaluate``: how good a model is on labelled rows."""

from __future__ import annotations

from typing import Annotated

import typer

from abound.serve.commands.options import (
    DataArgument,
    JobsOption,
    JsonOption,
    ModelArgument,
    ReadOption,
    TrustOption,
    load_model,
    read_options,
)
from abound.serve.output import make_table, megabytes, show, write_json


def evaluate(
    model: ModelArgument,
    data: DataArgument,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="COLUMN",
            help="A column of DATA that is no text, as in training: its name (CSV, JSONL) or number (TSV).",
            show_default=False,
        ),
    ] = None,
    jobs: JobsOption = None,
    read: ReadOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Measure MODEL on the labelled rows of DATA.

    Of a data set, its test part is taken.
    """
    from abound.progress import shown
    from abound.serve.evaluating import evaluate_model
    from abound.serve.inputs import iter_data

    options = read_options(read, group)
    loaded = load_model(model, jobs, trust)
    with shown():
        result = evaluate_model(loaded, iter_data(loaded, data, options))
    size = model.stat().st_size
    if json:
        write_json({"model": model, "data": data, **result.to_dict(), "model_bytes": size})
        return
    speed = result.rows / max(1e-9, result.predict_seconds)
    tail = [(row.training_rows, row.classes, row.labels, row.recall) for row in result.by_class_size]
    show(
        make_table("", ("measure", "value"), list(result.measures.items())),
        make_table("R1 by class size", ("training rows", "classes", "labels", "R1"), tail),
        f"{result.rows:,} rows, {speed:,.0f} a second; |W| {result.edges:,}, d {result.edges_touched:.1f}, "
        f"{megabytes(size)}",
    )

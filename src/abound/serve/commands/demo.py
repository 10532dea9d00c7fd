"""``abound demo``."""

from __future__ import annotations

from typing import Annotated

import typer

from abound.serve.commands.options import JobsOption, JsonOption
from abound.serve.output import make_table, show, write_json


def demo(
    learners: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Only these learners, with commas between.", show_default=False)
    ] = None,
    jobs: JobsOption = None,
    json: JsonOption = False,
) -> None:
    """Compare learners on diagnosis codes.

    Trains them on builtin:icd10 and prints one table.
    """
    from abound.progress import shown
    from abound.serve.demo import SETTINGS, run_demo
    from abound.serve.guard import wrong_usage

    names = list(SETTINGS) if learners is None else [name.strip() for name in learners.split(",")]
    with wrong_usage("--learners"):
        for name in names:
            if name not in SETTINGS:
                raise ValueError(f"the demo has no learner {name!r}; it has {', '.join(SETTINGS)}")
    with shown():
        result = run_demo(names, n_jobs=-1 if jobs is None else jobs)
    if json:
        write_json(result.to_dict())
        return
    columns = ("learner", "R1", "R5", "HR", "macro-F1", "tree loss", "train s", "|W|", "d", "model MB")
    rows = [
        [
            *(entry["learner"], entry["R1"], entry["R5"], entry["HR"], entry["macro_f1"], entry["tree_loss"]),
            *(entry["train_seconds"], entry["W"], entry["d"], entry["model_bytes"] / 1e6),
        ]
        for entry in result.learners
    ]
    examples = []
    for example in result.examples:
        cells = [f"{label} {title} ({score:.2f})" for label, title, score in example["classes"]]
        examples.append((example["text"], *(cells + [""] * 3)[:3]))
    about = f"Three best classes by {result.best}, and their scores"
    show(
        make_table(f"ICD-10-CM: {result.task}", columns, rows),
        make_table(about, ("phrase", "first", "second", "third"), examples),
        result.note,
    )

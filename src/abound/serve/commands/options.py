"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file of texts or vectors, a folder with train and test files, - for standard input, or builtin:icd10.",
    ),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
ReadOption = Annotated[
    list[str] | None,
    typer.Option("--read", metavar="KEY=VALUE", help="How to read DATA, such as format=csv or text_column=title."),
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="A column of DATA whose rows belong together, such as a patient: its name (CSV, JSONL) or number (TSV). "
        "They stay on one side of every split.",
        show_default=False,
    ),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", metavar="N", help="Threads; -1 for all cores.", show_default=False)
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="WHERE",
        help="Where to train: processes, local (Ray on this machine) or host:port (a Ray cluster); threads by default.",
        show_default=False,
    ),
]
CheckpointOption = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FOLDER",
        help="Where to keep what is finished: the same command, started again, goes on from there.",
        show_default=False,
    ),
]
TrustOption = Annotated[
    bool,
    typer.Option("--trust", help="Run what MODEL has of its own: a pattern that cuts texts into words may be any."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FeaturesOption = Annotated[
    Path | None,
    typer.Option("--features", metavar="FILE", help="Names of a vector model's features, one a line."),
]


def read_options(pairs: list[str] | None, group: str | None = None) -> dict[str, Any]:
    """Turn ``--read`` and ``--group`` into settings; an unknown one is wrong usage.

    Parameters
    ----------
    pairs : list of str or None
        Each ``key=value``.
    group : str, optional
        The column of groups.

    Returns
    -------
    dict
        By name.
    """
    from abound.serve.guard import wrong_usage
    from abound.serve.inputs import reading_options
    from abound.serve.settings import check_names, parse_pairs, parse_value

    with wrong_usage("--read"):
        settings = parse_pairs(pairs or ())
        check_names(settings, reading_options(), "reading")
    with wrong_usage("--group"):
        if group is not None and settings.setdefault("group_column", parse_value(group)) != parse_value(group):
            raise ValueError(f"--read names another column, group_column={settings['group_column']}")
    return settings


def load_model(path: Path, jobs: int | None, trust: bool) -> Any:
    """Load a model and set its number of threads.

    Parameters
    ----------
    path : Path
        The file.
    jobs : int or None
        Threads; None is one.
    trust : bool
        Whether to run what the file has of its own.

    Returns
    -------
    Model
        The model.
    """
    from abound.distribute import count_workers
    from abound.learn.model import Model
    from abound.serve.guard import wrong_usage

    with wrong_usage("--jobs"):
        count_workers(jobs)
    model = Model.load(path, trust=trust)
    if jobs is not None:
        model.estimator.set_params(n_jobs=jobs)
        if model.vectoriser is not None:
            model.vectoriser.set_params(n_jobs=jobs)
    return model

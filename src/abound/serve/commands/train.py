"""``abound train`` and ``abound learn``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from abound.serve.commands.options import (
    CheckpointOption,
    ClusterOption,
    DataArgument,
    GroupOption,
    JobsOption,
    JsonOption,
    ModelArgument,
    ReadOption,
    TrustOption,
    load_model,
    read_options,
)
from abound.serve.guard import Interrupted, wrong_usage
from abound.serve.output import make_table, megabytes, say, show, write_json


def train(
    data: DataArgument,
    model: Annotated[Path, typer.Option("--model", "-m", metavar="FILE", help="Where to write the model.")],
    learner: Annotated[
        str | None,
        typer.Option(
            "--learner",
            "-l",
            metavar="NAME",
            help="Which learner; `abound learners` lists them. By default the one that suits the data.",
            show_default=False,
        ),
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="The model must go on learning: choose among learners that can.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the learner, such as passes=3."),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="KEY=VALUE", help="A parameter of TextVectorizer, such as ngram_range=1,2."),
    ] = None,
    taxonomy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The taxonomy of the classes, `parent child` a line.")
    ] = None,
    titles: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names of the classes for people, `label<TAB>title` a line.")
    ] = None,
    validation_fraction: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Hold rows out to measure each pass on.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of all random choices.", show_default=False)
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Most memory to train in, such as 4GB; more is refused.", show_default=False),
    ] = None,
    group: GroupOption = None,
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    checkpoint: CheckpointOption = None,
    read: ReadOption = None,
    json: JsonOption = False,
) -> None:
    """Train a model on DATA.

    Of a data set, its training part is taken. Ctrl-C writes what an online learner has learned so far.
    """
    import time

    from abound.progress import shown
    from abound.serve.inputs import read_training_data
    from abound.serve.settings import parse_pairs
    from abound.serve.training import TrainingInterrupted, checked_vectoriser, choose_learner, train_model

    _check_target(model)
    written = {
        "random_state": seed,
        "n_jobs": jobs,
        "cluster": cluster,
        "checkpoint": checkpoint,
        "validation_fraction": validation_fraction,
        "memory": memory,
    }
    # What is named is checked before the data is read; what the data decides, after.
    estimator = None if learner is None else _estimator(learner, written, settings, online)
    with wrong_usage("--set"):
        parse_pairs(settings or ())
    with wrong_usage("--text"):
        vectoriser = checked_vectoriser(({} if jobs is None else {"n_jobs": jobs}) | parse_pairs(text or ()))
    options = read_options(read, group)
    more = _taxonomy_and_titles(taxonomy, titles)
    with shown():
        begin = time.perf_counter()
        dataset = read_training_data(data, options)
        dataset = replace(dataset, taxonomy=more["taxonomy"] or dataset.taxonomy)
        rows, was_read = dataset.train, time.perf_counter()
        chosen = None
        if estimator is None:
            chosen = choose_learner(dataset, vectoriser, online=online)
            if not json:
                say(f"taking the learner {chosen.shown} ({chosen.when}): {chosen.why} Name another with --learner.")
            estimator = _estimator(chosen.take, {**chosen.settings, **written}, settings, online)
        try:
            trained = train_model(
                rows, estimator, vectoriser, taxonomy=dataset.taxonomy, titles=more["titles"] or dataset.titles or None
            )
        except TrainingInterrupted as interrupt:
            interrupt.model.save(model)
            raise Interrupted(f"what was learned so far is in {model}") from None
    seconds = {"read": was_read - begin, "train": time.perf_counter() - was_read}
    trained.save(model)
    why = None if chosen is None else chosen.to_dict()
    _report(trained, model, len(rows), seconds, json, chosen=why)


def learn(
    model: ModelArgument,
    data: DataArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write; by default MODEL is replaced."),
    ] = None,
    jobs: JobsOption = None,
    read: ReadOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Let MODEL learn DATA as well.

    The rows are learned in the order of the file, with their new classes and words. Of a data set, its training part is
    taken.
    """
    import time

    from abound.progress import shown
    from abound.serve.inputs import iter_data
    from abound.serve.training import learn_more

    target = model if output is None else output
    _check_target(target)
    options = read_options(read)
    loaded = load_model(model, jobs, trust)
    begin = time.perf_counter()
    try:
        with shown():
            n_rows = learn_more(loaded, iter_data(loaded, data, options, part="train"))
        seconds = {"learn": time.perf_counter() - begin}
        loaded.save(target)
    except KeyboardInterrupt:
        raise Interrupted(f"nothing was learned, {target} is as it was") from None
    _report(loaded, target, n_rows, seconds, json)


def _estimator(learner: str, written: dict[str, Any], settings: list[str] | None, online: bool) -> Any:
    """Make a learner with what was written; what it has no use for is wrong usage."""
    from abound.distribute import check_cluster
    from abound.serve.settings import parse_pairs
    from abound.serve.training import checked_learner

    with wrong_usage("--learner"):
        made = checked_learner(learner)
        known = made.get_params(deep=False)
    with wrong_usage("--online"):
        if online and not hasattr(made, "partial_fit"):
            raise ValueError(f"the learner {learner!r} is not online: it cannot go on learning")
    with wrong_usage("--cluster"):
        check_cluster(written["cluster"])
        if written["cluster"] is not None and "cluster" not in known:
            raise ValueError(f"the learner {learner!r} is not trained in parts: it has no use for a cluster")
    with wrong_usage("--checkpoint"):
        if written["checkpoint"] is not None and "checkpoint" not in known:
            raise ValueError(f"the learner {learner!r} is trained in one go: it has no use for a checkpoint")
    with wrong_usage("--set"):
        hints = {"random_state", "n_jobs"} - set(known)
        given = {name: value for name, value in written.items() if value is not None and name not in hints}
        if "checkpoint" in given:
            given["checkpoint"] = str(given["checkpoint"])
        return checked_learner(learner, given | parse_pairs(settings or ()))


def _check_target(path: Path) -> None:
    """Find out before the work that its result can be written."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.absolute().parent} does not exist")


def _taxonomy_and_titles(taxonomy: Path | None, titles: Path | None) -> dict[str, Any]:
    from abound.read.taxonomy import Taxonomy
    from abound.read.taxonomy_files import read_titles

    names = None if titles is None else read_titles(titles)
    tree = None if taxonomy is None else Taxonomy.from_file(taxonomy, titles=names)
    return {"taxonomy": tree, "titles": names}


def _report(model: Any, path: Path, n_rows: int, seconds: dict[str, float], json: bool, **more: Any) -> None:
    learner = model.estimator
    history = getattr(learner, "history_", [])
    report = {
        "model": path,
        "bytes": path.stat().st_size,
        "learner": learner.learner,
        "parameters": learner.get_params(deep=False),
        "rows": n_rows,
        "classes": len(learner.class_counts_),
        "features": learner.n_features_in_,
        "edges": learner.n_edges_,
        "seconds": seconds,
        "history": history,
        **more,
    }
    if json:
        write_json(report)
        return
    columns = list(history[-1]) if history else []
    show(
        *([make_table("", columns, [[entry.get(name) for name in columns] for entry in history])] if history else []),
        f"{learner.learner}: {n_rows:,} rows, {report['classes']:,} classes, {report['features']:,} features, "
        f"{report['edges']:,} edges, {sum(seconds.values()):.1f} s; {path} has {megabytes(report['bytes'])}",
    )

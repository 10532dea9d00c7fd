"""``abound inspect`` and ``abound prune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from abound.serve.commands.options import FeaturesOption, JsonOption, ModelArgument, TrustOption, load_model
from abound.serve.output import make_table, megabytes, show, write_json


def inspect(
    model: ModelArgument,
    examples: Annotated[int, typer.Option(metavar="N", min=0, help="How many classes and features to list.")] = 10,
    features: FeaturesOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Show what is in MODEL.

    Its parameters and sizes, how many classes a feature votes for, the classes that most features vote for, the
    strongest edges, the features that tell little, and how the passes went.
    """
    from abound.serve.features import read_names
    from abound.serve.inspecting import inspect_model

    names = None if features is None else read_names(features)
    found = inspect_model(model, examples=examples, names=names, trust=trust)
    if json:
        write_json(found)
        return
    show(*_tables(found))


def prune(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the smaller model.")],
    max_degree: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Keep so many classes a feature, the heaviest.")
    ] = None,
    min_weight: Annotated[
        float | None, typer.Option(metavar="W", min=0, help="Keep edges of at least this weight.")
    ] = None,
    max_edges: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Keep so many edges in all, the heaviest.")
    ] = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Make MODEL smaller.

    Light edges are left out. The result ranks, but cannot learn.
    """
    from abound.serve.pruning import prune_model

    if max_degree is None and min_weight is None and max_edges is None:
        raise typer.BadParameter("say what to leave out", param_hint="--max-degree, --min-weight or --max-edges")
    loaded = load_model(model, None, trust)
    pruned = prune_model(loaded, max_degree=max_degree, min_weight=min_weight, max_edges=max_edges)
    before = {"edges": loaded.estimator.n_edges_, "bytes": model.stat().st_size}
    pruned.save(output)
    after = {"edges": pruned.estimator.n_edges_, "bytes": output.stat().st_size}
    if json:
        write_json({"model": output, "before": before, "after": after})
        return
    show(
        f"{before['edges']:,} to {after['edges']:,} edges, {megabytes(before['bytes'])} to "
        f"{megabytes(after['bytes'])}; {output}"
    )


def _tables(found: dict[str, Any]) -> list[Any]:
    out, into = found["out_degrees"], found["in_degrees"]
    strong, leaky = found["strong_edges"], found["leaky_features"]
    facts = [
        (name.replace("_", " "), found[name])
        for name in ("learner", "takes", "can_learn", "classes", "features", "edges", "voting_edges", "taxonomy_nodes")
    ]
    facts += [("out-degree, mean", out["mean"]), ("out-degree, max", out["max"])]
    facts += [("in-degree, mean over classes", into["mean"]), ("in-degree, mean over rows", into["mean_over_rows"])]
    facts += [("classes without edges", into["classes_without_edges"])]
    facts += [(name, str(value)) for name, value in found["parameters"].items()]
    tables = [
        make_table(found["model"], ("", "value"), [(name, _shown(value)) for name, value in facts]),
        make_table("Out-degrees", ("classes", "features"), list(out["features"].items())),
        _listed(f"Classes of the highest in-degree (max {into['max']:,})", into["top"]),
        _listed(f"Strong edges (weight > {strong['above']}): {strong['count']:,}", strong["examples"]),
        _listed(f"Leaky features (sum of weights < {leaky['below']}): {leaky['count']:,}", leaky["examples"]),
        _listed("History", found["history"]),
    ]
    sizes = [(name, megabytes(size)) for name, size in found["file"]["parts"].items()]
    return [*tables, make_table(f"File: {megabytes(found['file']['bytes'])}", ("part", "size"), sizes)]


def _shown(value: Any) -> str:
    from abound.serve.output import cell

    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else cell(value)


def _listed(title: str, entries: list[dict[str, Any]]) -> Any:
    """A table with a column for each key that is filled somewhere."""
    columns = [name for name in (entries[0] if entries else {}) if any(entry.get(name) != "" for entry in entries)]
    rows = [[entry.get(name) for name in columns] for entry in entries]
    return make_table(title, columns, rows) if entries else f"{title}\n"

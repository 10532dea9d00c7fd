"""``abound compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from abound.serve.commands.options import DataArgument, GroupOption, JobsOption, JsonOption, ReadOption, read_options
from abound.serve.guard import FAILED, Interrupted, wrong_usage
from abound.serve.output import show, write_json


def compare(
    data: DataArgument,
    learners: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Which learners, with commas between; by default those that suit the data.",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        str, typer.Option(metavar="TIME", help="Time for all of them together, such as 90s, 10m or 2h.")
    ] = "4m",
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory that a learner may take, such as 2GB; by default most of what is free.",
            show_default=False,
        ),
    ] = None,
    splits: Annotated[
        int, typer.Option(metavar="N", min=1, help="Splits into training and test rows; several are drawn at random.")
    ] = 1,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write a page with tables and charts.")
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to keep a row for each experiment; what it holds already is not run again. By default beside "
            "the report.",
            show_default=False,
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Train nothing; say which learner suits the data, and why.")
    ] = False,
    online: Annotated[bool, typer.Option("--online", help="The model must go on learning when it is in use.")] = False,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="KEY=VALUE", help="A parameter of TextVectorizer; by default ngram_range=1,2."),
    ] = None,
    taxonomy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The taxonomy of the classes, `parent child` a line.")
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Let the chosen learners learn probabilities, platt or isotonic, and show whether they keep what they "
            "say.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of all random choices.")] = 0,
    group: GroupOption = None,
    jobs: JobsOption = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="Where to run experiments side by side, each on one core: processes, local (Ray on this machine) or "
            "host:port (a Ray cluster). The time limit is then that of all cores together.",
            show_default=False,
        ),
    ] = None,
    read: ReadOption = None,
    json: JsonOption = False,
) -> None:
    """Compare learners on DATA and say which to take.

    Settings are chosen on held-out training rows; the test rows are measured once. Interrupted, the same command goes
    on where it was. The exit code is 1 where there is nothing to recommend.
    """
    from abound.progress import shown
    from abound.serve.compare_options import check_target, parse_plan
    from abound.serve.comparing import Outcome, read_dataset, run, training_command
    from abound.serve.comparing import explain as explained

    written: dict[str, Any] = {
        "--learners": learners,
        "--time-limit": time_limit,
        "--memory-limit": memory_limit,
        "--text": text,
        "--jobs": -1 if jobs is None else jobs,
        "--cluster": cluster,
        "--calibrate": calibrate,
    }
    plan = parse_plan(written, splits=splits, seed=seed)
    for option, target in (("--report", report), ("--rows", rows)):
        with wrong_usage(option):
            check_target(target)
    kept = rows if rows is not None or report is None else report.with_suffix(".jsonl")
    if report is not None and report == kept:
        raise typer.BadParameter(f"{report} would hold the rows as well: name it .html", param_hint="--report")
    dataset = read_dataset(data, read_options(read, group), taxonomy)
    if explain:
        _say(explained(dataset, plan, online), json)
        return
    try:
        with shown():
            found = run(dataset, plan, kept, online)
    except KeyboardInterrupt:
        where = "nothing was kept" if kept is None else f"the same command goes on from what is in {kept}"
        raise Interrupted(where) from None
    outcome = Outcome(found, training_command(found, data, text, read, taxonomy, group), report, kept)
    outcome.write_report()
    _say(outcome, json)
    if found.advice.take is None:
        raise typer.Exit(FAILED)


def _say(answer: Any, json: bool) -> None:
    if json:
        write_json(answer.to_dict())
    else:
        show(*answer.parts())

"""``abound``: the command line.

Exit codes: 0 done, 1 something is wrong with the data or the model, 2 wrong usage, 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

from typing import Annotated

import typer

from abound import __version__
from abound.serve.commands.compare import compare
from abound.serve.commands.convert import convert
from abound.serve.commands.data import data
from abound.serve.commands.demo import demo
from abound.serve.commands.evaluate import evaluate
from abound.serve.commands.inspect import inspect, prune
from abound.serve.commands.journal import journal
from abound.serve.commands.learners import learners
from abound.serve.commands.rank import explain, predict
from abound.serve.commands.serve import serve
from abound.serve.commands.train import learn, train
from abound.serve.guard import guarded

app = typer.Typer(
    name="abound",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (
    train,
    learn,
    predict,
    evaluate,
    compare,
    explain,
    inspect,
    prune,
    serve,
    journal,
    learners,
    convert,
    data,
    demo,
):
    app.command()(guarded(command))


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"abound {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Rank very many classes from sparse features."""


def main() -> None:
    """Run the command line; the entry point of the ``abound`` program."""
    app()


if __name__ == "__main__":
    main()

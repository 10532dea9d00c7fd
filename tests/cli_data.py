"""Small data and a way to run commands, for the tests of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from abound.serve.cli import app

DRINKS = {
    "tea": ["green", "leaf", "kettle", "steep"],
    "coffee": ["bean", "espresso", "roast", "grind"],
    "juice": ["orange", "press", "fruit", "sweet"],
    "water": ["spring", "clear", "still", "bottle"],
    "beer": ["hop", "malt", "brew", "barrel"],
}
COMMON = ["drink", "cup", "cold", "hot", "with", "morning"]


def run(*arguments: Any, code: int = 0, **more: Any) -> Any:
    """Run a command and check its exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], **more)
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    return result


def run_json(*arguments: Any, **more: Any) -> Any:
    """Run a command with --json; all it prints must be one valid document."""
    result = run(*arguments, "--json", **more)
    assert result.stderr == ""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(result.stdout, parse_constant=refuse)


def make_rows(n_rows: int = 120, seed: int = 0) -> list[tuple[str, str]]:
    """Make labelled texts: some words of the class, some that all share."""
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(n_rows):
        label = str(generator.choice(list(DRINKS)))
        own = generator.choice(DRINKS[label], size=2)
        common = generator.choice(COMMON, size=2)
        rows.append((label, " ".join([*own, *common])))
    return rows


def write_tsv(path: Path, rows: list[tuple[str, str]]) -> Path:
    """Write labelled texts."""
    path.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    return path


def write_svm(path: Path, rows: list[tuple[str, str]], first: int = 1) -> Path:
    """Write texts as vectors, a feature a word, in the order of all words."""
    words = [word for own in DRINKS.values() for word in own] + COMMON
    lines = []
    for label, text in rows:
        entries = sorted({words.index(word) + first for word in text.split()})
        lines.append(f"{label} {' '.join(f'{entry}:1' for entry in entries)}\n")
    path.write_text("".join(lines))
    return path

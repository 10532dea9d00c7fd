"""What ``abound compare`` does and says: tables, words and a page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from abound.compare.choose import Rule, Traits, advise, default_learners, traits_of
from abound.compare.findings import Findings, find
from abound.compare.page import make_page
from abound.compare.protocol import Plan, compare
from abound.compare.results import Standing
from abound.compare.rows import RowFile
from abound.read.compression import written_beside
from abound.read.datasets import Dataset
from abound.read.documents import Documents
from abound.read.taxonomy import Taxonomy
from abound.serve.compare_options import DEFAULT_TEXT
from abound.serve.inputs import read_training_data
from abound.serve.output import make_table

COLUMNS = ("learner", "setting", "R1", "R5", "macro-F1", "train s", "rank ms", "|W|", "peak MB", "model MB")


def read_dataset(data: str, options: Mapping[str, Any], taxonomy: Path | None) -> Dataset:
    """Read the data of a comparison.

    Parameters
    ----------
    data : str
        DATA of the command.
    options : mapping
        How to read a file.
    taxonomy : Path or None
        A file of the classes' taxonomy.

    Returns
    -------
    Dataset
        All its parts.
    """
    dataset = read_training_data(data, options)
    if taxonomy is not None:
        dataset = replace(dataset, taxonomy=Taxonomy.from_file(taxonomy, titles=dataset.titles))
    return replace(dataset, name="standard input" if data == "-" else Path(dataset.name).name)


def run(dataset: Dataset, plan: Plan, rows: Path | None, online: bool) -> Findings:
    """Compare.

    Parameters
    ----------
    dataset : Dataset
        The data.
    plan : Plan
        Learners and limits; without learners, those that suit the data.
    rows : Path or None
        Where to keep rows.
    online : bool
        Whether the model must go on learning.

    Returns
    -------
    Findings
        What was found.
    """
    traits = traits_of(dataset, online=online, text=plan.text)
    plan = plan if plan.learners else replace(plan, learners=default_learners(traits))
    with RowFile(rows) as kept:
        return find(compare(dataset, plan, kept), traits)


def training_command(
    found: Findings,
    data: str,
    text: list[str] | None,
    read: list[str] | None,
    taxonomy: Path | None,
    group: str | None = None,
) -> str | None:
    """Return the command that trains the learner to take.

    Parameters
    ----------
    found : Findings
        What was found.
    data : str
        DATA of the command.
    text, read : list of str or None
        Options as written.
    taxonomy : Path or None
        Option as written.
    group : str, optional
        Option as written.

    Returns
    -------
    str or None
        None if no learner has a result.
    """
    line = found.taken
    if line is None:
        return None
    words = ["abound", "train", data, "--learner", line.learner]
    words += [word for name, value in line.setting.items() for word in ("--set", f"{name}={value}")]
    if isinstance(found.comparison.dataset.train, Documents):
        pairs = [f"ngram_range={','.join(map(str, DEFAULT_TEXT['ngram_range']))}"] if text is None else text
        words += [word for pair in pairs for word in ("--text", pair)]
    words += [word for pair in read or () for word in ("--read", pair)]
    words += ["--group", group] if group is not None else []
    words += ["--taxonomy", str(taxonomy)] if taxonomy is not None else []
    return shlex.join([*words, "--model", "model.safetensors"])


@dataclass(frozen=True)
class Outcome:
    """What the command says at its end.

    Parameters
    ----------
    found : Findings
        What was found.
    command : str or None
        What to type to train the learner to take.
    report, rows : Path or None
        Files that were asked for.
    """

    found: Findings
    command: str | None
    report: Path | None
    rows: Path | None

    def write_report(self) -> None:
        """Write the page, if it was asked for; beside its place, then renamed."""
        if self.report is not None:
            with written_beside(self.report) as file:
                file.write(make_page(self.found, self.command).encode())

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return {**self.found.to_dict(), "command": self.command, "report": self.report, "rows": self.rows}

    def parts(self) -> list[Any]:
        """Return tables and lines for people."""
        title = f"Learners on {self.found.comparison.dataset.name}, best first"
        return [
            make_table(title, COLUMNS, [_cells(line) for line in self.found.lines]),
            *(f"Left out: {line}" for line in self.found.left_out()),
            *self.found.advice.sentences,
            *(f"Warning: {line}" for line in self.found.doubts.sentences()),
            *([f"  {self.command}"] if self.command else []),
            *([f"Report: {self.report}"] if self.report else []),
        ]


@dataclass(frozen=True)
class Explanation:
    """What ``--explain`` says.

    Parameters
    ----------
    name : str
        Of the data.
    traits : Traits
        What decides.
    take : Rule
        Which learner, and why.
    hints : list of Rule
        Others worth trying.
    """

    name: str
    traits: Traits
    take: Rule
    hints: list[Rule]

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        rules = [rule.to_dict() for rule in (self.take, *self.hints)]
        return {"data": self.name, "traits": self.traits.to_dict(), "take": self.take.take, "rules": rules}

    def parts(self) -> list[Any]:
        """Return lines for people."""
        t = self.traits
        return [
            f"{self.name}: {t.rows:,} training rows, {t.classes:,} classes ({t.rows_a_class:g} rows of a class in the "
            f"median), {t.nonzeros_a_row:.1f} features a row, {t.labels_a_row:.2f} labels a row, "
            f"{t.taxonomy or 'no'} taxonomy, {'online' if t.online else 'not online'}.",
            "",
            f"Take {self.take.shown} ({self.take.when}): {self.take.why}",
            "",
            "Also worth trying:",
            *(f"  {hint.shown} if {hint.when}: {hint.why}" for hint in self.hints),
        ]


def explain(dataset: Dataset, plan: Plan, online: bool) -> Explanation:
    """Say which learner suits the data, without training.

    Parameters
    ----------
    dataset : Dataset
        The data.
    plan : Plan
        For how texts become vectors.
    online : bool
        Whether the model must go on learning.

    Returns
    -------
    Explanation
        To print.
    """
    traits = traits_of(dataset, online=online, text=plan.text)
    return Explanation(dataset.name, traits, *advise(traits))


def _cells(line: Standing) -> tuple[Any, ...]:
    figures = [line.measures[name] for name in ("R1", "R5", "macro_f1")]
    return (
        *(line.learner, line.shown, *(f.mean if len(line.rows) == 1 else str(f) for f in figures)),
        *(line.train_seconds, line.rank_ms, line.edges),
        *(None if line.memory is None else line.memory / 1e6, line.model_bytes / 1e6),
    )

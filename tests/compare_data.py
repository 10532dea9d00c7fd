"""Small comparisons for tests: experiments run in this process, so that they take no time to start."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from abound.compare import launch
from abound.compare.choose import traits_of
from abound.compare.experiment import Experiment, plain
from abound.compare.findings import Findings, find
from abound.compare.measuring import measure
from abound.compare.prepared import load
from abound.compare.protocol import Comparison, Plan, compare
from abound.compare.rows import RowFile
from abound.read.datasets import Dataset
from abound.read.documents import Documents
from abound.read.taxonomy import Taxonomy

EVIL = '<script>alert("x")</script>&\'"'
"""A label that must arrive as text."""

WORDS = ["ash", "birch", "cedar", "elm", "fir", "hazel", "ivy", "larch", "maple", "oak", "pine", "rowan", "sorb", "yew"]


def make_dataset(n_rows: int = 240, *, seed: int = 0, several: bool = False, evil: bool = False) -> Dataset:
    """Texts of a few words, most of them of their class; class frequencies fall as in Zipf's law."""
    generator = np.random.default_rng(seed)
    names = [EVIL if evil and i == 0 else f"class {i}" for i in range(6)]
    share = 1 / np.arange(1, 7)
    texts: list[str] = []
    labels: list[Any] = []
    for _ in range(n_rows):
        c = int(generator.choice(6, p=share / share.sum()))
        own = [WORDS[(2 * c + j) % len(WORDS)] for j in generator.integers(0, 3, size=2)]
        texts.append(" ".join([*own, *generator.choice(WORDS, size=2)]))
        labels.append([names[c], names[(c + 1) % 6]] if several else names[c])
    taxonomy = Taxonomy.from_edges([("root", name) for name in names]) if not several else None
    titles = {names[0]: EVIL} if evil else {}
    return Dataset(EVIL if evil else "trees", Documents.of(texts, labels), None, None, taxonomy, titles)


def answer_here(experiment: Experiment, prepared: Path, limits: Any, scratch: Path) -> dict[str, Any]:
    """What the process of an experiment answers, without the process."""
    found = measure(
        load(prepared),
        experiment.learner,
        experiment.parameters,
        seed=experiment.seed,
        jobs=experiment.jobs,
        for_test=experiment.stage == "test",
    )
    answer: dict[str, Any] = plain(found)
    return answer


def compare_here(monkeypatch: Any, dataset: Dataset, plan: Plan, rows: Path | None = None) -> Comparison:
    """Compare, in this process."""
    monkeypatch.setattr(launch, "_answer", answer_here)
    with RowFile(rows) as kept:
        return compare(dataset, plan, kept)


def find_here(monkeypatch: Any, dataset: Dataset, plan: Plan) -> Findings:
    """Compare, in this process, and draw conclusions."""
    return find(compare_here(monkeypatch, dataset, plan), traits_of(dataset, online=False))


def wait_for(condition: Any, seconds: float = 30.0) -> bool:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())

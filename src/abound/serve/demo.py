"""The demo: several learners on diagnosis phrases, one table, and what the best of them says to a few phrases."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from abound.learn.model import Model
from abound.learn.registry import make_learner
from abound.measure import Cost
from abound.progress import track
from abound.read.datasets import Dataset, load_icd10
from abound.serve.evaluating import evaluate_model
from abound.vectorise.text import TextVectorizer

# Chosen by R1 on one random tenth of the training phrases, never on the test phrases; of settings within 0.002, the
# quicker one. ff: margins, list lengths, one or three passes; ema: margins, rates, one or three passes; ooz: margins,
# rates, five or ten passes (its defaults are 0.002 better and took more than twice as long); unweighted: the paper's
# tolerances, five or ten passes; mmp: up to six passes; pa: C and up to six passes.
SETTINGS: dict[str, dict[str, Any]] = {
    "frequency": {},
    "ind": {},
    "ff": {"passes": 3},
    "ema": {"passes": 3, "rate": 0.03},
    "ooz": {"passes": 5, "margin": 0.02, "rate": 0.01},
    "unweighted": {"passes": 5, "tolerance": 2},
    "mmp": {"passes": 4},
    "pa": {},
}
"""The learners of the demo, with what differs from their defaults."""

TEXT: dict[str, Any] = {"ngram_range": (1, 2)}
"""Words and pairs of words."""

PHRASES = (
    "broken left wrist after a fall from a ladder",
    "type 2 diabetes with kidney damage",
    "allergic to peanuts",
    "stung by a wasp",
    "migraine with aura",
)

WARM_UP_ROWS = 200


@dataclass(frozen=True)
class DemoResult:
    """What the demo has found.

    Parameters
    ----------
    task : str
        The data in a few words.
    learners : list of dict
        For each learner its measures and costs.
    best : str
        The learner with the highest R1.
    examples : list of dict
        Phrases, and the three best classes of each with their titles and scores.
    note : str
        How the figures were taken.
    """

    task: str
    learners: list[dict[str, Any]]
    best: str
    examples: list[dict[str, Any]]
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)


def run_demo(names: Sequence[str] = tuple(SETTINGS), *, n_jobs: int | None = -1) -> DemoResult:
    """Train learners on the built-in diagnosis phrases and measure them on what doctors write.

    Parameters
    ----------
    names : sequence of str
        Learners of `SETTINGS`.
    n_jobs : int or None
        Threads for texts and for ranking; learning itself takes one.

    Returns
    -------
    DemoResult
        Tables to print.
    """
    dataset = load_icd10()
    train: Any = dataset.train
    vectoriser = TextVectorizer(**TEXT, n_jobs=n_jobs)
    # The machine code is made, or fetched, in the first call: that is no time of work, here and in `_measure`.
    vectoriser.fit_transform(train.text_bytes.take(slice(WARM_UP_ROWS)))
    begin = time.perf_counter()
    X = vectoriser.fit_transform(train.text_bytes)
    text_seconds = time.perf_counter() - begin
    entries, models = [], {}
    with track("demo", len(names)) as progress:
        for name in names:
            models[name] = model = Model(
                make_learner(name, **SETTINGS[name], n_jobs=n_jobs), vectoriser, dataset.taxonomy, dataset.titles
            )
            entries.append({"learner": name, **_measure(model, X, dataset)})
            progress.advance(1, name)
    best = max(entries, key=lambda entry: float(entry["R1"]))["learner"]
    return DemoResult(
        f"{len(train):,} phrases to train on, {X.shape[1]:,} words and pairs, {train.labels.n_classes:,} classes",
        entries,
        best,
        [{"text": phrase, "classes": _titled(models[best], phrase)} for phrase in PHRASES],
        f"Tested on {len(dataset.part('test')):,} inclusion terms. train s is learning alone, after a first call on "
        f"{WARM_UP_ROWS} rows that compiles; the vectors, the same for all, were made in {text_seconds:.1f} s.",
    )


def _measure(model: Model, X: Any, dataset: Dataset) -> dict[str, Any]:
    learner: Any = model.estimator
    labels = dataset.train.labels
    learner.fit(X[:WARM_UP_ROWS], labels.to_y()[:WARM_UP_ROWS]).predict_topk(X[:1])
    begin = time.perf_counter()
    learner.fit(X, labels)
    train_seconds = time.perf_counter() - begin
    result = evaluate_model(model, [dataset.part("test")])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.abound")
        model.save(path)
        size = path.stat().st_size
    cost = Cost(train_seconds, result.edges, result.edges_touched, None, result.predict_seconds, size)
    return {**result.measures, **cost.to_dict(), "W": result.edges, "model_bytes": size}


def _titled(model: Model, phrase: str) -> list[tuple[str, str, float]]:
    (labels,), (scores,) = model.predict_topk([phrase], 3)
    titles, ranked = model.titles or {}, zip(labels.tolist(), scores.tolist(), strict=True)
    return [(label, titles.get(label, ""), score) for label, score in ranked if label is not None]

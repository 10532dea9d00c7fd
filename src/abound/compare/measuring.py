"""Train one learner on prepared rows and measure all that a row of a comparison holds."""

from __future__ import annotations

import base64
import copy
import tempfile
import time
import warnings
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.compare.anytime import anytime_points
from abound.compare.experiment import Row
from abound.compare.memory import peak_memory
from abound.compare.prepared import WARM_UP_ROWS, Prepared
from abound.labels import Labels
from abound.learn.base import RankingClassifier
from abound.learn.expert_training import confusions
from abound.learn.model import Model
from abound.learn.online import OnlineClassifier
from abound.learn.registry import make_learner
from abound.measure import (
    EVALUATION_DEPTH,
    ClassDistances,
    calibration_bound,
    evaluate,
    ranking_measures,
    reliability,
    tail_table,
)
from abound.measure.thresholds import right_places
from abound.rank.topk import Ranking

MOST_CONFUSIONS, MOST_WARNINGS = 20, 5


def measure(
    prepared: Prepared, learner: str, parameters: Mapping[str, Any], *, seed: int, jobs: int, for_test: bool
) -> Row:
    """Train a learner and measure it.

    Parameters
    ----------
    prepared : Prepared
        The rows.
    learner : str
        Its short name.
    parameters : mapping
        Those that differ from the defaults.
    seed : int
        Its ``random_state``, if it has one.
    jobs : int
        Threads.
    for_test : bool
        Keep each row's first class, confusions, and accuracy by budget as well. Without it, passes are measured one
        by one.

    Returns
    -------
    dict
        The measured part of a row.
    """
    model = _made(prepared, learner, parameters, seed, jobs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        _warm_up(_made(prepared, learner, parameters, seed, jobs), prepared)
        before, warm_up = peak_memory(), time.perf_counter() - begin
        caught.clear()
        watched = _Watched(model, prepared) if not for_test else None
        begin = time.perf_counter()
        model.fit(prepared.X, prepared.labels)
        train = time.perf_counter() - begin - (watched.seconds if watched is not None else 0.0)
        begin = time.perf_counter()
        rows = model._rows(prepared.held_X)
        ranking = model._rank(rows, max(EVALUATION_DEPTH, model._decision_depth()), None)
        rank = time.perf_counter() - begin
        peak = peak_memory()
    ids = ranking.ids[:, :EVALUATION_DEPTH]
    history = copy.deepcopy(getattr(model, "history_", []))
    if watched is not None:
        watched.write_into(history)
    row: Row = {
        "measures": _measures(model, prepared, ranking, ids),
        "tail": [asdict(entry) for entry in tail_table(ids, prepared.truth, model.class_counts_)],
        "history": history,
        "W": int(model.n_edges_),
        "d": _edges_touched(model, rows),
        "model_bytes": _model_bytes(model, prepared),
        "warnings": list(dict.fromkeys(str(warning.message) for warning in caught))[:MOST_WARNINGS],
        "timings": {"warm_up": warm_up, "train": train, "rank": rank},
        "memory": {"before": before, "peak": peak},
    }
    if for_test:
        first = ids[:, 0]
        row["first"] = pack_ids(first)
        row["confusions"] = _confusions(first, prepared.truth)
        row["anytime"] = anytime_points(model, prepared)
        if model.is_calibrated:
            row["reliability"] = _reliability(model, prepared, ranking)
    return row


def pack_ids(ids: npt.NDArray[np.int32]) -> str:
    """Write ids as text.

    Parameters
    ----------
    ids : int32 array
        The ids.

    Returns
    -------
    str
        ASCII.

    Examples
    --------
    >>> unpack_ids(pack_ids(np.array([3, -1, 70000], dtype=np.int32))).tolist()
    [3, -1, 70000]
    """
    return base64.b64encode(zlib.compress(np.ascontiguousarray(ids, dtype="<i4").tobytes(), 6)).decode()


def unpack_ids(text: str) -> npt.NDArray[np.int32]:
    """Read what `pack_ids` wrote.

    Parameters
    ----------
    text : str
        ASCII.

    Returns
    -------
    int32 array
        The ids.
    """
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i4")


class _Watched:
    """Measures an online learner after each pass, and how long that takes."""

    def __init__(self, model: RankingClassifier, prepared: Prepared) -> None:
        self.seconds = 0.0
        self._found: list[dict[str, float]] = []
        self._model, self._prepared = model, prepared
        if isinstance(model, OnlineClassifier) and "passes" in model.get_params(deep=False):
            model._watch = frozenset(range(1, model.passes + 1)), self._measure

    def _measure(self) -> None:
        begin = time.perf_counter()
        ids = self._model._rank(self._model._rows(self._prepared.held_X), EVALUATION_DEPTH, None).ids
        measures = ranking_measures(ids, self._prepared.truth, ks=(1,))
        self._found.append({"R1": measures["R1"], "MRR": measures["MRR"]})
        self.seconds += time.perf_counter() - begin

    def write_into(self, history: list[dict[str, float]]) -> None:
        if len(self._found) == len(history):
            for entry, found in zip(history, self._found, strict=True):
                entry |= found


def _made(prepared: Prepared, learner: str, parameters: Mapping[str, Any], seed: int, jobs: int) -> RankingClassifier:
    model = make_learner(learner)
    known = model.get_params(deep=False)
    shared = {"random_state": seed, "n_jobs": jobs, "taxonomy": prepared.taxonomy}
    wanted = {name: value for name, value in shared.items() if name in known and value is not None}
    return make_learner(learner, **wanted | dict(parameters))


def _warm_up(model: RankingClassifier, prepared: Prepared) -> None:
    """A first call on a few rows; a learner that has something against so few says nothing here."""
    step = max(1, prepared.X.shape[0] // WARM_UP_ROWS)
    some = np.arange(0, prepared.X.shape[0], step)[:WARM_UP_ROWS]
    with suppress(ValueError):
        model.fit(prepared.X[some], prepared.labels.take(some).to_y())
        model._rank(model._rows(prepared.held_X[:WARM_UP_ROWS]), EVALUATION_DEPTH, None)


def _measures(
    model: RankingClassifier, prepared: Prepared, ranking: Ranking, ids: npt.NDArray[np.int32]
) -> dict[str, float]:
    truth, predicted = prepared.truth, None
    if model._kind != "single":
        depth = model._decision_depth()
        indptr, decided = model._decide(Ranking(ranking.ids[:, :depth], ranking.scores[:, :depth]))
        predicted = Labels(indptr, decided, truth.classes, "lists")
    return evaluate(
        ids,
        truth,
        n_classes=prepared.facts.classes,
        predicted=predicted,
        counts=model.class_counts_,
        n_train=prepared.facts.fit_rows,
        distances=_distances(prepared),
    )


def _reliability(model: RankingClassifier, prepared: Prepared, ranking: Ranking) -> dict[str, Any]:
    """What is said of each row's first class, and what is right."""
    said = model._probabilities(ranking)[:, 0]
    right = right_places(ranking.ids[:, :1], prepared.truth)[:, 0]
    found = reliability(said, right)
    return {**found._asdict(), "error": found.error, "bound": calibration_bound(said, right)}


def _distances(prepared: Prepared) -> ClassDistances | None:
    if prepared.taxonomy is None:
        return None
    with suppress(ValueError):
        return ClassDistances(prepared.taxonomy, prepared.truth.classes)
    return None


def _edges_touched(model: RankingClassifier, rows: Any) -> float | None:
    try:
        return float(model.index_.edges_touched(rows))
    except (AttributeError, NotImplementedError, IndexError):
        return None


def _model_bytes(model: RankingClassifier, prepared: Prepared) -> int:
    # How long passes took stands in the file as well: the size must not depend on the clock.
    twin = copy.copy(model)
    if hasattr(twin, "history_"):
        twin.history_ = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        Model(twin, None, prepared.taxonomy).save(path)
        return path.stat().st_size


def _confusions(first: npt.NDArray[np.int32], truth: Labels) -> list[dict[str, Any]]:
    """The pairs of a true class and another one put first that are most frequent."""
    pairs = confusions(first, truth).tocoo()
    totals = truth.counts
    return [
        {
            "true": str(truth.classes[pairs.row[i]]),
            "first": str(truth.classes[pairs.col[i]]),
            "rows": int(pairs.data[i]),
            "of": int(totals[pairs.row[i]]),
        }
        for i in np.lexsort((pairs.col, pairs.row, -pairs.data))[:MOST_CONFUSIONS]
    ]

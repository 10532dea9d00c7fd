"""All measures of a model on labelled rows, chunk by chunk."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from abound.labels import Labels, encode
from abound.learn.base import RankingClassifier
from abound.learn.model import Model
from abound.measure import EVALUATION_DEPTH, ClassDistances, TailRow, evaluate, tail_table
from abound.rank.topk import Ranking
from abound.serve.inputs import Data, inputs_of


@dataclass(frozen=True)
class Evaluation:
    """How good a model is.

    Parameters
    ----------
    rows : int
        Rows that were ranked.
    measures : dict
        See `abound.measure.evaluate`.
    by_class_size : list of TailRow
        Recall by the number of training rows of the class.
    edges : int
        |W|, the weights that the model keeps.
    edges_touched : float
        d, edges touched for each feature of a row, on average.
    predict_seconds : float
        Time to vectorise and rank the rows.
    """

    rows: int
    measures: dict[str, float]
    by_class_size: list[TailRow]
    edges: int
    edges_touched: float
    predict_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)


def evaluate_model(model: Model, chunks: Iterable[Data]) -> Evaluation:
    """Rank rows and compare with their labels.

    Parameters
    ----------
    model : Model
        What ranks.
    chunks : iterable of Documents or Vectors
        Rows and true labels. Of each row only its ranking is kept, 50 numbers.

    Returns
    -------
    Evaluation
        With the tree loss if the model has a taxonomy.
    """
    learner = model.estimator
    rankings: list[Ranking] = []
    truths: list[Labels] = []
    touched, active, seconds = 0.0, 0, 0.0
    for rows in chunks:
        begin = time.perf_counter()
        checked = learner._rows(model.rows(inputs_of(model, rows)))
        rankings.append(learner._rank(checked, max(EVALUATION_DEPTH, learner._decision_depth()), None))
        seconds += time.perf_counter() - begin
        truths.append(rows.labels)
        n_active = int(checked.indptr[-1] - checked.indptr[0])
        touched += learner.index_.edges_touched(checked) * n_active
        active += n_active
    ranking = Ranking(*(np.concatenate(parts) for parts in zip(*rankings, strict=True)))
    ids = ranking.ids[:, :EVALUATION_DEPTH]
    truth = encode(joined(truths), learner.classes_)
    measures = evaluate(
        ids,
        truth,
        n_classes=len(learner.classes_),
        predicted=_predicted(learner, ranking, truth),
        counts=learner.class_counts_,
        n_train=round(learner.class_counts_.sum() / max(1e-12, learner._labels_a_row)),
        distances=None if model.taxonomy is None else ClassDistances(model.taxonomy, truth.classes),
    )
    tail = tail_table(ids, truth, learner.class_counts_)
    return Evaluation(len(ids), measures, tail, learner.n_edges_, touched / max(1, active), seconds)


def joined(parts: list[Labels]) -> Labels:
    """Put the labels of the chunks of one stream together.

    Parameters
    ----------
    parts : list of Labels
        At least one; later ones may know more classes, which keep their ids.

    Returns
    -------
    Labels
        Of all rows.
    """
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    ids = np.concatenate([part.ids for part in parts])
    return Labels(indptr, ids, parts[-1].classes, parts[-1].kind)


def _predicted(learner: RankingClassifier, ranking: Ranking, truth: Labels) -> Labels | None:
    """The sets of classes that `predict` would return, None where it returns one class a row."""
    if learner._kind == "single":
        return None
    depth = learner._decision_depth()
    indptr, ids = learner._decide(Ranking(ranking.ids[:, :depth], ranking.scores[:, :depth]))
    return Labels(indptr, ids, truth.classes, "lists")

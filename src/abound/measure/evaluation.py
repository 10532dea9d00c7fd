"""All measures of a ranking in one call, recall by class size, and what a model costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.labels import Labels
from abound.measure.decisions import count_classes, first_choices, row_is_right
from abound.measure.places import FloatArray, IdArray, IntArray, TrueRanks, check_ranked, check_truth, true_ranks
from abound.measure.ranking import (
    inverse_propensities,
    measures_of,
    ndcg,
    precision,
    ps_ndcg,
    ps_precision,
)
from abound.measure.treeloss import Distances, mean_tree_loss
from abound.validation import check_number


@dataclass(frozen=True, slots=True)
class Cost:
    """What a model costs.

    Parameters
    ----------
    train_seconds : float
        Training time.
    edges : int
        |W|, the weights that the model keeps.
    edges_touched : float
        d, edges touched for each feature of a test row; for a system of classifiers, the number applied.
    complexity_ratio : float, optional
        Classifiers evaluated / classes, for systems of classifiers.
    predict_seconds : float, optional
        Time to rank the test rows.
    model_bytes : int, optional
        Size of the model.
    """

    train_seconds: float
    edges: int
    edges_touched: float
    complexity_ratio: float | None = None
    predict_seconds: float | None = None
    model_bytes: int | None = None

    def to_dict(self) -> dict[str, float]:
        """Return the figures that are known by their short names, to stand beside those of `evaluate`."""
        figures = {
            "train_seconds": self.train_seconds,
            "W": self.edges,
            "d": self.edges_touched,
            "complexity_ratio": self.complexity_ratio,
            "predict_seconds": self.predict_seconds,
            "model_bytes": self.model_bytes,
        }
        return {name: float(value) for name, value in figures.items() if value is not None}


@dataclass(frozen=True, slots=True)
class TailRow:
    """How well the classes of one size are found.

    Parameters
    ----------
    training_rows : str
        The size, such as ``2-5``.
    classes : int
        Classes of this size, in the model or only in the test set.
    labels : int
        True labels of such classes in the test set; with one label a row, rows.
    recall : float or None
        The part of them found; None if there are none.
    """

    training_rows: str
    classes: int
    labels: int
    recall: float | None


def evaluate(
    ranked_ids: npt.ArrayLike,
    truth: Any,
    *,
    n_classes: int,
    predicted: Labels | None = None,
    counts: npt.ArrayLike | None = None,
    n_train: int | None = None,
    distances: Distances | None = None,
    ks: Sequence[int] = (1, 5, 10),
) -> dict[str, float]:
    """Measure a ranking.

    Parameters
    ----------
    ranked_ids : integer array of shape (n, k)
        Class ids, best first, -1 for nothing. Rank 50 (`abound.measure.EVALUATION_DEPTH`): a true class beyond the
        last one gives MRR nothing.
    truth : Labels or sparse indicator
        The true classes by the same ids, best made by ``encode(y, known=model.classes_)``: labels that the model does
        not know then have ids from ``n_classes`` on. They may also be -1; for macro-F1 they are then one class.
        Either way they are errors.
    n_classes : int
        Number of the model's classes.
    predicted : Labels, optional
        The sets of classes that accuracy and F1 judge; the first class of each row if not given.
    counts : integer array, optional
        Training rows of each class.
    n_train : int, optional
        Training rows in all. Propensity-scored measures need both.
    distances : callable, optional
        Path lengths between pairs of class ids, such as `abound.measure.ClassDistances`, for the tree loss.
    ks : sequence of int
        Which R_k, P@k and so on.

    Returns
    -------
    dict of str to float
        ``R1``, ``R5``, ``R10``, ``MRR``, ``HR``, ``accuracy``, ``micro_f1``, ``macro_f1``, ``macro_f1_all``; with
        ``distances``, ``tree_loss``; where rows may have several labels, ``P@1``, ``nDCG@1``, ...; with ``counts`` and
        ``n_train`` also ``PSP@1``, ``PSnDCG@1``, ... HR is infinite if no true class was ranked at all.

    Examples
    --------
    >>> from abound.labels import encode
    >>> truth = encode(["a", "b", "x"], known=np.array(["a", "b", "c"]))
    >>> measures = evaluate([[0, 1], [2, 1], [0, 2]], truth, n_classes=3, ks=(1, 2))
    >>> {name: round(value, 3) for name, value in measures.items()}
    {'R1': 0.333, 'R2': 0.667, 'MRR': 0.5, 'HR': 2.0, 'accuracy': 0.333, 'micro_f1': 0.333, 'macro_f1': 0.167,
     'macro_f1_all': 0.167}
    """
    check_number("n_classes", n_classes, 1, whole=True)
    labels = check_truth(truth)
    ranked = _whole_ranking(check_ranked(ranked_ids, len(labels)), n_classes, max(ks, default=1))
    ranks = true_ranks(ranked, labels)
    measures = measures_of(ranks, ks)
    choices = first_choices(ranked, labels.classes) if predicted is None else predicted
    class_counts = count_classes(labels, choices, n_classes)
    measures["accuracy"] = float(np.mean(row_is_right(labels, choices)))
    measures["micro_f1"] = class_counts.micro_f1()
    measures["macro_f1"] = class_counts.macro_f1()
    measures["macro_f1_all"] = class_counts.macro_f1_all(n_classes)
    if distances is not None:
        measures["tree_loss"] = mean_tree_loss(ranked[:, 0], labels, distances)
    if labels.kind != "single":
        measures |= _set_measures(ranks, counts, n_train, ks)
    return measures


def tail_table(
    ranked_ids: npt.ArrayLike, truth: Any, counts: npt.ArrayLike, *, k: int = 1, bounds: Sequence[int] = (1, 5, 20, 100)
) -> list[TailRow]:
    """R_k by how many training rows a class has.

    Each true label counts by itself: it is found if it is among the first k of its row. Labels that the model does
    not know have no training rows.

    Parameters
    ----------
    ranked_ids : integer array of shape (n, k)
        Class ids, best first; -1 is nothing.
    truth : Labels or sparse indicator
        The true classes by the same ids.
    counts : integer array of shape (n_classes,)
        Training rows of each class.
    k : int
        How many classes of a row count; with many labels a row, take more than 1.
    bounds : sequence of int
        The largest size in each bin but the last.

    Returns
    -------
    list of TailRow
        For 0, 1, 2-5, 6-20, 21-100 and more than 100 training rows.

    Examples
    --------
    >>> from abound.labels import encode
    >>> truth = encode(["a", "b", "x"], known=np.array(["a", "b", "c"]))
    >>> for row in tail_table([[0], [2], [0]], truth, counts=[30, 4, 4])[:3]:
    ...     print(row.training_rows, row.classes, row.labels, row.recall)
    0 1 1 0.0
    1 0 0 None
    2-5 2 1 0.0
    """
    ranks = true_ranks(ranked_ids, truth)
    if k > ranks.width:
        raise ValueError(f"k={k}, but only {ranks.width} classes of each row were ranked: rank at least {k}")
    if list(bounds) != sorted(set(bounds)) or not bounds or bounds[0] < 1:
        raise ValueError(f"bounds={bounds!r}: they must be rising numbers from 1 on")
    sizes = np.asarray(counts, dtype=np.int64)
    strangers = np.unique(ranks.ids[(ranks.ids < 0) | (ranks.ids >= len(sizes))])
    limits = np.array([0, *bounds])
    class_bins = np.searchsorted(limits, np.concatenate((sizes, np.zeros(len(strangers), np.int64))))
    label_bins = np.searchsorted(limits, _of_labels(sizes, ranks.ids))
    found = (ranks.ranks > 0) & (ranks.ranks <= k)
    n_classes = np.bincount(class_bins, minlength=len(limits) + 1).tolist()
    n_labels = np.bincount(label_bins, minlength=len(limits) + 1).tolist()
    n_found = np.bincount(label_bins[found], minlength=len(limits) + 1).tolist()
    names = ["0", *(f"{low + 1}-{high}" if low + 1 < high else str(high) for low, high in pairwise(limits.tolist()))]
    return [
        TailRow(name, n_classes[i], n_labels[i], n_found[i] / n_labels[i] if n_labels[i] else None)
        for i, name in enumerate([*names, f">{bounds[-1]}"])
    ]


def _whole_ranking(ranked: IdArray, n_classes: int, depth: int) -> IdArray:
    """Check the ids and, where all classes were ranked and that is fewer than asked for, fill up with nothing."""
    highest = int(ranked.max(initial=-1))
    if highest >= n_classes:
        raise ValueError(f"the ranking holds class id {highest}, but there are only {n_classes} classes")
    missing = max(depth, 1) - ranked.shape[1]
    if missing <= 0 or ranked.shape[1] < n_classes:
        return ranked
    return np.pad(ranked, ((0, 0), (0, missing)), constant_values=-1)


def _set_measures(
    ranks: TrueRanks, counts: npt.ArrayLike | None, n_train: int | None, ks: Sequence[int]
) -> dict[str, float]:
    """Measures that make sense where a row may have several labels."""
    measures = {f"P@{k}": precision(ranks, k) for k in ks}
    measures |= {f"nDCG@{k}": ndcg(ranks, k) for k in ks}
    if counts is not None and n_train is not None:
        inverse: FloatArray = inverse_propensities(_of_labels(np.asarray(counts, dtype=np.int64), ranks.ids), n_train)
        measures |= {f"PSP@{k}": ps_precision(ranks, inverse, k) for k in ks}
        measures |= {f"PSnDCG@{k}": ps_ndcg(ranks, inverse, k) for k in ks}
    return measures


def _of_labels(counts: IntArray, ids: IdArray) -> IntArray:
    """The training rows of each label's class; 0 for a class that the model does not know."""
    known = (ids >= 0) & (ids < len(counts))
    return np.where(known, np.append(counts, 0)[np.where(known, ids, len(counts))], 0)

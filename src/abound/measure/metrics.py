"""The measures on labels, as a user has them: true labels, and what ``predict`` or ``predict_topk`` returned.

``y_true`` and ``y_pred`` are anything `abound.labels.encode` takes: labels, lists of labels, a sparse indicator.
``labels_topk`` has shape (n, k), best first; None is nothing. No array of rows × classes is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.measure import ranking
from abound.measure.decisions import ClassCounts, count_classes, row_is_right
from abound.measure.encoding import encode_predicted, encode_ranking, encode_truth
from abound.measure.evaluation import evaluate
from abound.measure.places import TrueRanks, true_ranks
from abound.measure.treeloss import ClassDistances, Taxonomy, mean_tree_loss


def recall_at_k(y_true: Any, labels_topk: Any, k: int) -> float:
    """R_k, the fraction of rows with a true label among the first k.

    Parameters
    ----------
    y_true : labels
        The true labels.
    labels_topk : array of shape (n, k)
        Ranked labels.
    k : int
        How many of them count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> recall_at_k(["a", "b"], [["a", "b"], ["a", "b"]], k=1)
    0.5
    """
    return ranking.recall(_ranks(y_true, labels_topk), k)


def mean_reciprocal_rank(y_true: Any, labels_topk: Any) -> float:
    """MRR, the mean of 1 / rank of the best ranked true label; 0 for a row where none was ranked.

    Parameters
    ----------
    y_true : labels
        The true labels.
    labels_topk : array of shape (n, k)
        Ranked labels; make k large (50).

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> mean_reciprocal_rank(["a", "b"], [["a", "b"], ["a", "b"]])
    0.75
    """
    return ranking.reciprocal_rank(_ranks(y_true, labels_topk))


def harmonic_rank(y_true: Any, labels_topk: Any) -> float:
    """HR = 1 / MRR, the harmonic mean of the rank of the best ranked true label.

    Parameters
    ----------
    y_true : labels
        The true labels.
    labels_topk : array of shape (n, k)
        Ranked labels; make k large (50).

    Returns
    -------
    float
        At least 1, lower is better; infinite if no true label was ranked at all.

    Examples
    --------
    >>> round(harmonic_rank(["a", "b"], [["a", "b"], ["a", "b"]]), 3)
    1.333
    """
    return ranking.harmonic(mean_reciprocal_rank(y_true, labels_topk))


def accuracy(y_true: Any, y_pred: Any) -> float:
    """The fraction of rows whose predicted labels are exactly the true ones.

    Parameters
    ----------
    y_true, y_pred : labels
        The true and the predicted labels.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> accuracy([["a"], ["a", "b"]], [["a"], ["b"]])
    0.5
    """
    truth = encode_truth(y_true)
    return float(np.mean(row_is_right(truth, encode_predicted(y_pred, truth.classes))))


def micro_f1(y_true: Any, y_pred: Any) -> float:
    """F1 of all decisions taken together, 2 TP / (2 TP + FP + FN).

    Parameters
    ----------
    y_true, y_pred : labels
        The true and the predicted labels.

    Returns
    -------
    float
        Between 0 and 1; equal to the accuracy where every row has one true and one predicted label.

    Examples
    --------
    >>> round(micro_f1([["a"], ["a", "b"]], [["a"], ["b"]]), 3)
    0.8
    """
    return _counts(y_true, y_pred).micro_f1()


def macro_f1(y_true: Any, y_pred: Any, classes: Sequence[Any] | npt.NDArray[Any] | None = None) -> float:
    """The mean over classes of their F1.

    Parameters
    ----------
    y_true, y_pred : labels
        The true and the predicted labels.
    classes : sequence, optional
        Average over these and those that occur, as the papers do over all leaves; only over the classes that are true
        or predicted somewhere, as scikit-learn does, if not given.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(macro_f1(["a", "b", "b"], ["a", "b", "a"]), 3)
    0.667
    >>> round(macro_f1(["a", "b", "b"], ["a", "b", "a"], classes=["a", "b", "c"]), 3)
    0.444
    """
    counts = _counts(y_true, y_pred)
    if classes is None:
        return counts.macro_f1()
    predicted = encode_predicted(y_pred, encode_truth(y_true).classes).classes.tolist()
    return float(counts.f1().sum() / len(set(predicted).union(_listed(classes))))


def tree_loss(y_true: Any, y_pred: Any, taxonomy: Taxonomy, classes: npt.NDArray[Any] | None = None) -> float:
    """The mean number of edges between the predicted and the true class, the nearest one if there are several.

    Parameters
    ----------
    y_true : labels
        The true labels.
    y_pred : sequence of labels
        One a row; None, or a label outside the taxonomy, counts as the class farthest from the true one.
    taxonomy : Taxonomy
        The tree or graph.
    classes : array, optional
        All classes, among which the farthest is looked for; those that occur if not given.

    Returns
    -------
    float
        At least 0, lower is better.
    """
    truth = encode_truth(y_true, classes)
    predicted = encode_predicted(y_pred, truth.classes)
    if (np.diff(predicted.indptr) > 1).any():
        row = int(np.flatnonzero(np.diff(predicted.indptr) > 1)[0])
        raise ValueError(f"y_pred[{row}] holds several labels; the tree loss is that of one predicted class a row")
    return mean_tree_loss(predicted.first_ids(), truth, ClassDistances(taxonomy, predicted.classes))


def precision_at_k(y_true: Any, labels_topk: Any, k: int) -> float:
    """P@k, the mean over rows of the true labels among the first k, divided by k.

    Parameters
    ----------
    y_true : labels
        The true labels.
    labels_topk : array of shape (n, k)
        Ranked labels.
    k : int
        How many of them count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> precision_at_k([["a"], ["a", "b"]], [["a", "b"], ["a", "b"]], k=2)
    0.75
    """
    return ranking.precision(_ranks(y_true, labels_topk), k)


def ndcg_at_k(y_true: Any, labels_topk: Any, k: int) -> float:
    """nDCG@k, where a true label at rank r gives 1 / log2(r + 1), divided by what the best ranking would get.

    Parameters
    ----------
    y_true : labels
        The true labels.
    labels_topk : array of shape (n, k)
        Ranked labels.
    k : int
        How many of them count.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(ndcg_at_k([["b"], ["a", "b"]], [["a", "b"], ["a", "b"]], k=2), 3)
    0.815
    """
    return ranking.ndcg(_ranks(y_true, labels_topk), k)


def ps_precision_at_k(y_true: Any, labels_topk: Any, k: int, y_train: Any) -> float:
    """PSP@k, precision at k where a rare label counts more, as a fraction of the best possible.

    Parameters
    ----------
    y_true : labels
        The true labels.
    labels_topk : array of shape (n, k)
        Ranked labels.
    k : int
        How many of them count.
    y_train : labels
        The labels of the training rows, which say how rare each is.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> y_train = [["a"]] * 50 + [["b"]]
    >>> round(ps_precision_at_k([["a"], ["a", "b"]], [["a", "b"], ["a", "b"]], k=1, y_train=y_train), 3)
    0.567
    """
    return _ps_measure(ranking.ps_precision, y_true, labels_topk, k, y_train)


def ps_ndcg_at_k(y_true: Any, labels_topk: Any, k: int, y_train: Any) -> float:
    """PSnDCG@k, nDCG at k where a rare label counts more, as a fraction of the best possible.

    Parameters
    ----------
    y_true : labels
        The true labels.
    labels_topk : array of shape (n, k)
        Ranked labels.
    k : int
        How many of them count.
    y_train : labels
        The labels of the training rows, which say how rare each is.

    Returns
    -------
    float
        Between 0 and 1.
    """
    return _ps_measure(ranking.ps_ndcg, y_true, labels_topk, k, y_train)


def evaluate_labels(
    y_true: Any,
    labels_topk: Any,
    *,
    classes: npt.NDArray[Any],
    y_pred: Any = None,
    y_train: Any = None,
    taxonomy: Taxonomy | None = None,
    ks: Sequence[int] = (1, 5, 10),
) -> dict[str, float]:
    """All measures of what ``predict_topk`` returned.

    Parameters
    ----------
    y_true : labels
        The true labels.
    labels_topk : array of shape (n, k)
        Ranked labels; make k large (50).
    classes : array
        The model's ``classes_``.
    y_pred : labels, optional
        What accuracy and F1 judge; the first label of each row if not given.
    y_train : labels, optional
        The labels of the training rows, for the propensity-scored measures.
    taxonomy : Taxonomy, optional
        For the tree loss.
    ks : sequence of int
        Which R_k, P@k and so on.

    Returns
    -------
    dict of str to float
        See `abound.measure.evaluate`.

    Examples
    --------
    >>> measures = evaluate_labels(["a", "b"], [["a", "b"], ["a", "b"]], classes=np.array(["a", "b"]), ks=(1,))
    >>> measures["R1"], measures["MRR"]
    (0.5, 0.75)
    """
    truth = encode_truth(y_true, classes)
    train = None if y_train is None else encode_truth(y_train, classes)
    return evaluate(
        encode_ranking(labels_topk, classes),
        truth,
        n_classes=len(classes),
        predicted=None if y_pred is None else encode_predicted(y_pred, truth.classes),
        counts=None if train is None else train.counts[: len(classes)],
        n_train=None if train is None else len(train),
        distances=None if taxonomy is None else ClassDistances(taxonomy, truth.classes),
        ks=ks,
    )


def _ranks(y_true: Any, labels_topk: Any) -> TrueRanks:
    truth = encode_truth(y_true)
    return true_ranks(encode_ranking(labels_topk, truth.classes), truth)


def _counts(y_true: Any, y_pred: Any) -> ClassCounts:
    truth = encode_truth(y_true)
    predicted = encode_predicted(y_pred, truth.classes)
    return count_classes(truth, predicted, predicted.n_classes)


def _listed(classes: Sequence[Any] | npt.NDArray[Any]) -> list[Any]:
    return classes.tolist() if isinstance(classes, np.ndarray) else list(classes)


def _ps_measure(measure: Any, y_true: Any, labels_topk: Any, k: int, y_train: Any) -> float:
    train = encode_truth(y_train)
    truth = encode_truth(y_true, train.classes)
    ranks = true_ranks(encode_ranking(labels_topk, truth.classes), truth)
    counts = np.append(train.counts, np.zeros(truth.n_classes - train.n_classes, np.int64))
    return float(measure(ranks, ranking.inverse_propensities(counts, len(train))[truth.ids], k))

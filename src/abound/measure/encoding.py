"""From the user's labels to ids that true and predicted share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from abound.labels import Labels, encode
from abound.measure.places import IdArray


def encode_truth(y_true: Any, classes: npt.NDArray[Any] | None = None) -> Labels:
    """Number true labels.

    Parameters
    ----------
    y_true : labels
        Anything `abound.labels.encode` takes.
    classes : array, optional
        The model's classes, which keep their ids; labels it does not know get higher ones.

    Returns
    -------
    Labels
        A row or more.
    """
    truth = encode(y_true, classes)
    if len(truth) == 0:
        raise ValueError("there are no rows to measure")
    return truth


def encode_predicted(y_pred: Any, classes: npt.NDArray[Any]) -> Labels:
    """Number predicted labels; in a list of single labels, None is a row without prediction.

    Parameters
    ----------
    y_pred : labels
        Anything `abound.labels.encode` takes, or a list or object array of labels and None.
    classes : array
        Classes that keep their ids; other labels get higher ones.

    Returns
    -------
    Labels
        The predictions.
    """
    if isinstance(y_pred, list) or (isinstance(y_pred, np.ndarray) and y_pred.dtype == object and y_pred.ndim == 1):
        given = [i for i, label in enumerate(y_pred) if label is not None]
        if len(given) < len(y_pred):
            present = encode([y_pred[i] for i in given], classes)
            lengths = np.zeros(len(y_pred) + 1, np.int64)
            lengths[np.asarray(given, np.int64) + 1] = np.diff(present.indptr)
            return Labels(np.cumsum(lengths), present.ids, present.classes, present.kind)
    return encode(y_pred, classes)


def encode_ranking(labels: Any, classes: npt.NDArray[Any]) -> IdArray:
    """Number the labels of a ranking; None and labels not among the classes become -1.

    Parameters
    ----------
    labels : array of shape (n, k) or list of lists
        Labels best first, as ``predict_topk`` returns them; rows of a list may be shorter than others.
    classes : array
        The classes to number by.

    Returns
    -------
    int32 array of shape (n, k)
        Their ids.

    Examples
    --------
    >>> encode_ranking([["b", "a"], ["c"]], np.array(["a", "b"])).tolist()
    [[1, 0], [-1, -1]]
    """
    if isinstance(labels, np.ndarray):
        if labels.ndim != 2:
            raise ValueError(f"a ranking has shape (rows, k), best first; got an array of shape {labels.shape}")
        shape, flat = labels.shape, labels.reshape(-1).tolist()
    else:
        rows = [list(row) for row in labels]
        shape = len(rows), max(map(len, rows), default=0)
        flat = [label for row in rows for label in row + [None] * (shape[1] - len(row))]
    place = {label: i for i, label in enumerate(classes.tolist())}
    ids: IdArray = np.fromiter((place.get(label, -1) for label in flat), dtype=np.int32, count=len(flat))
    return ids.reshape(shape)

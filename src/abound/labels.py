"""Labels of rows as integer ids: what stands between the user's labels of any type and kernels that count from 0.

Inside, a label is an int32 id into ``classes``; the labels of row ``i`` are ``ids[indptr[i]:indptr[i + 1]]``, so that
single-label, multi-label and unlabelled rows have one form.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import assert_all_finite

Kind = Literal["single", "lists", "indicator", "dense"]
IntArray = npt.NDArray[np.int64]
IdArray = npt.NDArray[np.int32]

MAX_IDS = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The labels of n rows.

    Parameters
    ----------
    indptr : int64 array of shape (n + 1,)
        Row ``i`` owns ``ids[indptr[i]:indptr[i + 1]]``.
    ids : int32 array
        Positions in ``classes``; no id twice in a row.
    classes : array of shape (n_classes,)
        The label of each id, each once.
    kind : {"single", "lists", "indicator", "dense"}
        What the user gave, and so what he gets back.
    """

    indptr: IntArray
    ids: IdArray
    classes: npt.NDArray[Any]
    kind: Kind

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_classes(self) -> int:
        """Number of distinct labels known."""
        return len(self.classes)

    @property
    def counts(self) -> IntArray:
        """Number of rows of each class."""
        return np.bincount(self.ids, minlength=self.n_classes).astype(np.int64)

    def first_ids(self) -> IdArray:
        """Return the first label of each row, -1 where a row has none."""
        first = np.full(len(self), -1, np.int32)
        labelled = np.flatnonzero(np.diff(self.indptr))
        first[labelled] = self.ids[self.indptr[labelled]]
        return first

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Labels:
        """Return the labels of the given rows, in their order, with the same classes.

        Parameters
        ----------
        rows : integer array
            Row numbers.

        Returns
        -------
        Labels
            Those rows alone.
        """
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        offsets = np.repeat(self.indptr[:-1][rows] - indptr[:-1], lengths)
        ids = self.ids[np.arange(indptr[-1]) + offsets]
        return Labels(indptr, ids, self.classes, self.kind)

    def onto(self, classes: npt.NDArray[Any]) -> Labels:
        """Number the labels by their place in other classes; a label unknown there becomes -1.

        Parameters
        ----------
        classes : array
            The classes to number by, each once.

        Returns
        -------
        Labels
            The same rows; ``ids`` may hold -1.
        """
        place = {label: i for i, label in enumerate(classes.tolist())}
        lookup = np.array([*(place.get(label, -1) for label in self.classes.tolist()), -1], dtype=np.int32)
        ids = lookup[self.ids]
        return Labels(self.indptr, ids, classes, self.kind)

    def to_y(self) -> Any:
        """Return the labels as the user would write them.

        Returns
        -------
        array, list of lists or csr_array
            An array for ``single``, a list of lists for ``lists``, a sparse 0/1 matrix for ``indicator``, a dense
            one for ``dense``.
        """
        return decode(self.indptr, self.ids, self.classes, self.kind)


def decode(indptr: IntArray, ids: IdArray, classes: npt.NDArray[Any], kind: Kind) -> Any:
    """Turn ids back into labels of the kind that came in.

    Parameters
    ----------
    indptr, ids : arrays
        As in `Labels`.
    classes : array
        The label of each id.
    kind : {"single", "lists", "indicator", "dense"}
        The form to return.

    Returns
    -------
    array, list of lists or csr_array
        See `Labels.to_y`. Lists also for an indicator some of whose classes have got names that are no columns.
    """
    n = len(indptr) - 1
    if kind in ("indicator", "dense") and _are_columns(classes):
        columns = classes[ids].astype(np.int64)
        width = int(classes.max()) + 1 if len(classes) else 0
        ones = np.ones(len(ids), dtype=np.int64)
        matrix = sp.csr_array((ones, columns, indptr), shape=(n, width))
        return matrix if kind == "indicator" else matrix.toarray()
    if kind == "single" and len(ids) == n:
        return classes[ids]
    labels = classes[ids].tolist()
    return [labels[a:b] for a, b in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)]


def _are_columns(classes: npt.NDArray[Any]) -> bool:
    """Tell whether labels may number the columns of a matrix."""
    return classes.dtype.kind in "iu" and 0 <= int(classes.min(initial=0)) <= int(classes.max(initial=0)) < MAX_IDS


def encode(y: Any, known: npt.NDArray[Any] | None = None) -> Labels:
    """Number the labels of ``y``.

    A list, set or array in ``y`` is the labels of a row; a tuple is one label; a sparse matrix, or a dense one with
    more than one column, is an indicator whose columns are the classes 0, 1, 2, ... So is a list of equally long lists
    of zeros and ones in which a number comes twice, as it never does in a list of labels.

    Parameters
    ----------
    y : sequence, array, sparse matrix or Labels
        The labels of the rows.
    known : array, optional
        Classes that keep their ids; labels not among them are appended, sorted.

    Returns
    -------
    Labels
        Ids into the known classes followed by the new ones.

    Examples
    --------
    >>> labels = encode(["b", "a", "b"])
    >>> labels.classes.tolist(), labels.ids.tolist()
    (['a', 'b'], [1, 0, 1])
    >>> encode([["x"], ["x", "y"]]).indptr.tolist()
    [0, 1, 3]
    """
    if isinstance(y, Labels):
        labels = y
    elif sp.issparse(y):
        labels = _from_indicator(y, "indicator")
    else:
        labels = _from_sequence(y)
    return labels if known is None else _append(labels, known)


def _from_indicator(matrix: Any, kind: Kind) -> Labels:
    matrix = sp.csr_array(matrix, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.shape[1] > MAX_IDS:
        raise ValueError(f"y has {matrix.shape[1]} columns; abound holds at most {MAX_IDS} classes")
    classes = np.arange(matrix.shape[1])
    return Labels(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), classes, kind)


def _from_sequence(y: Any) -> Labels:
    if y is None:
        raise ValueError("y is None: this estimator requires y to be passed, but the target y is None")
    if hasattr(y, "__array__") or hasattr(y, "__array_function__"):
        y = np.asarray(y)
    if isinstance(y, str | bytes) or not isinstance(y, Iterable):
        raise ValueError(f"y must hold the labels of the rows, one entry a row; got {y!r}")
    if not hasattr(y, "__len__"):
        y = list(y)
    if isinstance(y, Sequence) and any(isinstance(row, list | set | frozenset | np.ndarray) for row in y):
        return _from_indicator(np.array(y), "dense") if _is_indicator(y) else _from_lists(y)
    array = _as_array(y)
    if array.ndim == 2 and array.shape[1] > 1:
        if not np.isin(array, (0, 1)).all():
            raise ValueError("a dense two-dimensional y must be an indicator of zeros and ones (one column a class)")
        return _from_indicator(array.astype(np.int8), "dense")
    if array.ndim == 2:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
            "(n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=2,
        )
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    if array.dtype == object and any(isinstance(row, list | set | frozenset | np.ndarray) for row in array):
        return _from_lists(array.tolist())
    classes, ids = _unique(array)
    return Labels(np.arange(len(ids) + 1, dtype=np.int64), ids, classes, "single")


def _is_indicator(y: Sequence[Any]) -> bool:
    """Tell whether lists are the rows of a 0/1 matrix: as long as each other, and one says 0 or 1 twice."""
    if any(isinstance(row, set | frozenset) for row in y) or len({len(row) for row in y}) != 1:
        return False
    rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in y]
    twice = any(len(set(row)) < len(row) for row in rows if all(isinstance(label, Hashable) for label in row))
    return twice and all(type(label) is int and label in (0, 1) for row in rows for label in row)


def _as_array(y: Any) -> npt.NDArray[Any]:
    """Make an array of labels; tuples stay whole, and numbers beside strings stay numbers."""
    if not isinstance(y, Sequence):
        return np.asarray(y)
    kinds = {type(label) for label in y}
    ends_in_nul = kinds == {str} and any(label.endswith("\0") for label in y)  # NumPy's own strings drop it
    if tuple in kinds or (str in kinds and len(kinds) > 1) or ends_in_nul:
        return _array_of(list(y), np.dtype(object))
    return np.asarray(y)


def _from_lists(y: Sequence[Any]) -> Labels:
    rows: list[list[Any]] = []
    for i, row in enumerate(y):
        if not isinstance(row, list | set | frozenset | np.ndarray):
            raise ValueError(f"y[{i}] is {row!r}, but other rows are lists of labels: give a list for each row")
        listed = row.tolist() if isinstance(row, np.ndarray) else list(row)
        rows.append(list(dict.fromkeys(listed)))
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    flat = _as_array(list(chain.from_iterable(rows)))
    classes, ids = _unique(flat) if len(flat) else (np.empty(0, dtype=object), np.empty(0, np.int32))
    return Labels(indptr, ids, classes, "lists")


def _unique(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IdArray]:
    """Return the distinct labels, sorted where they can be, and the id of each entry."""
    if array.dtype.kind in "biu":
        return _sorted_unique(array)
    if array.dtype.kind == "f":
        assert_all_finite(array, input_name="y")
        if not np.array_equal(array, np.floor(array)):
            raise ValueError(
                "Unknown label type: continuous. y holds fractions; abound ranks classes and needs labels "
                "(whole numbers, strings or other hashable values)"
            )
        return _sorted_unique(array)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold labels")
    values = array.tolist()
    for i, label in enumerate(values):
        if label is None or (isinstance(label, float) and math.isnan(label)):
            raise ValueError(f"y[{i}] is {label!r}: Input y contains NaN or None, so this row has no label")
        if not isinstance(label, Hashable):
            raise ValueError(f"y[{i}] is {label!r}, which cannot be a label: labels must be hashable")
    place: dict[Any, int] = dict.fromkeys(values, 0)
    names = _in_order(list(place))
    for i, label in enumerate(names):
        place[label] = i
    ids = np.fromiter(map(place.__getitem__, values), dtype=np.int32, count=len(values))
    return _array_of(names, array.dtype), ids


def array_of_labels(labels: list[Any]) -> npt.NDArray[Any]:
    """Make an array of distinct labels, each as it is.

    Parameters
    ----------
    labels : list
        Labels of any hashable type.

    Returns
    -------
    array
        Of strings or numbers where all are alike, else of objects.
    """
    return _as_array(labels)


def _sorted_unique(numbers: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IdArray]:
    classes, ids = np.unique(numbers, return_inverse=True)
    return classes, ids.astype(np.int32)


def _in_order(names: list[Any]) -> list[Any]:
    try:
        return sorted(names)
    except TypeError:
        return names


def _array_of(names: list[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if dtype.kind != "O":
        return np.array(names, dtype=dtype)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def _append(labels: Labels, known: npt.NDArray[Any]) -> Labels:
    """Give known classes their ids and append the labels that are new."""
    place = {label: i for i, label in enumerate(known.tolist())}
    new = [label for label in labels.classes.tolist() if label not in place]
    if not new:
        return labels.onto(known)
    if known.dtype == object or labels.classes.dtype == object or known.dtype.kind != labels.classes.dtype.kind:
        classes = _array_of(known.tolist() + new, np.dtype(object))
    else:
        classes = np.concatenate((known, np.array(new, dtype=labels.classes.dtype)))
    return labels.onto(classes)

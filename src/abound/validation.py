"""The one gate: rows, labels, weights and parameters are checked and converted here, and trusted behind it."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from abound.distribute import spans
from abound.labels import MAX_IDS, Labels, encode
from abound.store.check import LARGEST as LARGEST

Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
IdArray = npt.NDArray[np.int32]

DENSE_LIMIT = 2 * 2**30
"""Bytes above which no dense array of rows × classes is made."""

MODERATE = 1e4
"""Weights learned from values and sample weights up to this stay far below `LARGEST`."""


class Rows(NamedTuple):
    """Sparse rows in the one form every kernel takes: CSR, fixed types, read-only, sorted, no feature twice."""

    indptr: IntArray
    indices: IdArray
    data: Float32Array
    n_features: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    def part(self, begin: int, end: int) -> Rows:
        """Return rows ``begin`` to ``end`` without copying their entries.

        Parameters
        ----------
        begin, end : int
            Row numbers, as in a slice.

        Returns
        -------
        Rows
            A view; its ``indptr`` still points into the whole arrays.
        """
        return Rows(self.indptr[begin : end + 1], self.indices, self.data, self.n_features)

    def spans(self, entries: int) -> list[tuple[int, int]]:
        """Cut the rows into spans of about so many entries.

        Parameters
        ----------
        entries : int
            Non-zeros of a span; a longer row is one by itself.

        Returns
        -------
        list of (begin, end)
            All rows, in order.
        """
        return spans(self.indptr, 1 + int(self.indptr[-1] - self.indptr[0]) // max(1, entries))


class VerifiedRows:
    """Rows that were verified where they were read, such as those of a mapped file: the gate takes them as they are.

    Parameters
    ----------
    rows : Rows
        The rows.
    feature_names : sequence of str or None
        The name of each feature.
    """

    def __init__(self, rows: Rows, feature_names: Sequence[str] | None = None) -> None:
        self.rows = rows
        self.feature_names = feature_names


def frozen(array: npt.ArrayLike, dtype: npt.DTypeLike) -> Any:
    """Return a contiguous read-only view of an array in the given type, copying only if it has to.

    Parameters
    ----------
    array : array-like
        Any array.
    dtype : dtype
        The type wanted.

    Returns
    -------
    ndarray
        Not writeable; a plain ndarray also where the input was a memory map.
    """
    view = np.ascontiguousarray(array, dtype=dtype).view(np.ndarray)[:]
    view.flags.writeable = False
    return view


def as_rows(X: Any) -> Rows:
    """Freeze a matrix that has passed the checks; features that occur twice in a row are added up.

    Parameters
    ----------
    X : sparse matrix or dense array
        Finite numbers.

    Returns
    -------
    Rows
        The same rows; shares memory with ``X`` where types and order allow.
    """
    matrix = sp.csr_array(X)
    if matrix.shape[1] > MAX_IDS:
        raise ValueError(f"X has {matrix.shape[1]} features; abound holds at most {MAX_IDS}")
    # SciPy takes such arrays as they are, and a kernel would follow them anywhere.
    if (matrix.indptr[1:] < matrix.indptr[:-1]).any():
        raise ValueError("X is no sparse matrix: its indptr falls")
    if matrix.nnz and not (0 <= matrix.indices.min() and matrix.indices.max() < matrix.shape[1]):
        entry = int(((matrix.indices < 0) | (matrix.indices >= matrix.shape[1])).argmax())
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise ValueError(
            f"X has the column {matrix.indices[entry]} in row {row}, but its columns are 0 to {matrix.shape[1] - 1}"
        )
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return Rows(
        frozen(matrix.indptr, np.int64),
        frozen(matrix.indices, np.int32),
        frozen(matrix.data, np.float32),
        int(matrix.shape[1]),
    )


def check_rows(estimator: Any, X: Any, *, reset: bool, may_widen: bool = False) -> Rows:
    """Check ``X`` as scikit-learn asks and freeze it.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` (and feature names) when ``reset``; is compared with it otherwise.
    X : array, sparse matrix or data frame
        The rows.
    reset : bool
        True in ``fit``.
    may_widen : bool
        True in ``partial_fit``: more features than before are taken over, fewer are an error.

    Returns
    -------
    Rows
        Frozen rows.
    """
    if may_widen and not reset:
        width = getattr(X, "shape", (0, 0))
        reset = len(width) == 2 and width[1] > estimator.n_features_in_
    if isinstance(X, VerifiedRows):
        return _verified(estimator, X, reset)
    try:
        with np.errstate(over="ignore"):
            checked = validate_data(
                estimator, X, accept_sparse="csr", dtype=np.float32, order="C", accept_large_sparse=True, reset=reset
            )
    except ValueError as error:
        if "too large" not in str(error):
            raise
        # Beyond float32 it would have become infinity, which is not what the user gave.
        given = sp.coo_array(X if sp.issparse(X) else np.asarray(X, dtype=np.float64))
        raise ValueError(f"{error} {_too_large(given.row, given.col, given.data) or ''}") from None
    rows = as_rows(checked)
    if find_too_large(rows.data) is not None:
        owners = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
        raise ValueError(_too_large(owners, rows.indices, rows.data))
    return rows


def _too_large(rows: npt.NDArray[Any], columns: npt.NDArray[Any], values: npt.NDArray[Any]) -> str | None:
    """Name the first entry that cannot be ranked, None if there is none."""
    entry = find_too_large(values)
    if entry is None:
        return None
    return (
        f"X[{rows[entry]}, {columns[entry]}] is {values[entry]:.3g}: a value beyond ±{LARGEST:.0e} cannot be ranked. "
        "Scale the rows, for example to unit length"
    )


def find_too_large(values: npt.NDArray[Any]) -> int | None:
    """Return the place of the first value that is not a number between ±`LARGEST`, None if there is none."""
    if not len(values) or (values.min() >= -LARGEST and values.max() <= LARGEST):
        return None
    return int((~(np.abs(values) <= LARGEST)).argmax())


def is_large(X: Any, sample_weight: npt.NDArray[Any]) -> bool:
    """Tell whether learning these rows might give weights that cannot be ranked, so that they must be looked at."""
    if len(sample_weight) and sample_weight.max() > MODERATE:
        return True
    if isinstance(X, VerifiedRows):
        # Weights are fewer than the entries of such rows.
        return True
    values = np.asarray(X.tocsr().data if sp.issparse(X) else X, dtype=np.float32)
    return bool(values.size) and bool(max(-values.min(), values.max()) > MODERATE)


def _verified(estimator: Any, X: VerifiedRows, reset: bool) -> Rows:
    """Do for verified rows what `validate_data` does: compare or take over the number and names of the features."""
    n_features = X.rows.n_features
    if X.rows.n_rows == 0 or n_features == 0:
        raise ValueError(
            f"Found array with {X.rows.n_rows} row(s) and {n_features} feature(s), a minimum of 1 is required."
        )
    if reset:
        estimator.n_features_in_ = n_features
        estimator.__dict__.pop("feature_names_in_", None)
        if X.feature_names is not None:
            estimator.feature_names_in_ = np.array(list(X.feature_names), dtype=object)
    elif n_features != estimator.n_features_in_:
        name = type(estimator).__name__
        raise ValueError(
            f"X has {n_features} features, but {name} is expecting {estimator.n_features_in_} features as input."
        )
    return X.rows


def check_labels(y: Any, n_rows: int, known: npt.NDArray[Any] | None = None) -> Labels:
    """Number the labels and compare their count with the rows.

    Parameters
    ----------
    y : sequence, array, sparse matrix or Labels
        The labels; see `abound.labels.encode`.
    n_rows : int
        Number of rows of ``X``.
    known : array, optional
        Classes that keep their ids.

    Returns
    -------
    Labels
        The labels as ids.
    """
    labels = encode(y, known)
    if len(labels) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, y has {len(labels)}"
        )
    return labels


def check_sample_weight(sample_weight: Any, n_rows: int) -> Float32Array:
    """Return one non-negative weight a row; all ones if none were given.

    Parameters
    ----------
    sample_weight : array-like, number or None
        The weights.
    n_rows : int
        Number of rows of ``X``.

    Returns
    -------
    float32 array
        Frozen.
    """
    if sample_weight is None or isinstance(sample_weight, numbers.Number):
        weights = np.full(n_rows, 1.0 if sample_weight is None else sample_weight)
    else:
        weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
    good = (weights >= 0) & (weights <= LARGEST)
    if not good.all():
        row = int(good.argmin())
        raise ValueError(f"sample_weight[{row}] is {weights[row]}; weights must be from 0 to {LARGEST:.0e}")
    if n_rows and not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number: every row has weight 0")
    result: Float32Array = frozen(weights, np.float32)
    return result


def check_number(
    name: str,
    value: Any,
    low: float | None = None,
    high: float | None = None,
    *,
    whole: bool = False,
    above: bool = False,
    or_none: bool = False,
) -> None:
    """Raise a clear error unless a parameter is a number in its range.

    Parameters
    ----------
    name : str
        The parameter's name, for the message.
    value : object
        What the user set.
    low, high : float, optional
        The bounds, inclusive.
    whole : bool
        Only integers.
    above : bool
        ``low`` itself is not allowed.
    or_none : bool
        None is allowed.
    """
    if or_none and value is None:
        return
    kind = numbers.Integral if whole else numbers.Real
    good = isinstance(value, kind) and not isinstance(value, bool | np.bool_) and value == value
    good = good and (low is None or (value > low if above else value >= low)) and (high is None or value <= high)
    if not good:
        word = "a whole number" if whole else "a number"
        bounds = [] if low is None else [f"{'above' if above else 'at least'} {low}"]
        bounds += [] if high is None else [f"at most {high}"]
        wanted = " and ".join([f"{word} {bounds[0]}", *bounds[1:]]) if bounds else word
        raise ValueError(f"{name}={value!r}: it must be {wanted}{' or None' if or_none else ''}")


def check_choice(name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise a clear error unless a parameter is one of its choices.

    Parameters
    ----------
    name : str
        The parameter's name, for the message.
    value : object
        What the user set.
    choices : collection
        What is allowed.
    """
    if isinstance(value, np.ndarray) or value not in choices:
        raise ValueError(f"{name}={value!r}: it must be one of {', '.join(repr(c) for c in choices)}")


def check_dense(n_rows: int, n_classes: int, itemsize: int, instead: str) -> None:
    """Refuse a dense array of rows × classes that would not fit.

    Parameters
    ----------
    n_rows, n_classes, itemsize : int
        Its shape and the bytes of an entry.
    instead : str
        What to do instead, for the message.
    """
    size = n_rows * n_classes * itemsize
    if size > DENSE_LIMIT:
        raise MemoryError(
            f"{n_rows} rows × {n_classes} classes would be a dense array of {size / 2**30:.1f} GiB "
            f"(the limit is {DENSE_LIMIT / 2**30:.0f} GiB); {instead}"
        )


def make_generator(random_state: Any) -> np.random.Generator:
    """Turn ``random_state`` into a counter-based generator.

    Parameters
    ----------
    random_state : int, RandomState or None
        As everywhere in scikit-learn.

    Returns
    -------
    numpy.random.Generator
        Philox, so that streams can be split without depending on the number of threads.
    """
    if isinstance(random_state, numbers.Integral):
        return np.random.Generator(np.random.Philox(int(random_state)))
    seed = check_random_state(random_state).randint(2**31 - 1)
    return np.random.Generator(np.random.Philox(int(seed)))

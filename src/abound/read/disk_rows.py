"""Rows on disk: a file of mapped arrays with labels, for data that is larger than memory.

The file is one of `abound.store`: arrays with checksums behind a JSON header. ``rows/indptr``, ``rows/indices`` and
``rows/data`` are the rows, ``labels/indptr`` and ``labels/ids`` their labels, ``classes/*`` the names of these and
``features/*`` those of the features, if there are any.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abound.labels import MAX_IDS, Labels
from abound.read.errors import FormatError
from abound.read.formats import Vectors, as_csr
from abound.scratch import let_go
from abound.store import LazyStrings, ModelFileError, Stored, check_ids, check_indptr, open_arrays, unpack_labels
from abound.validation import LARGEST, Rows, VerifiedRows, find_too_large, frozen

CONTENT = "rows"
"""What the settings of such a file say that it holds."""

KINDS = ("single", "lists", "indicator", "dense")
SUFFIX = ".rows"
START = b'{"__metadata__"'
"""What the header of a file of `abound.store` starts with, after its length."""

ENTRIES_AT_ONCE = 2**19
"""Entries that are looked at before they are let go of."""


@dataclass(frozen=True, eq=False)
class DiskRows(Vectors, VerifiedRows):
    """Rows and labels in a mapped file, as `open_rows` returns them.

    Give it to ``fit`` in place of ``X``, and its ``labels`` as ``y``. What a learner has read leaves memory again.

    Parameters
    ----------
    X : csr_array
        The rows, as views of the file.
    labels : Labels
        Their labels, as views of the file.
    zero_based : bool
        Whether the file that it was made from counts features from 0.
    path : Path
        The file.
    rows : Rows
        The same rows as kernels take them.
    feature_names : sequence of str or None
        The name of each feature.
    """

    path: Path
    rows: Rows
    feature_names: Sequence[str] | None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.rows.n_rows, self.rows.n_features

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return self.rows.indptr.nbytes + self.rows.indices.nbytes + self.rows.data.nbytes

    def __repr__(self) -> str:
        return (
            f"<DiskRows {str(self.path)!r}: {len(self):,} rows, {self.shape[1]:,} features, "
            f"{self.labels.n_classes:,} classes>"
        )

    def chunks(self, entries: int = ENTRIES_AT_ONCE) -> Iterator[Vectors]:
        """Read the rows chunk by chunk.

        Parameters
        ----------
        entries : int
            Non-zeros of a chunk, about.

        Yields
        ------
        Vectors
            The next rows, in memory, with the same classes.
        """
        for begin, end in self.rows.spans(entries):
            low, high = self.rows.indptr[begin], self.rows.indptr[end]
            part = self.rows.indices[low:high], self.rows.data[low:high]
            X = as_csr(self.rows.indptr[begin : end + 1] - low, part[0].copy(), part[1].copy(), self.rows.n_features)
            let_go(*part)
            yield Vectors(X, self.labels.take(np.arange(begin, end)), self.zero_based)


def is_disk_rows(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file claims to be one of rows on disk, by its suffix or its first bytes.

    Parameters
    ----------
    path : path
        A file.

    Returns
    -------
    bool
        False for what is no file.
    """
    name = os.fspath(path)
    if name == "-" or not Path(name).is_file():
        return False
    if Path(name).suffix == SUFFIX:
        return True
    with open(name, "rb") as file:
        return file.read(8 + len(START))[8:] == START


def open_rows(path: str | os.PathLike[str]) -> DiskRows:
    """Map a file of rows and verify it: nothing is copied, and memory does not grow with the file.

    Parameters
    ----------
    path : path
        A file that `write_rows`, `convert_rows` or ``abound convert`` has written.

    Returns
    -------
    DiskRows
        Rows and labels.

    Raises
    ------
    FormatError
        If the file is damaged, cut off, crafted or something else.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from abound.read import write_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.rows")
    ...     write_rows(file, [[0.5, 0, 2], [0, 1, 0]], ["cat", "dog"])
    ...     data = open_rows(file)
    >>> data.shape, data.labels.to_y().tolist()
    ((2, 3), ['cat', 'dog'])
    >>> from abound import FeatureFocusClassifier
    >>> FeatureFocusClassifier().fit(data, data.labels).predict([[1, 0, 1]]).tolist()
    ['cat']
    """
    try:
        return _opened(Path(path))
    except ModelFileError as error:
        raise FormatError(
            str(error.where), None, f"{error.problem}. Convert the data again, or take another copy of the file"
        ) from None


def _opened(path: Path) -> DiskRows:
    stored = open_arrays(path, keep=False)
    meta = stored.meta
    if meta.get("content") != CONTENT:
        raise ModelFileError(path, "this is no file of rows, such as abound convert writes")
    n_features, kind, zero_based = meta.get("n_features"), meta.get("kind"), meta.get("zero_based")
    if type(n_features) is not int or not 0 <= n_features <= MAX_IDS:
        raise ModelFileError(path, f"{n_features!r} is no number of features")
    if kind not in KINDS or not isinstance(zero_based, bool):
        raise ModelFileError(path, f"its settings kind={kind!r} and zero_based={zero_based!r} are not known")
    rows = _verified_rows(stored, n_features)
    labels = _verified_labels(stored, rows.n_rows, kind)
    names = stored.section("features/")
    features = None
    if len(names):
        features = LazyStrings(
            names.require("bytes", np.uint8), names.require("offsets", np.int64), names.name_of("bytes")
        )
        if len(features) != n_features:
            raise names.fault("offsets", f"there are {len(features)} names for {n_features} features")
    X = as_csr(rows.indptr, rows.indices, rows.data, n_features)
    return DiskRows(X, labels, zero_based, path, rows, features)


def _verified_rows(stored: Stored, n_features: int) -> Rows:
    section = stored.section("rows/")
    indptr, indices = section.require("indptr", np.int64), section.require("indices", np.int32)
    data = section.require("data", np.float32, (len(indices),))
    check_indptr(section.name_of("indptr"), indptr, len(indices))
    rows = Rows(frozen(indptr, np.int64), frozen(indices, np.int32), frozen(data, np.float32), n_features)
    for begin, end in rows.spans(ENTRIES_AT_ONCE):
        low, high = rows.indptr[begin], rows.indptr[end]
        ids, values = rows.indices[low:high], rows.data[low:high]
        check_ids(section.name_of("indices"), ids, n_features)
        rises = np.diff(ids, prepend=-1) > 0
        rises[rows.indptr[begin:end][np.diff(rows.indptr[begin : end + 1]) > 0] - low] = True
        if not rises.all():
            row = int(rows.indptr.searchsorted(low + int(rises.argmin()), side="right")) - 1
            raise section.fault("indices", f"the features of row {row} are not sorted, or one is there twice")
        entry = find_too_large(values)
        if entry is not None:
            row = int(rows.indptr.searchsorted(low + entry, side="right")) - 1
            raise section.fault("data", f"row {row} holds a value that is no number between ±{LARGEST:.0e}")
        let_go(ids, values)
    let_go(*rows[:3])
    return rows


def _verified_labels(stored: Stored, n_rows: int, kind: Any) -> Labels:
    section = stored.section("labels/")
    indptr, ids = section.require("indptr", np.int64, (n_rows + 1,)), section.require("ids", np.int32)
    packed = dict(stored.section("classes/"))
    names = stored.meta.get("classes")
    if not isinstance(names, dict):
        raise stored.fault("classes", "its type is not known")
    classes = unpack_labels(packed, names)
    if len(set(classes.tolist())) < len(classes):
        raise stored.fault("classes", "a class is there twice")
    section.check_csr("indptr", "ids", len(classes))
    if kind == "single" and (len(ids) != n_rows or (n_rows and not (np.diff(indptr) == 1).all())):
        raise section.fault("indptr", "not every row has exactly one label")
    if kind != "single":
        for begin in range(0, n_rows, ENTRIES_AT_ONCE):
            bounds = indptr[begin : begin + ENTRIES_AT_ONCE + 1]
            owners = np.repeat(np.arange(len(bounds) - 1, dtype=np.int64), np.diff(bounds))
            pairs = owners * max(1, len(classes)) + ids[bounds[0] : bounds[-1]]
            if len(np.unique(pairs)) < len(pairs):
                raise section.fault("ids", f"a row from {begin} on has a label twice")
    if kind in ("indicator", "dense") and (classes.dtype.kind not in "iu" or (len(classes) and classes.min() < 0)):
        raise section.fault("ids", f"the classes of a matrix are columns, not {classes.dtype}")
    let_go(indptr, ids)
    return Labels(frozen(indptr, np.int64), frozen(ids, np.int32), classes, kind)

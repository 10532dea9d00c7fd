"""Write rows on disk: streamed through temporary files, so that memory does not grow with the data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.read.compression import Source
from abound.read.disk_rows import CONTENT, ENTRIES_AT_ONCE, is_disk_rows, open_rows
from abound.read.errors import FormatError
from abound.read.formats import Vectors, as_csr, iter_vectors
from abound.read.sniff import content_format, suffix_format
from abound.scratch import Spill, let_go
from abound.store import pack_labels, pack_strings, save_arrays
from abound.validation import LARGEST, as_rows, check_labels, find_too_large

Array = npt.NDArray[Any]

CHUNK_BYTES = 2**24
"""Text parsed at a time when a file is converted."""


def write_rows(
    path: str | os.PathLike[str], X: Any, y: Any, *, feature_names: Sequence[str] | None = None, zero_based: bool = True
) -> None:
    """Write rows and labels as a file that `open_rows` maps.

    Parameters
    ----------
    path : path
        The file; it appears when it is whole.
    X : sparse matrix or array
        The rows.
    y : sequence, array, sparse matrix or Labels
        Their labels.
    feature_names : sequence of str, optional
        A name for each feature.
    zero_based : bool
        What `DiskRows.zero_based` shall be.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from abound.read import open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.rows")
    ...     write_rows(file, [[0.5, 0, 2], [0, 1, 0]], [["cat"], ["dog", "pet"]], feature_names=["a", "b", "c"])
    ...     open_rows(file).labels.to_y()
    [['cat'], ['dog', 'pet']]
    """
    rows = as_rows(X)
    labels = check_labels(y, rows.n_rows)

    def chunks() -> Iterator[Vectors]:
        for begin, end in rows.spans(ENTRIES_AT_ONCE):
            low, high = rows.indptr[begin], rows.indptr[end]
            indptr = rows.indptr[begin : end + 1] - low
            part = as_csr(indptr, rows.indices[low:high], rows.data[low:high], rows.n_features)
            yield Vectors(part, labels.take(np.arange(begin, end)), zero_based)

    if not rows.n_rows:
        raise FormatError(os.fspath(path), None, "there are no rows to write")
    write_row_chunks(path, chunks(), feature_names=feature_names, sort_classes=False)


def write_row_chunks(
    path: str | os.PathLike[str],
    chunks: Iterable[Vectors],
    *,
    feature_names: Sequence[str] | None = None,
    sort_classes: bool = True,
) -> tuple[int, int]:
    """Write rows that come in chunks, of which one at a time is in memory.

    Parameters
    ----------
    path : path
        The file; it appears when it is whole.
    chunks : iterable of Vectors
        The rows, such as `iter_vectors` gives them: classes keep their ids and new ones come behind them.
    feature_names : sequence of str, optional
        A name for each feature.
    sort_classes : bool
        Number the classes anew in the order of their names, as `read_vectors` does.

    Returns
    -------
    n_rows, n_features : int
        What was written.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file")
    types = {"rows/indptr": np.int64, "rows/indices": np.int32, "rows/data": np.float32}
    types |= {"labels/indptr": np.int64, "labels/ids": np.int32}
    pieces = {name: Spill(dtype, folder=target.parent) for name, dtype in types.items()}
    n_features, classes, kind, zero_based = 0, np.empty(0, object), "single", True
    for name in ("rows/indptr", "labels/indptr"):
        pieces[name].append(np.zeros(1, np.int64))
    for chunk in chunks:
        rows = as_rows(chunk.X)
        _check_finite(path, rows.data, pieces["rows/indptr"].length - 1)
        for name, array, base in (
            ("rows/indptr", rows.indptr[1:], "rows/indices"),
            ("labels/indptr", chunk.labels.indptr[1:], "labels/ids"),
        ):
            pieces[name].append(array + pieces[base].length)
        pieces["rows/indices"].append(rows.indices)
        pieces["rows/data"].append(rows.data)
        pieces["labels/ids"].append(chunk.labels.ids)
        n_features, zero_based = max(n_features, rows.n_features), chunk.zero_based
        classes, kind = chunk.labels.classes, chunk.labels.kind
    if sort_classes:
        classes, pieces["labels/ids"] = _in_order(target.parent, classes, pieces["labels/ids"])
    arrays = {name: piece.mapped() for name, piece in pieces.items()}
    packed, names = pack_labels(classes)
    arrays |= {f"classes/{name}": array for name, array in packed.items()}
    if feature_names is not None:
        if len(feature_names) != n_features:
            raise ValueError(f"there are {len(feature_names)} feature_names for {n_features} features")
        arrays["features/bytes"], arrays["features/offsets"] = pack_strings(list(feature_names))
    meta = {"content": CONTENT, "n_features": n_features, "kind": kind, "zero_based": zero_based, "classes": names}
    save_arrays(path, arrays, meta)
    return len(arrays["rows/indptr"]) - 1, n_features


def convert_rows(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    zero_based: bool | None = None,
    n_features: int | None = None,
    allow_unlabelled: bool = False,
) -> tuple[int, int]:
    r"""Turn a vector file into one that is mapped, reading it in chunks.

    Parameters
    ----------
    source : path
        Any vector file that `read_vectors` reads, plain or compressed, or ``-``; or a file of rows on disk.
    path : path
        The file to write; it appears when it is whole.
    format : {"vectors", "rows"}, optional
        By default suffix and content tell.
    zero_based, n_features, allow_unlabelled
        See `iter_vectors`.

    Returns
    -------
    n_rows, n_features : int
        What was written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.svm")
    ...     _ = file.write_text("cat 1:0.5 3:2\ndog 2:1\n")
    ...     convert_rows(file, file.with_suffix(".rows"))
    (2, 3)
    """
    if format == "rows" or (format is None and is_disk_rows(source)):
        rows = open_rows(source)
        if n_features is not None and n_features != rows.shape[1]:
            raise ValueError(f"n_features={n_features}: {source} has {rows.shape[1]} features")
        return write_row_chunks(path, rows.chunks(), feature_names=rows.feature_names, sort_classes=False)
    with Source(source) as opened:
        found = format or suffix_format(opened.name) or content_format(opened.head())
        if found not in ("vectors", None):
            raise FormatError(
                opened.name,
                None,
                f"it holds texts ({found}), and rows on disk are vectors. Train on the texts as they are, or turn them "
                "into vectors with TextVectorizer and write these with abound.read.write_row_chunks",
            )
        chunks = iter_vectors(
            opened,
            chunk_bytes=CHUNK_BYTES,
            zero_based=zero_based,
            n_features=n_features,
            allow_unlabelled=allow_unlabelled,
        )
        return write_row_chunks(path, chunks)


def _in_order(folder: Path, classes: npt.NDArray[Any], ids: Spill) -> tuple[npt.NDArray[Any], Spill]:
    """Number classes by their sorted names."""
    order = np.array(sorted(range(len(classes)), key=classes.tolist().__getitem__), dtype=np.int64)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    renumbered, given = Spill(np.int32, folder=folder), ids.mapped()
    for begin in range(0, len(given), ENTRIES_AT_ONCE):
        part = given[begin : begin + ENTRIES_AT_ONCE]
        renumbered.append(place[part])
        let_go(part)
    return classes[order], renumbered


def _check_finite(path: str | os.PathLike[str], values: Array, n_before: int) -> None:
    entry = find_too_large(values)
    if entry is not None:
        what = f"a row from {n_before} on holds {values[entry]}; values may be from -{LARGEST:.0e} to {LARGEST:.0e}"
        raise FormatError(os.fspath(path), None, what)

"""Vector files: libsvm, LSHTC and the Extreme Classification Repository.

A line is ``label[,label...] index:value index:value ...``. A first line of two or three whole numbers is a header
(rows, features, classes), as the repository writes it. ``#`` starts a comment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.labels import IdArray, IntArray, Labels
from abound.read.compression import BLOCK_BYTES, Source
from abound.read.vector_blocks import Piece, VectorBlocks
from abound.validation import check_number

CHUNK_BYTES = 2**26
"""Text parsed for one chunk of a stream, unless the caller says otherwise."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """Sparse rows and their labels.

    Parameters
    ----------
    X : csr_array
        float32, sorted, no feature twice in a row.
    labels : Labels
        The labels of the rows, as strings.
    zero_based : bool
        Whether the file counts features from 0; pass it on when other files of the same data are read.
    groups : array of shape (n,), optional
        As those of `abound.read.documents.Documents`; no file has them.
    """

    X: Any
    labels: Labels
    zero_based: bool
    groups: npt.NDArray[Any] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Vectors:
        """Select rows.

        Parameters
        ----------
        rows : integer array
            Row numbers.

        Returns
        -------
        Vectors
            Those rows alone, with the same classes.
        """
        groups = None if self.groups is None else self.groups[rows]
        return Vectors(self.X[rows], self.labels.take(rows), self.zero_based, groups=groups)


def read_vectors(
    path: str | os.PathLike[str] | Source,
    *,
    zero_based: bool | None = None,
    n_features: int | None = None,
    allow_unlabelled: bool = False,
) -> Vectors:
    r"""Read a vector file, plain or compressed.

    Parameters
    ----------
    path : str or path
        The file; ``-`` is standard input.
    zero_based : bool, optional
        Whether indices count from 0. By default a file with header does, one in which index 0 occurs does, and any
        other counts from 1 (as scikit-learn's ``"auto"``).
    n_features : int, optional
        The width of ``X``; an index beyond it is an error. By default the header's, else the largest index seen.
    allow_unlabelled : bool
        Whether rows may lack a label. Files with header may anyway; elsewhere it is an error by default.

    Returns
    -------
    Vectors
        Classes are sorted. Labels are strings, exactly as written (``+1`` is not ``1``).

    Raises
    ------
    FormatError
        With file and line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.svm")
    ...     _ = file.write_text("cat,pet 1:0.5 3:2\ndog 2:1e-1 # a comment\n")
    ...     vectors = read_vectors(file)
    >>> vectors.X.toarray().tolist(), vectors.labels.to_y()
    ([[0.5, 0.0, 2.0], [0.0, 0.10000000149011612, 0.0]], [['cat', 'pet'], ['dog']])
    """
    return read_vectors_alike([path], zero_based=zero_based, n_features=n_features, allow_unlabelled=allow_unlabelled)[
        0
    ]


def read_vectors_alike(
    paths: Sequence[str | os.PathLike[str] | Source],
    *,
    zero_based: bool | None = None,
    n_features: int | None = None,
    allow_unlabelled: bool = False,
) -> list[Vectors]:
    """Read files of the same data, such as a training and a test file: one width, one way of counting features.

    Parameters
    ----------
    paths : sequence of str or path
        The files.
    zero_based, n_features, allow_unlabelled
        See `read_vectors`; if one file counts from 0, all do.

    Returns
    -------
    list of Vectors
        One for each file.
    """
    check_number("n_features", n_features, 1, whole=True, or_none=True)
    with ExitStack() as stack:
        files = []
        for path in paths:
            source = stack.enter_context(_opened(path))
            blocks = VectorBlocks(source, zero_based, n_features, allow_unlabelled)
            files.append((blocks, list(blocks.pieces(BLOCK_BYTES))))
    counts_from_zero = any(blocks.zero_based or blocks.has_zero for blocks, _ in files)
    for blocks, _ in files:
        blocks.settle_base(counts_from_zero if zero_based is None else zero_based)
    width = max(blocks.width for blocks, _ in files)
    return [_assembled(blocks, pieces, width, in_order=True) for blocks, pieces in files]


def iter_vectors(
    path: str | os.PathLike[str] | Source,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    zero_based: bool | None = None,
    n_features: int | None = None,
    allow_unlabelled: bool = False,
) -> Iterator[Vectors]:
    """Read a vector file in chunks, so that memory does not grow with it.

    Parameters
    ----------
    path : str or path
        The file; ``-`` is standard input.
    chunk_bytes : int
        Bytes of text of a chunk, about.
    zero_based : bool, optional
        See `read_vectors`; by default the first chunk decides, and index 0 in a later one is an error.
    n_features, allow_unlabelled
        See `read_vectors`.

    Yields
    ------
    Vectors
        The next rows. Classes are numbered in the order in which they appear and keep their ids from chunk to chunk;
        without header or ``n_features`` the width grows. Labels turn from ``single`` to ``lists`` at the first chunk
        with a row that has not exactly one label, and stay so.
    """
    check_number("chunk_bytes", chunk_bytes, 1, whole=True)
    check_number("n_features", n_features, 1, whole=True, or_none=True)
    with _opened(path) as source:
        blocks = VectorBlocks(source, zero_based, n_features, allow_unlabelled)
        size = min(chunk_bytes, BLOCK_BYTES)
        held: list[Piece] = []
        for piece in blocks.pieces(size):
            held.append(piece)
            if len(held) * size >= chunk_bytes:
                yield _chunk(blocks, held)
                held = []
        if held:
            yield _chunk(blocks, held)


def _chunk(blocks: VectorBlocks, pieces: list[Piece]) -> Vectors:
    if blocks.zero_based is None:
        blocks.settle_base(blocks.has_zero)
    return _assembled(blocks, pieces, blocks.width, in_order=False)


def _opened(path: str | os.PathLike[str] | Source) -> Source:
    return path if isinstance(path, Source) else Source(path)


def _assembled(blocks: VectorBlocks, pieces: list[Piece], width: int, *, in_order: bool) -> Vectors:
    """Join pieces, which are used up on the way so that they are never all in memory beside the result."""
    lengths = _running(np.concatenate([piece.lengths for piece in pieces]))
    label_indptr = _running(np.concatenate([piece.label_lengths for piece in pieces]))
    indices: IdArray = np.empty(lengths[-1], np.int32)
    data = np.empty(lengths[-1], np.float32)
    label_ids: IdArray = np.empty(label_indptr[-1], np.int32)
    n = n_labels = 0
    pieces.reverse()
    while pieces:
        piece = pieces.pop()
        indices[n : n + len(piece.indices)] = piece.indices
        data[n : n + len(piece.data)] = piece.data
        label_ids[n_labels : n_labels + len(piece.label_ids)] = piece.label_ids
        n += len(piece.indices)
        n_labels += len(piece.label_ids)
    if not blocks.zero_based:
        indices -= 1
    labels = blocks.numbering.labels(label_indptr, label_ids, in_order=in_order)
    return Vectors(as_csr(lengths, indices, data, width), labels, bool(blocks.zero_based))


def _running(lengths: IntArray) -> IntArray:
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def as_csr(indptr: IntArray, indices: IdArray, data: npt.NDArray[np.float32], n_features: int) -> Any:
    """Make a csr_array of sorted rows without letting scipy widen the indices.

    scipy's constructor turns both index arrays into int64 when one is; here ``indptr`` alone does, and only for more
    than 2^31 - 1 entries.

    Parameters
    ----------
    indptr, indices, data : int64, int32, float32 arrays
        The rows; no index twice in a row.
    n_features : int
        The width.

    Returns
    -------
    csr_array
        Shares ``indices`` and ``data``.
    """
    matrix = sp.csr_array((len(indptr) - 1, n_features), dtype=np.float32)
    fits = len(indices) <= np.iinfo(np.int32).max
    matrix.indptr = indptr.astype(np.int32) if fits else indptr
    matrix.indices = indices
    matrix.data = data
    matrix.has_canonical_format = True
    return matrix

"""Labels of a file, numbered while it is read: bytes in, ids out, names decoded once each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.labels import MAX_IDS, IdArray, IntArray, Kind, Labels
from abound.read._numbering_kernels import drop_repeats, fill_slots, number_strings
from abound.read.errors import FormatError

SPAN = 2**16
"""Labels numbered in one call of the kernel."""

Failure = Callable[[int, str, bytes], FormatError]


class Numbering:
    """A numbering that grows: ids in the order in which labels first appear.

    Attributes
    ----------
    names : list of str
        The label of each id.
    is_single : bool
        Whether every row so far had exactly one label.

    Examples
    --------
    >>> numbering = Numbering()
    >>> buffer = np.frombuffer(b"cat dog cat", np.uint8)
    >>> numbering.number(buffer, np.array([0, 4, 8]), np.array([3, 7, 11]), FormatError).tolist()
    [0, 1, 0]
    >>> numbering.names
    ['cat', 'dog']
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.is_single = True
        self._classes = np.empty(0, dtype=object)
        self._slots = np.full(1024, -1, np.int32)
        self._hashes = np.empty(512, np.uint64)
        self._offsets = np.zeros(513, np.int64)
        self._pool = np.empty(4096, np.uint8)

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The label of each id, as an array."""
        if len(self._classes) != len(self.names):
            self._classes = as_objects(self.names)
        return self._classes

    def number(self, buffer: npt.NDArray[np.uint8], begins: IntArray, ends: IntArray, failure: Failure) -> IdArray:
        """Number slices of a buffer.

        Parameters
        ----------
        buffer : uint8 array
            Bytes.
        begins, ends : int64 arrays
            The slices.
        failure : callable
            Makes the error for a place in the buffer, a message and the offending bytes.

        Returns
        -------
        int32 array
            The id of each slice.
        """
        ids = np.empty(len(begins), np.int32)
        for a in range(0, len(begins), SPAN):
            b = min(a + SPAN, len(begins))
            self._reserve(b - a, int((ends[a:b] - begins[a:b]).sum()))
            n_before = len(self.names)
            n_now = number_strings(
                buffer,
                begins[a:b],
                ends[a:b],
                n_before,
                self._slots,
                self._hashes,
                self._pool,
                self._offsets,
                ids[a:b],
            )
            for i, name in enumerate(self._slices(n_before, n_now), start=n_before):
                try:
                    self.names.append(name.decode())
                except UnicodeDecodeError:
                    first = a + int(np.argmax(ids[a:b] == i))
                    raise failure(int(begins[first]), "the label is not valid UTF-8", name) from None
        return ids

    def rows(
        self,
        buffer: npt.NDArray[np.uint8],
        indptr: IntArray,
        begins: IntArray,
        ends: IntArray,
        failure: Failure,
    ) -> tuple[IntArray, IdArray]:
        """Number the labels of rows; a label listed twice in a row counts once.

        Parameters
        ----------
        buffer : uint8 array
            Bytes.
        indptr : int64 array
            Row ``i`` owns the slices from ``indptr[i]`` to ``indptr[i + 1]``.
        begins, ends : int64 arrays
            The slices.
        failure : callable
            See `number`.

        Returns
        -------
        indptr, ids : int64 array, int32 array
            As in `abound.labels.Labels`.
        """
        ids = self.number(buffer, begins, ends, failure)
        counts = np.diff(indptr)
        if (counts > 1).any():
            given, indptr, repeated = indptr, np.empty_like(indptr), ids
            ids = np.empty_like(repeated)
            drop_repeats(given, repeated, np.full(len(self.names), -1, np.int64), indptr, ids)
            ids = ids[: indptr[-1]]
        self.is_single = self.is_single and bool((counts == 1).all())
        return indptr, ids

    def labels(self, indptr: IntArray, ids: IdArray, *, in_order: bool = False) -> Labels:
        """Put ids and names together.

        Parameters
        ----------
        indptr, ids : int64 array, int32 array
            What `rows` returned.
        in_order : bool
            Number the classes anew by their sorted names.

        Returns
        -------
        Labels
            Of kind ``single`` if every row of the file so far had exactly one label, else ``lists``.
        """
        kind: Kind = "single" if self.is_single else "lists"
        if not in_order:
            return Labels(indptr, ids, self.classes, kind)
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return Labels(indptr, place[ids], self.classes[order], kind)

    def _slices(self, begin: int, end: int) -> list[bytes]:
        bounds = self._offsets[begin : end + 1].tolist()
        stored = self._pool[bounds[0] : bounds[-1]].tobytes()
        return [stored[a - bounds[0] : b - bounds[0]] for a, b in pairwise(bounds)]

    def _reserve(self, n_strings: int, n_bytes: int) -> None:
        """Make room for as many new strings as there can be."""
        n_known = len(self.names)
        n_wanted = n_known + n_strings
        if n_wanted > MAX_IDS:
            raise ValueError(f"more than {MAX_IDS} labels")
        if n_wanted > len(self._hashes):
            size = max(n_wanted, 2 * len(self._hashes))
            self._hashes = _grown(self._hashes, size)
            self._offsets = _grown(self._offsets, size + 1)
            self._slots = np.full(2 ** int(2 * size).bit_length(), -1, np.int32)
            fill_slots(self._hashes, n_known, self._slots)
        n_used = int(self._offsets[n_known])
        if n_used + n_bytes > len(self._pool):
            self._pool = _grown(self._pool, max(n_used + n_bytes, 2 * len(self._pool)))


def as_objects(names: Sequence[str | None]) -> npt.NDArray[Any]:
    """Make an array of Python strings, which takes as much room as the strings, not as the longest of them.

    Parameters
    ----------
    names : sequence of str or None
        The strings; None stays None.

    Returns
    -------
    object array
        The same strings.
    """
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def _grown(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    larger = np.empty(size, array.dtype)
    larger[: len(array)] = array
    return larger

"""Texts as one run of UTF-8 bytes: what kernels can read, and what a mapped file already is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.validation import frozen

ByteArray = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]


class TextBytes:
    """An immutable sequence of texts, kept as UTF-8 bytes.

    Text ``i`` is ``buffer[begins[i]:ends[i]]``. Texts may lie anywhere in the buffer, in any order, with other bytes
    between them, so that a file in memory can be used as it is.

    Parameters
    ----------
    buffer : uint8 array
        Bytes that hold the texts; each text is valid UTF-8.
    begins, ends : int64 arrays of shape (n,)
        Where each text begins and ends in the buffer.

    Examples
    --------
    >>> texts = TextBytes.from_strings(["one", "zwölf", ""])
    >>> len(texts), texts[1], list(texts.take([2, 0]))
    (3, 'zwölf', ['', 'one'])
    """

    __slots__ = ("_begins", "_buffer", "_ends")

    def __init__(self, buffer: npt.ArrayLike, begins: npt.ArrayLike, ends: npt.ArrayLike) -> None:
        self._buffer: ByteArray = frozen(buffer, np.uint8)
        self._begins: IntArray = frozen(begins, np.int64)
        self._ends: IntArray = frozen(ends, np.int64)
        if self._begins.ndim != 1 or self._begins.shape != self._ends.shape or self._buffer.ndim != 1:
            raise ValueError("buffer, begins and ends must have one dimension, begins and ends the same length")
        if len(self._begins) and not (
            self._begins.min() >= 0 and (self._begins <= self._ends).all() and self._ends.max() <= len(self._buffer)
        ):
            raise ValueError("begins and ends must be ordered and lie within the buffer")

    @property
    def buffer(self) -> ByteArray:
        """The bytes, read-only."""
        return self._buffer

    @property
    def begins(self) -> IntArray:
        """Where each text begins, read-only."""
        return self._begins

    @property
    def ends(self) -> IntArray:
        """Where each text ends, read-only."""
        return self._ends

    @property
    def n_bytes(self) -> int:
        """Number of bytes of all texts together."""
        return int((self._ends - self._begins).sum())

    @classmethod
    def from_strings(cls, texts: Iterable[str]) -> TextBytes:
        """Encode strings.

        Parameters
        ----------
        texts : iterable of str
            The texts.

        Returns
        -------
        TextBytes
            The same texts as bytes.
        """
        if isinstance(texts, TextBytes):
            return texts
        if isinstance(texts, str):
            raise TypeError("texts is one str: give a list of texts")
        listed = list(texts)
        try:
            encoded = [text.encode() for text in listed]
        except (UnicodeEncodeError, AttributeError):
            raise _unfit(listed) from None
        buffer = np.frombuffer(b"".join(encoded), np.uint8)
        bounds = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=bounds[1:])
        return cls(buffer, bounds[:-1], bounds[1:])

    @classmethod
    def join(cls, parts: Sequence[TextBytes]) -> TextBytes:
        """Put parts one after the other.

        Parameters
        ----------
        parts : sequence of TextBytes
            At least one.

        Returns
        -------
        TextBytes
            All texts. Parts of one buffer stay in it; of different buffers, the stretch that holds texts is copied.
        """
        first = parts[0].buffer
        if all(part.buffer.ctypes.data == first.ctypes.data and len(part.buffer) == len(first) for part in parts):
            begins_of_all = np.concatenate([part.begins for part in parts])
            return cls(first, begins_of_all, np.concatenate([part.ends for part in parts]))
        stretches: list[ByteArray] = []
        begins: list[IntArray] = []
        ends: list[IntArray] = []
        shift = 0
        for part in parts:
            if len(part):
                low, high = int(part.begins.min()), int(part.ends.max())
                stretches.append(part.buffer[low:high])
                begins.append(part.begins + (shift - low))
                ends.append(part.ends + (shift - low))
                shift += high - low
        if not begins:
            return parts[0].take(slice(0))
        return cls(np.concatenate(stretches), np.concatenate(begins), np.concatenate(ends))

    def take(self, rows: npt.ArrayLike | slice) -> TextBytes:
        """Select texts without copying their bytes.

        Parameters
        ----------
        rows : integer array, boolean mask or slice
            The texts wanted.

        Returns
        -------
        TextBytes
            Those texts, in that order.
        """
        chosen: Any = rows
        if not isinstance(rows, slice):
            chosen = np.asarray(rows)
            chosen = chosen if len(chosen) else chosen.astype(np.int64)
        return TextBytes(self._buffer, self._begins[chosen], self._ends[chosen])

    def to_list(self) -> list[str]:
        """Decode all texts.

        Returns
        -------
        list of str
            The texts.
        """
        view = self._buffer.data
        return [str(view[a:b], "utf-8") for a, b in zip(self._begins.tolist(), self._ends.tolist(), strict=True)]

    def __len__(self) -> int:
        return len(self._begins)

    def __getitem__(self, i: int) -> str:
        return self._buffer[self._begins[i] : self._ends[i]].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        view = self._buffer.data
        for a, b in zip(self._begins, self._ends, strict=True):
            yield str(view[a:b], "utf-8")

    def __repr__(self) -> str:
        return f"TextBytes({len(self)} texts, {self.n_bytes} bytes)"


def _unfit(texts: list[Any]) -> Exception:
    """Say which text cannot be encoded."""
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            return TypeError(f"text {i} is {type(text).__name__}, not str")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return ValueError(f"text {i} cannot be written as UTF-8: {error.reason} at character {error.start}")
    return AssertionError("every text can be encoded")

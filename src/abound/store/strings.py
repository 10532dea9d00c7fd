"""Many strings as two arrays, UTF-8 bytes and offsets, decoded one by one when they are asked for."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from abound.store.check import check_indptr
from abound.store.errors import ModelFileError

ByteArray = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]

BLOCK = 4096
"""Strings cut out of one piece of bytes while iterating."""


def pack_strings(strings: Sequence[str]) -> tuple[ByteArray, IntArray]:
    r"""Join strings into UTF-8 bytes and the offsets where each begins and the last one ends.

    Parameters
    ----------
    strings : sequence of str
        Any text.

    Returns
    -------
    data : uint8 array
        All bytes.
    offsets : int64 array of shape (n + 1,)
        String ``i`` is ``data[offsets[i]:offsets[i + 1]]``.

    Examples
    --------
    >>> data, offsets = pack_strings(["ab", "", "é"])
    >>> data.tobytes(), offsets.tolist()
    (b'ab\xc3\xa9', [0, 2, 2, 4])
    """
    encoded = []
    for i, text in enumerate(strings):
        if not isinstance(text, str):
            raise ValueError(f"entry {i} is {text!r}, a {type(text).__name__}: only strings can be packed")
        try:
            encoded.append(text.encode())
        except UnicodeEncodeError:
            raise ValueError(f"entry {i} is {text!r}, which is not valid Unicode text (a lone surrogate)") from None
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(piece) for piece in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


class LazyStrings(Sequence[str]):
    """Strings that stay UTF-8 bytes, such as in a mapped file, until they are asked for.

    Parameters
    ----------
    data : uint8 array
        All bytes.
    offsets : int64 array of shape (n + 1,)
        Checked at once: from 0 to ``len(data)`` and never decreasing.
    name : str
        File and array, for messages.

    Examples
    --------
    >>> strings = LazyStrings(*pack_strings(["fox", "été"]))
    >>> strings[-1], len(strings), list(strings)
    ('été', 2, ['fox', 'été'])
    """

    def __init__(self, data: npt.NDArray[Any], offsets: npt.NDArray[Any], name: str = "strings") -> None:
        if data.dtype != np.uint8 or data.ndim != 1:
            raise ModelFileError(name, f"bytes in one dimension were expected, found {data.dtype}{data.shape}")
        check_indptr(f"{name} offsets", offsets, len(data))
        self._data = data
        self._offsets = offsets
        self._name = name

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        i = operator.index(place)
        i = i + len(self) if i < 0 else i
        if not 0 <= i < len(self):
            raise IndexError(f"there are {len(self)} strings, none at {place}")
        return self._decode(i, self._data[self._offsets[i] : self._offsets[i + 1]].tobytes())

    def __iter__(self) -> Iterator[str]:
        return starmap(self._decode, enumerate(self.raw()))

    def raw(self) -> Iterator[bytes]:
        """Yield the bytes of each string."""
        for first in range(0, len(self), BLOCK):
            cuts = self._offsets[first : first + BLOCK + 1].tolist()
            piece = self._data[cuts[0] : cuts[-1]].tobytes()
            for i in range(len(cuts) - 1):
                yield piece[cuts[i] - cuts[0] : cuts[i + 1] - cuts[0]]

    def __repr__(self) -> str:
        return f"<LazyStrings: {len(self)}>"

    def _decode(self, i: int, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise ModelFileError(self._name, f"string {i} is not valid UTF-8 ({error.reason})") from None

"""Arrays of mapped pages: temporary ones in files, letting go of the pages of these, and ones that grow in memory.

A mapped array is read and written like any other. Its pages can leave memory at any time without loss, for the file has
them; `let_go` makes them leave now, so that a process that reads a large file from front to back stays small.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


AROUND = 1024
"""Pages before an array that are let go of with it: the system maps some around each page that is read."""


LEAST_ROOM = 1 << 16
"""Bytes that a growing array begins with."""


class _Scratch(mmap.mmap):
    """A mapped temporary file, shared and not private: letting go of its pages loses nothing."""


def scratch_array(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return zeros that live in a temporary file, which vanishes with the array.

    The file is in the folder for temporary files; the environment variable ``TMPDIR`` says where that is. Its room on
    the disk is reserved at once, so that a full disk is an error here and now.

    Parameters
    ----------
    shape : int or tuple of int
        Its shape.
    dtype : dtype
        Its type.

    Returns
    -------
    array
        Writeable.

    Examples
    --------
    >>> numbers = scratch_array(3, np.int32)
    >>> numbers[1] = 7
    >>> let_go(numbers)
    >>> numbers.tolist()
    [0, 7, 0]
    """
    dtype = np.dtype(dtype)
    shape = (shape,) if isinstance(shape, int | np.integer) else shape
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(prefix="abound-") as file:
        _reserve(file.fileno(), size)
        mapped = _Scratch(file.fileno(), size)
    return np.frombuffer(mapped, dtype).reshape(shape)


class Spill:
    """An array that grows in a temporary file and is mapped once it is whole; the file has no name and leaves nothing.

    Parameters
    ----------
    dtype : dtype
        Its type.
    width : int, optional
        Length of its rows if it has two dimensions.
    folder : path, optional
        Where the file is to be; by default the folder for temporary files.

    Examples
    --------
    >>> spill = Spill(np.int32)
    >>> spill.append(np.array([1, 2])), spill.append(np.array([3]))
    (None, None)
    >>> spill.mapped().tolist()
    [1, 2, 3]
    """

    def __init__(
        self, dtype: npt.DTypeLike, width: int | None = None, folder: str | os.PathLike[str] | None = None
    ) -> None:
        self._descriptor = -1
        self._dtype = np.dtype(dtype)
        self._width = width
        with tempfile.TemporaryFile(prefix=".abound-", dir=folder) as file:
            self._descriptor = os.dup(file.fileno())
        self.length = 0

    def __del__(self) -> None:
        self.close()

    def append(self, piece: Array) -> None:
        """Write a piece behind the others.

        Parameters
        ----------
        piece : array
            Converted to the type of the whole.
        """
        left = memoryview(np.ascontiguousarray(piece, self._dtype).reshape(-1).view(np.uint8).data)
        while left:
            left = left[os.write(self._descriptor, left) :]
        self.length += len(piece)

    def mapped(self) -> Array:
        """Return the whole array, read-only; nothing can be appended any more."""
        shape = (self.length,) if self._width is None else (self.length, self._width)
        size = math.prod(shape) * self._dtype.itemsize
        if size == 0:
            self.close()
            return np.zeros(shape, self._dtype)
        mapped = mmap.mmap(self._descriptor, size, access=mmap.ACCESS_READ)
        self.close()
        return np.frombuffer(mapped, self._dtype).reshape(shape)

    def close(self) -> None:
        """Let go of the file; what was mapped stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Growing:
    """An array that grows in memory: where the system can move pages it is never copied, and takes no more than it has.

    Parameters
    ----------
    dtype : dtype
        Its type.
    width : int, optional
        Length of its rows if it has two dimensions.

    Examples
    --------
    >>> growing = Growing(np.int32)
    >>> growing.append(np.array([1, 2])), growing.append(np.array([3]))
    (None, None)
    >>> growing.mapped().tolist()
    [1, 2, 3]
    """

    def __init__(self, dtype: npt.DTypeLike, width: int | None = None) -> None:
        self._dtype = np.dtype(dtype)
        self._width = width
        self._room: mmap.mmap | None = None
        self.length = 0

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self.length,) if self._width is None else (self.length, self._width)

    @property
    def _size(self) -> int:
        return math.prod(self._shape) * self._dtype.itemsize

    def append(self, piece: Array) -> None:
        """Write a piece behind the others.

        Parameters
        ----------
        piece : array
            Converted to the type of the whole.
        """
        begin = self._size
        self.length += len(piece)
        if self._size == begin:
            return
        room = self._room
        if room is None or self._size > len(room):
            room = self._moved(max(LEAST_ROOM, 2 * self._size))
        room[begin : self._size] = np.ascontiguousarray(piece, self._dtype).reshape(-1).view(np.uint8).data

    def mapped(self) -> Array:
        """Return the whole array, read-only; nothing can be appended any more."""
        if self._size == 0:
            return np.zeros(self._shape, self._dtype)
        whole = np.frombuffer(self._moved(self._size), self._dtype).reshape(self._shape)
        whole.flags.writeable = False
        return whole

    def _moved(self, size: int) -> mmap.mmap:
        """Take room of another size; where it was never written to it takes no memory."""
        if self._room is not None:
            try:
                self._room.resize(size)
            except (OSError, SystemError):
                held = self._room[: min(size, len(self._room))]
                self._room = _anonymous(size)
                self._room[: len(held)] = held
        else:
            self._room = _anonymous(size)
        return self._room


def is_mapped(array: Array) -> bool:
    """Tell whether an array is a view of a mapped file that can be let go of.

    Parameters
    ----------
    array : array
        Any array.

    Returns
    -------
    bool
        False for private, writeable maps, whose changes are in memory alone.
    """
    return _file_behind(array) is not None


def let_go(*arrays: Array) -> None:
    """Let the pages of mapped arrays leave this process's memory; other arrays stay as they are.

    Parameters
    ----------
    *arrays : array
        Contiguous ones. Their content does not change: what is read again comes from the file.
    """
    for array in arrays:
        mapped = _file_behind(array)
        if mapped is None or not array.nbytes or not hasattr(mapped, "madvise"):
            continue
        start = array.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
        begin = max(0, start - start % mmap.PAGESIZE - AROUND * mmap.PAGESIZE)
        mapped.madvise(mmap.MADV_DONTNEED, begin, min(start + array.nbytes, len(mapped)) - begin)


def _file_behind(array: Array) -> mmap.mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, _Scratch) or (isinstance(base, mmap.mmap) and memoryview(base).readonly):
        return base
    return None


def _reserve(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)


def _anonymous(size: int) -> mmap.mmap:
    """Pages of this process alone, large ones if there are any."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, size)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return pages

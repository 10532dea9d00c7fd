"""What must be true of arrays from a file before a kernel, which checks nothing, may follow their pointers.

All checks work block by block, so that a mapped array of any size costs no memory to speak of.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.scratch import let_go
from abound.store.errors import ModelFileError

Array = npt.NDArray[Any]

BLOCK = 2**17
"""Entries looked at in one step."""
LARGEST = 1e15
"""Values and weights beyond this cannot be ranked: their products would leave float32."""
LARGEST_SUM = float(np.finfo(np.float32).max)
"""Sums of many values, which become weights again."""
MOST = 2**53
"""Counts in a file are below this, so that sums of them stay whole numbers of 64 bits."""
RESCALE = "Scale the rows, for example to unit length, and train it again."
CRC_BLOCK = 2**24
"""Bytes summed in one step: a few milliseconds, so that Ctrl-C works."""


def check_csr(name: str, indptr: Array, ids: Array, n_ids: int) -> None:
    """Check that ``indptr`` cuts ``ids`` into rows and that every id exists.

    Parameters
    ----------
    name : str
        File and array, for the message.
    indptr : int64 array of shape (n_rows + 1,)
        Row ``i`` is ``ids[indptr[i]:indptr[i + 1]]``.
    ids : integer array
        The entries of all rows.
    n_ids : int
        Ids count from 0 to ``n_ids - 1``.

    Raises
    ------
    ModelFileError
        If ``indptr`` does not start at 0, decreases or does not end at ``len(ids)``, or an id is out of range.

    Examples
    --------
    >>> check_csr("model", np.array([0, 2, 3]), np.array([4, 0, 1], np.int32), n_ids=5)
    >>> check_csr("model", np.array([0, 2, 3]), np.array([4, 0, 7], np.int32), n_ids=5)
    Traceback (most recent call last):
    ...
    abound.store.errors.ModelFileError: model ids: entry 2 is 7, but ids are 0 to 4. The file is damaged ...
    """
    check_indptr(f"{name} indptr", indptr, len(ids))
    check_ids(f"{name} ids", ids, n_ids)


def check_indptr(name: str, indptr: Array, end: int) -> None:
    """Check that an array of int64 starts at 0, never decreases and ends at ``end``.

    Parameters
    ----------
    name : str
        File and array, for the message.
    indptr : array
        The array.
    end : int
        The length of what it cuts into rows.
    """
    if indptr.dtype != np.int64 or indptr.ndim != 1 or not len(indptr):
        raise ModelFileError(name, f"int64 in one dimension was expected, found {indptr.dtype}{indptr.shape}")
    if indptr[0] != 0:
        raise ModelFileError(name, f"it starts at {indptr[0]} and not at 0")
    for begin in range(0, len(indptr) - 1, BLOCK):
        block = indptr[begin : begin + BLOCK + 1]
        falls = block[1:] < block[:-1]
        if falls.any():
            row = int(falls.argmax())
            place = begin + row + 1
            raise ModelFileError(name, f"it decreases at position {place} ({block[row + 1]} after {block[row]})")
    if indptr[-1] != end:
        raise ModelFileError(name, f"it ends at {indptr[-1]}, but there are {end} entries")


def check_ids(name: str, ids: Array, n_ids: int) -> None:
    """Check that integers in one dimension are at least 0 and below ``n_ids``.

    Parameters
    ----------
    name : str
        File and array, for the message.
    ids : array
        The array.
    n_ids : int
        The number of ids.
    """
    if ids.dtype.kind != "i" or ids.ndim != 1:
        raise ModelFileError(name, f"integers in one dimension were expected, found {ids.dtype}{ids.shape}")
    for begin in range(0, len(ids), BLOCK):
        block = ids[begin : begin + BLOCK]
        if block.min() < 0 or block.max() >= n_ids:
            place = int(((block < 0) | (block >= n_ids)).argmax())
            known = f"ids are 0 to {n_ids - 1}" if n_ids > 0 else "no ids exist"
            raise ModelFileError(name, f"entry {begin + place} is {block[place]}, but {known}")


def check_numbers(name: str, numbers: Array, largest: float = LARGEST, *, first: int = 0) -> None:
    """Check that no number is beyond a limit, and that all are numbers.

    Parameters
    ----------
    name : str
        File and array, for the message.
    numbers : float array
        Of any shape.
    largest : float
        The limit; infinity and NaN are always refused.
    first : int
        The place of the first one in the array, for the message.

    Raises
    ------
    ModelFileError
        That names the first number beyond the limit.

    Examples
    --------
    >>> check_numbers("weights", np.array([0.5, -1e15]))
    >>> check_numbers("weights", np.array([0.5, -2e15]))
    Traceback (most recent call last):
    ...
    abound.store.errors.ModelFileError: weights: entry 1 is -2e+15, but a model holds numbers up to ±1e+15. Scale ...
    """
    flat = numbers.reshape(-1)
    for begin in range(0, len(flat), BLOCK):
        block = flat[begin : begin + BLOCK]
        with np.errstate(invalid="ignore"):
            least, most = float(block.min()), float(block.max())
        # What is not a number compares as False.
        if not (least >= -largest and most <= largest):
            place = int((~(np.abs(block) <= largest)).argmax())
            problem = f"entry {first + begin + place} is {block[place]:.3g}"
            raise ModelFileError(name, f"{problem}, but a model holds numbers up to ±{largest:.0e}", RESCALE)


def check_content(name: str, array: Array, crc32: Any, *, keep: bool = True) -> None:
    """Compare an array's bytes with its checksum; a bool must be 0 or 1.

    Parameters
    ----------
    name : str
        File and array, for the message.
    array : array
        In C order.
    crc32 : object
        The checksum the file gives: eight hexadecimal digits.
    keep : bool
        Whether what was read of a mapped array stays in memory.
    """
    content = array.reshape(-1).view(np.uint8)
    crc = 0
    for begin in range(0, len(content), CRC_BLOCK):
        block = content[begin : begin + CRC_BLOCK]
        crc = zlib.crc32(block.data, crc)
        if array.dtype == np.bool_ and block.max() > 1:
            raise ModelFileError(name, "a bool is neither 0 nor 1")
        if not keep:
            let_go(block)
    if f"{crc:08x}" != crc32:
        raise ModelFileError(name, f"its content has the checksum {crc:08x}, but {crc32} is recorded")

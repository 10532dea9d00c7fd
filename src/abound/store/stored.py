"""Reading a model file: the arrays are views of the mapped file, verified, never copied."""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.store.check import LARGEST, check_content, check_ids, check_indptr, check_numbers
from abound.store.errors import AGAIN, ModelFileError
from abound.store.header import DTYPES, Entry, read_header

Array = npt.NDArray[Any]


class Section(Mapping[str, Array]):
    """The arrays of a file whose names start with a prefix, under their names without it.

    Parameters
    ----------
    path : Path
        The file.
    prefix : str
        What the names in the file start with.
    arrays : mapping
        The arrays, sorted by name.
    """

    def __init__(self, path: Path, prefix: str, arrays: dict[str, Array]) -> None:
        self.path = path
        self.prefix = prefix
        self._arrays = arrays
        self._names = list(arrays)

    def __getitem__(self, name: str) -> Array:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.prefix!r} of {str(self.path)!r}: {len(self)} arrays>"

    def section(self, prefix: str) -> Section:
        """Return the arrays whose names go on with a prefix.

        Parameters
        ----------
        prefix : str
            Such as ``"index/"``.

        Returns
        -------
        Section
            Those arrays, without the prefix in their names; empty if there are none.
        """
        first = bisect_left(self._names, prefix)
        names = takewhile(lambda name: name.startswith(prefix), islice(self._names, first, None))
        return Section(self.path, self.prefix + prefix, {name[len(prefix) :]: self._arrays[name] for name in names})

    def name_of(self, name: str) -> str:
        """Return file and full name of an array, as messages give them.

        Parameters
        ----------
        name : str
            Its name in this section.

        Returns
        -------
        str
            Such as ``model.safetensors: array 'index/indptr'``.
        """
        return f"{self.path}: array {self.prefix + name!r}"

    def fault(self, name: str, problem: str, remedy: str = AGAIN) -> ModelFileError:
        """Make the error to raise for an array.

        Parameters
        ----------
        name : str
            Its name in this section.
        problem, remedy : str
            What is wrong and what to do.

        Returns
        -------
        ModelFileError
            With file, array, problem and remedy.
        """
        return ModelFileError(self.name_of(name), problem, remedy)

    def require(self, name: str, dtype: npt.DTypeLike, shape: tuple[int | None, ...] = (None,)) -> Array:
        """Return an array that must be there, in the type and shape that a kernel expects.

        Parameters
        ----------
        name : str
            Its name in this section.
        dtype : dtype
            The type it must have.
        shape : tuple
            The shape it must have; None where any length will do.

        Returns
        -------
        array
            The mapped array.

        Raises
        ------
        ModelFileError
            If it is missing or of another type or shape.
        """
        if name not in self._arrays:
            raise self.fault(name, "it is missing")
        array = self._arrays[name]
        fits = len(shape) == array.ndim and all(
            want is None or want == have for want, have in zip(shape, array.shape, strict=True)
        )
        if array.dtype != dtype or not fits:
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            found = f"{array.dtype} of shape {array.shape}"
            raise self.fault(name, f"{np.dtype(dtype)} of shape ({wanted}) was expected, found {found}")
        return array

    def require_numbers(
        self, name: str, dtype: npt.DTypeLike, shape: tuple[int | None, ...] = (None,), largest: float = LARGEST
    ) -> Array:
        """Return an array of weights or of sums of them, none beyond what can be ranked.

        Parameters
        ----------
        name : str
            Its name in this section.
        dtype : dtype
            The type it must have.
        shape : tuple
            The shape it must have; None where any length will do.
        largest : float
            The limit; that of sums is `abound.store.check.LARGEST_SUM`.

        Returns
        -------
        array
            The mapped array.
        """
        array = self.require(name, dtype, shape)
        check_numbers(self.name_of(name), array, largest)
        return array

    def check_csr(self, indptr: str, ids: str, n_ids: int) -> None:
        """Check that one array cuts another into rows of valid ids; see `abound.store.check_csr`.

        Parameters
        ----------
        indptr, ids : str
            Names of the arrays in this section.
        n_ids : int
            Ids count from 0 to ``n_ids - 1``.
        """
        pointers, entries = self.require(indptr, np.int64), self.require(ids, np.int32)
        check_indptr(self.name_of(indptr), pointers, len(entries))
        check_ids(self.name_of(ids), entries, n_ids)


class Stored(Section):
    """An open model file: its arrays by name, as read-only views of the file, and its settings.

    Every array keeps the mapped file alive, so closing is never needed for safety and never pulls memory from under
    an array.

    Parameters
    ----------
    path : Path
        The file.
    arrays : dict
        The arrays.
    meta : dict
        The settings.
    version : int
        The version of the format.
    extra : dict
        Entries of the header that this version does not know, to be passed on when the file is rewritten.
    """

    def __init__(
        self, path: Path, arrays: dict[str, Array], meta: dict[str, Any], version: int, extra: dict[str, str]
    ) -> None:
        super().__init__(path, "", arrays)
        self.meta = meta
        self.version = version
        self.extra = extra

    def __enter__(self) -> Stored:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the arrays; the file is unmapped when the last one in use elsewhere goes too."""
        self._arrays = {}
        self._names = []


def open_arrays(path: str | os.PathLike[str], *, verify: bool = True, keep: bool = True) -> Stored:
    """Map a model file and check it.

    Parameters
    ----------
    path : path
        The file.
    verify : bool
        Compare every array with its checksum. The header is always checked.
    keep : bool
        Whether what was verified stays in memory: False for a file that may be larger.

    Returns
    -------
    Stored
        The arrays, none of them copied, and the settings.

    Raises
    ------
    ModelFileError
        If the file is damaged, crafted, foreign or too new.
    """
    path = Path(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header = read_header(path, file, size)
        try:
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except ValueError:
            raise ModelFileError(path, "the file shrank while it was opened", "Open it again.") from None
    arrays = {name: _view(mapped, header.start, header.entries[name]) for name in sorted(header.entries)}
    stored = Stored(path, arrays, header.meta, header.version, header.extra)
    if verify:
        for name, array in arrays.items():
            check_content(stored.name_of(name), array, header.crc32[name], keep=keep)
    return stored


def _view(mapped: mmap.mmap, start: int, entry: Entry) -> Array:
    dtype = DTYPES[entry.code]
    count = (entry.end - entry.begin) // dtype.itemsize
    return np.frombuffer(mapped, dtype, count, start + entry.begin).reshape(entry.shape)

"""Writing a model file: beside the old one, then in its place.

The file is written here and not by the safetensors library, whose files it equals in format: before its version 0.8 the
library copies every array into memory first, and it writes the metadata in random order, so that the same model would
not give the same bytes twice.
"""

from __future__ import annotations

import os
import secrets
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from abound.scratch import let_go
from abound.store import strict_json
from abound.store.header import (
    DTYPES,
    FORMAT,
    KNOWN,
    MAX_DIMENSIONS,
    VERSION,
    Entry,
    code_of,
    encode_header,
    name_problem,
)

Array = npt.NDArray[Any]

BLOCK = 2**20
"""Bytes checked and written at a time: they stay in the cache in between, and a strided array is never copied whole."""


def save_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, Array],
    meta: dict[str, Any],
    *,
    extra: Mapping[str, str] | None = None,
) -> None:
    """Save named arrays and settings as one model file, whole or not at all.

    The same arrays and settings always give the same bytes. If anything fails, an older file of that name stays as
    it was.

    Parameters
    ----------
    path : path
        The file to write or replace.
    arrays : mapping of str to array
        Arrays of int8 to int64, uint8, float32, float64 or bool. They are not copied.
    meta : dict
        Settings; only what JSON can hold.
    extra : mapping of str to str, optional
        Entries of the header that this version does not know, such as `Stored.extra` of the file that is rewritten.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> save_arrays(path, {"index/weights": np.ones(3, np.float32)}, {"learner": "ff"})
    >>> from abound.store import open_arrays
    >>> stored = open_arrays(path)
    >>> stored["index/weights"].tolist(), stored.meta
    ([1.0, 1.0, 1.0], {'learner': 'ff'})
    """
    entries = _lay_out(arrays)
    metadata = {"format": FORMAT, "version": str(VERSION), "meta": strict_json.dumps(meta, "meta"), "crc32": ""}
    metadata |= _checked_extra(dict(extra or {}))
    header = _header_with(entries, metadata, dict.fromkeys(entries, 0))
    with replacing(path) as file:
        file.write(header)
        sums = {name: _write(file, arrays[name], DTYPES[entry.code]) for name, entry in entries.items()}
        file.seek(0)
        file.write(_header_with(entries, metadata, sums))


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of ``path`` at the end of the block, or vanishes if the block fails.

    Parameters
    ----------
    path : path
        The file to write or replace; a symbolic link stays one.

    Yields
    ------
    binary file
        A file beside it, to be written.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file")
    beside = target.with_name(f".abound-{secrets.token_hex(8)}.tmp")
    file = open(beside, "xb")
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _lay_out(arrays: Mapping[str, Array]) -> dict[str, Entry]:
    """Give each array its place: wide types first, so that all are aligned without gaps."""
    codes: dict[str, str] = {}
    for name, array in arrays.items():
        problem = name_problem(name)
        if problem:
            raise ValueError(problem)
        if not isinstance(array, np.ndarray) or array.ndim > MAX_DIMENSIONS:
            raise ValueError(f"{name!r} must be a NumPy array of at most {MAX_DIMENSIONS} dimensions")
        code = code_of(array.dtype)
        if code is None:
            held = ", ".join(dtype.name for dtype in DTYPES.values())
            raise ValueError(f"array {name!r} has the type {array.dtype}, but a model file holds only {held}")
        codes[name] = code
    entries, place = {}, 0
    for name in sorted(codes, key=lambda name: (-arrays[name].itemsize, name)):
        end = place + arrays[name].nbytes
        entries[name] = Entry(codes[name], arrays[name].shape, place, end)
        place = end
    return entries


def _checked_extra(extra: dict[str, str]) -> dict[str, str]:
    strict_json.dumps(extra, "extra")
    for key, value in extra.items():
        if key in KNOWN:
            raise ValueError(f"extra has the key {key!r}, which abound writes itself")
        if not isinstance(value, str):
            raise ValueError(f"extra[{key!r}] is {value!r}: the header holds only strings")
    return dict(sorted(extra.items()))


def _header_with(entries: dict[str, Entry], metadata: dict[str, str], sums: dict[str, int]) -> bytes:
    crc32 = {name: f"{crc:08x}" for name, crc in sums.items()}
    return encode_header(entries, {**metadata, "crc32": strict_json.dumps(crc32, "crc32")})


def _write(file: IO[bytes], array: Array, dtype: np.dtype[Any]) -> int:
    """Write an array in C order and little-endian, block by block; return its crc32."""
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    step = BLOCK // dtype.itemsize
    crc = 0
    for begin in range(0, array.size, step):
        part = flat[begin : begin + step]
        block = np.ascontiguousarray(part, dtype=dtype).view(np.uint8).data
        crc = zlib.crc32(block, crc)
        file.write(block)
        # What came from a mapped file, such as one larger than memory, need not stay.
        let_go(part)
    return crc


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where folders can be synced."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

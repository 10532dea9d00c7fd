"""The header of a model file: which arrays lie where, the settings and the checksums, read strictly."""

from __future__ import annotations

import math
import reprlib
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import IO, Any, NamedTuple

import numpy as np

from abound.store import strict_json
from abound.store.errors import ModelFileError

FORMAT = "abound"
VERSION = 1
MAX_HEADER = 8 * 2**20
"""Bytes of header at most; what is long belongs into an array."""
MAX_DIMENSIONS = 8
MAX_NAME = 250
ALIGNMENT = 8
"""The data start at a multiple of this, so that every array is aligned in the mapped memory."""
PADDING = 64
"""The writer pads further, to a cache line."""
LOOKED_AT = 64
"""Bytes that tell what a file is."""
FOREIGN = {
    b"PK\3\4": "it is a zip archive, such as NumPy, PyTorch or an office program writes",
    b"\x1f\x8b": "it is compressed (gzip); unpack it if a model is in it",
    b"\x28\xb5\x2f\xfd": "it is compressed (zstd); unpack it if a model is in it",
    b"\x93NUMPY": "it is an array of NumPy",
    b"\x89HDF\r\n": "it is an HDF5 file",
    b"SQLite format 3\0": "it is a database, such as the journal of a model",
}
KNOWN = ("format", "version", "meta", "crc32", "header_crc32")

DTYPES: Mapping[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}


class Entry(NamedTuple):
    """Type, shape and place of one array; the place counts from the first byte after the header."""

    code: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """All that the header says."""

    entries: dict[str, Entry]
    meta: dict[str, Any]
    version: int
    extra: dict[str, str]
    crc32: dict[str, str]
    start: int


def code_of(dtype: np.dtype[Any]) -> str | None:
    """Return the name of a type in the file, None if the file cannot hold it.

    Parameters
    ----------
    dtype : dtype
        Any type, in either byte order.

    Returns
    -------
    str or None
        A key of ``DTYPES``.
    """
    little = dtype.newbyteorder("<")
    return next((code for code, known in DTYPES.items() if known == little), None)


def name_problem(name: Any) -> str | None:
    """Say why a string cannot name an array, None if it can.

    Parameters
    ----------
    name : object
        The name.

    Returns
    -------
    str or None
        The problem.
    """
    if isinstance(name, str) and name.isprintable() and 0 < len(name) <= MAX_NAME and name != "__metadata__":
        return None
    rule = f"a name is printable text of at most {MAX_NAME} characters other than '__metadata__'"
    return f"{reprlib.repr(name)} cannot name an array ({rule})"


def encode_header(entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> bytes:
    """Write the header with its length before it and its own checksum in it.

    Parameters
    ----------
    entries : mapping
        The arrays in the order of their place.
    metadata : mapping
        All of ``__metadata__`` but ``header_crc32``.

    Returns
    -------
    bytes
        All that stands before the data. Its length does not depend on the values of the checksums.
    """
    sealed = {**metadata, "header_crc32": f"{seal(entries, metadata):08x}"}
    tree: dict[str, Any] = {"__metadata__": sealed}
    for name, entry in entries.items():
        tree[name] = {"dtype": entry.code, "shape": list(entry.shape), "data_offsets": [entry.begin, entry.end]}
    text = strict_json.dumps(tree, "the header").encode()
    text += b" " * (-(8 + len(text)) % PADDING)
    if len(text) > MAX_HEADER:
        raise ValueError(
            f"the header would be {len(text)} bytes, more than {MAX_HEADER}: put long lists of meta into arrays"
        )
    return len(text).to_bytes(8, "little") + text


def seal(entries: Mapping[str, Entry], metadata: Mapping[str, str]) -> int:
    """Return the checksum of what the header means, whatever the order of its keys and the spaces between them.

    Parameters
    ----------
    entries : mapping
        The arrays.
    metadata : mapping
        ``__metadata__``; ``header_crc32`` itself does not count.

    Returns
    -------
    int
        A crc32.
    """
    crc = 0
    for name in sorted(entries):
        entry = entries[name]
        crc = zlib.crc32(f"{name}\0{entry.code}\0{','.join(map(str, entry.shape))}\0".encode(), crc)
    for key in sorted(metadata.keys() - {"header_crc32"}):
        crc = zlib.crc32(f"{key}\0{metadata[key]}\0".encode(), crc)
    return crc


def read_header(path: object, file: IO[bytes], size: int) -> Header:
    """Read and check the header of an open file.

    Parameters
    ----------
    path : path
        The file's name, for messages.
    file : binary file
        Positioned at its first byte.
    size : int
        Bytes in the file.

    Returns
    -------
    Header
        Arrays that lie inside the file, one after another, without overlap or gap.
    """
    start = file.read(LOOKED_AT)
    foreign = _foreign(start, size)
    if foreign is not None:
        raise ModelFileError(path, f"this is not a model file: {foreign}", "Give a file that abound has saved.")
    file.seek(8)
    length = int.from_bytes(start[:8], "little")
    if length > MAX_HEADER:
        raise ModelFileError(path, f"the header claims {length} bytes; at most {MAX_HEADER} are allowed")
    if 8 + length > size:
        raise ModelFileError(path, f"the header claims {length} bytes, but the file has only {size}: it was cut off")
    tree = _parse(path, file.read(length), length)
    metadata = _read_metadata(path, tree.pop("__metadata__", None))
    version = _read_version(path, metadata)
    entries = {name: _read_entry(path, name, tree[name]) for name in tree}
    if metadata.get("header_crc32") != f"{seal(entries, metadata):08x}":
        raise ModelFileError(path, "the header does not match its checksum")
    _check_layout(path, entries, 8 + length, size)
    meta = _read_object(path, metadata, "meta")
    crc32 = _read_object(path, metadata, "crc32")
    if crc32.keys() != entries.keys():
        odd = sorted(crc32.keys() ^ entries.keys())[0]
        raise ModelFileError(path, f"arrays and checksums differ: {odd!r} has only one of the two")
    extra = {key: value for key, value in metadata.items() if key not in KNOWN}
    return Header(entries, meta, version, extra, crc32, 8 + length)


def _foreign(start: bytes, size: int) -> str | None:
    """Say what a file is, from its first bytes, if it cannot be a model or a part of one."""
    if size == 0:
        return "it is empty"
    for magic, kind in FOREIGN.items():
        if start.startswith(magic):
            return kind
    if start[:1] == b"\x80" and start[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        return "it is a pickle, and abound reads none, because a pickle can run any program"
    # A length of at most 8 MiB has zeros, and a brace follows; what is cut off before that may be any.
    if size < 8:
        return f"it has {size} bytes, too few"
    if start[3:8] == bytes(5) or start[8:9] == b"{":
        return None
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError as error:
        text = start[: error.start].decode("utf-8") if error.start > LOOKED_AT - 4 else "\0"
    if all(character.isprintable() or character in "\r\n\t\f\ufeff" for character in text):
        return f"it is text that begins with {text[:20]!r}"
    return "it begins as no model does"


def _parse(path: object, raw: bytes, length: int) -> dict[str, Any]:
    if len(raw) != length or not raw.startswith(b"{"):
        raise ModelFileError(path, "this is not a safetensors file")
    try:
        tree: dict[str, Any] = strict_json.loads(raw.decode())
    except ValueError as error:
        raise ModelFileError(path, f"the header is not valid JSON in UTF-8 ({error})") from None
    return tree


def _read_metadata(path: object, metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ModelFileError(path, "this is not a model of abound", "Give a file that abound has saved.")
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise ModelFileError(path, f"the header's {reprlib.repr(key)} is not a string")
    return metadata


def _read_version(path: object, metadata: dict[str, str]) -> int:
    text = metadata.get("version", "")
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise ModelFileError(path, f"the version {reprlib.repr(text)} is not a number")
    if int(text) > VERSION:
        raise ModelFileError(
            path,
            f"the file was written by a newer abound (file version {text}, this one reads up to {VERSION})",
            "Upgrade abound, or save the model with the older one.",
        )
    return int(text)


def _read_entry(path: object, name: str, entry: Any) -> Entry:
    problem = name_problem(name)
    if problem:
        raise ModelFileError(path, problem)
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(path, f"array {name!r} must have dtype, shape and data_offsets and nothing else")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in DTYPES:
        raise ModelFileError(
            path, f"array {name!r} has the type {reprlib.repr(code)}; a model holds only {', '.join(DTYPES)}"
        )
    if not _whole(shape) or len(shape) > MAX_DIMENSIONS:
        raise ModelFileError(path, f"array {name!r} has no valid shape")
    if not _whole(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ModelFileError(path, f"array {name!r} has no valid data_offsets")
    itemsize = DTYPES[code].itemsize
    if math.prod(shape) * itemsize != offsets[1] - offsets[0] or math.prod(filter(None, shape)) * itemsize >= 2**63:
        raise ModelFileError(path, f"array {name!r}: its shape and its span of bytes differ")
    return Entry(code, tuple(shape), offsets[0], offsets[1])


def _whole(numbers: Any) -> bool:
    return isinstance(numbers, list) and all(type(number) is int and 0 <= number < 2**63 for number in numbers)


def _check_layout(path: object, entries: dict[str, Entry], start: int, size: int) -> None:
    """Refuse arrays that overlap, leave gaps, are not aligned or do not end where the file ends."""
    if start % ALIGNMENT:
        raise ModelFileError(path, f"the data start at byte {start}, which is not a multiple of {ALIGNMENT}")
    placed = sorted((entry.begin, entry.end, name) for name, entry in entries.items())
    for (_, end, before), (begin, _, name) in pairwise([(0, 0, "the header"), *placed]):
        if begin != end:
            problem = "overlaps" if begin < end else "leaves a gap after"
            raise ModelFileError(path, f"array {name!r} {problem} {before!r}")
        if begin % DTYPES[entries[name].code].itemsize:
            raise ModelFileError(path, f"array {name!r} is not aligned to its type")
    end = start + (placed[-1][1] if placed else 0)
    if end != size:
        problem = "it was cut off" if end > size else "bytes follow the last array"
        raise ModelFileError(path, f"the header describes {end} bytes, but the file has {size}: {problem}")


def _read_object(path: object, metadata: dict[str, str], key: str) -> dict[str, Any]:
    try:
        value = strict_json.loads(metadata.get(key, ""))
    except ValueError as error:
        raise ModelFileError(path, f"the header's {key!r} is not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise ModelFileError(path, f"the header's {key!r} is not a JSON object")
    return value

"""The model file written and read as simply as its specification allows, and the checks as plain loops."""

from __future__ import annotations

import json
import zlib
from itertools import pairwise
from typing import Any

import numpy as np

TYPES = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


def split(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """Cut a valid file into its header, as JSON, and its data."""
    length = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def join(tree: Any, data: bytes, align: int = 8) -> bytes:
    text = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    text += b" " * (-len(text) % align)
    return len(text).to_bytes(8, "little") + text + data


def sign(tree: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Make all checksums right, as someone who crafts a file would; parts of the wrong type are passed over."""
    metadata = tree.get("__metadata__")
    if not isinstance(metadata, dict):
        return tree
    entries = {name: entry for name, entry in tree.items() if name != "__metadata__"}
    sums = {}
    for name, entry in entries.items():
        try:
            begin, end = entry["data_offsets"]
            sums[name] = f"{zlib.crc32(data[begin:end]):08x}"
        except (TypeError, ValueError, KeyError):
            sums[name] = "00000000"
    metadata = {**metadata, "crc32": json.dumps(sums)}
    return {**tree, "__metadata__": {**metadata, "header_crc32": f"{seal(entries, metadata):08x}"}}


def seal(entries: dict[str, Any], metadata: dict[str, Any]) -> int:
    words = []
    for name in sorted(entries):
        try:
            words += [name, entries[name]["dtype"], ",".join(str(length) for length in entries[name]["shape"])]
        except (TypeError, KeyError):
            words += [name]
    for key in sorted(metadata):
        if key != "header_crc32":
            words += [key, metadata[key]]
    return zlib.crc32("".join(f"{word}\0" for word in words).encode(errors="replace"))


def read(raw: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays, copied, and the settings of a valid file; assert that all its checksums are right."""
    tree, data = split(raw)
    metadata = tree.pop("__metadata__")
    assert int(metadata["header_crc32"], 16) == seal(tree, metadata)
    arrays = {}
    for name, entry in tree.items():
        piece = data[slice(*entry["data_offsets"])]
        assert json.loads(metadata["crc32"])[name] == f"{zlib.crc32(piece):08x}"
        arrays[name] = np.frombuffer(piece, TYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays, json.loads(metadata["meta"])


def is_csr(indptr: np.ndarray, n_entries: int, ids: np.ndarray, n_ids: int) -> bool:
    pointers = indptr.tolist()
    if not pointers or pointers[0] != 0 or pointers[-1] != n_entries:
        return False
    for left, right in pairwise(pointers):
        if right < left:
            return False
    return all(0 <= i < n_ids for i in ids.tolist())

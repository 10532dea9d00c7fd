"""A taxonomy as plain arrays, so that it can travel inside a model file, and back with every array checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.read.textbytes import TextBytes

KINDS = ("tree", "dag", "graph")


def pack(
    names: npt.NDArray[Any], edges: npt.NDArray[np.int32], kind: str, titles: Mapping[Any, str]
) -> dict[str, npt.NDArray[Any]]:
    """Take a taxonomy apart.

    Parameters
    ----------
    names, edges, kind, titles
        Its attributes.

    Returns
    -------
    dict of arrays
        ``kind`` (its place in `KINDS`), ``edges``, ``names`` (with ``name_offsets`` if they are strings), and for the
        nodes that have a title ``titled``, ``titles`` and ``title_offsets``.
    """
    arrays: dict[str, npt.NDArray[Any]] = {
        "kind": np.array([KINDS.index(kind)], np.uint8),
        "edges": np.ascontiguousarray(edges, np.int32),
    }
    if names.dtype == object:
        arrays["names"], arrays["name_offsets"] = _packed(names.tolist())
    else:
        arrays["names"] = names
    titled = [i for i, name in enumerate(names.tolist()) if name in titles]
    arrays["titled"] = np.array(titled, np.int32)
    arrays["titles"], arrays["title_offsets"] = _packed([titles[name] for name in names[titled].tolist()])
    return arrays


def unpack(arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[list[Any], npt.NDArray[Any], str, dict[Any, str]]:
    """Check arrays and make the arguments of a `Taxonomy` of them.

    Parameters
    ----------
    arrays : dict of arrays
        What `pack` returned.

    Returns
    -------
    names, edges, kind, titles
        The arguments.
    """
    missing = {"kind", "edges", "names", "titled", "titles", "title_offsets"} - set(arrays)
    if missing:
        raise ValueError(f"the arrays of a taxonomy lack {', '.join(sorted(missing))}")
    kind = np.asarray(arrays["kind"])
    if kind.shape != (1,) or kind.dtype.kind not in "iu" or not 0 <= int(kind[0]) < len(KINDS):
        raise ValueError("the array 'kind' of a taxonomy must hold one number from 0 to 2")
    edges = np.asarray(arrays["edges"])
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError("the array 'edges' of a taxonomy must hold whole numbers in two columns")
    names: list[Any]
    if "name_offsets" in arrays:
        names = _unpacked(arrays, "names", "name_offsets")
    elif arrays["names"].dtype == np.int64 and arrays["names"].ndim == 1:
        names = np.asarray(arrays["names"]).tolist()
    else:
        raise ValueError("the array 'names' of a taxonomy must hold int64 numbers, or bytes with 'name_offsets'")
    titles = _unpacked(arrays, "titles", "title_offsets")
    titled = np.asarray(arrays["titled"])
    if titled.shape != (len(titles),) or (len(titled) and (titled.min() < 0 or titled.max() >= len(names))):
        raise ValueError("the array 'titled' of a taxonomy must hold the id of a node for each title")
    by_name = {names[node]: title for node, title in zip(titled.tolist(), titles, strict=True)}
    return names, edges, KINDS[int(kind[0])], by_name


def _packed(strings: list[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    texts = TextBytes.from_strings(strings)
    return texts.buffer, np.concatenate((np.zeros(1, np.int64), texts.ends))


def _unpacked(arrays: Mapping[str, npt.NDArray[Any]], name: str, offsets_name: str) -> list[str]:
    offsets = np.asarray(arrays[offsets_name])
    stored = np.asarray(arrays[name])
    if stored.dtype != np.uint8 or offsets.dtype.kind not in "iu" or offsets.ndim != 1 or not len(offsets):
        raise ValueError(f"the arrays {name!r} and {offsets_name!r} of a taxonomy must be bytes and their offsets")
    try:
        return TextBytes(stored, offsets[:-1], offsets[1:]).to_list()
    except ValueError as error:
        raise ValueError(f"the arrays {name!r} and {offsets_name!r} of a taxonomy do not fit: {error}") from None

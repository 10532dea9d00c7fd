"""Labels of any kind that a model may have, as arrays: numbers, strings, or tuples and mixtures of these as JSON."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from abound.store import strict_json
from abound.store.errors import ModelFileError
from abound.store.strings import LazyStrings, pack_strings

Array = npt.NDArray[Any]

NUMBERS: Mapping[str, str] = {
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "int16",
    "uint32": "int32",
    "uint64": "int64",
    "float16": "int16",
    "float32": "float32",
    "float64": "float64",
    "bool": "bool",
}
"""Type of a label array and the type of the same width whose bits hold it in the file."""

WIDE_LIMIT = 2 * 2**30
"""Bytes of a fixed-width string array at most: one very long label makes every entry as wide."""


def pack_labels(classes: Array) -> tuple[dict[str, Array], dict[str, str]]:
    """Turn an array of labels into arrays that a model file can hold.

    Parameters
    ----------
    classes : array of shape (n,)
        Integers, floats, bools, strings, or objects: str, int, float, bool, None and tuples of these.

    Returns
    -------
    arrays : dict
        ``values`` for numbers, ``bytes`` and ``offsets`` otherwise.
    kind : dict
        What `unpack_labels` needs besides; JSON can hold it.

    Examples
    --------
    >>> arrays, kind = pack_labels(np.array(["cat", "dog"]))
    >>> kind
    {'kind': 'str', 'dtype': 'str'}
    >>> unpack_labels(arrays, kind).tolist()
    ['cat', 'dog']
    """
    if classes.ndim != 1:
        raise ValueError(f"labels must have one dimension, not the shape {classes.shape}")
    dtype = classes.dtype
    if dtype.name in NUMBERS:
        values = np.ascontiguousarray(classes, dtype=dtype.newbyteorder("<"))
        return {"values": values.view(NUMBERS[dtype.name])}, {"kind": "number", "dtype": dtype.name}
    if dtype.kind == "U":
        _check_width(len(classes), dtype.itemsize // 4)
        return _pack_texts(classes.tolist()), {"kind": "str", "dtype": "str"}
    if dtype.kind != "O":
        example = f", such as {classes[0]!r}" if len(classes) else ""
        raise ValueError(f"labels of type {dtype}{example} cannot be saved: {_ALLOWED}")
    labels = classes.tolist()
    if all(type(label) is str or type(label) is np.str_ for label in labels):
        return _pack_texts(labels), {"kind": "str", "dtype": "object"}
    return _pack_texts([_to_json(label) for label in labels]), {"kind": "json", "dtype": "object"}


_ALLOWED = "labels must be str, int, float, bool, or tuples or mixtures of these"


def _pack_texts(texts: list[str]) -> dict[str, Array]:
    data, offsets = pack_strings(texts)
    return {"bytes": data, "offsets": offsets}


def _to_json(label: Any) -> str:
    try:
        return strict_json.dumps(_plain(label), "it")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the label {reprlib.repr(label)} cannot be saved ({error}): {_ALLOWED}") from None


def _plain(label: Any) -> Any:
    """Write a tuple as a list and a NumPy number as a Python number; lists themselves are never labels."""
    if isinstance(label, np.generic):
        label = label.item()
    if type(label) is tuple:
        return [_plain(part) for part in label]
    if isinstance(label, list | dict):
        raise ValueError(f"{reprlib.repr(label)} is not hashable")
    return label


def _from_json(text: str) -> Any:
    return _hashable(strict_json.loads(text))


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        raise ValueError("it is a JSON object")
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _canonical(label: Any) -> str:
    """The same text for labels that are equal, such as 1, 1.0 and True."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple):
            return [plain(each) for each in value]
        return int(value) if isinstance(value, bool | float) and value == int(value) else value

    return json.dumps(plain(label))


class LazyLabels(Sequence[Any]):
    """Labels that are decoded one by one when they are asked for.

    Parameters
    ----------
    items : array or LazyStrings
        What the file holds.
    decode : callable
        Makes the label from an item.
    dtype : str
        Type of the array that they were: ``str``, ``object`` or that of a number.
    name : str
        File and array, for messages.
    """

    def __init__(self, items: Array | LazyStrings, decode: Callable[[Any], Any], dtype: str, name: str) -> None:
        self._items = items
        self._make = decode
        self._dtype = dtype
        self._name = name

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> Any: ...

    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        return self._decode(self._items[place])

    def __iter__(self) -> Iterator[Any]:
        return map(self._decode, self._items)

    def __repr__(self) -> str:
        return f"<LazyLabels: {len(self)}>"

    def take(self, places: Array) -> Array:
        """Return the labels at some places, each decoded once, or all of them where many are asked for; None for -1.

        Parameters
        ----------
        places : integer array of any shape
            Positions, or -1.

        Returns
        -------
        array of that shape
            In the labels' type, or of type object where a place is -1.
        """
        if places.size < len(self):
            needed, where = np.unique(places, return_inverse=True)
            labels = [self[place] if place >= 0 else None for place in needed.tolist()]
            missing = bool(needed.size and needed[0] < 0)
            return (np.fromiter(labels, dtype=object, count=len(labels)) if missing else self._array(labels))[where]
        every = self.to_array()
        if not (places < 0).any():
            return every[places]
        found = every.astype(object)[places]
        found[places < 0] = None
        return found

    def find_repeat(self) -> tuple[int, int] | None:
        """Return the places of two labels that are the same, None if all differ; strings are not decoded."""
        if isinstance(self._items, np.ndarray):
            order = np.argsort(self._items, kind="stable")
            values = self._items[order]
            alike = np.flatnonzero(values[1:] == values[:-1])
            return (int(order[alike[0]]), int(order[alike[0] + 1])) if len(alike) else None

        def keys() -> Iterator[Any]:
            assert isinstance(self._items, LazyStrings)
            return self._items.raw() if self._make is str else map(_canonical, self)

        # Hashes differ from process to process, so that no file can be made to let them collide.
        hashes = np.fromiter(map(hash, keys()), np.int64, len(self))
        in_order = np.sort(hashes)
        suspects = np.unique(in_order[1:][in_order[1:] == in_order[:-1]])
        first: dict[Any, int] = {}
        for place, (key, suspect) in enumerate(
            zip(keys(), np.isin(hashes, suspects), strict=True) if len(suspects) else ()
        ):
            if suspect and first.setdefault(key, place) != place:
                return first[key], place
        return None

    def to_array(self) -> Array:
        """Return all labels as the array that they were; numbers are a read-only view, not a copy."""
        if isinstance(self._items, np.ndarray):
            view = self._items.view()
            view.flags.writeable = False
            return view
        return self._array(list(self))

    def _array(self, labels: list[Any]) -> Array:
        if self._dtype == "object":
            return np.fromiter(labels, dtype=object, count=len(labels))
        if self._dtype != "str":
            return np.array(labels, dtype=self._dtype)
        try:
            _check_width(len(labels), max(map(len, labels), default=0))
        except ValueError as error:
            raise ModelFileError(self._name, str(error), "Read them one by one with lazy_labels.") from None
        return np.array(labels, dtype=str)

    def _decode(self, item: Any) -> Any:
        try:
            return self._make(item)
        except ValueError as error:
            raise ModelFileError(self._name, f"the label {str(item)[:80]!r} is not valid ({error})") from None


def lazy_labels(arrays: Mapping[str, Array], kind: Mapping[str, Any], name: str = "labels") -> LazyLabels:
    """Open packed labels without decoding them.

    Parameters
    ----------
    arrays, kind : mappings
        What `pack_labels` gave.
    name : str
        File and array, for messages.

    Returns
    -------
    LazyLabels
        Each label as ``classes.tolist()`` would give it.

    Raises
    ------
    ModelFileError
        If arrays are missing or do not fit the kind.
    """
    which, dtype = _checked(kind, name)
    wanted = ("values",) if which == "number" else ("bytes", "offsets")
    for array in wanted:
        if array not in arrays:
            raise ModelFileError(name, f"the array {array!r} is missing")
    if which == "number":
        values = arrays["values"]
        if values.dtype != NUMBERS[dtype] or values.ndim != 1:
            raise ModelFileError(name, f"{NUMBERS[dtype]} in one dimension was expected, found {values.dtype}")
        return LazyLabels(values.view(dtype), np.generic.item, dtype, name)
    texts = LazyStrings(arrays["bytes"], arrays["offsets"], name)
    return LazyLabels(texts, str if which == "str" else _from_json, dtype, name)


def unpack_labels(arrays: Mapping[str, Array], kind: Mapping[str, Any], name: str = "labels") -> Array:
    """Turn packed labels back into the array that they were.

    Parameters
    ----------
    arrays, kind : mappings
        What `pack_labels` gave.
    name : str
        File and array, for messages.

    Returns
    -------
    array
        The labels in their type. Numbers are a read-only view, not a copy.

    Raises
    ------
    ModelFileError
        If the arrays do not fit the kind or a label is not valid.
    """
    return lazy_labels(arrays, kind, name).to_array()


def _checked(kind: Any, name: str) -> tuple[str, str]:
    which, dtype = (kind.get("kind"), kind.get("dtype")) if isinstance(kind, Mapping) else (None, None)
    known = {"number": tuple(NUMBERS), "str": ("str", "object"), "json": ("object",)}
    if not isinstance(which, str) or not isinstance(dtype, str) or dtype not in known.get(which, ()):
        raise ModelFileError(name, f"labels of the kind {json.dumps(kind, default=str)[:80]} are not known")
    return which, dtype


def _check_width(n_labels: int, width: int) -> None:
    if n_labels * width * 4 > WIDE_LIMIT:
        raise ValueError(
            f"{n_labels} labels of up to {width} characters would be a string array of "
            f"{n_labels * width * 4 / 2**30:.1f} GiB; make them an array of dtype object"
        )

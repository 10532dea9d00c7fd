from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abound.store import LazyStrings, ModelFileError, lazy_labels, open_arrays, pack_labels, pack_strings, save_arrays
from abound.store import unpack_labels as unpack

texts = st.text(st.characters(codec="utf-8"), max_size=6)
plain = texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none()
objects = plain | st.recursive(plain, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"]


def as_objects(values) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


def types(label):
    return [types(part) for part in label] if isinstance(label, tuple) else type(label)


@settings(max_examples=100, deadline=None)
@given(strings=st.lists(texts, max_size=20), block=st.integers(1, 4))
def test_strings_come_back_one_by_one_and_all_at_once(strings, block):
    data, offsets = pack_strings(strings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("abound.store.strings.BLOCK", block)
        lazy = LazyStrings(data, offsets)
        assert list(lazy) == strings == [lazy[i] for i in range(len(lazy))]
    assert lazy[::-2] == strings[::-2] and lazy[np.int64(1) :] == strings[1:]
    for beyond in (len(strings), -len(strings) - 1):
        with pytest.raises(IndexError, match=f"none at {beyond}"):
            lazy[beyond]


def test_strings_are_a_sequence():
    lazy = LazyStrings(*pack_strings(["a", "b", "a"]))
    assert "b" in lazy and "c" not in lazy and lazy.index("b") == 1 and lazy.count("a") == 2 and lazy[-1] == "a"
    assert repr(lazy) == "<LazyStrings: 3>"


@pytest.mark.parametrize(
    ("strings", "message"), [(["a", 3], "entry 1 is 3, a int"), (["\ud800"], "entry 0 .* lone surrogate")]
)
def test_only_text_can_be_packed(strings, message):
    with pytest.raises(ValueError, match=message):
        pack_strings(strings)


def test_bytes_that_are_not_text_are_named_when_read():
    lazy = LazyStrings(np.frombuffer(b"ok\xff\xc3\xa9", np.uint8), np.array([0, 2, 3, 5]), "model: array 'names'")
    assert lazy[0] == "ok" and lazy[2] == "é"
    with pytest.raises(ModelFileError, match=r"model: array 'names': string 1 is not valid UTF-8"):
        lazy[1]
    with pytest.raises(ModelFileError, match="string 1 is not valid UTF-8"):
        list(lazy)
    cut = LazyStrings(np.frombuffer("é".encode(), np.uint8), np.array([0, 1, 2]))
    with pytest.raises(ModelFileError, match="string 0 is not valid UTF-8"):
        cut[0]


@pytest.mark.parametrize(
    ("data", "offsets"),
    [
        (np.zeros(3, np.uint8), np.array([0, 2, 1, 3])),
        (np.zeros(3, np.uint8), np.array([0, 4])),
        (np.zeros(3, np.uint8), np.array([1, 3])),
        (np.zeros(3, np.uint8), np.array([], np.int64)),
        (np.zeros(3, np.uint8), np.array([0, 3], np.int32)),
        (np.zeros(3, np.int8), np.array([0, 3])),
        (np.zeros((3, 1), np.uint8), np.array([0, 3])),
    ],
)
def test_offsets_are_checked_at_once(data, offsets):
    with pytest.raises(ModelFileError):
        LazyStrings(data, offsets)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("order", ["<", ">"])
def test_numbers_keep_type_and_value(dtype, order):
    extremes = [0, 1] if dtype[0] in "f?" else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    classes = np.array([*extremes, 1], np.dtype(dtype).newbyteorder(order))
    arrays, kind = pack_labels(classes[::-1])
    back = unpack(arrays, kind)
    assert back.dtype == np.dtype(dtype) and back.tolist() == classes[::-1].tolist() == list(lazy_labels(arrays, kind))
    assert not back.flags.writeable


@settings(max_examples=100, deadline=None)
@given(labels=st.lists(texts, max_size=10))
def test_strings_keep_their_type(labels):
    classes = np.array(labels, dtype=str)
    arrays, kind = pack_labels(classes)
    back = unpack(arrays, kind)
    assert back.dtype.kind == "U" and back.tolist() == classes.tolist() == list(lazy_labels(arrays, kind))


@settings(max_examples=200, deadline=None)
@given(labels=st.lists(objects, max_size=8))
def test_objects_keep_the_type_of_each_label(labels):
    arrays, kind = pack_labels(as_objects(labels))
    back = unpack(arrays, kind)
    assert back.dtype == object and back.tolist() == labels == list(lazy_labels(arrays, kind))
    assert [types(label) for label in back] == [types(label) for label in labels]
    assert {type(array) for array in arrays.values()} == {np.ndarray}


def test_numpy_numbers_among_objects_become_python_numbers():
    labels = as_objects([np.int64(3), np.str_("a"), (np.float64(0.5), np.bool_(True))])
    back = unpack(*pack_labels(labels))
    assert back.tolist() == [3, "a", (0.5, True)] and types(back[2]) == [float, bool] and type(back[0]) is int


def test_labels_go_through_a_file(tmp_path):
    arrays, kind = pack_labels(as_objects(["a", ("b", 1)]))
    save_arrays(tmp_path / "model", {f"labels/{name}": array for name, array in arrays.items()}, {"labels": kind})
    stored = open_arrays(tmp_path / "model")
    labels = lazy_labels(stored.section("labels/"), stored.meta["labels"])
    assert labels[1] == ("b", 1) and labels[:] == ["a", ("b", 1)] and len(labels) == 2
    assert repr(labels) == "<LazyLabels: 2>"
    with pytest.raises(IndexError):
        labels[2]


deep: tuple = ()
for _ in range(5000):
    deep = (deep,)
Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (np.array([b"x"]), r"labels of type \|S1, such as .*b'x'"),
        (np.array(["2020-01-01"], "M8[D]"), "labels of type datetime64"),
        (np.array([1j]), "labels of type complex128"),
        (as_objects([1, b"x"]), "the label b'x' cannot be saved"),
        (as_objects([1, ("a", frozenset())]), r"the label \('a', frozenset\(\)\) cannot be saved"),
        (as_objects([1, ["a"]]), r"the label \['a'\] cannot be saved .*not hashable"),
        (as_objects([1, {"a": 2}]), "the label {'a': 2} cannot be saved .*not hashable"),
        (as_objects([1, float("nan")]), "the label nan cannot be saved"),
        (as_objects([1, Pair("a", 2)]), r"the label Pair\(.*cannot be saved"),
        (as_objects([1, "\ud800"]), "cannot be saved .*lone surrogate"),
        (as_objects([1, deep]), "cannot be saved"),
        (np.array(["\ud800"]), "lone surrogate"),
        (np.array([["a"]]), "one dimension"),
        (np.broadcast_to(np.array("x" * 3000), 200_000), "200000 labels of up to 3000 characters.*dtype object"),
    ],
)
def test_other_labels_are_refused_by_name(classes, message):
    with pytest.raises(ValueError, match=message):
        pack_labels(classes)


def texts_as_arrays(*strings):
    data, offsets = pack_strings(strings)
    return {"bytes": data, "offsets": offsets}


@pytest.mark.parametrize(
    ("arrays", "kind", "message"),
    [
        ({}, {}, "are not known"),
        ({}, [], "are not known"),
        ({}, {"kind": "pickle", "dtype": "object"}, "'?pickle.* not known|are not known"),
        ({}, {"kind": ["number"], "dtype": "int64"}, "are not known"),
        ({}, {"kind": "number", "dtype": "object"}, "are not known"),
        ({}, {"kind": "number", "dtype": "int64"}, "'values' is missing"),
        ({"values": np.ones(2)}, {"kind": "number", "dtype": "int64"}, "int64 in one dimension was expected"),
        ({"values": np.ones((2, 2))}, {"kind": "number", "dtype": "float64"}, "in one dimension was expected"),
        ({"bytes": np.zeros(1, np.uint8)}, {"kind": "str", "dtype": "str"}, "'offsets' is missing"),
        (texts_as_arrays('{"a":1}'), {"kind": "json", "dtype": "object"}, "it is a JSON object"),
        (texts_as_arrays("[1,"), {"kind": "json", "dtype": "object"}, r"the label '\[1,' is not valid"),
        (texts_as_arrays("NaN"), {"kind": "json", "dtype": "object"}, "NaN is not JSON"),
        (texts_as_arrays("[" * 100_000), {"kind": "json", "dtype": "object"}, "nested too deeply"),
        (texts_as_arrays("[" * 65 + "]" * 65), {"kind": "json", "dtype": "object"}, "not valid"),
        (texts_as_arrays("x" * 300_000, *[""] * 3000), {"kind": "str", "dtype": "str"}, "GiB.*lazy_labels"),
    ],
)
def test_packed_labels_that_do_not_fit_are_refused(arrays, kind, message):
    with pytest.raises(ModelFileError, match=f"^model: .*{message}"):
        unpack(arrays, kind, "model")


@pytest.mark.parametrize(
    "classes", [np.array(["a", "bb", "c"]), np.array([5, 6, 7]), np.array(["a", 1, ("b", 2)], dtype=object)]
)
@pytest.mark.parametrize("places", [[[2]], [[0, 1], [2, 2]], [[0, -1], [2, 2]], [[-1]], []])
def test_take_gives_what_indexing_gives(classes, places) -> None:
    lazy = lazy_labels(*pack_labels(classes))
    wanted = np.array(places, dtype=np.int32)
    found = lazy.take(wanted)
    assert found.shape == wanted.shape
    if (wanted >= 0).all():
        assert found.tolist() == classes[wanted].tolist()
        assert found.dtype.kind == classes.dtype.kind
    else:
        expected = classes.astype(object)[wanted]
        expected[wanted < 0] = None
        assert found.tolist() == expected.tolist()

"""Damaged files are refused or harmless, crafted files are refused or consistent; nothing else ever happens.

*Damaged*: bytes or fields of the header are changed as accidents and editors do, checksums left as they are.
*Crafted*: header and arrays are changed and all checksums made right again.
"""

from __future__ import annotations

import copy
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_store
from abound.store import LazyStrings, ModelFileError, open_arrays, pack_labels, pack_strings, save_arrays, unpack_labels

SHORT = settings(max_examples=300, deadline=None)
LONG = settings(max_examples=3000, deadline=None)

integers = st.sampled_from([-1, 0, 1, 2, 3, 7, 8, 24, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 10**30])
words = st.sampled_from(
    ["", "F64", "I64", "F32", "I32", "U8", "BOOL", "F16", "U64", "O", "|O", "abound", "1", "2", "{}", "[]", "null"]
)
json_values = st.recursive(
    st.none() | st.booleans() | integers | st.floats() | words | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def model() -> tuple[dict[str, np.ndarray], dict]:
    labels, kind = pack_labels(np.fromiter(["été", ("b", 1), 2.5], dtype=object, count=3))
    names, offsets = pack_strings(["fox", "naïve", "", "狐", "dog"])
    arrays = {
        "index/indptr": np.array([0, 2, 2, 3, 5, 6]),
        "index/classes": np.array([2, 0, 1, 1, 2, 0], np.int32),
        "index/weights": np.array([0.5, 0.25, 1, 0.125, 2, 3], np.float32),
        "state/flags": np.array([True, False, True]),
        "state/none": np.empty((0, 2), np.int16),
        "features/bytes": names,
        "features/offsets": offsets,
        **{f"labels/{name}": array for name, array in labels.items()},
    }
    return arrays, {"learner": "ff", "labels": kind, "n_classes": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Hold two valid files; the second has the same names and sizes and other contents."""
    folder = tmp_path_factory.mktemp("fuzz")
    arrays, meta = model()
    save_arrays(folder / "valid", arrays, meta, extra={"note": "kept"})
    others = {name: array if "/offsets" in name else array[::-1] for name, array in arrays.items()}
    save_arrays(folder / "other", others, {**meta, "learner": "pa"})
    return folder


def damage_bytes(draw, raw: bytes, other: bytes) -> bytes:
    what = draw(st.sampled_from(["flip", "set", "cut", "append", "drop", "repeat", "splice", "length"]))
    # The header is as likely a target as the data, whatever their sizes.
    start = min(8 + int.from_bytes(raw[:8], "little"), len(raw))
    low, high = draw(st.sampled_from([(0, min(16, len(raw))), (0, start), (start, len(raw)), (0, len(raw))]))
    a = draw(st.integers(low, high))
    b = draw(st.integers(a, min(len(raw), a + draw(st.sampled_from([1, 8, 64, 4096])))))
    if what == "flip" and a < len(raw):
        return raw[:a] + bytes([raw[a] ^ 1 << draw(st.integers(0, 7))]) + raw[a + 1 :]
    if what == "set":
        return raw[:a] + draw(st.binary(min_size=1, max_size=8)) + raw[b:]
    if what == "cut":
        return raw[:a]
    if what == "append":
        return raw + draw(st.binary(min_size=1, max_size=80))
    if what == "drop":
        return raw[:a] + raw[b:]
    if what == "repeat":
        return raw[:b] + raw[a:]
    if what == "splice":
        return raw[:a] + other[a:b] + raw[b:]
    return draw(integers.filter(lambda n: 0 <= n < 2**64)).to_bytes(8, "little") + raw[8:]


def places(tree, path=()):
    """Yield the path of every value in the header."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def edit_header(draw, tree: dict) -> dict:
    """Replace, remove, rename or exchange fields of the header."""
    tree = copy.deepcopy(tree)
    *parents, key = draw(st.sampled_from(list(places(tree))))
    holder = tree
    for parent in parents:
        holder = holder[parent]
    what = draw(st.sampled_from(["value", "nudge", "remove", "rename", "exchange"]))
    if what == "nudge" and type(holder[key]) is int:
        holder[key] += draw(st.sampled_from([-8, -1, 1, 8, 2**40]))
    elif what == "remove":
        holder.pop(key)
    elif what == "rename" and isinstance(holder, dict):
        holder[draw(words | st.text(max_size=5))] = holder.pop(key)
    elif what == "exchange":
        other = draw(st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder))))
        holder[key], holder[other] = holder[other], holder[key]
    else:
        holder[key] = draw(json_values)
    return tree


def edit_meta(draw, tree: dict) -> dict:
    """Edit the settings, which are JSON inside the header's JSON."""
    tree = copy.deepcopy(tree)
    meta = edit_header(draw, json.loads(tree["__metadata__"]["meta"]))
    tree["__metadata__"]["meta"] = json.dumps(meta)
    return tree


def edit_array(draw, tree: dict, data: bytes) -> bytes:
    """Change one entry of one array."""
    entry = tree[draw(st.sampled_from([name for name in tree if name != "__metadata__"]))]
    begin, end = entry["data_offsets"]
    array = np.frombuffer(data[begin:end], naive_store.TYPES[entry["dtype"]]).copy()
    if not len(array):
        return data
    place = draw(st.integers(0, len(array) - 1))
    if array.dtype.kind == "i":
        limits = np.iinfo(array.dtype)
        array[place] = min(max(draw(integers | st.integers(-3, 12)), limits.min), limits.max)
    else:
        size = array.itemsize
        array[place : place + 1] = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), array.dtype)
    return data[:begin] + array.tobytes() + data[end:]


def damaged(draw, folder) -> bytes:
    """Return the valid file with accidents, once or twice, or with an edited header."""
    raw, other = (folder / "valid").read_bytes(), (folder / "other").read_bytes()
    if draw(st.booleans()):
        tree, content = naive_store.split(raw)
        edit = draw(st.sampled_from([edit_header, edit_meta]))
        return naive_store.join(edit(draw, tree), content)
    for _ in range(draw(st.integers(1, 2))):
        raw = damage_bytes(draw, raw, other)
    return raw


def crafted(draw, folder) -> bytes:
    """Return the valid file with other contents and right checksums."""
    valid, content = naive_store.split((folder / "valid").read_bytes())
    tree = valid
    for edit in draw(st.lists(st.sampled_from(["header", "meta", "array", "array"]), min_size=1, max_size=3)):
        if edit == "array":
            content = edit_array(draw, valid, content)
        elif edit == "header":
            tree = edit_header(draw, tree)
        elif _has_meta(tree.get("__metadata__")):
            tree = edit_meta(draw, tree)
    return naive_store.join(naive_store.sign(tree, content), content)


def _has_meta(metadata) -> bool:
    try:
        meta = json.loads(metadata["meta"])
    except (KeyError, TypeError, ValueError):
        return False
    return isinstance(meta, dict) and len(meta) > 0


def refuse_or_keep(folder, raw: bytes) -> None:
    """Open a damaged file: an error that names it, or all that was saved."""
    path = folder / "damaged"
    path.write_bytes(raw)
    arrays, meta = model()
    try:
        stored = open_arrays(path)
    except ModelFileError as error:
        assert str(error).startswith(str(path))
        return
    assert stored.keys() == arrays.keys() and stored.meta == meta and stored.extra == {"note": "kept"}
    for name, array in arrays.items():
        assert (stored[name].dtype, stored[name].shape) == (array.dtype, array.shape)
        assert stored[name].tobytes() == array.tobytes()


def refuse_or_be_consistent(folder, raw: bytes) -> None:
    """Open and use a crafted file as a model would: an error, or arrays that a kernel may follow."""
    path = folder / "crafted"
    path.write_bytes(raw)
    tracemalloc.start()
    try:
        use(path)
    except ModelFileError as error:
        assert str(error).startswith(str(path))
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4 * 2**20


def use(path) -> None:
    stored = open_arrays(path)
    assert sum(array.nbytes for array in stored.values()) < path.stat().st_size
    n_classes = stored.meta.get("n_classes")
    if type(n_classes) is not int:
        raise ModelFileError(path, "n_classes is not a number")
    index = stored.section("index/")
    index.check_csr("indptr", "classes", n_classes)
    weights = index.require("weights", np.float32, index["classes"].shape)
    assert naive_store.is_csr(index["indptr"], len(weights), index["classes"], n_classes)
    features = stored.section("features/")
    names = LazyStrings(
        features.require("bytes", np.uint8), features.require("offsets", np.int64), features.name_of("bytes")
    )
    assert all(isinstance(name, str) for name in names)
    labels = unpack_labels(stored.section("labels/"), stored.meta.get("labels"), f"{path}: labels")
    hash(tuple(labels.tolist()))


def test_the_undamaged_file_passes_both(folder):
    raw = (folder / "valid").read_bytes()
    refuse_or_keep(folder, raw)
    use(folder / "valid")
    tree, data = naive_store.split(raw)
    (folder / "signed").write_bytes(naive_store.join(naive_store.sign(tree, data), data))
    use(folder / "signed")


@SHORT
@given(data=st.data())
def test_a_damaged_file_is_refused_or_unchanged(folder, data):
    refuse_or_keep(folder, damaged(data.draw, folder))


@SHORT
@given(data=st.data())
def test_a_crafted_file_is_refused_or_consistent(folder, data):
    refuse_or_be_consistent(folder, crafted(data.draw, folder))


@pytest.mark.long
@LONG
@given(data=st.data())
def test_many_damaged_files_are_refused_or_unchanged(folder, data):
    refuse_or_keep(folder, damaged(data.draw, folder))


@pytest.mark.long
@LONG
@given(data=st.data())
def test_many_crafted_files_are_refused_or_consistent(folder, data):
    refuse_or_be_consistent(folder, crafted(data.draw, folder))

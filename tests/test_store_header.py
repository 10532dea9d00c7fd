from __future__ import annotations

import copy
import gzip
import json
import pickle

import numpy as np
import pytest

import naive_store
from abound.store import ModelFileError, open_arrays, save_arrays
from abound.store.header import MAX_HEADER

INDPTR, WEIGHTS, FLAGS = np.array([0, 1, 3]), np.ones(3, np.float32), np.array([True, False])


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    save_arrays(path, {"indptr": INDPTR, "weights": WEIGHTS, "flags": FLAGS}, {"learner": "ff"})
    return path


def refuse(path, raw, message, verify=True):
    path.write_bytes(raw)
    with pytest.raises(ModelFileError, match=message) as error:
        open_arrays(path, verify=verify)
    assert str(error.value).startswith(str(path))


def crafted(path, change, data=None):
    """Return the file with a changed header whose checksums are right."""
    tree, old = naive_store.split(path.read_bytes())
    data = old if data is None else data
    tree = copy.deepcopy(tree)
    change(tree)
    return naive_store.join(naive_store.sign(tree, data), data)


def test_a_header_that_is_only_written_otherwise_is_read_alike(path):
    tree, data = naive_store.split(path.read_bytes())
    shuffled = {name: tree[name] for name in reversed(tree)}
    shuffled["__metadata__"] = dict(reversed(tree["__metadata__"].items()))
    path.write_bytes(naive_store.join(json.dumps(shuffled, indent=3).encode(), data))
    stored = open_arrays(path)
    assert stored["indptr"].tolist() == INDPTR.tolist() and stored.meta == {"learner": "ff"}


def test_arrays_may_lie_in_any_order_that_keeps_them_aligned(path):
    swapped, _ = naive_store.split(path.read_bytes())
    swapped["weights"]["shape"], swapped["weights"]["data_offsets"] = [2], [0, 8]
    swapped["indptr"]["data_offsets"] = [8, 32]
    data = WEIGHTS[:2].tobytes() + INDPTR.tobytes() + FLAGS.tobytes()
    swapped["flags"]["data_offsets"] = [32, 34]
    path.write_bytes(naive_store.join(naive_store.sign(swapped, data), data))
    assert open_arrays(path)["indptr"].tolist() == INDPTR.tolist()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "this is not a model file: it is empty. Give a file that abound has saved"),
        (b"1234567", "7 bytes, too few"),
        (bytes(8), "not a safetensors file"),
        (b"label\ttext\nA10\tgreen tea\n", r"it is text that begins with 'label\\ttext"),
        ("été\n".encode() * 10 + "字".encode() * 60, "it is text that begins with 'été"),
        (b"PK\3\4" + bytes(90), "it is a zip archive"),
        (pickle.dumps([1, 2, 3]), "it is a pickle"),
        (gzip.compress(b"model"), r"it is compressed \(gzip\)"),
        (b"\x93NUMPY\1\0" + bytes(90), "an array of NumPy"),
        (b"SQLite format 3\0" + bytes(90), "a database, such as the journal of a model"),
        (bytes(range(128, 256)), "it begins as no model does"),
        ((10**18).to_bytes(8, "little") + b"{}", "claims 1000000000000000000 bytes; at most"),
        ((MAX_HEADER + 1).to_bytes(8, "little") + b"{}", "at most"),
        ((100).to_bytes(8, "little") + b"{}", "claims 100 bytes, but the file has only 10: it was cut off"),
        (naive_store.join(b" {}", b""), "not a safetensors file"),
        (naive_store.join(b"\x80\x04K\x05.", b""), "not a safetensors file"),
        (naive_store.join(b'{"a": "\xff\xfe"}', b""), "not valid JSON in UTF-8"),
        (naive_store.join(b'{"a": ', b""), "not valid JSON"),
        (naive_store.join(b'{"a": 1, "a": 2}', b""), "'a' occurs twice"),
        (naive_store.join(b'{"a": NaN}', b""), "NaN is not JSON"),
        (naive_store.join(b'{"a": 1e999}', b""), "JSON cannot hold"),
        (naive_store.join(b'{"a": "\\ud800"}', b""), "lone surrogate"),
        (naive_store.join(b'{"a": ' + b"9" * 5000 + b"}", b""), "not valid JSON"),
        (naive_store.join(b'{"a": ' + b"[" * 200_000, b""), "nested too deeply"),
        (naive_store.join(b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}", b""), "nested too deeply"),
        (naive_store.join({}, b""), "not a model of abound"),
        (naive_store.join({"__metadata__": []}, b""), "not a model of abound"),
        (naive_store.join({"__metadata__": {"format": "pt"}}, b""), "not a model of abound"),
        (naive_store.join({"__metadata__": {"format": "abound", "version": 1}}, b""), "'version' is not a string"),
        (naive_store.join({"__metadata__": {"format": "abound"}}, b""), "version '' is not a number"),
        (naive_store.join({"__metadata__": {"format": "abound", "version": "²"}}, b""), "is not a number"),
        (naive_store.join({"__metadata__": {"format": "abound", "version": "0"}}, b""), "is not a number"),
    ],
)
def test_files_that_are_no_model_are_refused(path, raw, message):
    refuse(path, raw, message)


@pytest.mark.parametrize("version", ["2", "999999999"])
def test_a_newer_version_is_refused_with_advice(path, version):
    raw = crafted(path, lambda tree: tree["__metadata__"].update(version=version))
    refuse(path, raw, f"newer abound .file version {version}, this one reads up to 1.*Upgrade abound")


def set_entry(name, **fields):
    return lambda tree: tree[name].update(fields)


def set_meta(**fields):
    return lambda tree: tree["__metadata__"].update(fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            (set_entry("indptr", dtype=code), "has the type")
            for code in ("F16", "U64", "O", "|O", "C64", "i64", None, 3)
        ),
        (set_entry("indptr", dtype=["I64"]), "has the type"),
        (set_entry("indptr", shape=[4]), "shape and its span of bytes differ"),
        (set_entry("indptr", shape=[-3]), "no valid shape"),
        (set_entry("indptr", shape=[3.0]), "no valid shape"),
        (set_entry("indptr", shape=[True, 3]), "no valid shape"),
        (set_entry("indptr", shape="3"), "no valid shape"),
        (set_entry("indptr", shape=[3] + [1] * 8), "no valid shape"),
        (set_entry("indptr", shape=[2**63]), "no valid shape"),
        (set_entry("indptr", shape=[2**62, 2**62]), "shape and its span"),
        (set_entry("indptr", shape=[0, 2**62, 2**62], data_offsets=[0, 0]), "shape and its span"),
        (set_entry("indptr", data_offsets=[24, 0]), "no valid data_offsets"),
        (set_entry("indptr", data_offsets=[0]), "no valid data_offsets"),
        (set_entry("indptr", data_offsets=[-24, 0]), "no valid data_offsets"),
        (set_entry("indptr", data_offsets={"0": 24}), "no valid data_offsets"),
        (set_entry("indptr", data_offsets=[2**40, 2**40 + 24]), "gap|overlaps"),
        (set_entry("weights", data_offsets=[20, 32]), "overlaps"),
        (set_entry("weights", data_offsets=[0, 12]), "overlaps"),
        (set_entry("weights", data_offsets=[28, 40]), "gap|overlaps"),
        (set_entry("flags", shape=[2**40], data_offsets=[36, 36 + 2**40]), "cut off"),
        (set_entry("flags", shape=[1], data_offsets=[36, 37]), "bytes follow the last array"),
        (set_entry("flags", more=1), "nothing else"),
        (lambda tree: tree["flags"].pop("shape"), "must have dtype, shape and data_offsets"),
        (lambda tree: tree.update(flags=[]), "must have dtype, shape and data_offsets"),
        (lambda tree: tree.pop("flags"), "bytes follow the last array"),
        (lambda tree: tree.update({"": tree.pop("flags")}), "cannot name an array"),
        (lambda tree: tree.update({"\x1b[2J": tree.pop("flags")}), "cannot name an array"),
        (set_meta(meta="{"), "'meta' is not valid JSON"),
        (set_meta(meta="[]"), "'meta' is not a JSON object"),
        (set_meta(meta='{"a":1,"a":2}'), "'a' occurs twice"),
        (set_meta(meta='{"a":"\\ud800"}'), "'meta' is not valid JSON"),
        (set_meta(meta='{"a":' + "[" * 100_000 + "]" * 100_000 + "}"), "nested too deeply"),
        (lambda tree: tree["__metadata__"].pop("meta"), "'meta' is not valid JSON"),
        (set_meta(other=None), "'other' is not a string"),
    ],
)
def test_crafted_headers_with_right_checksums_are_refused(path, change, message):
    refuse(path, crafted(path, change), message, verify=False)


def test_arrays_that_are_not_aligned_are_refused(path):
    tree, data = naive_store.split(path.read_bytes())
    tree["flags"]["data_offsets"], tree["indptr"]["data_offsets"] = [0, 2], [2, 26]
    tree["weights"]["data_offsets"] = [26, 38]
    data = FLAGS.tobytes() + INDPTR.tobytes() + WEIGHTS.tobytes()
    refuse(path, naive_store.join(naive_store.sign(tree, data), data), "not aligned to its type")


def test_data_that_start_off_a_multiple_of_eight_are_refused(path):
    tree, data = naive_store.split(path.read_bytes())
    raw = naive_store.join(tree, data, align=64)
    length = int.from_bytes(raw[:8], "little") + 1
    refuse(path, length.to_bytes(8, "little") + raw[8 : 7 + length] + b" " + data, "not a multiple of 8")


@pytest.mark.parametrize("crc32", ['{"indptr":"00000000"}', '{"indptr":1,"weights":2,"flags":3}', "[]", ""])
def test_checksums_must_be_there_and_right(path, crc32):
    tree, data = naive_store.split(path.read_bytes())
    metadata = tree.pop("__metadata__")
    metadata["crc32"] = crc32
    metadata["header_crc32"] = f"{naive_store.seal(tree, metadata):08x}"
    refuse(path, naive_store.join({"__metadata__": metadata, **tree}, data), "checksum|'crc32' is not")


def test_every_flipped_bit_of_the_data_is_found_and_named(path):
    raw = path.read_bytes()
    start = len(raw) - 38
    for place in range(start, len(raw)):
        flipped = bytearray(raw)
        flipped[place] ^= 1 << place % 8
        name = "indptr" if place < start + 24 else "weights" if place < start + 36 else "flags"
        refuse(path, bytes(flipped), f"array '{name}': (its content has the checksum|a bool is)")
    path.write_bytes(flipped)
    assert open_arrays(path, verify=False).keys() == {"indptr", "weights", "flags"}


def test_a_bool_that_is_neither_is_refused_whatever_its_checksum(path):
    data = naive_store.split(path.read_bytes())[1][:-1] + b"\x02"
    refuse(path, crafted(path, lambda tree: None, data), "array 'flags': a bool is neither 0 nor 1")


def test_the_type_of_an_array_is_under_the_checksum(path):
    tree, data = naive_store.split(path.read_bytes())
    tree["indptr"]["dtype"] = "F64"
    refuse(path, naive_store.join(tree, data), "header does not match its checksum", verify=False)


def test_every_cut_is_found(path):
    raw = path.read_bytes()
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        with pytest.raises(ModelFileError):
            open_arrays(path)
    refuse(path, raw + b"\0", "bytes follow the last array")

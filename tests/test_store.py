from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import abound.store
import naive_store
from abound.store import ModelFileError, open_arrays, replacing, save_arrays

TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.float32, np.float64, np.bool_]
ARRAYS = {
    "index/indptr": np.array([0, 2, 2, 3]),
    "index/classes": np.array([4, 0, 1], np.int32),
    "index/weights": np.array([0.5, 0.25, 1], np.float32),
    "state/flags": np.array([[True, False], [False, True]]),
    "empty": np.empty((0, 3), np.float64),
    "number": np.array(7, np.int16),
}
META = {"learner": "ff", "margin": 0.1, "titles": ["café", None, True], "nested": {"passes": 3}}

any_array = st.sampled_from(TYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
)
any_name = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(str.isprintable)


def same(left, right) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.safetensors"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrays=st.dictionaries(any_name, any_array, max_size=6))
def test_arrays_come_back_bit_for_bit_here_in_the_twin_and_in_the_library(path, arrays):
    save_arrays(path, arrays, META)
    stored = open_arrays(path)
    twin, meta = naive_store.read(path.read_bytes())
    library = safetensors.numpy.load_file(path)
    assert stored.keys() == arrays.keys() == twin.keys() == library.keys()
    for name, array in arrays.items():
        assert same(stored[name], array) and same(twin[name], array) and same(library[name], array)
        assert not stored[name].flags.writeable and stored[name].flags.aligned and stored[name].flags.c_contiguous
    assert stored.meta == META == meta


def test_settings_version_and_path_come_back(path):
    save_arrays(str(path), ARRAYS, META)
    stored = open_arrays(path)
    assert (stored.meta, stored.version, stored.path, stored.extra) == (META, 1, path, {})
    assert list(stored) == sorted(ARRAYS) and len(stored) == len(ARRAYS)


def test_a_model_without_arrays(path):
    save_arrays(path, {}, {})
    assert dict(open_arrays(path)) == {}


def test_the_same_model_gives_the_same_bytes_in_any_order_of_arrays(path):
    save_arrays(path, ARRAYS, META)
    first = path.read_bytes()
    save_arrays(path, dict(reversed(ARRAYS.items())), META)
    assert path.read_bytes() == first


def test_strided_and_big_endian_arrays_are_saved_by_value(path, monkeypatch):
    monkeypatch.setattr("abound.store.write.BLOCK", 64)
    grid = np.arange(600, dtype=np.int32).reshape(20, 30)
    arrays = {
        "columns": grid.T,
        "steps": grid[::3, ::-2],
        "big": grid.astype(">i4"),
        "broadcast": np.broadcast_to(np.float32(2), (3, 50)),
    }
    save_arrays(path, arrays, {})
    for name, array in open_arrays(path).items():
        np.testing.assert_array_equal(array, arrays[name])
        assert array.dtype.isnative


def test_saving_copies_no_array(path):
    big = np.arange(4_000_000)
    tracemalloc.start()
    try:
        save_arrays(path, {"plain": big, "strided": big[::-1]}, {})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2**20


def test_opening_copies_no_array(path):
    save_arrays(path, {"big": np.arange(4_000_000), "flags": np.ones(4_000_000, bool)}, {})
    tracemalloc.start()
    try:
        stored = open_arrays(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20
    assert not stored["big"].flags.owndata


def test_unknown_entries_of_the_header_survive_a_rewrite(path):
    save_arrays(path, ARRAYS, META, extra={"note": "kept – as it is", "b": ""})
    stored = open_arrays(path)
    save_arrays(path, stored, stored.meta, extra=stored.extra)
    assert open_arrays(path).extra == {"note": "kept – as it is", "b": ""}


@pytest.mark.parametrize("extra", [{"meta": "x"}, {"format": "x"}, {"note": 3}, {"note": "\ud800"}])
def test_extra_must_be_strings_under_new_keys(path, extra):
    with pytest.raises(ValueError, match=next(iter(extra))):
        save_arrays(path, ARRAYS, META, extra=extra)
    assert not path.exists()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.array(["x"], object)}, "'a' has the type object"),
        ({"a": np.array(["x"])}, "'a' has the type <U1"),
        ({"a": np.ones(2, np.float16)}, "'a' has the type float16"),
        ({"a": np.ones(2, np.uint32)}, "'a' has the type uint32"),
        ({"a": np.ones(2, complex)}, "'a' has the type complex128"),
        ({"a": np.zeros(2, [("x", "i4")])}, "'a' has the type"),
        ({"a": [1, 2]}, "'a' must be a NumPy array"),
        ({"a": np.ones((1,) * 9)}, "'a' must be a NumPy array of at most 8"),
        ({"": np.ones(2)}, "'' cannot name an array"),
        ({"a\n": np.ones(2)}, "cannot name an array"),
        ({"__metadata__": np.ones(2)}, "cannot name an array"),
        ({3: np.ones(2)}, "3 cannot name an array"),
    ],
)
def test_what_the_file_cannot_hold_is_refused_when_saving(path, arrays, message):
    with pytest.raises(ValueError, match=message):
        save_arrays(path, arrays, {})
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"a": (1, 2)}, r"meta\['a'\] is \(1, 2\), a tuple"),
        ({"a": [0, {"b": float("nan")}]}, r"meta\['a'\]\[1\]\['b'\] is nan"),
        ({"a": np.int64(3)}, r"meta\['a'\] is np.int64\(3\)"),
        ({1: 2}, "meta has the key 1, a int"),
        ({"a": "\udcff"}, r"meta\['a'\] is '\\udcff', which is not valid Unicode"),
        ({"\udcff": 1}, "not valid Unicode"),
        ({"a": "x" * 9_000_000}, "put long lists of meta into arrays"),
    ],
)
def test_settings_that_would_not_come_back_are_refused(path, meta, message):
    with pytest.raises(ValueError, match=message):
        save_arrays(path, ARRAYS, meta)
    assert not path.exists()


def test_settings_nested_without_end_are_refused(path):
    meta: dict = {}
    meta["self"] = meta
    with pytest.raises(ValueError, match="is nested too deeply"):
        save_arrays(path, ARRAYS, meta)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace", "write"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(path, monkeypatch, error, step):
    save_arrays(path, ARRAYS, META)
    old = path.read_bytes()

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(
        *{"write": ("abound.store.write._write", fail)}.get(step, (f"abound.store.write.os.{step}", fail))
    )
    with pytest.raises(type(error)):
        save_arrays(path, {"other": np.ones(9)}, {})
    monkeypatch.undo()
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == old


def test_a_mapped_model_can_be_replaced_and_the_old_arrays_stay(path):
    save_arrays(path, ARRAYS, META)
    stored = open_arrays(path)
    save_arrays(path, {**stored, "index/weights": stored["index/weights"] * 2}, stored.meta)
    assert stored["index/weights"].tolist() == [0.5, 0.25, 1]
    assert open_arrays(path)["index/weights"].tolist() == [1, 0.5, 2]


@pytest.mark.skipif(os.name == "nt", reason="permissions and links of POSIX")
def test_permissions_and_links_are_kept(path, tmp_path):
    save_arrays(path, ARRAYS, META)
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    save_arrays(link, {"other": np.ones(9)}, {})
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o640
    assert list(open_arrays(path)) == ["other"]


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(IsADirectoryError, match="give the name of a file"):
        save_arrays(tmp_path, ARRAYS, META)
    with pytest.raises(FileNotFoundError):
        save_arrays(tmp_path / "missing" / "model", ARRAYS, META)
    with pytest.raises(FileNotFoundError):
        open_arrays(tmp_path / "missing")


def test_replacing_takes_any_content(path):
    with replacing(path) as file:
        file.write(b"text")
        assert not path.exists()
    assert path.read_bytes() == b"text"


def test_arrays_outlive_the_file_they_came_from(path):
    save_arrays(path, {"a": np.arange(100_000)}, {})
    with open_arrays(path) as stored:
        part = stored.section("")["a"][50_000:]
    assert len(stored) == 0 and "a" not in stored
    del stored
    path.unlink()
    gc.collect()
    np.testing.assert_array_equal(part, np.arange(50_000, 100_000))


def test_sections_strip_their_prefix_and_nest(path):
    names = ["a", "index", "index/x", "index/y", "index/z/x", "indey", "state/x", "é"]
    save_arrays(path, {name: np.array([i]) for i, name in enumerate(names)}, {})
    stored = open_arrays(path)
    section = stored.section("index/")
    assert {name: int(array[0]) for name, array in section.items()} == {"x": 2, "y": 3, "z/x": 4}
    assert {name: int(array[0]) for name, array in section.section("z/").items()} == {"x": 4}
    assert section.section("z/").name_of("x") == f"{path}: array 'index/z/x'"
    assert not stored.section("none/")
    assert "3 arrays" in repr(section)
    with pytest.raises(KeyError):
        section["index/x"]


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "message"),
    [
        ("missing", np.int64, (None,), r"array 'index/missing': it is missing"),
        ("indptr", np.int32, (None,), r"array 'index/indptr': int32 of shape \(any\) was expected, found int64"),
        ("indptr", np.int64, (5,), r"int64 of shape \(5\) was expected, found int64 of shape \(4,\)"),
        ("indptr", np.int64, (4, None), r"int64 of shape \(4, any\) was expected"),
    ],
)
def test_required_arrays_must_fit(path, name, dtype, shape, message):
    save_arrays(path, ARRAYS, META)
    section = open_arrays(path).section("index/")
    with pytest.raises(ModelFileError, match=message) as error:
        section.require(name, dtype, shape)
    assert str(path) in str(error.value) and "save the model again" in str(error.value)
    assert section.require("indptr", np.int64, (4,)) is section["indptr"]


def test_nothing_is_ever_unpickled_and_nothing_heavy_imported(path):
    """Run a whole life of a file in a process in which every way to unpickle ends it."""
    script = f"""
import pickle, sys, types
package = types.ModuleType("abound")
package.__path__ = [{str(Path(abound.store.__file__).parent.parent)!r}]
sys.modules["abound"] = package
import numpy as np
def never(*args, **kwargs):
    raise SystemExit("unpickled")
sys.addaudithook(lambda event, args: never() if event == "pickle.find_class" else None)
pickle.load = pickle.loads = pickle.Unpickler = np.load = np.lib.format.read_array = never
from abound.store import *
arrays, kind = pack_labels(np.array([("a", 1), 2.5, "x"], object))
save_arrays({str(path)!r}, {{**arrays, "numbers": np.arange(3)}}, {{"labels": kind}})
stored = open_arrays({str(path)!r})
assert unpack_labels(stored, stored.meta["labels"]).tolist() == [("a", 1), 2.5, "x"]
heavy = {{"numba", "scipy", "sklearn", "safetensors"}} & sys.modules.keys()
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_example_of_the_specification(path):
    save_arrays(path, {"a": np.array([1, 2], np.uint8)}, {})
    tree, data = naive_store.split(path.read_bytes())
    joined = 'a␀U8␀2␀crc32␀{"a":"b6cc4292"}␀format␀abound␀meta␀{}␀version␀1␀'.replace("␀", "\0")
    assert data == b"\1\2" and tree["__metadata__"]["crc32"] == '{"a":"b6cc4292"}'
    assert tree["__metadata__"]["header_crc32"] == f"{zlib.crc32(joined.encode()):08x}" == "a633aa16"


def test_a_file_that_shrinks_while_it_is_opened_is_refused(path, monkeypatch):
    save_arrays(path, ARRAYS, META)

    def shrunk(*args, **kwargs):
        raise ValueError("mmap length is greater than file size")

    monkeypatch.setattr("abound.store.stored.mmap.mmap", shrunk)
    with pytest.raises(ModelFileError, match="shrank while it was opened"):
        open_arrays(path)

"""Rows on disk: what is written maps back the same, damage is refused, and a killed conversion leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from abound.labels import encode
from abound.memory import bytes_in_use
from abound.read import (
    DiskRows,
    FormatError,
    Vectors,
    convert_rows,
    open_rows,
    read_data,
    read_vectors,
    write_row_chunks,
    write_rows,
    write_vectors,
)
from abound.scratch import is_mapped, let_go, scratch_array
from abound.store import open_arrays, save_arrays

FLOATS = st.floats(-(2.0**49), 2.0**49, width=32)


def some_rows(n_rows=50, n_features=30, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_rows, n_features), density=0.2, random_state=rng, dtype=np.float32, format="csr")
    return X, rng.choice(["a", "b", "c", "dé"], n_rows)


def same_rows(disk, X):
    expected = sp.csr_array(X)
    expected.sum_duplicates()
    assert disk.shape == expected.shape
    assert np.array_equal(disk.rows.indptr, expected.indptr)
    assert np.array_equal(disk.rows.indices, expected.indices)
    assert disk.rows.data.tobytes() == expected.data.astype(np.float32).tobytes()


@st.composite
def tables(draw):
    n_rows, n_features = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    dense = np.zeros((n_rows, n_features), np.float32)
    for i, j, value in draw(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5), FLOATS), max_size=20)):
        dense[i % n_rows, j % n_features] = value
    label = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=3))
    y = draw(
        st.one_of(
            st.lists(label, min_size=n_rows, max_size=n_rows),
            st.lists(st.integers(-5, 5), min_size=n_rows, max_size=n_rows),
            st.lists(st.lists(label, unique=True, max_size=3), min_size=n_rows, max_size=n_rows),
        )
    )
    return sp.csr_array(dense), y


@settings(deadline=None, max_examples=60)
@given(tables())
def test_rows_and_labels_of_any_kind_come_back(tmp_path_factory, table):
    X, y = table
    path = tmp_path_factory.mktemp("rows") / "data.rows"
    names = [f"word {j}" for j in range(X.shape[1])]
    write_rows(path, X, y, feature_names=names)
    disk = open_rows(path)
    same_rows(disk, X)
    expected = encode(y)
    assert np.array_equal(disk.labels.ids, expected.ids)
    assert disk.labels.kind == expected.kind
    assert disk.labels.classes.tolist() == expected.classes.tolist()
    assert list(disk.feature_names) == names
    assert [file.name for file in path.parent.iterdir()] == ["data.rows"]


def test_indicator_labels_come_back(tmp_path):
    X, _ = some_rows(4)
    for y in (sp.csr_array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]]), np.eye(4, dtype=int)):
        write_rows(tmp_path / "data.rows", X, y)
        read = open_rows(tmp_path / "data.rows").labels.to_y()
        dense = read.toarray() if sp.issparse(read) else read
        assert np.array_equal(dense, y.toarray() if sp.issparse(y) else y)


@pytest.mark.parametrize("name", ["data.svm", "data.svm.gz", "data.svm.zst", "data.txt"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_every_vector_format_is_converted(tmp_path, name, header, several, monkeypatch):
    X, y = some_rows(300)
    y = [[label, "z"][: 1 + (i % 2)] for i, label in enumerate(y)] if several else y
    write_vectors(tmp_path / name, X, y, header=header)
    monkeypatch.setattr("abound.read.disk_writing.CHUNK_BYTES", 500)
    convert_rows(tmp_path / name, tmp_path / "out.rows")
    disk, read = open_rows(tmp_path / "out.rows"), read_vectors(tmp_path / name)
    same_rows(disk, read.X)
    assert disk.zero_based == read.zero_based
    assert disk.labels.kind == read.labels.kind
    assert disk.labels.classes.tolist() == read.labels.classes.tolist()
    assert np.array_equal(disk.labels.ids, read.labels.ids)
    assert np.array_equal(disk.labels.indptr, read.labels.indptr)
    convert_rows(tmp_path / "out.rows", tmp_path / "again.rows")
    assert (tmp_path / "again.rows").read_bytes() == (tmp_path / "out.rows").read_bytes()


def test_data_are_found_by_suffix_and_by_content(tmp_path):
    X, y = some_rows()
    for name in ("data.rows", "data"):
        write_rows(tmp_path / name, X, y)
        assert isinstance(read_data(tmp_path / name), DiskRows)
    with pytest.raises(ValueError, match="know zero_based"):
        read_data(tmp_path / "data", zero_based=True)


def test_nothing_is_copied_and_nothing_can_be_written(tmp_path):
    X, y = some_rows()
    write_rows(tmp_path / "data.rows", X, y)
    disk = open_rows(tmp_path / "data.rows")
    for array in (*disk.rows[:3], disk.labels.ids, disk.X.data, disk.X.indices):
        assert is_mapped(array)
        assert not array.flags.writeable


def test_chunks_are_the_rows(tmp_path):
    X, y = some_rows(500)
    write_rows(tmp_path / "data.rows", X, y)
    parts = list(open_rows(tmp_path / "data.rows").chunks(100))
    assert len(parts) > 10
    assert (sp.vstack([part.X for part in parts]) != X).nnz == 0
    assert np.concatenate([part.labels.to_y() for part in parts]).tolist() == y.tolist()


def test_texts_are_refused_with_what_to_do(tmp_path):
    (tmp_path / "data.tsv").write_text("cat\ta small cat\n")
    with pytest.raises(FormatError, match=r"holds texts.*TextVectorizer"):
        convert_rows(tmp_path / "data.tsv", tmp_path / "out.rows")
    assert [file.name for file in tmp_path.iterdir()] == ["data.tsv"]


def test_an_error_in_a_late_chunk_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("abound.read.disk_writing.CHUNK_BYTES", 100)
    (tmp_path / "data.svm").write_text("a 1:1\n" * 100 + "b 2:x\n")
    with pytest.raises(FormatError, match=r"line 101"):
        convert_rows(tmp_path / "data.svm", tmp_path / "out.rows")
    with pytest.raises(FormatError, match=r"row from 0 on holds inf; values may be from -1e\+15 to 1e\+15"):
        write_row_chunks(tmp_path / "out.rows", [Vectors(sp.csr_array([[np.inf]]), encode(["a"]), zero_based=True)])
    assert [file.name for file in tmp_path.iterdir()] == ["data.svm"]


def test_a_model_and_other_files_are_refused(tmp_path):
    save_arrays(tmp_path / "model", {"index/indptr": np.zeros(1, np.int64)}, {"learner": "ff"})
    with pytest.raises(FormatError, match="no file of rows"):
        open_rows(tmp_path / "model")
    (tmp_path / "text.rows").write_text("a 1:1\n")
    with pytest.raises(FormatError, match=r"text\.rows"):
        open_rows(tmp_path / "text.rows")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "data.rows"
    X, _ = some_rows(20)
    y = [[label] if i % 3 else [label, "z"] for i, label in enumerate("abcde" * 4)]
    write_rows(path, X, y, feature_names=[f"f{j}" for j in range(30)])
    return path


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_damaged_bytes_are_refused(good, tmp_path_factory, data):
    content = bytearray(good.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
    path = good.parent / "damaged.rows"
    path.write_bytes(content)
    try:
        disk = open_rows(path)
    except FormatError as error:
        assert "damaged.rows" in str(error)
    else:
        # A change of a space in the header means nothing.
        whole = open_rows(good)
        assert all(np.array_equal(one, other) for one, other in zip(disk.rows, whole.rows, strict=True))


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_crafted_arrays_are_refused_or_consistent(good, data):
    stored = open_arrays(good)
    arrays, meta = {name: array.copy() for name, array in stored.items()}, json.loads(json.dumps(stored.meta))
    name = data.draw(st.sampled_from([*sorted(arrays), "meta"]))
    if name == "meta":
        values = st.sampled_from([None, -1, 0, 1, 2**31, "single", "lists", "dense", "x", True, [], {}])
        meta[data.draw(st.sampled_from(sorted(meta)))] = data.draw(values)
    else:
        array = arrays[name]
        change = data.draw(st.sampled_from(["value", "cut", "drop", "type"]))
        if change == "value":
            value = data.draw(st.sampled_from([-1, 0, 1, 5, 29, 30, 127]))
            value = np.nan if array.dtype == np.float32 else abs(value) if array.dtype == np.uint8 else value
            array[data.draw(st.integers(0, len(array) - 1))] = value
        elif change == "cut":
            arrays[name] = array[: data.draw(st.integers(0, len(array) - 1))]
        elif change == "drop":
            del arrays[name]
        else:
            arrays[name] = array.astype(np.float64)
    path = good.parent / "crafted.rows"
    save_arrays(path, arrays, meta)
    try:
        disk = open_rows(path)
    except FormatError:
        return
    rows, labels = disk.rows, disk.labels
    assert rows.indptr[0] == 0 and rows.indptr[-1] == len(rows.indices) == len(rows.data)
    assert (np.diff(rows.indptr) >= 0).all()
    assert len(rows.indices) == 0 or (0 <= rows.indices.min() and rows.indices.max() < rows.n_features)
    for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        assert (np.diff(rows.indices[begin:end]) > 0).all()
    assert np.isfinite(rows.data).all()
    assert len(labels) == rows.n_rows
    assert len(labels.ids) == 0 or (0 <= labels.ids.min() and labels.ids.max() < labels.n_classes)


def test_a_killed_conversion_leaves_no_output(tmp_path):
    line = "a " + " ".join(f"{j}:1" for j in range(1, 200)) + "\n"
    fifo = tmp_path / "data.svm"
    os.mkfifo(fifo)
    code = "import sys; from abound.read import convert_rows; convert_rows(sys.argv[1], sys.argv[2])"
    process = subprocess.Popen([sys.executable, "-c", code, str(fifo), str(tmp_path / "out.rows")])
    try:
        with open(fifo, "w") as pipe:
            pipe.write(line * 60_000)
            pipe.flush()
            time.sleep(0.2)
            process.send_signal(signal.SIGKILL)
            process.wait(60)
    except BrokenPipeError:
        pass
    finally:
        process.kill()
        process.wait(60)
    assert [file.name for file in tmp_path.iterdir()] == ["data.svm"]


def test_scratch_arrays_are_written_and_let_go_without_loss():
    array = scratch_array((1000, 700), np.float32)
    array[:] = np.arange(700)
    let_go(array[10:20], array)
    assert (array == np.arange(700)).all()
    assert is_mapped(array[5:])
    assert not is_mapped(np.zeros(3))
    assert scratch_array(0, np.int32).shape == (0,)


def test_private_maps_are_not_let_go(tmp_path):
    np.arange(5000).tofile(tmp_path / "file")
    private = np.memmap(tmp_path / "file", np.int64, "c")
    private[7] = -1
    assert not is_mapped(private)
    let_go(private)
    assert private[7] == -1


@pytest.mark.skipif(not bytes_in_use(), reason="the system does not tell what a process holds")
def test_opening_a_file_does_not_fill_memory(tmp_path):
    X = sp.csr_array((np.ones(8_000_000, np.float32), np.tile(np.arange(80), 100_000), np.arange(0, 8_000_001, 80)))
    write_rows(tmp_path / "data.rows", X, np.arange(100_000) % 7)
    del X
    before = bytes_in_use()
    disk = open_rows(tmp_path / "data.rows")
    assert bytes_in_use() - before < disk.nbytes / 2

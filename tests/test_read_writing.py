"""What is written reads back the same; what a format cannot hold is refused, and no file is left."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from abound.read import FormatError, read_documents, read_vectors, write_documents, write_vectors
from abound.validation import LARGEST

LETTERS = st.characters(exclude_categories=["Cs"])
FLOATS = st.floats(-(2.0**49), 2.0**49, width=32)


def label_texts(excluded: str) -> st.SearchStrategy[str]:
    """Labels without the given characters and without white space."""
    letters = LETTERS.filter(lambda letter: letter not in excluded and not letter.isspace() and letter != "\ufeff")
    return st.text(letters, min_size=1, max_size=6)


@st.composite
def sparse_rows(draw: st.DrawFn):
    n_rows, n_features = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    dense = np.zeros((n_rows, n_features), np.float32)
    for i, j, value in draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7), FLOATS), max_size=20)):
        dense[i % n_rows, j % n_features] = value
    return sp.csr_array(dense)


@settings(deadline=None, max_examples=100)
@given(sparse_rows(), st.data(), st.booleans(), st.sampled_from(["data.svm", "data.svm.gz", "data.svm.zst"]))
def test_vectors_read_back_the_same(tmp_path_factory, X, data, header, name):
    least = 0 if header else 1
    labels = label_texts(",:#")
    y = data.draw(
        st.lists(st.lists(labels, unique=True, min_size=least, max_size=3), min_size=X.shape[0], max_size=X.shape[0])
    )
    file = tmp_path_factory.mktemp("vectors") / name
    write_vectors(file, X, y, header=header)
    vectors = read_vectors(file, zero_based=header, n_features=X.shape[1])
    assert (vectors.X != X).nnz == 0
    read = vectors.labels.to_y()
    assert [[label] for label in read] == y if vectors.labels.kind == "single" else read == y
    assert [path.name for path in file.parent.iterdir()] == [name]


def test_every_float32_survives(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    values = values[(np.abs(values) <= LARGEST) & (values != 0)]
    X = sp.csr_array(values.reshape(1, -1))
    write_vectors(tmp_path / "data.svm", X, ["a"])
    assert np.array_equal(read_vectors(tmp_path / "data.svm").X.data, values)


@settings(deadline=None, max_examples=100)
@given(st.data(), st.sampled_from(["tsv", "csv", "jsonl", "fasttext"]), st.booleans())
def test_documents_read_back_the_same(tmp_path_factory, data, format, allow_unlabelled):
    excluded = {"tsv": ",", "csv": ",", "jsonl": "", "fasttext": ""}[format]
    text = st.text(LETTERS, max_size=8)
    if format in ("tsv", "fasttext"):
        text = text.map(lambda text: text.replace("\n", "").replace("\r", ""))
    if format == "fasttext":
        text = text.map(lambda text: text.lstrip(" \t"))
    least = 0 if allow_unlabelled else 1
    rows = data.draw(
        st.lists(st.tuples(st.lists(label_texts(excluded), unique=True, min_size=least, max_size=3), text), min_size=1)
    )
    if format == "fasttext":
        rows = [(labels, text or "x") for labels, text in rows]
    file = tmp_path_factory.mktemp("documents") / "data"
    texts, y = [text for _, text in rows], [labels for labels, _ in rows]
    write_documents(file, texts, y, format=format)
    documents = read_documents(file, format=format, allow_unlabelled=allow_unlabelled)
    assert documents.texts == texts
    read = documents.labels.to_y()
    assert [[label] for label in read] == y if documents.labels.kind == "single" else read == y


def test_the_suffix_tells_the_format(tmp_path):
    for name in ("data.tsv", "data.csv.gz", "data.jsonl.zst", "data.ft"):
        write_documents(tmp_path / name, ["one", "two"], ["a", "b"])
        documents = read_documents(tmp_path / name)
        assert documents.texts == ["one", "two"] and documents.labels.to_y().tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="suffix"):
        write_documents(tmp_path / "data.txt", ["one"], ["a"])
    with pytest.raises(ValueError, match="format"):
        write_documents(tmp_path / "data.txt", ["one"], ["a"], format="text")


def test_labels_of_other_types(tmp_path):
    write_vectors(tmp_path / "data.svm", [[1.0], [2.0]], [3, 10])
    assert read_vectors(tmp_path / "data.svm").labels.to_y().tolist() == ["3", "10"]
    with pytest.raises(FormatError, match="written alike"):
        write_documents(tmp_path / "data.tsv", ["one", "two"], [1, "1"])


UNHOLDABLE_LABELS = [
    ("data.svm", "a,b"),
    ("data.svm", "a b"),
    ("data.svm", "a\tb"),
    ("data.svm", "a:b"),
    ("data.svm", "a#"),
    ("data.svm", ""),
    ("data.tsv", "a,b"),
    ("data.tsv", "a\tb"),
    ("data.tsv", "a\nb"),
    ("data.tsv", " a"),
    ("data.tsv", ""),
    ("data.csv", "a,b"),
    ("data.csv", "a "),
    ("data.ft", "a b"),
    ("data.ft", "a\nb"),
    ("data.ft", ""),
    ("data.jsonl", ""),
]


@pytest.mark.parametrize("name, label", UNHOLDABLE_LABELS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_labels_that_a_format_cannot_hold(tmp_path, name, label, suffix):
    file = tmp_path / (name + suffix)
    file.write_bytes(b"old")
    y = ["fine", label, label]
    with pytest.raises(FormatError) as caught:
        if name == "data.svm":
            write_vectors(file, [[1.0], [2.0], [3.0]], y)
        else:
            write_documents(file, ["one", "two", "three"], y)
    assert str(file) in str(caught.value) and repr(label) in str(caught.value) and "row 1" in str(caught.value)
    assert os.listdir(tmp_path) == [file.name]
    assert file.read_bytes() == b"old"


@pytest.mark.parametrize(
    "name, text",
    [
        ("data.tsv", "a\nb"),
        ("data.tsv", "a\r"),
        ("data.ft", "a\nb"),
        ("data.ft", " __label__x"),
        ("data.jsonl", "\ud800"),
    ],
)
def test_texts_that_a_format_cannot_hold(tmp_path, name, text):
    with pytest.raises(FormatError, match=name):
        write_documents(tmp_path / name, ["fine", text], ["a", "b"])
    assert os.listdir(tmp_path) == []


def test_vectors_that_cannot_be_written(tmp_path):
    file = tmp_path / "data.svm"
    with pytest.raises(FormatError, match="row 1 holds nan"):
        write_vectors(file, sp.csr_array(np.array([[1.0], [np.nan]])), ["a", "b"])
    with pytest.raises(FormatError, match="row 1 has no label"):
        write_vectors(file, [[1.0], [2.0]], [["a"], []])
    with pytest.raises(ValueError, match="inconsistent"):
        write_vectors(file, [[1.0], [2.0]], ["a"])
    assert os.listdir(tmp_path) == []


def test_an_unused_class_does_no_harm(tmp_path):
    labels = read_documents(_tsv(tmp_path, "a b\tone\nc\ttwo\n")).labels.take(np.array([1]))
    write_vectors(tmp_path / "data.svm", [[1.0]], labels)
    assert read_vectors(tmp_path / "data.svm").labels.to_y().tolist() == ["c"]


def _tsv(folder, text):
    file = folder / "in.tsv"
    file.write_text(text)
    return file

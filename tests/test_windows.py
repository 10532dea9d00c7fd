"""Word windows against a slow twin."""

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_measure as naive
from abound.read.errors import FormatError
from abound.validation import as_rows
from abound.vectorise.windows import TEMPLATES, make_word_task, read_sentences, word_windows

PIECES = [
    "the",
    "Cat",
    "o'clock",
    "’tis",
    "sat",
    " ",
    "\n",
    "\n \n",
    "\r\n\r\n",
    ".",
    "!",
    "?",
    ";",
    ",",
    "--",
    "é",
    "3",
    "<s>",
]
TEXT = st.lists(st.sampled_from(PIECES), min_size=1, max_size=60).map(" ".join)


def as_sets(windows):
    X = windows.X
    return [set(windows.feature_names[X.indices[X.indptr[i] : X.indptr[i + 1]]]) for i in range(X.shape[0])]


@settings(deadline=None)
@given(TEXT, st.integers(1, 3))
def test_windows_equal_the_twin(text, min_count):
    rows = naive.word_rows(text)
    if not rows:
        with pytest.raises(ValueError, match="no words"):
            word_windows(text, min_count=min_count)
        return
    counts = Counter(feature for _, features in rows for feature in features)
    windows = word_windows(text, min_count=min_count)
    assert windows.y.tolist() == [word for word, _ in rows]
    assert as_sets(windows) == [{f for f in features if counts[f] >= min_count} for _, features in rows]
    assert sorted(windows.feature_names) == sorted(f for f in counts if counts[f] >= min_count)


@settings(deadline=None)
@given(TEXT.filter(lambda text: len(naive.word_rows(text)) > 1), st.integers(1, 3), st.integers(0, 3))
def test_features_are_counted_on_training_rows_alone(text, min_count, seed):
    rows = naive.word_rows(text)
    X_train, y_train, X_test, y_test, names = make_word_task(
        text, test_fraction=0.3, min_count=min_count, random_state=seed
    )
    assert Counter(y_train.tolist()) + Counter(y_test.tolist()) == Counter(word for word, _ in rows)
    assert len(y_test) == min(max(1, round(len(rows) * 0.3)), len(rows) - 1)
    assert X_train.shape == (len(y_train), len(names))
    assert X_test.shape == (len(y_test), len(names))
    seen = np.bincount(X_train.indices, minlength=len(names))
    assert (seen >= min_count).all()


def test_rows_are_boolean_of_unit_length_and_canonical():
    windows = word_windows("the cat sat on the mat. the cat ran off the mat; a dog sat.", min_count=2)
    X = windows.X
    assert sp.issparse(X) and X.format == "csr" and X.dtype == np.float32
    assert isinstance(X, sp.csr_array)
    assert np.allclose(np.sqrt((X * X).sum(axis=1)), 1)
    for i in range(X.shape[0]):
        assert len(set(X.data[X.indptr[i] : X.indptr[i + 1]])) == 1
    rows = as_rows(X)
    assert np.array_equal(rows.indices, X.indices)


def test_a_row_with_no_frequent_feature_is_empty():
    windows = word_windows("a b c d e f g h. i j k l m n o p", min_count=16)
    assert windows.X.shape == (16, 0)
    assert windows.feature_names.tolist() == []


def test_fifteen_features_a_word():
    assert len(TEMPLATES) == 15
    assert sorted(",".join(map(str, positions)) for positions in TEMPLATES) == sorted(naive.WINDOW)
    assert (np.diff(word_windows("one two three four five", min_count=1).X.indptr) == 15).all()


def test_sentences_and_words():
    sentences = read_sentences("Mr. Knightley's\nhouse; it's HERE\n\n\nno.")
    words = [sentences.vocabulary[word] for word in sentences.words]
    assert words == ["mr", "knightley's", "house", "it's", "here", "no"]
    assert sentences.sentence.tolist() == [0, 1, 1, 2, 2, 3]


def test_the_same_seed_gives_the_same_task():
    text = "one two three. four five six. " * 20
    first, again, other = (make_word_task(text, random_state=seed) for seed in (1, 1, 2))
    assert (first[0] != again[0]).nnz == 0
    assert first[3].tolist() == again[3].tolist()
    assert first[3].tolist() != other[3].tolist()


def test_files_plain_and_gzip(tmp_path: Path):
    text = "It was a truth, universally £20,000. It was."
    (tmp_path / "plain.txt").write_text(text, encoding="utf-8")
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(text.encode()))
    expected = word_windows(text, min_count=1)
    for name in ("plain.txt", "packed.txt.gz"):
        windows = word_windows(tmp_path / name, min_count=1)
        assert windows.y.tolist() == expected.y.tolist()
        assert windows.feature_names.tolist() == expected.feature_names.tolist()


def test_errors_name_the_place(tmp_path: Path):
    (tmp_path / "latin.txt").write_bytes(b"one\ntwo na\xefve\n")
    with pytest.raises(FormatError, match=r"latin\.txt, line 2: the text is not UTF-8"):
        word_windows(tmp_path / "latin.txt")
    (tmp_path / "empty.txt").write_bytes(b"")
    with pytest.raises(ValueError, match="no words"):
        make_word_task(tmp_path / "empty.txt")
    with pytest.raises(ValueError, match="single word"):
        make_word_task("word")
    with pytest.raises(ValueError, match="min_count=0"):
        word_windows("one two", min_count=0)
    with pytest.raises(ValueError, match="test_fraction=0"):
        make_word_task("one two", test_fraction=0)


def test_too_many_words_are_refused(monkeypatch):
    monkeypatch.setattr("abound.vectorise.windows._MAX_WORDS", 2)
    with pytest.raises(ValueError, match="3 distinct words"):
        read_sentences("one two three")

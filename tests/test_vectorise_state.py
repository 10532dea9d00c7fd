"""The state of a vectoriser in a model file."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abound
import naive_vectorise
from abound.read.textbytes import TextBytes
from abound.vectorise import TextVectorizer
from abound.vectorise.checks import LONGEST_RUN, word_problem

EARLIER = Path(__file__).parent / "data" / "texts"
TRAIN = ["green tea tea", "black tea", "ΟΔΟΣ black coffee Donaudampfschifffahrt", "", "İstanbul Donaudampf"]
MORE = ["mate and green coffee", "mate cocido"]

KINDS = [
    {},
    {"ngram_range": (1, 3), "min_df": 2, "stop_words": ["and"]},
    {"analyzer": "char", "ngram_range": (1, 3)},
    {"token_pattern": r"[a-z]+", "norm": "l1", "use_idf": False},
    {"hashing": 64},
    {"hashing": 64, "use_idf": False, "stop_words": "english"},
    {"strip_accents": "unicode", "binary": True, "max_features": np.int64(5)},
]


def through_file(vectorizer, tmp_path):
    arrays, meta = vectorizer.to_arrays()
    mapped = {}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r" if array.size else None)
    return TextVectorizer.from_arrays(mapped, json.loads(json.dumps(meta)), trust=True)


def assert_equal(a, b):
    assert a.shape == b.shape
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("parameters", KINDS)
@pytest.mark.parametrize("grown", [False, True])
def test_state_survives_a_file(parameters, grown, tmp_path):
    vectorizer = TextVectorizer(**parameters).fit(TRAIN)
    if grown:
        vectorizer.partial_fit(MORE)
    loaded = through_file(vectorizer, tmp_path)
    assert loaded.get_params() == vectorizer.get_params()
    assert loaded.vocabulary_hash_ == vectorizer.vocabulary_hash_
    assert loaded.n_features_ == vectorizer.n_features_
    arrays = vectorizer.to_arrays()[0]
    assert all(np.array_equal(arrays[name], array) for name, array in loaded.to_arrays()[0].items())
    assert_equal(loaded.transform(TRAIN + MORE), vectorizer.transform(TRAIN + MORE))
    if "hashing" not in parameters:
        assert loaded.vocabulary_ == vectorizer.vocabulary_
    loaded.partial_fit(["green yerba", *MORE])
    vectorizer.partial_fit(["green yerba", *MORE])
    assert_equal(loaded.transform(TRAIN + MORE), vectorizer.transform(TRAIN + MORE))
    if "hashing" not in parameters:
        assert loaded.get_feature_names_out().tolist() == vectorizer.get_feature_names_out().tolist()


@pytest.mark.parametrize("kind", ["words", "characters", "buckets"])
def test_models_from_before_words_of_one_character_counted_rank_as_then(kind):
    expected = json.loads((EARLIER / "expected.json").read_text())
    model = abound.load(EARLIER / f"{kind}.safetensors")
    assert model.vectoriser.token_pattern == r"(?u)\b\w\w+\b"
    assert model.vectoriser.vocabulary_hash_ == expected[kind]["vocabulary_hash"]
    labels, scores = model.predict_topk(expected["asked"], 3)
    assert labels.tolist() == expected[kind]["labels"]
    then = [[-np.inf if score is None else score for score in row] for row in expected[kind]["scores"]]
    np.testing.assert_allclose(scores, then, rtol=1e-6)
    width = model.vectoriser.n_features_
    model.partial_fit(["vitamin K 9"], ["E56"])
    assert kind != "words" or model.vectoriser.get_feature_names_out()[width:].tolist() == []
    assert model.predict_topk(["vitamin"], 5).labels[0].tolist().count("E56") == 1


@pytest.mark.parametrize("parameters", KINDS)
def test_pickle_keeps_everything(parameters):
    vectorizer = TextVectorizer(**parameters).fit(TRAIN)
    again = pickle.loads(pickle.dumps(vectorizer))
    assert_equal(again.transform(MORE), vectorizer.transform(MORE))
    assert again.vocabulary_hash_ == vectorizer.vocabulary_hash_


def test_a_function_cannot_be_saved():
    vectorizer = TextVectorizer(analyzer=str.split).fit(TRAIN)
    with pytest.raises(ValueError, match="cannot be saved"):
        vectorizer.to_arrays()


def test_hash_tells_vectorisers_apart():
    reference = TextVectorizer().fit(TRAIN).vocabulary_hash_
    assert TextVectorizer(n_jobs=2).fit(TRAIN).vocabulary_hash_ == reference
    others = [
        TextVectorizer().fit([*TRAIN, "new"]),
        TextVectorizer().fit([*TRAIN, "tea"]),
        TextVectorizer(norm="l1").fit(TRAIN),
        TextVectorizer(sublinear_tf=False).fit(TRAIN),
        TextVectorizer(hashing=100).fit(TRAIN),
        TextVectorizer(hashing=100, use_idf=False),
    ]
    assert len({reference, *(other.vocabulary_hash_ for other in others)}) == 7


def damage(arrays, meta, name, change):
    arrays, meta = {key: array.copy() for key, array in arrays.items()}, dict(meta)
    if name in meta:
        meta[name] = change(meta[name])
    else:
        arrays[name] = change(arrays[name])
    return arrays, meta


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("word_offsets", lambda a: a[::-1]),
        ("word_offsets", lambda a: a + 1),
        ("word_offsets", lambda a: a[:0]),
        ("word_offsets", lambda a: np.where(np.arange(len(a)) == 2, a[-1], a)),
        ("gram_words", lambda a: a + 10_000),
        ("gram_words", lambda a: a - 10_000),
        ("gram_words", lambda a: a[1:]),
        ("gram_prefixes", lambda a: a + 10_000),
        ("gram_prefixes", lambda a: np.full_like(a, -1)),
        ("gram_prefixes", lambda a: np.full_like(a, -(2**31))),
        ("gram_prefixes", lambda a: -2 - np.arange(len(a))),
        ("feature_codes", lambda a: a + 10_000),
        ("feature_codes", lambda a: a - 10_000),
        ("feature_codes", lambda a: np.zeros_like(a)),
        ("feature_codes", lambda a: np.where(a == a[0], -1, a)),
        ("idf", lambda a: a[1:]),
        ("idf", lambda a: a * np.nan),
        ("idf", lambda a: -a),
        ("idf", lambda a: 0 * a),
        ("idf", lambda a: a * np.float32(1e16)),
        ("gram_words", lambda a: np.zeros_like(a)),
        ("word_documents", lambda a: a[1:]),
        ("gram_documents", lambda a: a - 1),
        ("n_stop_words", lambda n: 10_000),
        ("n_fitted", lambda n: -1),
        ("n_fitted", lambda n: True),
        ("n_documents", lambda n: 10**30),
        ("word_documents", lambda a: a + 2**62),
        ("word_documents", lambda a: a + len(TRAIN) + 1),
    ],
)
def test_damage_is_refused(name, change):
    arrays, meta = TextVectorizer(ngram_range=(1, 3)).fit(TRAIN).to_arrays()
    with pytest.raises(ValueError, match=name):
        TextVectorizer.from_arrays(*damage(arrays, meta, name, change))


def test_a_word_twice_is_refused():
    arrays, meta = TextVectorizer().fit(["aa bb"]).to_arrays()
    arrays["word_bytes"] = np.frombuffer(b"aaaa", np.uint8)
    with pytest.raises(ValueError, match="distinct: word 1 is 'aa'"):
        TextVectorizer.from_arrays(arrays, meta).transform(["aa"])


def test_ngrams_twice_are_refused_before_any_code_can_point_past_their_table():
    arrays, meta = TextVectorizer(ngram_range=(1, 2)).fit(["aa bb cc", "bb aa"]).to_arrays()
    arrays["gram_prefixes"][:], arrays["gram_words"][:] = 0, 1
    with pytest.raises(ValueError, match=r"gram_words must be distinct: n-gram 1 is the same as n-gram 0"):
        TextVectorizer.from_arrays(arrays, meta)


def test_ngrams_longer_than_any_are_refused():
    """Each is the one before and a word: their names would grow with the square of the file."""
    arrays, meta = TextVectorizer(ngram_range=(1, 8)).fit(["a b c d e f g h", "a b"]).to_arrays()
    TextVectorizer.from_arrays(arrays, meta)
    n = len(arrays["gram_words"])
    for more, problem in ((7, None), (8, rf"n-gram {n + 7} has more")):
        chain = -2 - np.arange(n, n + more - 1)
        longer = {
            "gram_prefixes": np.concatenate((arrays["gram_prefixes"], [7], chain)).astype(np.int32),
            "gram_words": np.concatenate((arrays["gram_words"], np.zeros(more, int))).astype(np.int32),
            "gram_documents": np.zeros(n + more, np.int64),
        }
        if problem is None:
            TextVectorizer.from_arrays(arrays | longer, meta)
        else:
            with pytest.raises(ValueError, match=problem):
                TextVectorizer.from_arrays(arrays | longer, meta)


@pytest.mark.parametrize(("at", "byte", "word"), [(0, 0xFF, 0), (5, 0xC3, 1), (6, 0xA4, 2), (8, 0x80, 2)])
def test_bytes_that_are_no_text_are_named(at, byte, word):
    arrays, meta = TextVectorizer().fit(["aaa bbb ccc"]).to_arrays()
    arrays["word_bytes"] = arrays["word_bytes"].copy()
    arrays["word_bytes"][at] = byte
    with pytest.raises(ValueError, match=rf"word_bytes must be UTF-8: word {word} is not \(byte {at}\)"):
        TextVectorizer.from_arrays(arrays, meta)


def test_a_character_may_not_be_cut_in_two_by_a_word():
    arrays, meta = TextVectorizer().fit(["aé b"]).to_arrays()
    arrays["word_offsets"] = np.array([0, 2, 4])
    with pytest.raises(ValueError, match=r"word 1 is not \(byte 2\)"):
        TextVectorizer.from_arrays(arrays, meta)


def test_half_of_a_pair_is_a_word_as_ever(tmp_path):
    vectorizer = TextVectorizer(analyzer="char").fit(["a\ud800b\udfff"])
    assert through_file(vectorizer, tmp_path).vocabulary_ == vectorizer.vocabulary_


def test_words_that_crowd_a_table_are_refused(monkeypatch):
    """Words made to be side by side, whose table took minutes a megabyte, and each look-up as long as the file."""
    rng = np.random.default_rng(0)
    words = {word.tobytes().decode() for word in rng.integers(97, 123, (30_000, 7)).astype(np.uint8)}
    crowd = sorted(word for word in words if naive_vectorise.home_of(word, 2**14) < 4200)[:5000]
    assert len(crowd) == 5000 and naive_vectorise.longest_run(crowd, 2**14) > LONGEST_RUN
    arrays, meta = TextVectorizer(use_idf=False).fit(["aa"]).to_arrays()
    arrays |= {
        "word_bytes": np.frombuffer("".join(crowd).encode(), np.uint8),
        "word_offsets": 7 * np.arange(len(crowd) + 1),
        "feature_codes": np.arange(len(crowd), dtype=np.int32),
        "word_documents": np.ones(len(crowd), np.int64),
    }
    with pytest.raises(ValueError, match=r"word_bytes must spread over a table: \d+ of them are side by side"):
        TextVectorizer.from_arrays(arrays, meta)
    monkeypatch.setattr("abound.vectorise.checks.LONGEST_RUN", len(crowd))
    assert TextVectorizer.from_arrays(arrays, meta).transform([crowd[7]]).nnz == 1


@given(st.lists(st.integers(0, 2000).map(str) | st.text(st.sampled_from("ab\0é"), min_size=1), unique=True), st.data())
@settings(max_examples=100, deadline=None)
def test_the_check_of_words_says_what_its_twin_says(words, data):
    texts = TextBytes.from_strings(words)
    assert word_problem(texts) is None
    with pytest.MonkeyPatch.context() as patch:
        longest = naive_vectorise.longest_run([word for word in words if naive_vectorise.is_short(word)], 2**10)
        patch.setattr("abound.vectorise.checks.LONGEST_RUN", longest - 1)
        short = TextBytes.from_strings([word for word in words if naive_vectorise.is_short(word)])
        assert longest == 0 or "side by side" in word_problem(short)
        patch.setattr("abound.vectorise.checks.LONGEST_RUN", longest)
        assert word_problem(short) is None
    if words:
        again = [*words, words[data.draw(st.integers(0, len(words) - 1))]]
        assert "distinct" in word_problem(TextBytes.from_strings(again))


RUNS_FOR_HOURS = r"(?u)(?:\w+)+\d"


@pytest.mark.parametrize("pattern", [RUNS_FOR_HOURS, r"[a-z]+", r"(?u)\b\w\w+", r"\w" * 16 + "+"])
def test_a_pattern_runs_if_it_is_known_or_trusted(pattern):
    arrays, meta = TextVectorizer(token_pattern=pattern).fit(["word" * 10 + "1 b2"]).to_arrays()
    if pattern == r"(?u)\b\w\w+":
        assert TextVectorizer.from_arrays(arrays, meta).token_pattern == pattern
        return
    with pytest.raises(ValueError, match=r"token_pattern=.* abound.load\(path, trust=True\), or --trust"):
        TextVectorizer.from_arrays(arrays, meta)
    assert TextVectorizer.from_arrays(arrays, meta, trust=True).token_pattern == pattern


@pytest.mark.parametrize(("analyzer", "most"), [("word", 8), ("char", 15), ("char_wb", 15)])
def test_ngrams_have_a_greatest_length_in_python_and_in_files(analyzer, most):
    texts = ["a b c d e f g h i j k l m n o p q r s t"]
    arrays, meta = TextVectorizer(analyzer=analyzer, ngram_range=(1, most)).fit(texts).to_arrays()
    TextVectorizer.from_arrays(arrays, meta).transform(texts)
    for wide in ([1, most + 1], [2, 10**9], [most + 1, most + 1], [10**30, 10**30]):
        with pytest.raises(ValueError, match=rf"ngram_range\[[01]\]=.*at most {most}"):
            TextVectorizer(analyzer=analyzer, ngram_range=tuple(wide)).fit(texts)
        with pytest.raises(ValueError, match=rf"ngram_range\[[01]\]=.*at most {most}"):
            TextVectorizer.from_arrays(arrays, meta | {"parameters": meta["parameters"] | {"ngram_range": wide}})


@pytest.mark.parametrize("name", ["min_df", "max_features"])
def test_numbers_beyond_64_bits_are_refused(name):
    arrays, meta = TextVectorizer().fit(TRAIN).to_arrays()
    with pytest.raises(ValueError, match=f"{name} must be below"):
        TextVectorizer.from_arrays(arrays, meta | {"parameters": meta["parameters"] | {name: 10**30}})


def test_threads_are_not_taken_from_a_file():
    arrays, meta = TextVectorizer(n_jobs=2).fit(TRAIN).to_arrays()
    assert "n_jobs" not in meta["parameters"]
    meta["parameters"]["n_jobs"] = 100_000
    assert TextVectorizer.from_arrays(arrays, meta).n_jobs is None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("idf", lambda a: a[1:]),
        ("documents", lambda a: a[1:]),
        ("documents", lambda a: a - 1),
        ("is_known", lambda a: a[1:]),
    ],
)
def test_damage_to_hashed_state_is_refused(name, change):
    arrays, meta = TextVectorizer(hashing=50).fit(TRAIN).to_arrays()
    with pytest.raises(ValueError, match=name):
        TextVectorizer.from_arrays(*damage(arrays, meta, name, change))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_numbers_are_refused_or_harmless(data):
    arrays, meta = TextVectorizer(ngram_range=(1, 2)).fit(TRAIN).to_arrays()
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name].copy()
    place = data.draw(st.integers(0, len(array) - 1))
    info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
    value = st.floats(width=32) if info is None else st.integers(int(info.min), int(info.max)) | st.integers(0, 30)
    array[place] = data.draw(value)
    try:
        loaded = TextVectorizer.from_arrays({**arrays, name: array}, meta)
        X = loaded.transform(TRAIN + MORE)
    except ValueError:
        return
    assert X.shape == (7, loaded.n_features_)
    assert not X.nnz or (X.indices.min() >= 0 and X.indices.max() < X.shape[1])


def test_a_loaded_vectoriser_makes_its_table_once_for_all_threads(tmp_path):
    rng = np.random.default_rng(4)
    many = [" ".join(f"w{i}" for i in rng.integers(0, 3000, 300)) for _ in range(1500)]
    vectorizer = TextVectorizer(n_jobs=2).fit(many)
    assert_equal(through_file(vectorizer, tmp_path).transform(many), vectorizer.transform(many))


def test_stop_words_of_any_kind_are_saved_as_a_list(tmp_path):
    for kind in (set, tuple, np.array):
        vectorizer = TextVectorizer(stop_words=kind(["tea", "black"])).fit(TRAIN)
        loaded = through_file(vectorizer, tmp_path)
        assert loaded.stop_words == ["black", "tea"]
        assert_equal(loaded.transform(TRAIN), vectorizer.transform(TRAIN))

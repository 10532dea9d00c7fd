"""`TextVectorizer` gives the matrix of scikit-learn's `TfidfVectorizer`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from abound.read.textbytes import TextBytes
from abound.vectorise import TextVectorizer

# Letters of one to four bytes, some that change their length or place when lower-cased, joiners and separators.
ODD = "İıΣσςǅßẞȺȾKÅﬁ̈́̇ـªº²½Ⅻ①٣๓_-'\u00ad\u200d\u200b\u0300 \t\n\u2028\x1c\x00"
SCRIPTS = "aAzZ09äÄéÉœŒжЖЯαΑωΩאبकक्षไทย字漢ひカ한글𝔸𝒜𐐀𐐨🙂𠀀"
characters = st.one_of(
    st.sampled_from("abcABC  "),
    st.sampled_from(ODD),
    st.sampled_from(SCRIPTS),
    st.characters(exclude_categories=["Cs"]),
)
texts = st.text(characters, max_size=40)
few_words = st.lists(
    st.sampled_from(["tea", "Tea", "coffee", "a", "ab", "the", "ΟΔΟΣ", "İstanbul", "Donaudampfschiff", "Donaudampf"]),
    max_size=12,
).map(" ".join)
documents = st.lists(st.one_of(texts, few_words), min_size=1, max_size=12)
common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


def assert_same(ours, theirs):
    theirs = theirs.copy()
    theirs.sort_indices()
    assert ours.format == "csr" and ours.dtype == np.float32 and ours.indices.dtype == np.int32
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.data, theirs.data, rtol=1e-6, atol=1e-6)


DIFFERENT = {"sublinear_tf": False, "token_pattern": r"(?u)\b\w\w+\b"}
"""scikit-learn's defaults where ours are others."""


def compare(train, test, n_jobs=None, **parameters):
    """Compare both libraries; they must fail alike, too."""
    parameters = {**DIFFERENT, **parameters}
    peer = TfidfVectorizer(dtype=np.float32, **parameters)
    ours = TextVectorizer(n_jobs=n_jobs, **parameters)
    try:
        expected = peer.fit_transform(train)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:20]):
            ours.fit_transform(train)
        return
    assert_same(ours.fit_transform(train), expected)
    assert ours.get_feature_names_out().tolist() == peer.get_feature_names_out().tolist()
    assert ours.vocabulary_ == peer.vocabulary_
    if parameters.get("use_idf", True):
        np.testing.assert_allclose(ours.idf_, peer.idf_, rtol=1e-6)
    assert_same(ours.transform(test), peer.transform(test))
    assert_same(TextVectorizer(**parameters).fit(train).transform(test), peer.transform(test))


parameters = st.fixed_dictionaries(
    {},
    optional={
        "ngram_range": st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 3), (2, 4)]),
        "token_pattern": st.sampled_from([r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", r"\w+", r"\b\w\w\w+\b"]),
        "lowercase": st.booleans(),
        "min_df": st.sampled_from([1, 2, 0.2]),
        "max_df": st.sampled_from([1.0, 0.6, 3]),
        "max_features": st.sampled_from([None, 1, 3, 10]),
        "binary": st.booleans(),
        "sublinear_tf": st.booleans(),
        "use_idf": st.booleans(),
        "smooth_idf": st.booleans(),
        "norm": st.sampled_from(["l1", "l2", None]),
        "stop_words": st.sampled_from([None, "english", ["tea", "ab"]]),
        "strip_accents": st.sampled_from([None, "unicode", "ascii"]),
    },
)


@given(documents, documents, parameters)
@settings(max_examples=300, **common)
def test_same_matrix_on_random_unicode(train, test, parameters):
    compare(train, test, **parameters)


@given(documents, documents)
@settings(max_examples=200, **common)
def test_same_words_with_the_defaults_of_either(train, test):
    compare(train, test)
    ours = TextVectorizer().get_params()
    compare(train, test, **{name: ours[name] for name in DIFFERENT})


def test_no_other_default_differs():
    ours, theirs = TextVectorizer().get_params(), TfidfVectorizer().get_params()
    assert {name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]} == DIFFERENT.keys()
    assert {name: theirs[name] for name in DIFFERENT} == DIFFERENT


@pytest.mark.long
@given(documents, documents, parameters)
@settings(max_examples=10_000, **common)
def test_same_matrix_on_random_unicode_at_length(train, test, parameters):
    compare(train, test, **parameters)


@given(documents, st.sampled_from(["char", "char_wb"]), st.sampled_from([(1, 1), (2, 3), (1, 4)]))
@settings(max_examples=60, **common)
def test_same_character_ngrams(train, analyzer, ngram_range):
    compare(train, train, analyzer=analyzer, ngram_range=ngram_range)


@given(documents)
@example(["aa bb", "a+ b-", ""])
@settings(max_examples=40, **common)
def test_same_with_another_pattern_or_analyzer(train):
    compare(train, train, token_pattern=r"(?u)[^\W\d]+|[+-]", ngram_range=(1, 2), stop_words=["tea"])
    compare(train, train, token_pattern=r"(\w)\w*", ngram_range=(1, 2))
    compare(train, train, analyzer=str.split)


@pytest.mark.parametrize("word", ["ΟΔΟΣ", "Σ", "ΑΣ", "ΑΣΑ Σ", "İ", "İİ", "Iİ", "ΣΣ", "ΑΣ\u0307Α", "ΑΣ\u00adΑ ΑΣ"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_characters_whose_lower_case_needs_their_neighbours(word, lowercase):
    compare([f"x{word} {word}y", word, "plain"], [word.lower()], lowercase=lowercase, token_pattern=r"\w+")


def test_lone_surrogates_separate_words():
    compare(["ab\ud800cd", "ab \udfff"], ["cd\udc80"])
    compare(["ab\ud800cd", "ab \udfff"], ["cd\udc80"], analyzer="char", ngram_range=(1, 2))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_same_over_many_blocks(n_jobs):
    """Enough text for several blocks and a table that grows several times."""
    rng = np.random.default_rng(0)
    words = [f"{'wörterbuch' * (i % 4)}{i:x}" for i in range(30_000)]
    train = [" ".join(words[i] for i in rng.zipf(1.3, 60) % len(words)) for _ in range(3000)]
    train[7] += " ΟΔΟΣ İstanbul"
    train[1500] = ""
    compare(train, train[::-1], n_jobs=n_jobs, sublinear_tf=True)
    compare(train[:800], train[700:900], n_jobs=n_jobs, ngram_range=(1, 3), min_df=2, sublinear_tf=True)
    compare(train, train[:50], n_jobs=n_jobs, max_features=500, stop_words=words[:5])


@pytest.mark.parametrize(
    "parameters",
    [{}, {"ngram_range": (1, 2), "min_df": 2}, {"hashing": 1000}, {"analyzer": "char", "ngram_range": (2, 3)}],
)
def test_number_of_threads_does_not_show(parameters):
    rng = np.random.default_rng(1)
    train = [" ".join(f"w{i}" for i in rng.zipf(1.4, 200) % 5000) for _ in range(2000)]
    one, two = TextVectorizer(n_jobs=1, **parameters), TextVectorizer(n_jobs=2, **parameters)
    for a, b in ((one.fit_transform(train), two.fit_transform(train)), (one.transform(train), two.transform(train))):
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    states = one.to_arrays()[0], two.to_arrays()[0]
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
    assert one.vocabulary_hash_ == two.vocabulary_hash_


@given(documents, parameters)
@settings(max_examples=60, **common)
def test_text_bytes_are_read_like_strings(train, parameters):
    buffer = np.frombuffer(b"\xc3" + b"\xa4".join(text.encode() for text in train) + b"\xc3", np.uint8)
    lengths = np.array([len(text.encode()) for text in train])
    ends = 1 + np.cumsum(lengths + 1) - 1
    mapped = TextBytes(buffer, ends - lengths, ends)
    assert mapped.to_list() == train
    strings, places = TextVectorizer(**parameters), TextVectorizer(**parameters)
    try:
        expected = strings.fit_transform(train)
    except ValueError:
        return
    assert (places.fit_transform(mapped) != expected).nnz == 0
    assert (places.transform(mapped) != strings.transform(train)).nnz == 0

"""`partial_fit`: the vocabulary grows, known features stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abound.vectorise import TextVectorizer
from naive_vectorise import GrowingVocabulary, ngrams_of, words_of

words = st.sampled_from(["tea", "coffee", "milk", "mate", "water", "Σ", "ΟΔΟΣ", "élan", "ab", "the"])
texts = st.lists(words, max_size=8).map(" ".join)
chunks = st.lists(st.lists(texts, min_size=1, max_size=5), min_size=1, max_size=5)


def names_of(text, ngram_range):
    return [" ".join(gram) for gram in ngrams_of(words_of(text), *ngram_range)]


@given(chunks, st.sampled_from([(1, 1), (1, 2), (2, 3)]), st.sampled_from([1, 2, 3]))
@settings(max_examples=150, deadline=None)
def test_grows_as_promised(chunks, ngram_range, min_df):
    ours = TextVectorizer(ngram_range=ngram_range, min_df=min_df)
    twin = GrowingVocabulary(min_df)
    twin.fit([names_of(text, ngram_range) for text in chunks[0]])
    if not twin.features:
        with pytest.raises(ValueError, match=r"empty vocabulary|no terms remain|than min_df"):
            ours.partial_fit(chunks[0])
        return
    ours.partial_fit(chunks[0])
    digest = ours.vocabulary_hash_
    for chunk in chunks[1:]:
        before = ours.get_feature_names_out().tolist()
        assert ours.partial_fit(chunk) is ours
        twin.grow([names_of(text, ngram_range) for text in chunk])
        assert ours.get_feature_names_out().tolist()[: len(before)] == before
    assert ours.get_feature_names_out().tolist() == list(twin.features)
    assert ours.vocabulary_ == twin.features
    np.testing.assert_allclose(ours.idf_, twin.idf(), rtol=1e-6)
    assert ours.vocabulary_hash_ == digest
    assert ours.n_features_ == len(twin.features)
    everything = [text for chunk in chunks for text in chunk]
    X = ours.set_params(norm=None, sublinear_tf=False).transform(everything).toarray()
    for row, text in zip(X / ours.idf_, everything, strict=True):
        names = names_of(text, ngram_range)
        assert row.round(3).tolist() == [names.count(name) for name in twin.features]


@given(chunks)
@settings(max_examples=40, deadline=None)
def test_chunks_of_any_size_grow_to_the_same_idf(chunks):
    first, rest = ["tea coffee", "tea"], [text for chunk in chunks for text in chunk]
    at_once = TextVectorizer().fit(first).partial_fit(rest)
    in_chunks = TextVectorizer().fit(first)
    for chunk in chunks:
        in_chunks.partial_fit(chunk)
    assert set(at_once.vocabulary_) == set(in_chunks.vocabulary_)
    for name, feature in at_once.vocabulary_.items():
        assert at_once.idf_[feature] == in_chunks.idf_[in_chunks.vocabulary_[name]]


def test_known_words_keep_their_weights():
    vectorizer = TextVectorizer(norm=None).fit(["green tea", "black tea", "coffee"])
    known, before = vectorizer.transform(["green tea tea"]), vectorizer.idf_.copy()
    vectorizer.partial_fit(["green", "green", "green mate"])
    after = vectorizer.transform(["green tea tea"])
    assert after.shape == (1, 5)
    np.testing.assert_array_equal(known.toarray()[0], after.toarray()[0, :4])
    np.testing.assert_array_equal(vectorizer.idf_[:4], before)
    assert vectorizer.idf_[4] == np.float32(1 + np.log(7 / 2))


def test_growth_keeps_within_max_features():
    vectorizer = TextVectorizer(max_features=4).fit(["a1 b1 c1"])
    vectorizer.partial_fit(["z1 y1", "y1"])
    assert vectorizer.get_feature_names_out().tolist() == ["a1", "b1", "c1", "y1"]
    assert vectorizer.partial_fit(["x1"]).n_features_ == 4


def test_what_limits_forbid_changes_nothing():
    vectorizer = TextVectorizer(min_df=0.5, max_df=2).fit(["green tea", "black tea"])
    before, meta = vectorizer.to_arrays()
    with pytest.raises(ValueError, match=r"of 6 texts, max_df=2 allows 2 and min_df=0\.5 asks for 3"):
        vectorizer.partial_fit(["mate"] * 4)
    after, same = vectorizer.to_arrays()
    assert same == meta
    assert all(np.array_equal(after[name], before[name]) for name in before)


def test_stop_words_never_become_features():
    vectorizer = TextVectorizer(stop_words=["the"], ngram_range=(1, 2)).fit(["the tea"])
    vectorizer.partial_fit(["black the tea", "the"])
    assert vectorizer.get_feature_names_out().tolist() == ["tea", "black", "black tea"]


def test_number_of_threads_does_not_show_in_growth():
    rng = np.random.default_rng(2)
    more = [" ".join(f"w{i}" for i in rng.zipf(1.3, 300) % 20_000) for _ in range(2500)]
    one, two = (TextVectorizer(n_jobs=n, min_df=2).fit(more[:100]).partial_fit(more[100:]) for n in (1, 2))
    assert one.get_feature_names_out().tolist() == two.get_feature_names_out().tolist()
    np.testing.assert_array_equal(one.idf_, two.idf_)
    arrays = one.to_arrays()[0], two.to_arrays()[0]
    assert all(np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0])


def test_hashed_features_keep_their_idf_and_empty_buckets_learn():
    vectorizer = TextVectorizer(hashing=1 << 16, norm=None).fit(["tea", "tea coffee"])
    tea, mate = (vectorizer.transform([word]).indices[0] for word in ("tea", "mate"))
    before = vectorizer.idf_.copy()
    digest = vectorizer.vocabulary_hash_
    vectorizer.partial_fit(["mate tea", "mate"])
    assert vectorizer.idf_[tea] == before[tea]
    assert vectorizer.idf_[mate] == np.float32(1 + np.log(5 / 3))
    assert vectorizer.vocabulary_hash_ == digest


def test_a_word_may_be_found_while_another_thread_grows_the_vocabulary():
    """The features of a moment go with the words of that moment or a later one."""
    vectorizer = TextVectorizer().fit(["tea"])
    features = vectorizer._vocabulary.features
    vectorizer.partial_fit(["coffee"])
    vectorizer._vocabulary.features = features
    assert vectorizer.transform(["coffee tea"]).toarray().tolist() == [[1.0]]

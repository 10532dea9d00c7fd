"""`TextVectorizer` as an estimator: parameters, errors, hashing, places in a text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Perceptron
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from abound.vectorise import TextVectorizer
from abound.vectorise.reading import prepared

TEXTS = ["green tea", "black tea", "black coffee", "green coffee"] * 5


def test_clone_and_parameters():
    vectorizer = TextVectorizer(ngram_range=(1, 2), hashing=10)
    assert clone(vectorizer).get_params() == vectorizer.get_params()
    assert get_tags(vectorizer).input_tags.string
    assert not hasattr(vectorizer, "set_output")


def test_works_in_a_pipeline_and_a_search():
    labels = ["tea" if "tea" in text else "coffee" for text in TEXTS]
    model = make_pipeline(TextVectorizer(), Perceptron())
    search = GridSearchCV(model, {"textvectorizer__ngram_range": [(1, 1), (1, 2)]}, cv=2).fit(TEXTS, labels)
    assert search.best_score_ == 1
    assert search.best_estimator_[:-1].get_feature_names_out().tolist()[0] == "black"


@pytest.mark.parametrize("kind", [tuple, iter, np.array, pd.Series, lambda texts: (text for text in texts)])
def test_any_iterable_of_strings_will_do(kind):
    expected = TextVectorizer().fit_transform(TEXTS)
    assert (TextVectorizer().fit_transform(kind(TEXTS)) != expected).nnz == 0


def test_names_of_some_features():
    vectorizer = TextVectorizer(ngram_range=(1, 2)).fit(TEXTS)
    names = vectorizer.get_feature_names_out()
    assert vectorizer.feature_names([3, 0]) == names[[3, 0]].tolist()
    assert vectorizer.feature_names([]) == []


def test_no_texts_give_an_empty_matrix():
    X = TextVectorizer().fit(TEXTS).transform([])
    assert X.shape == (0, 4)
    assert TextVectorizer().fit(TEXTS).transform(["", "unknown words"]).nnz == 0


@pytest.mark.parametrize("method", ["transform", "get_feature_names_out", "to_arrays", "spans"])
def test_needs_fitting_first(method):
    arguments = {"transform": (TEXTS,), "spans": ("tea", [0])}.get(method, ())
    with pytest.raises(NotFittedError):
        getattr(TextVectorizer(), method)(*arguments)


@pytest.mark.parametrize("name", ["vocabulary_", "idf_", "n_features_", "vocabulary_hash_"])
def test_attributes_need_fitting_first(name):
    with pytest.raises(NotFittedError):
        getattr(TextVectorizer(), name)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("one text", ValueError, "string object received"),
        (b"one text", ValueError, "string object received"),
        (None, ValueError, "iterable of str"),
        (["tea", 7], TypeError, "text 1 is int"),
        (["tea"] * 3000 + [np.nan], TypeError, "text 3000 is float"),
        ([b"tea"], TypeError, "text 0 is bytes"),
        ([], ValueError, "empty vocabulary"),
        (["?", "!"], ValueError, "empty vocabulary"),
    ],
)
@pytest.mark.parametrize(
    "parameters", [{}, {"strip_accents": "ascii"}, {"analyzer": lambda text: text.split("a")[1:0]}]
)
def test_wrong_texts(texts, error, message, parameters):
    with pytest.raises(error, match=message):
        TextVectorizer(**parameters).fit(texts)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"analyzer": "words"}, "analyzer='words'"),
        ({"ngram_range": (2, 1)}, r"ngram_range\[1\]"),
        ({"ngram_range": (0, 1)}, r"ngram_range\[0\]"),
        ({"ngram_range": 2}, "pair"),
        ({"strip_accents": "all"}, "strip_accents"),
        ({"token_pattern": None}, "token_pattern"),
        ({"token_pattern": r"(\w)(\w)"}, "capturing group"),
        ({"stop_words": "german"}, "stop_words='german'"),
        ({"stop_words": [1]}, "stop_words holds 1"),
        ({"min_df": 0}, "min_df"),
        ({"min_df": 1.5}, "min_df"),
        ({"max_df": -1}, "max_df"),
        ({"max_features": 0}, "max_features"),
        ({"norm": "max"}, "norm"),
        ({"smooth_idf": "no"}, "smooth_idf='no'"),
        ({"lowercase": None}, "lowercase=None"),
        ({"binary": 2}, "binary=2"),
        ({"hashing": 0}, "hashing"),
        ({"hashing": 2**31}, "hashing"),
        ({"hashing": 8, "min_df": 2}, "with hashing"),
        ({"hashing": 8, "max_features": 2}, "with hashing"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"analyzer": "char", "stop_words": ["tea"]}, "stop_words needs"),
        ({"analyzer": "char_wb", "token_pattern": r"\w+"}, "token_pattern needs"),
        ({"analyzer": str.split, "ngram_range": (1, 2)}, "ngram_range is not used"),
        ({"min_df": 3, "max_df": 2}, "max_df corresponds"),
        ({"min_df": 1.0, "max_df": 1.0}, "no terms remain"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        TextVectorizer(**parameters).fit_transform(["tea coffee mate"] * 400 + ["milk"] * 100_000)


def test_words_of_one_character_count():
    vectorizer = TextVectorizer().fit(["type 2 diabetes", "vitamin D", "hepatitis B", "é ж 字"])
    names = vectorizer.get_feature_names_out().tolist()
    assert names == ["2", "b", "d", "diabetes", "hepatitis", "type", "vitamin", "é", "ж", "字"]
    one, two = vectorizer.transform(["Type 1 diabetes", "Type 2 diabetes"]).toarray()
    assert one[0] == 0 and two[0] > 0
    assert vectorizer.spans("vitamin D", [2]) == [(8, 9, 2)]


def test_the_pattern_of_scikit_learn_leaves_words_of_one_character_out():
    vectorizer = TextVectorizer(token_pattern=r"(?u)\b\w\w+\b").fit(["type 2 diabetes"])
    assert vectorizer.get_feature_names_out().tolist() == ["diabetes", "type"]


@pytest.mark.parametrize("analyzer", ["char", "char_wb", list])
def test_other_analyzers_pass_over_the_default_pattern_of_either(analyzer):
    for pattern in (TextVectorizer().token_pattern, r"(?u)\b\w\w+\b"):
        vectorizer = TextVectorizer(analyzer=analyzer, token_pattern=pattern).fit(["ab"])
        assert {"a", "b"} <= set(vectorizer.get_feature_names_out())


class TestTextsWithoutSpaces:
    """Chinese and Japanese: a word is a run of characters up to the next space or stop."""

    CLAUSES = tuple(
        f"{subject}について{number}番目の文章です。"
        for subject in ("天気予報", "電車の遅れ", "新しい料理", "図書館の本", "映画の感想")
        for number in "一二三四五六七八九十"
    )

    def test_warns(self):
        with pytest.warns(UserWarning, match="without spaces; use analyzer='char'"):
            TextVectorizer().fit(self.CLAUSES)

    def test_characters_or_words_between_spaces_are_fine(self):
        vectorizer = TextVectorizer(analyzer="char", ngram_range=(1, 2)).fit(self.CLAUSES)
        assert vectorizer.transform(["映画"]).nnz == 3
        TextVectorizer().fit([clause.replace("の", " の ").replace("に", " に ") for clause in self.CLAUSES])
        TextVectorizer().fit([*self.CLAUSES, " ".join(f"word{i}" for i in range(200))])

    def test_a_few_words_tell_nothing(self):
        TextVectorizer().fit(self.CLAUSES[:20])


def test_tokens_must_be_strings():
    with pytest.raises(TypeError, match="the analyzer gave 3"):
        TextVectorizer(analyzer=lambda text: [3]).fit(["tea"])


def test_idf_is_there_only_if_used():
    with pytest.raises(AttributeError, match="use_idf"):
        _ = TextVectorizer(use_idf=False).fit(TEXTS).idf_


def test_unicode_tables_agree_with_python():
    import re
    import sys

    from abound.vectorise.codepoints import EXCEPTIONS, fold_tables

    for lowercase in (True, False):
        tables = fold_tables(lowercase)
        for point in range(0, sys.maxunicode + 1, 1 if lowercase else 7):
            character = chr(point)
            lower = character.lower() if lowercase else character
            if character in EXCEPTIONS and lowercase:
                continue
            expected = int.from_bytes(lower.encode("utf-8", "surrogatepass"), "big") if re.match(r"\w", lower) else 0
            entry = tables.characters[point] if point < len(tables.characters) else 0
            assert entry == expected, hex(point)
            if point < 128:
                assert tables.ascii[point] == expected
        assert (tables.ascii[128:] == 255).all()


class TestHashing:
    def test_needs_no_fitting_without_idf(self):
        vectorizer = TextVectorizer(hashing=1000, use_idf=False)
        X = vectorizer.transform(["green tea", "tea"])
        assert X.shape == (2, 1000)
        assert (vectorizer.fit_transform(["green tea", "tea"]) != X).nnz == 0
        assert vectorizer.n_features_ == 1000

    def test_features_do_not_depend_on_what_was_fitted(self):
        one = TextVectorizer(hashing=1 << 20, ngram_range=(1, 2)).fit(["some text"]).transform(TEXTS)
        other = TextVectorizer(hashing=1 << 20, ngram_range=(1, 2)).fit(TEXTS).transform(TEXTS)
        np.testing.assert_array_equal(one.indices, other.indices)

    def test_buckets_are_stable(self):
        """The hash is part of what a model file means: it must never change."""
        vectorizer = TextVectorizer(hashing=1 << 20, use_idf=False, ngram_range=(1, 2))
        places = {text: vectorizer.transform([text]).indices.tolist() for text in ("tea", "Donaudampfschiff", "字漢")}
        assert places == {"tea": [129262], "Donaudampfschiff": [799154], "字漢": [620605]}
        assert vectorizer.transform(["green tea"]).indices.tolist() == [63738, 129262, 653353]

    def test_buckets_fill_evenly(self):
        words = [f"{'x' * (i % 12)}{i}" for i in range(20_000)]
        n_hit = len(np.unique(TextVectorizer(hashing=20_000, use_idf=False).transform([" ".join(words)]).indices))
        assert abs(n_hit - 20_000 * (1 - np.exp(-1))) < 300

    def test_same_as_a_vocabulary_if_nothing_collides(self):
        words, buckets = TextVectorizer(stop_words=["tea"]), TextVectorizer(stop_words=["tea"], hashing=2**31 - 1)
        expected, found = words.fit_transform(TEXTS), buckets.set_params(use_idf=False).transform(TEXTS)
        assert (np.diff(expected.indptr) == np.diff(found.indptr)).all()

    def test_colliding_features_add_up(self):
        X = TextVectorizer(hashing=1, use_idf=False, norm=None, sublinear_tf=False).transform(["a1 b1 b1 c1", ""])
        assert X.toarray().tolist() == [[4.0], [0.0]]

    def test_has_no_names(self):
        vectorizer = TextVectorizer(hashing=8).fit(TEXTS)
        with pytest.raises(ValueError, match="have no names"):
            vectorizer.get_feature_names_out()
        with pytest.raises(ValueError, match="have no names"):
            _ = vectorizer.vocabulary_

    def test_idf_is_learned(self):
        vectorizer = TextVectorizer(hashing=1 << 16).fit(["tea", "tea coffee", "milk"])
        tea, coffee = (vectorizer.transform([word]).indices[0] for word in ("tea", "coffee"))
        assert vectorizer.idf_[tea] == np.float32(1 + np.log(4 / 3))
        assert vectorizer.idf_[coffee] == np.float32(1 + np.log(4 / 2))


class TestSpans:
    def test_words(self):
        vectorizer = TextVectorizer().fit(["green tea", "black tea"])
        assert vectorizer.spans("Tea, green TEA; a teapot", [2, 1]) == [(0, 3, 2), (5, 10, 1), (11, 14, 2)]
        assert vectorizer.spans("Tea", []) == vectorizer.spans("", [2]) == []

    def test_ngrams_around_stop_words(self):
        vectorizer = TextVectorizer(ngram_range=(2, 2), stop_words=["of"]).fit(["cup of tea"])
        assert vectorizer.spans("A cup of Tea", [0]) == [(2, 12, 0)]

    def test_characters_that_change_their_length(self):
        text = "İİ tea ΟΔΟΣ ﬁne"
        vectorizer = TextVectorizer().fit([text])
        found = {text[a:b] for a, b, _ in vectorizer.spans(text, range(vectorizer.n_features_))}
        assert found == {"İ", "tea", "ΟΔΟΣ", "ﬁne"}
        stripped = TextVectorizer(strip_accents="unicode").fit(["fine élan"])
        assert stripped.spans("Élan ﬁne élan", range(2)) == [(0, 4, 0), (5, 8, 1), (9, 13, 0)]
        assert stripped.spans("e\u0301lan ﬁne", range(2)) == [(0, 5, 0), (6, 9, 1)]

    @given(st.text(max_size=15), st.booleans(), st.sampled_from([None, "ascii", "unicode"]))
    @settings(max_examples=100, deadline=None)
    def test_preparing_a_text_is_preparing_its_characters(self, text, lowercase, accents):
        whole = prepared(text, lowercase, accents)
        assert len(whole) == sum(len(prepared(character, lowercase, accents)) for character in text)

    def test_another_pattern(self):
        vectorizer = TextVectorizer(token_pattern=r"#(\w+)", ngram_range=(1, 2)).fit(["#tea #milk"])
        names = vectorizer.get_feature_names_out().tolist()
        places = vectorizer.spans("no #Tea and #milk", range(3))
        assert [(a, b, names[f]) for a, b, f in places] == [(4, 7, "tea"), (4, 17, "tea milk"), (13, 17, "milk")]

    def test_hashing(self):
        vectorizer = TextVectorizer(hashing=1 << 20, use_idf=False, ngram_range=(1, 2))
        features = vectorizer.transform(["green tea"]).indices
        assert [(a, b) for a, b, _ in vectorizer.spans("the green tea", features)] == [(4, 9), (4, 13), (10, 13)]

    @given(
        st.text("ab \t\nÄİ", max_size=12),
        st.sampled_from(["word", "char", "char_wb"]),
        st.sampled_from([(1, 1), (1, 3)]),
    )
    @settings(max_examples=150, deadline=None)
    def test_every_feature_of_a_text_has_its_places(self, text, analyzer, ngram_range):
        vectorizer = TextVectorizer(
            analyzer=analyzer, ngram_range=ngram_range, norm=None, use_idf=False, sublinear_tf=False
        )
        try:
            counts = vectorizer.fit_transform([text]).toarray()[0]
        except ValueError:
            return
        names = vectorizer.get_feature_names_out()
        places = vectorizer.spans(text, range(len(names)))
        for feature, name in enumerate(names):
            found = [(a, b) for a, b, f in places if f == feature]
            if name.strip() or analyzer != "char_wb":
                assert len(found) == counts[feature]
            for a, b in found:
                if "İ" not in text:
                    assert " ".join(text[a:b].lower().split()) == " ".join(name.split())

    def test_a_function_does_not_say(self):
        with pytest.raises(ValueError, match="does not say where"):
            TextVectorizer(analyzer=str.split).fit(["tea"]).spans("tea", [0])
        with pytest.raises(TypeError, match="text is bytes"):
            TextVectorizer().fit(["tea"]).spans(b"tea", [0])

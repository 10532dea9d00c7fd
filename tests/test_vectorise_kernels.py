"""The vectoriser's kernels against their slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from abound.read.textbytes import TextBytes
from abound.vectorise._row_kernels import count_rows, drop_words, hash_grams, sort_row
from abound.vectorise._scan_kernels import LONG, Tokens, scan_words
from abound.vectorise.blocks import BLOCK_BYTES, decode, encode, make_blocks
from abound.vectorise.codepoints import fold_tables
from abound.vectorise.lexicon import Counts, Lexicon, Space
from abound.vectorise.order import sort_codes, with_parts
from abound.vectorise.reading import make_reading
from abound.vectorise.tables import Grams, Words, make_tokens, names_of, pack
from abound.vectorise.text import TextVectorizer
from abound.vectorise.weighting import NORMS, Features, Weighting
from naive_vectorise import count_row, hash_bucket, key_of, ngrams_of, weigh_row, words_of

quick = settings(max_examples=150, deadline=None)
no_exceptions = st.characters(exclude_characters="İΣ", exclude_categories=["Cs"])
texts = st.lists(st.text(st.one_of(st.sampled_from("abZ9_ éß字"), no_exceptions), max_size=40), max_size=6)
tokens = st.lists(st.text(st.sampled_from("ab\0 éß字"), max_size=20), max_size=30)


def scan(given_texts, min_characters=2, lowercase=True):
    tables = fold_tables(lowercase)
    room = make_tokens((given_texts.n_bytes >> 1) + 2 * len(given_texts))
    longest = int((given_texts.ends - given_texts.begins).max(initial=0))
    token_ptr, marks = np.empty(len(given_texts) + 1, np.int64), np.zeros(len(given_texts), np.uint8)
    places = given_texts.buffer, given_texts.begins, given_texts.ends
    edges = np.empty(longest + 1, np.int64)
    scan_words(*places, *tables, min_characters, edges, token_ptr, room, marks)
    return token_ptr, room, marks


def learn(found, n):
    """Put tokens into a new table; return their names."""
    words, ids = Words(), np.empty(n, np.int32)
    words.find(found, n, ids, may_grow=True)
    return decode(names_of(ids, words, Grams()))


@given(texts, st.integers(1, 4), st.booleans())
@example(["Straße ÄÖÜäöüÄÖÜäöü x", "aaaaaaaa aaaaaaaaa", "", "Kelvin ȺȾȺȾȺȾ"], 1, True)
@quick
def test_scan_finds_the_words(given_texts, min_characters, lowercase):
    token_ptr, found, _ = scan(encode(given_texts), min_characters, lowercase)
    expected = [words_of(text, min_characters, lowercase) for text in given_texts]
    assert np.diff(token_ptr).tolist() == [len(words) for words in expected]
    flat = [word for words in expected for word in words]
    assert learn(found, len(flat)) == flat
    for key, word in zip(found.keys[: len(flat)].tolist(), flat, strict=True):
        if len(word.encode()) <= 8:
            assert key == key_of(word)
        else:
            assert key >= LONG


@pytest.mark.parametrize("text", ["İ", "aİb", "Σ", "aΣ", "ΑΒΓΣ Δ"])
def test_scan_marks_what_needs_python(text):
    assert scan(encode(["plain ıσς", text, ""]))[2].tolist() == [0, 1, 0]


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=4), st.integers(0, 9))
@quick
def test_scan_stays_within_any_bytes(pieces, cut):
    """Bytes that are no UTF-8 separate words; a text may end anywhere, also within a character."""
    buffer = np.frombuffer(b"".join(pieces) + b"\xf0\x9f", np.uint8)
    ends = np.cumsum([len(piece) for piece in pieces])
    begins = np.maximum(ends - [len(piece) for piece in pieces], np.minimum(cut, ends))
    token_ptr, found, _ = scan(TextBytes(buffer, begins, ends), min_characters=1)
    words, ids = Words(), np.empty(token_ptr[-1], np.int32)
    words.find(found, len(ids), ids, may_grow=True)
    for a, b, first, last in zip(begins, ends, token_ptr, token_ptr[1:], strict=False):
        text = buffer[a:b].tobytes()
        if text.isascii():
            assert decode(names_of(ids[first:last], words, Grams())) == words_of(text.decode(), 1)


@given(tokens)
@example(["", "\0", "a", "a\0", "aaaaaaaa", "aaaaaaaa\0", "b" * 17, "b" * 16])
@quick
def test_words_are_numbered_found_and_sorted(names):
    words, ids = Words(), np.empty(len(names), np.int32)
    packed = pack(encode(names))
    words.find(packed, len(names), ids, may_grow=True)
    number = {}
    assert ids.tolist() == [number.setdefault(name, len(number)) for name in names]
    again = np.empty(len(names), np.int32)
    words.find(packed, len(names), again, may_grow=False)
    np.testing.assert_array_equal(ids, again)
    order = words.in_order(np.arange(len(words), dtype=np.int32))
    assert decode(names_of(order, words, Grams())) == sorted(number)
    joined = Words()
    assert joined.join(words, order)[order].tolist() == list(range(len(words)))


def test_large_table_grows_and_sorts_long_runs():
    rng = np.random.default_rng(0)
    names = [f"{'prefix12' * (i % 3)}{i}" for i in rng.permutation(5000)] + ["z" * 9 + "\0" * (i % 5) for i in range(5)]
    words, ids = Words(), np.empty(len(names), np.int32)
    words.find(pack(encode(names)), len(names), ids, may_grow=True)
    assert ids.tolist() == list(range(len(names)))
    order = words.in_order(np.arange(len(names), dtype=np.int32))
    assert decode(names_of(order, words, Grams())) == sorted(names)
    unknown = np.empty(1, np.int32)
    words.find(pack(encode(["nobody"])), 1, unknown, may_grow=False)
    assert unknown.tolist() == [-1]


def test_equal_hashes_are_not_taken_for_equal_words():
    packed = pack(encode(["a long word one", "a long word two", "a long word one", "another length"]))
    packed.keys[:] = LONG
    words, ids = Words(), np.empty(4, np.int32)
    words.find(packed, 4, ids, may_grow=True)
    assert ids.tolist() == [0, 1, 0, 2]


documents = st.lists(st.lists(st.sampled_from(["a", "aa", "ab", "b", "ba", "c"]), max_size=8), max_size=5)


@given(documents, st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 4), (3, 3)]))
@quick
def test_ngrams_are_listed_and_sorted(rows, ngram_range):
    lexicon, codes, code_ptr = Lexicon(), np.empty(1000, np.int32), np.empty(len(rows) + 1, np.int64)
    flat = [token for row in rows for token in row]
    ids = np.empty(len(flat), np.int32)
    token_ptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    lexicon.words.find(pack(encode(flat)), len(flat), ids, may_grow=True)
    lexicon.grams.find(token_ptr, ids, ngram_range, code_ptr, codes, may_grow=True)
    for d, row in enumerate(rows):
        found = decode(names_of(codes[code_ptr[d] : code_ptr[d + 1]], lexicon.words, lexicon.grams))
        assert found == [" ".join(gram) for gram in ngrams_of(row, *ngram_range)]
    used = np.unique(codes[: code_ptr[-1]])
    order = sort_codes(lexicon, with_parts(lexicon, used))
    kept = order[np.isin(order, used)]
    names = {" ".join(gram) for row in rows for gram in ngrams_of(row, *ngram_range)}
    assert decode(names_of(kept, lexicon.words, lexicon.grams)) == sorted(names)
    smaller = Lexicon()
    word_map, gram_map = smaller.join(lexicon, order)
    here = np.array([word_map[c] if c >= 0 else -2 - gram_map[-2 - c] for c in kept], np.int32)
    assert decode(names_of(here, smaller.words, smaller.grams)) == sorted(names)


def test_many_ngrams_make_their_table_grow():
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 300, 20_000).astype(np.int32)
    grams, codes, code_ptr = Grams(), np.empty(40_000, np.int32), np.empty(11, np.int64)
    token_ptr = np.arange(0, 20_001, 2000)
    grams.find(token_ptr, ids, (2, 3), code_ptr, codes, may_grow=True)
    expected = [gram for d in range(10) for gram in ngrams_of(ids[2000 * d : 2000 * d + 2000].tolist(), 2, 3)]
    number = dict(zip(expected, codes[: code_ptr[-1]].tolist(), strict=True))
    assert len(set(number.values())) == len(number) == len(set(expected))


@given(st.lists(st.lists(st.integers(-5, 5) | st.integers(-(2**31), 2**31 - 1), max_size=20), max_size=6))
@quick
def test_counting(rows):
    code_ptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    counted = Space().count(code_ptr, np.array([code for row in rows for code in row], np.int32))
    for d, row in enumerate(rows):
        part = slice(counted.ptr[d], counted.ptr[d + 1])
        assert list(zip(counted.codes[part].tolist(), counted.counts[part].tolist(), strict=True)) == count_row(row)


def test_counting_clears_its_scratch():
    code_ptr, codes = np.array([0, 3, 5]), np.array([7, 7, 8, 7, 9], np.int32)
    seen, row_ptr = np.full(32, 99, np.int32), np.empty(3, np.int64)
    row_codes, row_counts = np.empty(5, np.int32), np.empty(5, np.int32)
    count_rows(code_ptr, codes, seen, row_ptr, row_codes, row_counts)
    assert row_ptr.tolist() == [0, 2, 4] and row_codes[:4].tolist() == [7, 8, 7, 9]


@given(st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 300), max_size=120, unique=True))
@quick
def test_sorting_rows(features):
    row = np.array([feature << 32 | 5 for feature in features], np.int64)
    bits = max(features, default=0).bit_length()
    expected = np.sort(row)
    sort_row(len(row), bits, row, np.empty_like(row), np.empty(257, np.int64))
    np.testing.assert_array_equal(row, expected)


@given(
    st.lists(st.dictionaries(st.integers(0, 40), st.integers(1, 600), max_size=45), max_size=4),
    st.booleans(),
    st.sampled_from(["l1", "l2", None]),
    st.booleans(),
)
@quick
def test_weighing(rows, is_sublinear, norm, has_idf):
    rng = np.random.default_rng(0)
    of_words, of_grams = rng.permutation(41)[:30].astype(np.int32), np.full(20, -1, np.int32)
    of_grams[:11] = np.setdiff1d(np.arange(41), of_words)
    idf = rng.uniform(1, 9, 41).astype(np.float32) if has_idf else np.empty(0, np.float32)
    code_of = {int(f): c for c, f in enumerate(of_words)} | {int(f): -2 - g for g, f in enumerate(of_grams[:11])}
    codes, counts, ptr = [], [], [0]
    for row in rows:
        codes += [*(code_of[feature] for feature in row), -2 - 15]
        counts += [*row.values(), 3]
        ptr.append(len(codes))
    counted = Counts(np.array(ptr), np.array(codes, np.int32), np.array(counts, np.int32))
    weighed = Weighting(False, is_sublinear, NORMS[norm]).weigh(counted, Features(of_words, of_grams, 41, idf))
    for d, row in enumerate(rows):
        part = slice(weighed.indptr[d], weighed.indptr[d + 1])
        expected = weigh_row(row, idf, is_sublinear, norm)
        assert weighed.indices[part].tolist() == [feature for feature, _ in expected]
        np.testing.assert_allclose(weighed.data[part], [weight for _, weight in expected], rtol=1e-6)


@given(
    st.lists(st.lists(st.sampled_from(["tea", "coffee", "Donaudampf", "字"]), max_size=6), max_size=4),
    st.sampled_from([(1, 1), (1, 3)]),
)
@quick
def test_hashing(rows, ngram_range):
    flat = [token for row in rows for token in row]
    packed = pack(encode(flat))
    token_ptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    code_ptr, codes = np.empty(len(token_ptr), np.int64), np.empty(3 * len(flat), np.int32)
    hash_grams(token_ptr, packed.keys, *ngram_range, 1000, code_ptr, codes)
    keys = dict(zip(flat, packed.keys.tolist(), strict=False))
    expected = [
        hash_bucket([keys[token] for token in gram], 1000) for row in rows for gram in ngrams_of(row, *ngram_range)
    ]
    assert codes[: code_ptr[-1]].tolist() == expected


def test_dropping_words():
    token_ptr, ids = np.array([0, 3, 3, 5]), np.array([0, 5, 1, -1, 0], np.int32)
    keys = np.arange(5, dtype=np.uint64)
    drop_words(token_ptr, ids, 2, keys)
    assert token_ptr.tolist() == [0, 1, 1, 2]
    assert ids[:2].tolist() == [5, -1] and keys[:2].tolist() == [1, 3]


@given(st.lists(st.integers(0, 3 * BLOCK_BYTES) | st.integers(0, 9), max_size=40), st.sampled_from([1, 2, 8]))
@settings(max_examples=30, deadline=None)
def test_blocks_keep_texts_and_order(lengths, n_workers):
    reading = make_reading(TextVectorizer())
    given_texts = ["x" * length for length in lengths]
    for source in (given_texts, TextBytes.from_strings(given_texts)):
        blocks = [block.texts.to_list() for block in make_blocks(source, reading, n_workers)]
        assert [text for block in blocks for text in block] == given_texts
        assert all(blocks)


def test_encoding_lets_anything_through():
    strings = ["", "a", "\ud800", "é\0", ""]
    assert decode(encode(strings)) == strings
    assert len(encode([])) == 0
    assert isinstance(pack(encode([])), Tokens)

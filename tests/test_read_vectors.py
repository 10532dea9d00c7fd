"""Vector files: the kernel agrees with its twin, and every malformed file is an error with file and line."""

from __future__ import annotations

import gzip
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from abound.read import FormatError, iter_vectors, read_vectors, read_vectors_alike
from abound.read._format_kernels import FINE, parse_value
from abound.read.numbering import Numbering
from naive_read import number_strings, parse_vectors

LABEL_LETTERS = st.characters(exclude_characters=" \t\r\n,:#", exclude_categories=["Cs"])
LABELS = st.text(LABEL_LETTERS, min_size=1, max_size=6)


def written(folder: Path, text: str | bytes, name: str = "data.svm") -> Path:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@st.composite
def number_texts(draw: st.DrawFn) -> str:
    """Numbers in many spellings; none too large to be ranked."""
    value = draw(
        st.one_of(
            st.floats(-(2.0**49), 2.0**49, width=32),
            st.floats(-1e14, 1e14),
            st.floats(-1, 1),
            st.integers(-(10**14), 10**14).map(float),
            st.floats(1e-48, 1e-36),
        )
    )
    spelling = draw(st.sampled_from(["{!r}", "{:.3f}", "{:.6g}", "{:.9g}", "{:.17g}", "{:.25e}", "{:+.4E}", "{:.0f}"]))
    return spelling.format(value)


@st.composite
def vector_files(draw: st.DrawFn) -> str:
    """Well-formed files with every liberty that the format allows."""
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        labels = draw(st.lists(LABELS, min_size=1, max_size=4))
        indices = draw(st.lists(st.integers(0, 2**31 - 2), unique=True, max_size=6))
        space = draw(st.sampled_from([" ", "  ", "\t", " \t"]))
        comma = draw(st.sampled_from([",", ", ", " , "]))
        words = [comma.join(labels), *(f"{index}:{draw(number_texts())}" for index in indices)]
        end = draw(st.sampled_from(["", " ", " # 1:2 comment", "\r", " \r"]))
        lines.append(draw(st.sampled_from(["", " "])) + space.join(words) + end)
        if draw(st.booleans()):
            lines.append(draw(st.sampled_from(["", "  ", "# comment", " # 7:x"])))
    return "\n".join(lines) + draw(st.sampled_from(["", "\n"]))


@settings(deadline=None, max_examples=150)
@given(vector_files(), st.sampled_from([1, 7, 2**20]))
def test_parsing_agrees_with_the_naive_twin(tmp_path_factory, text, chunk_bytes):
    file = written(tmp_path_factory.mktemp("vectors"), text)
    expected = parse_vectors(text)
    vectors = read_vectors(file, zero_based=True)
    assert len(vectors) == len(expected)
    labels = vectors.labels
    names = [labels.classes[labels.ids[a:b]].tolist() for a, b in pairwise(labels.indptr)]
    assert names == [row for row, _ in expected]
    assert labels.classes.tolist() == sorted({label for row, _ in expected for label in row})
    indptr = vectors.X.indptr
    for i, (_, entries) in enumerate(expected):
        indices = vectors.X.indices[indptr[i] : indptr[i + 1]]
        assert indices.tolist() == sorted(entries)
        np.testing.assert_array_equal(vectors.X.data[indptr[i] : indptr[i + 1]], [entries[j] for j in sorted(entries)])

    chunks = list(iter_vectors(file, zero_based=True, chunk_bytes=chunk_bytes))
    streamed = [label for chunk in chunks for label in chunk.labels.classes[chunk.labels.ids].tolist()]
    assert streamed == [label for row in names for label in row]
    assert np.array_equal(np.concatenate([chunk.X.data for chunk in chunks]), vectors.X.data)
    for before, after in pairwise(chunks):
        assert after.labels.classes[: before.labels.n_classes].tolist() == before.labels.classes.tolist()
        assert after.X.shape[1] >= before.X.shape[1]


@settings(deadline=None, max_examples=400)
@given(number_texts())
def test_numbers_are_those_of_python(text):
    value, end, status = parse_value(np.frombuffer(text.encode() + b"\n", np.uint8), 0)
    assert end == len(text)
    if status == FINE:
        assert value == np.float32(float(text))


def test_a_number_halfway_between_two_float32_is_left_to_python(tmp_path):
    halfway = "1.000000059604644775390625"
    above = halfway + "00000000000000000001"
    file = written(tmp_path, f"a 1:{halfway} 2:{above} 3:-{above}\n")
    data = read_vectors(file).X.data
    assert data.tolist() == [np.float32(float(halfway)), np.float32(float(above)), -np.float32(float(above))]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.lists(st.binary(max_size=5), max_size=20), max_size=4))
def test_numbering_agrees_with_the_naive_twin(parts):
    numbering = Numbering()
    ids: list[int] = []
    decodable = [[string.hex().encode() for string in part] for part in parts]
    for part in decodable:
        ends = np.cumsum([0, *map(len, part)]).astype(np.int64)
        buffer = np.frombuffer(b"".join(part), np.uint8)
        ids += numbering.number(buffer, ends[:-1], ends[1:], FormatError).tolist()
    expected_ids, expected_names = number_strings([string for part in decodable for string in part])
    assert ids == expected_ids
    assert [name.encode() for name in numbering.names] == expected_names


def test_numbering_grows_beyond_its_first_table():
    strings = [str(i % 70_000).encode() for i in range(200_000)]
    ends = np.cumsum([0, *map(len, strings)]).astype(np.int64)
    numbering = Numbering()
    ids = numbering.number(np.frombuffer(b"".join(strings), np.uint8), ends[:-1], ends[1:], FormatError)
    assert np.array_equal(ids, np.arange(200_000) % 70_000)
    assert numbering.names[69_999] == "69999"


def test_single_and_multi_label_files(tmp_path):
    single = read_vectors(written(tmp_path, "b 1:1\na 3:2.5\n"))
    assert single.labels.kind == "single"
    assert single.labels.to_y().tolist() == ["b", "a"]
    assert single.X.toarray().tolist() == [[1, 0, 0], [0, 0, 2.5]]
    assert single.X.dtype == np.float32 and single.X.indices.dtype == np.int32
    several = read_vectors(written(tmp_path, "b,a 1:1\na\n"))
    assert several.labels.kind == "lists"
    assert several.labels.to_y() == [["b", "a"], ["a"]]
    assert several.X.shape == (2, 1)
    twice = read_vectors(written(tmp_path, "a,b,a 1:1\n"))
    assert twice.labels.to_y() == [["a", "b"]]


def test_counting_from_zero_or_one(tmp_path):
    one = written(tmp_path, "a 1:1 4:1\n")
    zero = written(tmp_path, "a 0:1 4:1\n", "zero.svm")
    assert read_vectors(one).X.indices.tolist() == [0, 3] and not read_vectors(one).zero_based
    assert read_vectors(zero).X.indices.tolist() == [0, 4] and read_vectors(zero).zero_based
    assert read_vectors(one, zero_based=True).X.shape == (1, 5)
    both = read_vectors_alike([one, zero])
    assert [part.X.shape for part in both] == [(1, 5), (1, 5)]
    assert both[0].X.indices.tolist() == [1, 4]
    assert read_vectors(one, n_features=9).X.shape == (1, 9)
    assert read_vectors(zero, n_features=5).X.shape == (1, 5)


def test_a_header_counts_from_zero_and_may_lack_labels(tmp_path):
    text = "4 6 3\n0,2 0:1.5 5:1\n 3:2\n4:1\n\n\n"
    vectors = read_vectors(written(tmp_path, text))
    assert vectors.X.shape == (4, 6)
    assert vectors.labels.to_y() == [["0", "2"], [], [], []]
    assert vectors.zero_based
    two = read_vectors(written(tmp_path, "# made by hand\n1 6\n3:2\n"))
    assert two.X.shape == (1, 6)
    from_one = read_vectors(written(tmp_path, "1 6 1\na 6:2\n"), zero_based=False)
    assert from_one.X.indices.tolist() == [5]
    chunks = list(iter_vectors(written(tmp_path, text), chunk_bytes=1))
    assert sum(len(chunk) for chunk in chunks) == 4
    assert {chunk.X.shape[1] for chunk in chunks} == {6}


def test_rows_without_label_on_request(tmp_path):
    file = written(tmp_path, "a 1:1\n 2:1\n3:1\n")
    assert read_vectors(file, allow_unlabelled=True).labels.to_y() == [["a"], [], []]


def test_entries_are_sorted(tmp_path):
    X = read_vectors(written(tmp_path, "a 5:5 2:2 9:9\nb 1:1\nc 3:3 1:1\n")).X
    assert X.indices.tolist() == [1, 4, 8, 0, 0, 2]
    assert X.data.tolist() == [2, 5, 9, 1, 1, 3]
    assert X.has_canonical_format


def test_agrees_with_scikit_learn(tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(300):
        indices = np.unique(rng.integers(1, 500, rng.integers(0, 30)))
        lines.append(f"{rng.integers(9)} " + " ".join(f"{i}:{rng.normal():.8g}" for i in indices))
    file = written(tmp_path, "\n".join(lines))
    X, y = load_svmlight_file(str(file), dtype=np.float32)
    vectors = read_vectors(file)
    assert (vectors.X != X).nnz == 0
    assert vectors.labels.to_y().astype(int).tolist() == y.astype(int).tolist()


def test_windows_line_ends_and_byte_order_mark(tmp_path):
    vectors = read_vectors(written(tmp_path, b"\xef\xbb\xbfa 1:1\r\nb 2:1\r\n"))
    assert vectors.labels.classes.tolist() == ["a", "b"]
    assert vectors.X.shape == (2, 2)


def test_labels_of_any_script(tmp_path):
    assert read_vectors(written(tmp_path, "größe,猫 1:1\n")).labels.to_y() == [["größe", "猫"]]


MALFORMED = {
    "bad number": ("a 1:1\nb 2:x\n", 2, "not a number"),
    "bad number behind": ("a 1:1\n\nb 2:1.5y\n", 3, "not a number"),
    "two points": ("a 1:1.2.3\n", 1, "not a number"),
    "empty value": ("a 1:\n", 1, "not a number"),
    "underscore": ("a 1:1_0\n", 1, "not a number"),
    "bad exponent": ("a 1:1e\n", 1, "not a number"),
    "a word like infinity": ("a 1:india\n", 1, "not a number"),
    "bad index": ("a 1:1\n# c\nb x:1\n", 3, "index:value"),
    "no colon": ("a 1:1 2\n", 1, "index:value"),
    "two labels without comma": ("a b 1:1\n", 1, "index:value"),
    "negative index": ("a 1:1\nb -2:1\n", 2, "negative"),
    "repeated index": ("a 1:1\nb 2:1 2:3\n", 2, "twice"),
    "repeated index apart": ("a 1:1\nb 2:1 5:1 2:3\n", 2, "twice"),
    "nan": ("a 1:1\nb 2:nan\n", 2, "NaN"),
    "inf": ("a 1:1\nb 2:-inf\n", 2, "infinite"),
    "too large for float32": ("a 1:1\nb 2:1e39\n", 2, r"1e\+15"),
    "too large in many digits": ("a 1:1\nb 2:3.4028235677973366163e38\n", 2, r"1e\+15"),
    "too large to be ranked": ("a 1:1e15\nb 2:-1.1e15\n", 2, "cannot be ranked"),
    "missing label": ("a 1:1\n 2:1\n", 2, "label is missing"),
    "missing label, no space": ("a 1:1\n2:1\n", 2, "label is missing"),
    "empty label": ("a 1:1\na,,b 2:1\n", 2, "empty label"),
    "empty last label": ("a 1:1\na, 2:1\n", 2, "empty label"),
    "empty first label": ("a 1:1\n,a 2:1\n", 2, "empty label"),
    "hash in label": ("a 1:1\nb# 2:1\n", 2, "#"),
    "query id": ("a 1:1\nb qid:3 2:1\n", 2, "qid"),
    "wrong encoding": (b"a 1:1\nb\xff 2:1\n", 2, "UTF-8"),
    "utf-16": ("a 1:1\n".encode("utf-16"), 1, "UTF-8"),
    "empty file": ("", 1, "empty"),
    "only comments": ("# nothing\n\n", 2, "empty"),
    "index above 2^31 - 1": ("a 1:1\nb 2147483648:1\n", 2, "too large"),
    "index beyond the header": ("2 3 1\na 2:1\na 3:1\n", 3, "beyond the 3 features"),
    "fewer rows than the header": ("3 3 1\na 2:1\na 1:1\n", 3, "header says 3"),
    "more rows than the header": ("1 3 1\na 2:1\na 1:1\n", 3, "one row more"),
}


@pytest.mark.parametrize("text, line, message", MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("read", [read_vectors, lambda file: list(iter_vectors(file, chunk_bytes=1))])
def test_malformed_files_name_file_and_line(tmp_path, text, line, message, read):
    file = written(tmp_path, text)
    with pytest.raises(FormatError, match=message) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}, line {line}: ")
    assert caught.value.line == line


def test_zero_in_a_file_that_counts_from_one(tmp_path):
    file = written(tmp_path, "a 1:1\nb 0:1\n")
    with pytest.raises(FormatError, match=r"line 2: index 0 .*zero_based=True"):
        read_vectors(file, zero_based=False)
    with pytest.raises(FormatError, match=r"line 2: index 0 .*zero_based=True"):
        list(iter_vectors(file, chunk_bytes=1))


def test_width_given_by_the_caller(tmp_path):
    with pytest.raises(FormatError, match="line 2: the index is beyond the 3 features expected"):
        read_vectors(written(tmp_path, "a 1:1\nb 4:1\n"), n_features=3)
    with pytest.raises(FormatError, match="line 2: the index is beyond the 3 features expected"):
        read_vectors(written(tmp_path, "a 0:1\nb 3:1\nc 1:1\n"), n_features=3)
    with pytest.raises(ValueError, match="n_features"):
        read_vectors(written(tmp_path, "a 1:1\n"), n_features=0)


def test_lines_are_counted_across_blocks(tmp_path):
    lines = [f"{i % 7} 1:{i} 2:0.5" for i in range(20_000)]
    lines[15_000] = "3 1:oops"
    for name, pack in (("a.svm", bytes), ("a.svm.gz", gzip.compress)):
        file = written(tmp_path, pack("\n".join(lines).encode()), name)
        with pytest.raises(FormatError, match="line 15001: the value is not a number: '1:oops'"):
            list(iter_vectors(file, chunk_bytes=1000))


def test_the_error_survives_pickling(tmp_path):
    with pytest.raises(FormatError) as caught:
        read_vectors(written(tmp_path, "a 1:x\n"))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value) and copy.line == 1


def test_take_selects_rows(tmp_path):
    vectors = read_vectors(written(tmp_path, "a 1:1\nb 2:2\nc 3:3\n")).take(np.array([2, 0]))
    assert vectors.labels.to_y().tolist() == ["c", "a"]
    assert vectors.X.toarray().tolist() == [[0, 0, 3], [1, 0, 0]]


@settings(deadline=None, max_examples=300)
@given(st.text("ab01:,. \t\r\n#-+e", max_size=60))
def test_any_text_is_parsed_or_refused(tmp_path_factory, text):
    _parse_or_refuse(written(tmp_path_factory.mktemp("fuzz"), text))


@pytest.mark.long
@settings(deadline=None, max_examples=20_000)
@given(st.one_of(st.text("ab01:,. \t\r\n#-+eqidn", max_size=200), st.binary(max_size=200).map(repr)))
def test_any_text_is_parsed_or_refused_long(tmp_path_factory, text):
    _parse_or_refuse(written(tmp_path_factory.getbasetemp(), text, "fuzz.svm"))


def _parse_or_refuse(file: Path) -> None:
    for options in ({}, {"allow_unlabelled": True, "zero_based": True}):
        try:
            vectors = read_vectors(file, **options)
        except FormatError as error:
            assert error.line is not None and 1 <= error.line <= file.read_bytes().count(b"\n") + 1
        else:
            vectors.X.check_format()
            assert len(vectors.labels) == vectors.X.shape[0]
            assert np.isfinite(vectors.X.data).all()

"""Text files: kernels agree with their twins, and every malformed file is an error with file and line."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abound.read import Documents, FormatError, TextBytes, Vectors, iter_documents, read_data, read_documents
from abound.read.sniff import content_format
from naive_read import split_marked, split_tabbed

TEXT = st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"]), max_size=12)
TSV_LABEL = st.text(
    st.characters(exclude_characters="\n\r\t, \ufeff", exclude_categories=["Cs"]), min_size=1, max_size=5
)
ENDS = st.sampled_from(["\n", "\r\n"])


def written(folder: Path, text: str | bytes, name: str) -> Path:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def rows_of(documents: Documents) -> list[tuple[list[str], str]]:
    labels = documents.labels
    names = [labels.classes[labels.ids[labels.indptr[i] : labels.indptr[i + 1]]].tolist() for i in range(len(labels))]
    return list(zip(names, documents.texts, strict=True))


@st.composite
def tsv_files(draw: st.DrawFn) -> str:
    lines = []
    for _ in range(draw(st.integers(1, 7))):
        labels = draw(st.lists(TSV_LABEL, min_size=1, max_size=3))
        comma = draw(st.sampled_from([",", ", ", " ,"]))
        lines.append(comma.join(labels) + "\t" + draw(TEXT) + draw(ENDS))
        lines.append(draw(st.sampled_from(["", "", "\n", "  \r\n"])))
    content = "".join(lines)
    return content if draw(st.booleans()) else content.rstrip("\n")


@settings(deadline=None, max_examples=150)
@given(tsv_files(), st.integers(1, 9), st.booleans())
def test_tsv_agrees_with_the_naive_twin(tmp_path_factory, text, chunk_rows, is_packed):
    pack = gzip.compress if is_packed else bytes
    file = written(tmp_path_factory.mktemp("tsv"), pack(text.encode()), "data.tsv")
    expected = split_tabbed(text)
    assert rows_of(read_documents(file)) == expected
    chunks = list(iter_documents(file, chunk_rows=chunk_rows))
    assert [row for chunk in chunks for row in rows_of(chunk)] == expected
    assert all(len(chunk) == chunk_rows for chunk in chunks[:-1])


@st.composite
def fasttext_files(draw: st.DrawFn) -> str:
    label = st.text(
        st.characters(exclude_characters="\n\r\t \ufeff", exclude_categories=["Cs"]), min_size=1, max_size=5
    )
    lines = []
    for _ in range(draw(st.integers(1, 7))):
        space = draw(st.sampled_from([" ", "  ", "\t"]))
        marked = ["__label__" + name for name in draw(st.lists(label, min_size=1, max_size=3))]
        lines.append(space.join([*marked, draw(TEXT)]) + draw(ENDS))
        lines.append(draw(st.sampled_from(["", "", "\n", " \n"])))
    return "".join(lines)


@settings(deadline=None, max_examples=150)
@given(fasttext_files(), st.integers(1, 9))
def test_fasttext_agrees_with_the_naive_twin(tmp_path_factory, text, chunk_rows):
    file = written(tmp_path_factory.mktemp("fasttext"), text, "data.ft")
    expected = split_marked(text)
    assert rows_of(read_documents(file)) == expected
    assert [row for chunk in iter_documents(file, chunk_rows=chunk_rows) for row in rows_of(chunk)] == expected


def test_many_spans_of_a_mapped_file(tmp_path, monkeypatch):
    monkeypatch.setattr("abound.read.line_formats.SPAN_BYTES", 100)
    lines = [f"c{i % 11}\t" + "word " * (i % 50) for i in range(500)]
    file = written(tmp_path, "\n".join(lines), "data.tsv")
    documents = read_documents(file)
    assert rows_of(documents) == split_tabbed("\n".join(lines))
    lines[400] = "no tab"
    with pytest.raises(FormatError, match="line 401: "):
        read_documents(written(tmp_path, "\n".join(lines), "data.tsv"))


ROWS = [(["a"], 'one, "two"'), (["b", "a"], "drei\nvier"), (["c"], "")]


def test_csv(tmp_path):
    file = tmp_path / "data.csv"
    with open(file, "w", newline="", encoding="utf-8-sig") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "text", "label"])
        for i, (labels, text) in enumerate(ROWS):
            writer.writerow([i, text, ",".join(labels)])
    assert rows_of(read_documents(file)) == ROWS
    assert [row for chunk in iter_documents(file, chunk_rows=2) for row in rows_of(chunk)] == ROWS
    assert read_documents(file, labelled=False).texts == [text for _, text in ROWS]
    assert read_documents(file, label_separator=None).labels.to_y().tolist() == ["a", "b,a", "c"]
    other = written(tmp_path, "what;topics\none;a|b\n", "other.csv")
    options = {"text_column": "what", "label_column": "topics", "delimiter": ";", "label_separator": "|"}
    assert rows_of(read_documents(other, **options)) == [(["a", "b"], "one")]


def test_a_csv_field_may_be_long_and_the_limit_is_put_back(tmp_path):
    limit = csv.field_size_limit()
    long = "word " * 100_000
    assert read_documents(written(tmp_path, f"label,text\na,{long}\n", "data.csv")).texts == [long]
    assert csv.field_size_limit() == limit


def test_jsonl(tmp_path):
    lines = [json.dumps({"text": text, "labels": labels}) for labels, text in ROWS]
    lines.insert(1, "")
    file = written(tmp_path, "\n".join(lines), "data.jsonl")
    assert rows_of(read_documents(file)) == ROWS
    assert [row for chunk in iter_documents(file, chunk_rows=1) for row in rows_of(chunk)] == ROWS
    other = written(tmp_path, '{"t": "one", "c": 7}\n{"t": "two", "c": ["x", 8]}\n', "other.ndjson")
    assert rows_of(read_documents(other, text_column="t", label_column="c")) == [(["7"], "one"), (["x", "8"], "two")]
    assert read_documents(other, text_column="t", labelled=False).texts == ["one", "two"]
    single = written(tmp_path, '{"text": "one", "label": "x"}\n', "single.jsonl")
    assert read_documents(single).labels.kind == "single"


def test_texts_without_labels(tmp_path):
    plain = written(tmp_path, "one\n\nthree\tmore", "data.txt")
    assert read_documents(plain, format="text", labelled=False).texts == ["one", "", "three\tmore"]
    assert read_documents(written(tmp_path, "one\ntwo\n", "b.txt"), labelled=False).texts == ["one", "two"]
    tsv = written(tmp_path, "a,,b\tone\ntwo\n\nc\tthree\tmore\n", "data.tsv")
    documents = read_documents(tsv, labelled=False)
    assert documents.texts == ["one", "two", "", "three\tmore"]
    assert len(documents.labels.ids) == 0 and len(documents.labels) == 4
    fasttext = written(tmp_path, "__label__a one\ntwo\n", "data.ft")
    assert read_documents(fasttext, labelled=False).texts == ["one", "two"]
    with pytest.raises(ValueError, match="labelled=False"):
        read_documents(plain, format="text")


def test_rows_without_label_on_request(tmp_path):
    for name, text in {
        "data.tsv": "\tone\na\ttwo\n",
        "data.ft": "one\n__label__a two\n",
        "data.csv": "label,text\n,one\na,two\n",
        "data.jsonl": '{"text": "one"}\n{"text": "two", "label": "a"}\n',
    }.items():
        documents = read_documents(written(tmp_path, text, name), allow_unlabelled=True)
        assert rows_of(documents) == [([], "one"), (["a"], "two")]


def test_one_label_that_holds_the_separator(tmp_path):
    file = written(tmp_path, "a,b\tone\n", "data.tsv")
    assert read_documents(file, label_separator=None).labels.to_y().tolist() == ["a,b"]
    assert read_documents(written(tmp_path, "a;b\tone\n", "data.tsv"), label_separator=";").labels.to_y() == [
        ["a", "b"]
    ]
    for separator in ("", "ab", " ", "é"):
        with pytest.raises(ValueError, match="label_separator"):
            read_documents(file, label_separator=separator)


MALFORMED = {
    "no tab": ("data.tsv", "a\tone\nb two\n", 2, "no tab"),
    "missing label": ("data.tsv", "a\tone\n\ttwo\n", 2, "label is missing"),
    "blank label": ("data.tsv", "a\tone\n  \ttwo\n", 2, "label is missing"),
    "empty label": ("data.tsv", "a\tone\n\na,,b\ttwo\n", 3, "empty label"),
    "wrong encoding in text": ("data.tsv", b"a\tone\nb\tt\xe4wo\n", 2, "UTF-8"),
    "wrong encoding in label": ("data.tsv", b"a\tone\nb\xff\ttwo\n", 2, "UTF-8"),
    "overlong encoding": ("data.tsv", b"a\tone\nb\t\xc0\xaf\n", 2, "UTF-8"),
    "empty file": ("data.tsv", "", 1, "empty"),
    "blank file": ("data.tsv", "\n\n", 1, "empty"),
    "utf-16": ("data.tsv", "a\tone\n".encode("utf-16"), 1, "UTF-"),
    "fasttext missing label": ("data.ft", "__label__a one\ntwo\n", 2, "label is missing"),
    "fasttext empty label": ("data.ft", "__label__a one\n__label__ two\n", 2, "empty label"),
    "fasttext encoding": ("data.ft", b"__label__a one\n__label__b \xff\n", 2, "UTF-8"),
    "fasttext empty file": ("data.ft", "", 1, "empty"),
    "csv column": ("data.csv", "topic,text\na,one\n", 1, "no column 'label' or 'labels'"),
    "csv text column": ("data.csv", "label,words\na,one\n", 1, "no column 'text'"),
    "csv field count": ("data.csv", 'label,text\na,"on\ne"\na,b,c\n', 4, "3 fields"),
    "csv missing label": ("data.csv", "label,text\na,one\n,two\n", 3, "label is missing"),
    "csv empty label": ("data.csv", 'label,text\n"a,",one\n', 2, "empty label"),
    "csv quotes": ("data.csv", 'label,text\na,one\nb,"two\n', 3, "not CSV"),
    "csv encoding": ("data.csv", b"label,text\na,\xff\n", 2, "UTF-8"),
    "csv empty file": ("data.csv", "", 1, "empty"),
    "csv header alone": ("data.csv", "label,text\n", 1, "empty"),
    "jsonl syntax": ("data.jsonl", '{"text": "one", "label": "a"}\n{"text": \n', 2, "not JSON"),
    "jsonl depth": ("data.jsonl", "[" * 200_000 + "\n", 1, "not JSON"),
    "jsonl no object": ("data.jsonl", '{"text": "one", "label": "a"}\n[1]\n', 2, "object"),
    "jsonl no text": ("data.jsonl", '\n{"label": "a"}\n', 2, "'text' is missing"),
    "jsonl missing label": ("data.jsonl", '{"text": "one"}\n', 1, "label is missing"),
    "jsonl empty label": ("data.jsonl", '{"text": "one", "labels": ["a", ""]}\n', 1, "empty label"),
    "jsonl label type": ("data.jsonl", '{"text": "one", "label": 1.5}\n', 1, "a label must be"),
    "jsonl surrogate": ("data.jsonl", '{"text": "\\ud800", "label": "a"}\n', 1, "surrogate"),
    "jsonl encoding": ("data.jsonl", b'{"text": "one", "label": "a"}\n{"text": "\xff"}\n', 2, "UTF-8"),
    "jsonl empty file": ("data.jsonl", "", 1, "empty"),
    "unknown format": ("data.txt", "some words\n", 1, "cannot tell the format"),
}


@pytest.mark.parametrize("name, text, line, message", MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("read", [read_documents, lambda file: list(iter_documents(file, chunk_rows=1))])
def test_malformed_files_name_file_and_line(tmp_path, name, text, line, message, read):
    file = written(tmp_path, text, name)
    with pytest.raises(FormatError, match=message) as caught:
        read(file)
    assert str(caught.value).startswith(f"{file}, line {line}: ")


@pytest.mark.parametrize(
    "line, expected",
    [
        ("3 5 2", "vectors"),
        ("3 5", "vectors"),
        ("a,b 1:0.5 7:-2e3", "vectors"),
        ("a, b 1:0.5", "vectors"),
        (" 1:0.5", "vectors"),
        ("a 1:1 # with a comment", "vectors"),
        ("# comment\n\na 1:1", "vectors"),
        ("a " + "1234567:0.123456 " * 5000, "vectors"),
        ("__label__a words", "fasttext"),
        ('{"text": 1}', "jsonl"),
        ("a\tsome words", "tsv"),
        ("a\tmeet at 10:30 or so", "tsv"),
        ("meet at 10:30", None),
        ("10:30 meeting", None),
        ("some words", None),
        ("word", None),
        ("", None),
    ],
)
def test_the_first_line_tells_the_format(line, expected):
    assert content_format(line.encode()) == expected


def test_one_door(tmp_path):
    vectors = read_data(written(tmp_path, "a 1:1\nb 3:1\n", "data.txt"), n_features=4)
    assert isinstance(vectors, Vectors) and vectors.X.shape == (2, 4)
    assert len(read_data(written(tmp_path, "1:1\n", "data.svm"), labelled=False)) == 1
    documents = read_data(written(tmp_path, "a\tone\n", "data"))
    assert isinstance(documents, Documents) and documents.texts == ["one"]
    assert read_data(written(tmp_path, "one\ntwo\n", "data.txt"), labelled=False).texts == ["one", "two"]
    assert read_data(written(tmp_path, "1:1 2:3\n", "data.txt"), labelled=False, format="text").texts == ["1:1 2:3"]
    with pytest.raises(ValueError, match="builtin:icd10"):
        read_data("builtin:nothing")
    with pytest.raises(ValueError, match="format"):
        read_data(tmp_path / "data", format="xml")


def test_text_bytes_behave_as_a_sequence():
    texts = ["", "größe", "a", "猫"]
    held = TextBytes.from_strings(texts)
    assert len(held) == 4 and list(held) == texts == held.to_list() == [held[i] for i in range(4)]
    assert held[-1] == "猫"
    assert list(held.take([3, 1])) == ["猫", "größe"]
    assert list(held.take([])) == []
    assert list(held.take(np.array([True, False, True, False]))) == ["", "a"]
    assert held.take([0]).buffer is not None and held.n_bytes == len("".join(texts).encode())
    assert TextBytes.from_strings(held) is held
    for array in (held.buffer, held.begins, held.ends):
        assert not array.flags.writeable
    joined = TextBytes.join([held.take([1]), TextBytes.from_strings(["x"]), held.take([3, 0])])
    assert list(joined) == ["größe", "x", "猫", ""]
    assert TextBytes.join([held.take([1]), held.take([2])]).buffer.ctypes.data == held.buffer.ctypes.data
    assert list(TextBytes.join([held.take([]), TextBytes.from_strings([])])) == []


def test_text_bytes_refuse_what_they_cannot_hold():
    with pytest.raises(TypeError, match="text 1 is int"):
        TextBytes.from_strings(["a", 3])
    with pytest.raises(ValueError, match="text 1 cannot be written as UTF-8"):
        TextBytes.from_strings(["a", "\ud800"])
    with pytest.raises(TypeError, match="one str"):
        TextBytes.from_strings("abc")
    for begins, ends in (([0], [4]), ([-1], [2]), ([2], [1]), ([0, 1], [1])):
        with pytest.raises(ValueError, match="begins and ends"):
            TextBytes(np.frombuffer(b"abc", np.uint8), begins, ends)


def test_documents_of_strings():
    documents = Documents.of(["one", "two", "three"], ["b", "a", "b"])
    part = documents.take(np.array([2, 1]))
    assert part.texts == ["three", "two"] and part.labels.to_y().tolist() == ["b", "a"]
    assert len(Documents.of(["one"]).labels) == 1
    with pytest.raises(ValueError, match="2 texts"):
        Documents.of(["one", "two"], ["a"])


def test_import_is_light():
    import subprocess

    code = "import sys, abound.read; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="nothing"):
        _ = __import__("abound.read").read.nothing


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=40), st.sampled_from(["data.tsv", "data.ft", "data.csv", "data.jsonl"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content, name):
    _read_or_refuse(written(tmp_path_factory.mktemp("fuzz"), content, name))


@pytest.mark.long
@settings(deadline=None, max_examples=20_000)
@given(
    st.one_of(st.binary(max_size=60), st.text('ab_lel{}"t:,. \t\r\n', max_size=60).map(str.encode)),
    st.sampled_from(["data.tsv", "data.ft", "data.csv", "data.jsonl"]),
)
def test_any_bytes_are_read_or_refused_long(tmp_path_factory, content, name):
    _read_or_refuse(written(tmp_path_factory.getbasetemp(), content, name))


def _read_or_refuse(file: Path) -> None:
    for options in ({}, {"allow_unlabelled": True}, {"labelled": False}):
        try:
            documents = read_documents(file, **options)
        except FormatError as error:
            assert error.line is not None and 1 <= error.line <= file.read_bytes().count(b"\n") + 1
        else:
            assert len(documents.texts) == len(documents.labels) > 0

"""Readers take a column whose rows belong together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from abound.read.data import read_data
from abound.read.datasets import load_dataset
from abound.read.documents import Documents, iter_documents, read_documents
from abound.read.errors import FormatError

CELL = st.text("abé ", max_size=4)
ROWS = st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=12)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.integers(3, 4), st.sampled_from(["\n", "\r\n"]), st.integers(1, 5))
def test_tsv_columns_equal_splitting_lines(tmp_path: Path, rows: Any, column: int, end: str, chunk: int) -> None:
    text = "".join(f"label\t{chr(9).join(row)}{end}" for row in rows)
    file = tmp_path / "rows.tsv"
    file.write_bytes(text.encode())
    expected = [row[column - 2].strip() or None for row in rows]
    found = read_documents(file, group_column=column)
    assert found.texts == [row[0] for row in rows]
    assert found.groups is not None and found.groups.tolist() == expected
    pieces = list(iter_documents(file, group_column=column, chunk_rows=chunk))
    assert [group for piece in pieces for group in piece.groups] == expected  # type: ignore[union-attr]
    assert [text for piece in pieces for text in piece.texts] == found.texts


def test_without_a_group_column_the_text_keeps_its_tabs(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.tsv", "a\tone\ttwo\n")
    assert read_documents(file).texts == ["one\ttwo"] and read_documents(file).groups is None


def test_csv_and_jsonl(tmp_path: Path) -> None:
    table = write(tmp_path / "rows.csv", "label,text,who\na,t,p\nb,u, \n")
    for column in ("who", 3):
        groups = read_data(table, group_column=column).groups
        assert groups is not None and groups.tolist() == ["p", None]
    lines = write(tmp_path / "rows.jsonl", '{"label":"a","text":"t","who":3}\n{"label":"a","text":"t"}\n')
    groups = read_data(lines, group_column="who").groups
    assert groups is not None and groups.tolist() == ["3", None]


def test_folders_and_taking_rows(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", "a\tone\tp\nb\ttwo\tq\n")
    write(tmp_path / "test.tsv", "a\tone\tp\n")
    found = load_dataset(tmp_path, group_column=3)
    assert found.train.groups is not None and found.train.take(np.array([1])).groups == ["q"]  # type: ignore[comparison-overlap]
    assert found.test is not None and found.test.groups is not None
    part = read_data(tmp_path, part="test", group_column=3)
    assert isinstance(part, Documents) and part.texts == ["one"]


def test_rows_without_labels_may_lack_the_column(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.tsv", "a\tone\tp\nonly a text\nb\ttwo\n")
    found = read_documents(file, labelled=False, group_column=3)
    assert found.texts == ["one", "only a text", "two"]
    assert found.groups is not None and found.groups.tolist() == ["p", None, None]


@pytest.mark.parametrize(
    ("name", "content", "column", "message"),
    [
        ("a.tsv", "a\tone\tp\nb\ttwo\n", 3, "line 2: .*the group in column 3"),
        ("a.tsv", "a\tone\n", 2, "from 3 on"),
        ("a.tsv", "a\tone\n", "who", "from 3 on"),
        ("a.csv", "label,text\na,t\n", "who", "no column 'who'"),
        ("a.csv", "label,text\na,t\n", 3, "no column '3'"),
        ("a.jsonl", '{"label":"a","text":"t","who":[1]}\n', "who", "line 1: a group must be"),
        ("a.ft", "__label__a one\n", 3, "'fasttext' has no columns"),
        ("a.svm", "1 1:1\n", 3, "no columns to group by"),
    ],
)
def test_errors_say_what_is_wrong(tmp_path: Path, name: str, content: str, column: Any, message: str) -> None:
    with pytest.raises((FormatError, ValueError), match=message):
        read_data(write(tmp_path / name, content), group_column=column)


def test_sets_without_columns_refuse_groups(tmp_path: Path) -> None:
    write(tmp_path / "train.svm", "1 1:1\n")
    with pytest.raises(ValueError, match="have no columns to group by"):
        load_dataset(tmp_path, group_column=3)
    with pytest.raises(ValueError, match="no columns to group by"):
        read_data("builtin:icd10", group_column=3)

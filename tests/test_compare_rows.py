"""The file of rows: whole lines or none, found again by key."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from abound.compare.experiment import CLOCK_FIELDS, Experiment, without_clock
from abound.compare.rows import RowFile

ROWS = [{"key": f"{i:016x}", "R1": i / 7, "label": "ä\n{"} for i in range(3)]


def written(path: Path) -> bytes:
    with RowFile(path) as rows:
        for row in ROWS:
            rows.append(dict(row))
    return path.read_bytes()


def test_rows_come_back(tmp_path: Path) -> None:
    data = written(tmp_path / "rows.jsonl")
    assert data.count(b"\n") == len(ROWS)
    with RowFile(tmp_path / "rows.jsonl") as rows:
        assert len(rows) == len(ROWS)
        assert [rows.get(str(row["key"])) for row in ROWS] == ROWS
        assert rows.get("nobody") is None


def test_a_torn_last_line_is_cut_off_wherever_it_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    data = written(path)
    whole = data.index(b"\n", data.index(b"\n") + 1) + 1
    for end in range(whole, len(data)):
        path.write_bytes(data[:end])
        with RowFile(path) as rows:
            assert len(rows) == 2
            rows.append(dict(ROWS[2]))
        assert path.read_bytes() == data


def test_the_newest_row_counts(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowFile(path) as rows:
        rows.append({"key": "a", "R1": 1})
        rows.append({"key": "a", "R1": 2})
        assert rows.get("a") == {"key": "a", "R1": 2}
    with RowFile(path) as rows:
        assert rows.get("a") == {"key": "a", "R1": 2}


@pytest.mark.parametrize("content", ["label\ttext\n", "no line end", '{"other": 1}\n', "[1]\n", '{"k": 1'])
def test_a_file_of_something_else_is_refused_and_left_alone(content: str, tmp_path: Path) -> None:
    path = tmp_path / "train.tsv"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"train\.tsv, line 1: no row of a comparison"):
        RowFile(path)
    assert path.read_text() == content


def test_two_comparisons_do_not_write_one_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="files are locked on POSIX only")
    with RowFile(tmp_path / "rows.jsonl"), pytest.raises(ValueError, match="another comparison"):
        RowFile(tmp_path / "rows.jsonl")


def test_a_failed_write_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    with RowFile(path) as rows:
        rows.append(dict(ROWS[0]))
        before = path.read_bytes()
        with monkeypatch.context() as patch:

            def full(file: int) -> None:
                raise OSError("no space left")

            patch.setattr("os.fsync", full)
            with pytest.raises(OSError, match="no space"):
                rows.append(dict(ROWS[1]))
        assert path.read_bytes() == before
        rows.append(dict(ROWS[2]))
    assert [json.loads(line)["key"] for line in path.read_bytes().splitlines()] == [ROWS[0]["key"], ROWS[2]["key"]]


def test_infinite_figures_are_null(tmp_path: Path) -> None:
    with RowFile(tmp_path / "rows.jsonl") as rows:
        rows.append({"key": "a", "HR": float("inf")})
    assert json.loads((tmp_path / "rows.jsonl").read_text()) == {"key": "a", "HR": None}


def test_keys_tell_experiments_apart() -> None:
    one = Experiment("name", "f", "choose", 0, "pa", {"C": 1.0}, {"ngram_range": (1, 2)}, 0, 2)
    assert one.key == replace(one, data="the same file elsewhere").key
    assert one.key == replace(one, text={"ngram_range": [1, 2]}).key
    others = [
        replace(one, fingerprint="g"),
        replace(one, stage="test"),
        replace(one, split=1),
        replace(one, learner="ff"),
        replace(one, parameters={"C": 0.1}),
        replace(one, text={}),
        replace(one, seed=1),
        replace(one, jobs=1),
    ]
    assert len({one.key, *(other.key for other in others)}) == len(others) + 1


def test_what_depends_on_the_clock_is_named() -> None:
    row = {"key": "a", "measures": {"R1": 0.5}, "anytime": [{"ratio": 0.1, "seconds": 3.0}], "history": []}
    row |= dict.fromkeys(CLOCK_FIELDS, 1)
    assert without_clock(row) == {"key": "a", "measures": {"R1": 0.5}, "anytime": [{"ratio": 0.1}], "history": []}

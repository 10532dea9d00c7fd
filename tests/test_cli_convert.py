"""`abound convert`, and the other commands on what it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from abound.store import open_arrays
from cli_data import make_rows, run, run_json, write_svm, write_tsv


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    return write_svm(tmp_path / "train.svm", make_rows())


@pytest.fixture
def rows(vectors: Path) -> Path:
    run("convert", vectors, vectors.with_suffix(".rows"))
    return vectors.with_suffix(".rows")


def test_all_commands_take_the_file_in_place_of_the_vectors(vectors: Path, rows: Path, tmp_path: Path) -> None:
    for name, data in (("one", vectors), ("other", rows)):
        run("train", data, "--learner", "ff", "--model", tmp_path / name)
        run("learn", tmp_path / name, data)
    one, other = open_arrays(tmp_path / "one"), open_arrays(tmp_path / "other")
    assert list(one) == list(other)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert run("predict", tmp_path / "one", vectors).stdout == run("predict", tmp_path / "one", rows).stdout
    measured = [run_json("evaluate", tmp_path / "one", data)["measures"] for data in (vectors, rows)]
    assert measured[0] == measured[1]


def test_it_reports_what_it_wrote(vectors: Path, tmp_path: Path) -> None:
    report = run_json("convert", vectors, tmp_path / "out.rows")
    assert report["rows"] == 120
    assert report["bytes"] == (tmp_path / "out.rows").stat().st_size
    assert "120 rows" in run("convert", vectors, tmp_path / "out.rows").stdout


@pytest.mark.parametrize("learner", ["ff", "pa", "label-tree", "ind"])
def test_a_budget_is_kept_or_refused_before_work(rows: Path, tmp_path: Path, learner: str) -> None:
    model = tmp_path / "model"
    refused = run("train", rows, "--learner", learner, "--memory", "1MB", "--model", model, code=1)
    assert "would take about" in refused.stderr
    assert not model.exists()
    run("train", rows, "--learner", learner, "--memory", "20GB", "--model", model)
    assert model.exists()


def test_a_learner_without_a_budget_and_a_size_that_is_none_are_wrong_usage(rows: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    run("train", rows, "--learner", "frequency", "--memory", "1GB", "--model", model, code=2)
    run("train", rows, "--learner", "ff", "--memory", "much", "--model", model, code=2)
    run("convert", rows, tmp_path / "again.rows", "--read", "text_column=a", code=2)


def test_texts_folders_and_damage_are_refused(rows: Path, tmp_path: Path) -> None:
    texts = write_tsv(tmp_path / "train.tsv", make_rows())
    assert "holds texts" in run("convert", texts, tmp_path / "out.rows", code=1).stderr
    assert "is a folder" in run("convert", rows, tmp_path, code=1).stderr
    assert "does not exist" in run("convert", rows, tmp_path / "none" / "out.rows", code=1).stderr
    content = bytearray(rows.read_bytes())
    content[-1] ^= 1
    rows.write_bytes(content)
    refused = run("train", rows, "--model", tmp_path / "model", code=1)
    assert "checksum" in refused.stderr
    assert not (tmp_path / "out.rows").exists()


def test_a_model_of_texts_refuses_rows(rows: Path, tmp_path: Path) -> None:
    texts = write_tsv(tmp_path / "train.tsv", make_rows())
    run("train", texts, "--model", tmp_path / "model")
    assert "holds vectors" in run("predict", tmp_path / "model", rows, code=1).stderr

from __future__ import annotations

from pathlib import Path

import pytest

from abound.learn.registry import LEARNERS
from abound.read.datasets import load_dataset
from abound.serve.demo import SETTINGS, TEXT
from abound.serve.training import checked_learner, checked_vectoriser
from cli_data import run, run_json

pytest.importorskip("simple_icd_10_cm", reason="builtin:icd10 needs the package simple-icd-10-cm")


def test_demo_prints_one_table() -> None:
    found = run_json("demo", "--learners", "frequency,ff")
    frequency, ff = found["learners"]
    assert (frequency["learner"], ff["learner"]) == ("frequency", "ff")
    assert ff["R1"] > 0.48 > 0.01 > frequency["R1"]
    assert ff["tree_loss"] < frequency["tree_loss"]
    assert ff["d"] < 25
    for name in ("R5", "HR", "macro_f1", "train_seconds", "W", "model_bytes"):
        assert ff[name] > 0
    assert found["best"] == "ff"
    for example in found["examples"]:
        assert 1 <= len(example["classes"]) <= 3
        assert all(label and title and score > 0 for label, title, score in example["classes"])


def test_demo_settings_are_valid() -> None:
    assert len(SETTINGS) <= 8
    assert set(SETTINGS) <= set(LEARNERS)
    for name, parameters in SETTINGS.items():
        checked_learner(name, parameters)
    checked_vectoriser(TEXT)


def test_builtin_set_as_files(tmp_path: Path) -> None:
    report = run_json("data", "icd10", "--output", tmp_path / "icd10")
    assert set(report["files"]) == {"train.tsv", "test.tsv", "hierarchy.txt", "labels.txt"}
    dataset = load_dataset(tmp_path / "icd10")
    assert len(dataset.train) > 90_000
    assert dataset.taxonomy is not None and dataset.taxonomy.kind == "tree"
    assert dataset.titles["A00"] == "Cholera"


def test_builtin_sets_as_data(tmp_path: Path) -> None:
    run("train", "builtin:icd10", "--learner", "frequency", "--model", tmp_path / "model")
    official = run_json("evaluate", tmp_path / "model", "builtin:icd10")
    random = run_json("evaluate", tmp_path / "model", "builtin:icd10:random")
    assert 12_000 < official["rows"] < 13_000 < random["rows"]
    assert "tree_loss" in official["measures"]

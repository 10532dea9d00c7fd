"""Rows that belong together stay on one side: of a comparison's splits, and of what a learner holds out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abound.compare.splits import choosing_split, final_split, fingerprint, joined
from abound.learn.held_out import hold_out
from abound.read.datasets import Dataset
from abound.read.documents import Documents, read_documents
from cli_data import run, run_json

N_GROUPS, COPIES = 60, 4


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """Texts in four copies each, labels by the toss of a coin: who has seen a copy knows the label, nobody else."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, N_GROUPS)
    lines = [f"{labels[i]}\tcommon w{i}a w{i}b w{i}c\t p{i}\n" for i in range(N_GROUPS)] * COPIES
    file = tmp_path / "copies.tsv"
    file.write_text("".join(lines))
    return file


def sides(halves: Any) -> tuple[set[str], set[str]]:
    return set(halves.fit.groups), set(halves.held.groups)


def test_splits_of_a_comparison_keep_groups_together(copies: Path) -> None:
    train: Any = read_documents(copies, group_column=3)
    dataset = Dataset("copies", train, None, None, None, {})
    for split in range(3):
        halves = final_split(dataset, split, 3, 0)
        fit, held = sides(halves)
        assert held and not fit & held and len(halves.fit) + len(halves.held) == N_GROUPS * COPIES
    fit, held = sides(choosing_split(dataset, 1, 0))
    assert held and not (fit & held) and not (fit | held) & sides(final_split(dataset, 0, 1, 0))[1]
    without = replace(train, groups=None)
    assert fingerprint(dataset) != fingerprint(replace(dataset, train=without))
    both = joined([train, without])
    assert both.groups is not None
    assert both.groups.tolist() == [*train.groups.tolist(), *[None] * len(without)]


def test_a_comparison_by_group_is_not_fooled_by_copies(copies: Path) -> None:
    options = ("--learners", "ind", "--jobs", 1, "--report", copies.with_suffix(".html"))
    without = run_json("compare", copies, *options, "--read", "group_column=3", "--splits", 2)
    assert "--group" not in without["command"]
    assert without["learners"][0]["R1"] < 0.8
    fooled = run_json("compare", copies, *options)
    assert fooled["learners"][0]["R1"] > 0.9
    by_group = run_json("compare", copies, *options, "--group", 3)
    assert by_group["learners"][0]["R1"] < 0.8 and "--group 3" in by_group["command"]
    assert "Rows of a group are on one side" in copies.with_suffix(".html").read_text()


def test_what_a_learner_holds_out_keeps_groups_together(copies: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    options = ("--learner", "pa", "--seed", 0, "--model", model, "--validation-fraction", 0.3)
    assert run_json("train", copies, *options)["history"][-1]["R1"] > 0.9
    assert run_json("train", copies, *options, "--group", 3)["history"][-1]["R1"] < 0.8
    assert run_json("evaluate", model, copies, "--group", 3)["measures"]["R1"] > 0.7


def test_probabilities_and_cuts_are_learned_from_whole_groups(
    copies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Any] = []

    def watched(*arguments: Any) -> Any:
        drawn = hold_out(*arguments)
        held.append(drawn[1])
        return drawn

    monkeypatch.setattr("abound.learn.confidence.hold_out", watched)
    for learner, setting in (("svm", "calibrate=platt"), ("pa", "calibrate=isotonic")):
        run("train", copies, "--learner", learner, "--set", setting, "--model", tmp_path / "model", "--group", 3)
    groups = read_documents(copies, group_column=3).groups
    assert groups is not None and len(held) == 2
    for rows in held:
        assert set(groups[rows]).isdisjoint(np.delete(groups, rows))


@given(st.lists(st.sampled_from("abcdefg"), min_size=4, max_size=40), st.integers(0, 99))
def test_hold_out(names: list[str], seed: int) -> None:
    groups, rows = np.array(names), np.arange(len(names))
    n_held = max(1, len(rows) // 3)
    if len(set(names)) < 2:
        with pytest.raises(ValueError, match="two groups are needed"):
            hold_out(rows, n_held, np.random.default_rng(seed), groups)
        return
    learned, held = hold_out(rows, n_held, np.random.default_rng(seed), groups)
    assert sorted([*learned, *held]) == rows.tolist() and len(held) and len(learned)
    assert not set(groups[learned]) & set(groups[held])
    learned, held = hold_out(rows, n_held, np.random.default_rng(seed), None)
    assert sorted([*learned, *held]) == rows.tolist() and len(held) == n_held


def test_what_has_no_columns_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.svm").write_text("a 1:1\nb 2:1\n")
    for data, said in ((tmp_path / "rows.svm", "no columns to group by"), ("builtin:icd10", "has no parameter")):
        assert said in run("train", data, "--group", "who", "--model", tmp_path / "m", code=1).stderr
    (tmp_path / "rows.tsv").write_text("a\tb\tc\n" * 30)
    assert "column 2 the text" in run("train", tmp_path / "rows.tsv", "--group", 2, "-m", tmp_path / "m", code=1).stderr
    options = ("--group", 3, "--read", "group_column=4", "--model", tmp_path / "m")
    assert "names another column" in " ".join(run("train", tmp_path / "rows.tsv", *options, code=2).stderr.split())
    assert "two groups are needed" in run("compare", tmp_path / "rows.tsv", "--group", 3, code=1).stderr


def test_a_folder_has_groups_too(copies: Path) -> None:
    folder = copies.parent / "folder"
    folder.mkdir()
    copies.rename(folder / "train.tsv")
    documents = Documents.of(["common"], ["0"])
    assert documents.groups is None
    found = run_json("compare", folder, "--learners", "ind", "--jobs", 1, "--group", 3)
    assert found["learners"][0]["R1"] < 0.8

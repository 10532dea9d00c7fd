"""The protocol: what is tried, chosen and tested, and that a rerun runs nothing twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abound.compare import launch
from abound.compare.budget import Budget
from abound.compare.experiment import Experiment, without_clock
from abound.compare.grid import GRID, needs_choosing, settings_of
from abound.compare.launch import Limits
from abound.compare.measuring import measure
from abound.compare.prepared import load, prepare, save
from abound.compare.protocol import Plan, best_setting
from abound.compare.rows import RowFile
from abound.compare.splits import Halves, choosing_split, compact, final_split, fingerprint, joined
from abound.learn.registry import LEARNERS, make_learner
from abound.measure import evaluate
from abound.read.datasets import Dataset
from abound.read.documents import Documents
from abound.read.formats import read_vectors
from cli_data import make_rows, write_svm
from compare_data import compare_here, make_dataset

PLAN = Plan(("frequency", "ff", "perceptron", "svm"), time_limit=3600.0)


def test_rows_hold_all_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compare_here(monkeypatch, make_dataset(), PLAN)
    assert [contender.learner for contender in found.contenders] == list(PLAN.learners)
    for contender in found.contenders:
        assert contender.error is None and not contender.untried
        (row,) = contender.tests
        assert {"R1", "R5", "R10", "MRR", "HR", "macro_f1", "tree_loss"} <= set(row["measures"])
        assert {"vectorise", "vectorise_held", "warm_up", "train", "rank", "wall"} == set(row["timings"])
        assert row["sizes"]["fit_rows"] + row["sizes"]["held_rows"] == 240
        assert row["W"] >= 0 and row["model_bytes"] > 100 and row["memory"]["peak"] > 0
        assert row["versions"]["abound"] and row["machine"]["cores"] and row["tail"] and row["date"]
    ff = found.contenders[1]
    assert [row["experiment"]["parameters"] for row in ff.tried] == settings_of("ff")
    assert all(len(row["history"]) == 4 and "R1" in row["history"][0] for row in ff.tried)
    assert ff.chosen == best_setting(ff.tried)
    assert found.contenders[0].tried == []


def test_a_rerun_runs_nothing_and_a_part_is_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path, dataset = tmp_path / "rows.jsonl", make_dataset()
    whole = compare_here(monkeypatch, dataset, PLAN, path)
    data = path.read_bytes()

    def refuse(*args: Any) -> Any:
        raise AssertionError("nothing is left to run")

    with monkeypatch.context() as patch:
        patch.setattr("compare_data.answer_here", refuse)
        again = compare_here(patch, dataset, PLAN, path)
    assert path.read_bytes() == data
    assert [c.tests for c in again.contenders] == [c.tests for c in whole.contenders]
    lines = data.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:50])
    compare_here(monkeypatch, dataset, PLAN, path)
    with RowFile(path) as rows:
        for contender in whole.contenders:
            for row in (*contender.tried, *contender.tests):
                other = rows.get(row["key"])
                assert other is not None and without_clock(other) == without_clock(row)


def test_measures_of_passes_are_those_of_shorter_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run with four passes tells what one, two and three would have given."""
    dataset = make_dataset()
    prepared = prepare(choosing_split(dataset, 1, 0), {}, None, 1)
    for learner in ("ff", "perceptron", "pa"):
        whole = measure(prepared, learner, {"passes": 3}, seed=0, jobs=1, for_test=False)
        for passes in (1, 2):
            less = measure(prepared, learner, {"passes": passes}, seed=0, jobs=1, for_test=False)
            assert less["measures"]["R1"] == whole["history"][passes - 1]["R1"]


def test_measures_are_those_of_the_library() -> None:
    dataset = make_dataset(several=True)
    prepared = prepare(final_split(dataset, 0, 1, 0), {}, None, 1)
    row = measure(prepared, "svm", {"C": 1.0}, seed=0, jobs=1, for_test=True)
    model: Any = make_learner("svm", C=1.0, random_state=0).fit(prepared.X, prepared.labels)
    ids = model._rank(model._rows(prepared.held_X), 50, None).ids
    expected = evaluate(ids, prepared.truth, n_classes=prepared.facts.classes)
    assert {name: row["measures"][name] for name in ("R1", "MRR", "P@1", "nDCG@5")} == {
        name: expected[name] for name in ("R1", "MRR", "P@1", "nDCG@5")
    }
    assert row["measures"]["PSP@1"] > 0


def test_prepared_rows_come_back(tmp_path: Path) -> None:
    dataset = make_dataset(evil=True)
    prepared = prepare(final_split(dataset, 0, 1, 0), {"ngram_range": (1, 2)}, dataset.taxonomy, 1)
    save(prepared, tmp_path)
    again = load(tmp_path)
    assert (prepared.X != again.X).nnz == 0 and (prepared.held_X != again.held_X).nnz == 0
    assert prepared.labels.to_y().tolist() == again.labels.to_y().tolist()
    assert prepared.truth.to_y().tolist() == again.truth.to_y().tolist()
    assert again.taxonomy is not None and again.taxonomy.names.tolist() == dataset.taxonomy.names.tolist()  # type: ignore[union-attr]
    assert again.facts == prepared.facts


def test_splits_are_the_same_for_all_and_do_not_overlap() -> None:
    dataset = make_dataset(200)
    texts: Any = dataset.train
    ids = Dataset("ids", Documents.of([str(i) for i in range(200)], texts.labels.to_y()), None, None, None, {})
    seen = set()
    for split in range(3):
        halves: Any = final_split(ids, split, 3, 0)
        again: Any = final_split(ids, split, 3, 0)
        assert halves.held.texts == again.held.texts
        assert sorted(halves.fit.texts + halves.held.texts, key=int) == texts_of(ids)
        seen.add(tuple(halves.held.texts))
    assert len(seen) == 3
    choosing: Any = choosing_split(ids, 3, 0)
    test: Any = final_split(ids, 0, 3, 0)
    assert not set(choosing.fit.texts + choosing.held.texts) & set(test.held.texts)


def texts_of(dataset: Dataset) -> list[str]:
    rows: Any = dataset.train
    return list(rows.texts)


def test_own_parts_are_kept() -> None:
    parts = [make_dataset(60, seed=seed).train for seed in range(3)]
    dataset = Dataset("own", parts[0], parts[1], parts[2], None, {})
    assert final_split(dataset, 0, 1, 0) == Halves(parts[0], parts[2])
    assert choosing_split(dataset, 1, 0) == Halves(parts[0], parts[1])
    several = final_split(dataset, 0, 2, 0)
    assert (len(several.fit), len(several.held)) == (120, 60)


def test_vectors_and_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = write_svm(tmp_path / "rows.svm", make_rows(120))
    dataset = Dataset("vectors", read_vectors(file), None, None, None, {})
    found = compare_here(monkeypatch, dataset, replace(PLAN, learners=("svm",), n_splits=2))
    assert found.n_splits == 2 and len(found.contenders[0].tests) == 2
    both = joined([dataset.train, dataset.train])
    assert len(both) == 240 and compact(both.labels).n_classes == 5


def test_the_fingerprint_sees_every_change() -> None:
    dataset = make_dataset(60)
    documents: Any = dataset.train
    texts, y = list(documents.texts), documents.labels.to_y()
    found = {fingerprint(dataset), fingerprint(replace(dataset, taxonomy=None))}
    found.add(fingerprint(replace(dataset, train=Documents.of([*texts[:-1], "other"], y))))
    found.add(fingerprint(replace(dataset, train=Documents.of(texts, [*y[:-1], "other"]))))
    found.add(fingerprint(replace(dataset, test=dataset.train)))
    assert len(found) == 5
    assert fingerprint(dataset) == fingerprint(make_dataset(60)) == fingerprint(replace(dataset, name="other"))


def test_too_few_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="5 rows are too few"):
        compare_here(monkeypatch, make_dataset(5), PLAN)


def test_the_grid_is_valid() -> None:
    for learner, settings in GRID.items():
        if learner in LEARNERS:
            for setting in settings:
                make_learner(learner, **setting)._check_parameters()
    assert not needs_choosing("frequency") and needs_choosing("svm") and needs_choosing("perceptron")


def test_time_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow learner tries less; what did not fit is named, and the test is run all the same."""
    costs = {"ff": 1.0, "svm": 30.0}

    def timed(experiment: Experiment, prepared: Path, facts: Any, limits: Limits, scratch: Path) -> dict[str, Any]:
        order.append((experiment.stage, experiment.learner))
        assert limits.seconds >= costs[experiment.learner]
        return {
            "key": experiment.key,
            "experiment": {"parameters": experiment.parameters},
            "error": None,
            "measures": {"R1": 0.5},
            "history": [],
            "timings": {"wall": costs[experiment.learner]},
        }

    order: list[tuple[str, str]] = []
    monkeypatch.setattr("abound.compare.protocol.run", timed)
    found = compare_here(monkeypatch, make_dataset(60), replace(PLAN, learners=("ff", "svm"), time_limit=120.0))
    assert order[:2] == [("choose", "ff"), ("choose", "svm")]
    ff, svm = found.contenders
    assert (len(ff.tried), len(svm.tried), len(svm.untried)) == (3, 2, 1)
    assert [len(contender.tests) for contender in found.contenders] == [1, 1]


def test_splits_without_time_are_left_out_for_all() -> None:
    budget = Budget(100.0, ["a", "b"])
    budget.test_done("a", 10.0)
    budget.test_done("b", 15.0)
    assert budget.splits_that_fit(10) == 4
    budget.spend_otherwise(60.0)
    assert budget.splits_that_fit(10) == 1


def test_unfinished_work_is_a_row_and_is_tried_again_with_more_time() -> None:
    row = {"error": {"kind": "time"}, "limits": {"seconds": 10.0, "memory": 100}}
    assert Limits(20.0, 100).may_help(row) and not Limits(11.0, 100).may_help(row)
    row["error"] = {"kind": "memory"}
    assert Limits(1.0, 200).may_help(row) and Limits(1.0, None).may_help(row) and not Limits(99.0, 100).may_help(row)
    row["error"] = {"kind": "failed"}
    assert not Limits(99.0, None).may_help(row)


def run_alone(tmp_path: Path, learner: str, parameters: dict[str, Any], limits: Limits) -> dict[str, Any]:
    dataset = make_dataset(60)
    prepared = prepare(final_split(dataset, 0, 1, 0), {}, dataset.taxonomy, 1)
    (tmp_path / "prepared").mkdir()
    save(prepared, tmp_path / "prepared")
    experiment = Experiment("trees", "f", "test", 0, learner, parameters)
    return launch.run(experiment, tmp_path / "prepared", prepared.facts, limits, tmp_path)


def test_a_process_measures_what_this_one_does(tmp_path: Path) -> None:
    row = run_alone(tmp_path, "perceptron", {"passes": 2}, Limits(300.0, 4 * 10**9))
    assert row["error"] is None, row["error"]
    here = measure(load(tmp_path / "prepared"), "perceptron", {"passes": 2}, seed=0, jobs=1, for_test=True)
    for name in ("measures", "W", "d", "model_bytes", "first", "confusions", "tail"):
        assert row[name] == (pytest.approx(here[name]) if name == "d" else here[name])
    assert row["limits"] == {"seconds": 300.0, "memory": 4 * 10**9}
    assert row["timings"]["wall"] > row["timings"]["train"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["prepared"]


def test_a_bad_parameter_is_an_error_in_the_row(tmp_path: Path) -> None:
    row = run_alone(tmp_path, "pa", {"C": -1.0}, Limits(300.0))
    assert row["error"]["kind"] == "failed" and "C=-1.0" in row["error"]["message"]
    assert "measures" not in row


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    row = run_alone(tmp_path, "frequency", {}, Limits(0.05))
    assert row["error"]["kind"] == "time" and "0 s" in row["error"]["message"]


def test_a_process_that_takes_too_much_memory_is_a_row(tmp_path: Path) -> None:
    row = run_alone(tmp_path, "frequency", {}, Limits(300.0, 40 * 2**20))
    assert row["error"]["kind"] in ("memory", "failed", "crash")


def test_ids_of_strange_labels_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = make_dataset(60).train, make_dataset(20, seed=5, evil=True).train
    dataset = Dataset("strange", train, None, test, None, {})
    found = compare_here(monkeypatch, dataset, replace(PLAN, learners=("svm",)))
    truth = found.truth()
    assert truth.n_classes == 7 and (np.asarray(truth.ids) == 6).any()
    assert found.contenders[0].tests[0]["measures"]["R1"] < 1

"""The comparison with other packages: what the adapters read, how they are measured, and the verdicts."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.exists(), reason="the benchmarks are not part of this copy")


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    names = {
        "files": "peers.files",
        "protocol": "peers.protocol",
        "driver": "against_peers",
        "results": "write_results",
    }
    return SimpleNamespace(**{short: importlib.import_module(name) for short, name in names.items()})


@pytest.fixture
def stage(modules):
    X = sp.csr_matrix(np.array([[0.6, 0, 0.8], [0, 1, 0], [1, 0, 0]], dtype=np.float32))
    task = importlib.import_module("tasks").Task(X, [["b", "a"], ["c"], []], X[:2], [["a"], ["unseen"]])
    return modules.files.stage_of(task, ["one two", "three", "none"], ["one", "three"])


def test_rows_without_labels_are_left_out_and_unseen_labels_have_no_column(stage):
    assert stage.X.shape == (2, 3)
    assert stage.Y.toarray().tolist() == [[1, 1, 0], [0, 0, 1]]
    assert stage.Y_test.toarray().tolist() == [[1, 0, 0], [0, 0, 0]]
    assert stage.texts == ["one two", "three"]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("train.txt", ["__label__0 __label__1 one two", "__label__2 three"]),
        ("test.txt", ["one", "three"]),
        ("train.plt.vw", ["0,1 | 0:0.6 2:0.8", "2 | 1:1"]),
        ("train.oaa.vw", ["1 | 0:0.6 2:0.8", "3 | 1:1"]),
        ("test.vw", [" | 0:0.6 2:0.8", " | 1:1"]),
        ("train.xmc", ["2 3 3", "0,1 0:0.6 2:0.8", "2 1:1"]),
    ],
)
def test_files_of_the_peers(modules, stage, tmp_path, name, lines):
    modules.files.write_file(stage, tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").splitlines() == lines
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_features_are_words_where_there_are_no_texts(modules, stage, tmp_path):
    modules.files.write_file(stage._replace(texts=None, test_texts=None), tmp_path / "train.txt")
    assert (tmp_path / "train.txt").read_text().splitlines() == ["__label__0 __label__1 f0 f2", "__label__2 f1"]


def test_words_are_those_of_the_vectoriser(modules):
    assert modules.files.words_of(["A small-cat, Été!"]) == ["a small cat été"]


def test_measures(modules):
    Y = sp.csr_matrix([[1, 1, 0], [0, 0, 1], [0, 0, 0]])
    ids = np.array([[1, 2, -1, -1, -1], [0, 2, -1, -1, -1], [-1, -1, -1, -1, -1]])
    assert modules.protocol.measured(ids, Y) == {"R1": pytest.approx(1 / 3), "R5": pytest.approx(2 / 3)}


def test_rankings(modules):
    ranked = modules.protocol.rank_linear(
        sp.csr_matrix([[1.0, 0], [0, 1]]), np.array([[1, 3, 2.0], [0, -1, 4]]), block=1
    )
    assert ranked.tolist() == [[1, 2, 0, -1, -1], [2, 0, 1, -1, -1]]
    assert modules.protocol.of_lists([[3], []]).tolist() == [[3, -1, -1, -1, -1], [-1] * 5]


def test_a_run_in_another_process(stage, modules, tmp_path):
    modules.files.write_matrices(stage, tmp_path)
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "peers.run", "sklearn", str(tmp_path)]
    command += [json.dumps({"estimator": "ComplementNB", "alpha": 1.0}), str(out)]
    subprocess.run(command, cwd=BENCHMARKS, check=True, timeout=120)
    found = json.loads(out.read_text())
    assert found["status"] == "measured"
    assert found["R1"] <= 0.5 <= found["R5"]


def test_verdicts(modules):
    def one(r1, seconds):
        return {"status": "measured", "R1": r1, "training s": seconds}

    found = {
        "abound ff": one(0.5, 1.0),
        "abound svm": one(0.6, 9.0),
        "LIBLINEAR": one(0.5, 2.0),
        "PECOS": one(0.55, 10),
    }
    found |= {"fastText": one(0.7, 50.0), "napkinXC": {"status": "not installed"}}
    told = modules.driver.verdicts(found)
    assert [holds for holds, _ in told] == [True, False, False]
    assert "abound ff" in told[0][1] and "0.50 of its time" in told[0][1]
    assert "abound svm" in told[1][1] and "PECOS" in told[1][1]
    assert told[2][1].startswith("none of ours is as accurate as fastText")


def test_what_is_missing_stands_first(modules):
    rows = [
        {"table": "Peers on x", "setting": {}, "finding": "holds: x: fine", "date": "2026"},
        {"table": "Peers on x", "setting": {}, "finding": "does not hold: x: too slow", "date": "2026"},
    ]
    assert modules.results.missing_lines(rows)[-2:] == ["- x: too slow", ""]
    assert modules.results.missing_lines(rows[:1]) == []


def test_peers_that_did_not_end_are_listed_by_data_set(modules):
    statuses = {
        "slow": "not finished in 9 s",
        "large": "failed: no memory",
        "one": "measured",
        "other": "not applicable",
    }
    rows = [
        {"table": table, "setting": {"system": system}, "figures": {"status": status}, "date": "2026"}
        for table in ("Choosing on x", "Peers on x")
        for system, status in statuses.items()
    ]
    assert modules.results.unmeasured_lines(rows)[-2:] == ["- x: slow (not finished in 9 s), large (failed)", ""]
    assert modules.results.unmeasured_lines(rows[: len(statuses)]) == []

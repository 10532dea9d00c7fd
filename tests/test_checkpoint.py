"""A training that is killed goes on where it was, and ends with the model it would have had."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import abound
from abound import (
    CommitteeClassifier,
    EMAClassifier,
    FeatureFocusClassifier,
    LinearClassifier,
    MMPClassifier,
    OOZClassifier,
    OutputCodeClassifier,
    PAClassifier,
    RecursiveClassifier,
    Taxonomy,
)
from abound.distribute import Serial
from abound.learn import checkpoint
from abound.learn.checkpoint import is_whole, keep_value, read_value
from abound.learn.checkpoint_run import RUN_FILE
from abound.learn.linear_solver import Edges, Outcome
from abound.learn.online import OnlineClassifier
from cli_data import run
from cluster_data import LEARNERS, assert_same_model, make_rows

PASSES = [
    EMAClassifier(passes=5),
    FeatureFocusClassifier(passes=5, validation_fraction=0.2),
    MMPClassifier(passes=5),
    OOZClassifier(passes=5),
    PAClassifier(passes=5, oversample=6, average=True),
    PAClassifier(passes=9, patience=1, validation_fraction=0.2),
]

KILLED_AT = 2
"""The part or pass at whose beginning the process is killed."""


class Counting(Serial):
    """Counts the parts that are begun, and may kill the process at one of them."""

    def __init__(self, kill_at: int = 0) -> None:
        self.n_begun, self.kill_at = 0, kill_at

    def begin(self) -> None:
        self.n_begun += 1
        if self.n_begun == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def map(self, function: Callable[..., Any], parts: Iterable[Any], *shared: Any, cost: int = 0) -> Iterator[Any]:
        for part in parts:
            self.begin()
            yield function(part, *shared)


class counted_workers:  # noqa: N801 - stands in for `workers`
    counter = Counting()

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> Counting:
        return self.counter

    def __exit__(self, *exception: object) -> None:
        pass


def fit_counted(learner: Any, kill_at: int = 0) -> tuple[Any, int]:
    """The fitted learner and how many parts or passes were begun."""
    X, y = make_rows()
    counter = counted_workers.counter = Counting(kill_at)
    pass_, workers, size = OnlineClassifier._pass, checkpoint.workers, checkpoint.TASK_VALUES

    def counted_pass(self: Any, *args: Any) -> None:
        if self.checkpoint is not None:
            counter.begin()
        pass_(self, *args)

    OnlineClassifier._pass = counted_pass  # type: ignore[method-assign]
    checkpoint.workers = counted_workers  # type: ignore[attr-defined,assignment,misc]
    checkpoint.TASK_VALUES = 0  # type: ignore[attr-defined,misc]
    try:
        return clone(learner).fit(X, y), counter.n_begun
    finally:
        OnlineClassifier._pass = pass_  # type: ignore[method-assign]
        checkpoint.workers, checkpoint.TASK_VALUES = workers, size  # type: ignore[attr-defined,misc]


def kill_all(folder: str) -> None:
    """Let each learner be killed in a process of its own; called in a process that has no threads yet."""
    for number, learner in enumerate([*LEARNERS, *PASSES]):
        process = os.fork()
        if not process:
            fit_counted(clone(learner).set_params(checkpoint=str(Path(folder, str(number)))), KILLED_AT)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        assert os.WIFSIGNALED(status), learner


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    script = f"from test_checkpoint import kill_all; kill_all({str(folder)!r})"
    subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": path}, check=True, timeout=300)
    return folder


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("number", range(len(LEARNERS) + len(PASSES)), ids=lambda n: repr([*LEARNERS, *PASSES][n]))
def test_a_killed_training_continues(number: int, killed: Path, tmp_path: Path) -> None:
    learner = [*LEARNERS, *PASSES][number]
    X, y = make_rows()
    alone = clone(learner).fit(X, y)
    whole, n_parts = fit_counted(clone(learner).set_params(checkpoint=tmp_path / "whole"))
    assert_same_model(alone, whole)
    continued, n_begun = fit_counted(clone(learner).set_params(checkpoint=str(killed / str(number))))
    assert_same_model(alone, continued)
    assert n_begun == n_parts - (KILLED_AT - 1)
    again, n_begun = fit_counted(clone(learner).set_params(checkpoint=str(killed / str(number))))
    assert_same_model(alone, again)
    assert n_begun == 0


@pytest.mark.parametrize(("n_jobs", "cluster"), [(2, None), (2, "processes")])
def test_a_checkpoint_goes_on_anywhere(n_jobs: int, cluster: str | None, tmp_path: Path) -> None:
    X, y = make_rows()
    alone = LinearClassifier().fit(X, y)
    assert_same_model(alone, LinearClassifier(n_jobs=n_jobs, cluster=cluster, checkpoint=tmp_path).fit(X, y))
    whole = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    for path in whole[len(whole) // 2 :]:
        path.unlink() if path.name != RUN_FILE else None
    assert_same_model(alone, LinearClassifier(checkpoint=tmp_path).fit(X, y))
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == whole


def test_what_is_learned_from_held_out_rows_is_kept_too(tmp_path: Path) -> None:
    X, y = make_rows()
    learner = LinearClassifier(calibrate="platt", checkpoint=tmp_path)
    assert_same_model(LinearClassifier(calibrate="platt").fit(X, y), fit_counted(learner)[0])
    again, n_begun = fit_counted(learner)
    assert n_begun == 0
    assert_same_model(LinearClassifier(calibrate="platt").fit(X, y), again)


def test_a_damaged_part_is_made_again(tmp_path: Path) -> None:
    X, y = make_rows()
    alone = LinearClassifier(checkpoint=tmp_path).fit(X, y)
    for path in tmp_path.glob("step-*/*"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
    assert_same_model(alone, LinearClassifier(checkpoint=tmp_path).fit(X, y))
    assert all(is_whole(path) for path in tmp_path.glob("step-*/*"))


def test_another_run_is_refused(tmp_path: Path) -> None:
    X, y = make_rows()
    LinearClassifier(C=1.0, checkpoint=tmp_path).fit(X, y)
    with pytest.raises(ValueError, match=r"belongs to another run: C was 1.0 and is 2.0"):
        LinearClassifier(C=2.0, checkpoint=tmp_path).fit(X, y)
    with pytest.raises(ValueError, match="checksum of the rows"):
        LinearClassifier(C=1.0, checkpoint=tmp_path).fit(2 * X, y)
    with pytest.raises(ValueError, match="checksum of the labels"):
        LinearClassifier(C=1.0, checkpoint=tmp_path).fit(X, y[::-1])
    with pytest.raises(ValueError, match="checksum of the weights"):
        LinearClassifier(C=1.0, checkpoint=tmp_path).fit(X, y, np.arange(len(y)))
    with pytest.raises(ValueError, match="learner was 'svm' and is 'ecoc'"):
        OutputCodeClassifier(checkpoint=tmp_path).fit(X, y)
    run_file = tmp_path / RUN_FILE
    older = json.loads(run_file.read_text())
    older["program"]["abound"] = "0.0"
    run_file.write_text(json.dumps(older))
    with pytest.raises(ValueError, match=r"abound was '0.0'"):
        LinearClassifier(C=1.0, checkpoint=tmp_path).fit(X, y)
    run_file.write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        LinearClassifier(C=1.0, checkpoint=tmp_path).fit(X, y)


def test_a_taxonomy_is_told_by_what_it_holds(tmp_path: Path) -> None:
    X, y = make_rows(40, n_classes=4)
    file = tmp_path / "tree"
    file.write_text("root 0\nroot 1\nroot 2\nroot 3\n")
    learner = RecursiveClassifier(str(file), checkpoint=tmp_path / "kept")
    learner.fit(X, y)
    clone(learner).fit(X, y)
    file.write_text("root 0\nroot 1\nroot 2\n2 3\n")
    with pytest.raises(ValueError, match="taxonomy was"):
        clone(learner).fit(X, y)
    with pytest.raises(ValueError, match="taxonomy was"):
        clone(learner).set_params(taxonomy=Taxonomy.from_file(file)).fit(X, y)


def test_other_folders_and_files_stay_as_they_are(tmp_path: Path) -> None:
    X, y = make_rows(40, n_classes=4)
    other = tmp_path / "notes"
    other.write_text("mine")
    with pytest.raises(ValueError, match="holds other files"):
        LinearClassifier(checkpoint=tmp_path).fit(X, y)
    with pytest.raises(ValueError, match="is a file"):
        LinearClassifier(checkpoint=other).fit(X, y)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


@pytest.mark.parametrize("learner", [LinearClassifier, PAClassifier])
def test_what_cannot_be_continued_is_refused(learner: Any, tmp_path: Path) -> None:
    X, y = make_rows(40, n_classes=4)
    for random_state in (None, np.random.RandomState(0)):
        with pytest.raises(ValueError, match="set random_state to a whole number"):
            learner(random_state=random_state, checkpoint=tmp_path).fit(X, y)
    for folder in (1, "", True):
        with pytest.raises(ValueError, match="the path of a folder"):
            learner(checkpoint=folder).fit(X, y)


def test_a_model_does_not_keep_its_checkpoint(tmp_path: Path) -> None:
    X, y = make_rows(40, n_classes=4)
    members = [PAClassifier(checkpoint=tmp_path / "secret")]
    model = CommitteeClassifier(members, n_seeds=1, keep_passes=(1,), checkpoint=tmp_path / "secret").fit(X, y)
    model.save(tmp_path / "model")
    assert b"secret" not in (tmp_path / "model").read_bytes()
    assert abound.load(tmp_path / "model").checkpoint is None


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    fixed, counts = np.arange(3, dtype=np.int32), np.ones(3, dtype=np.int8)
    fixed.flags.writeable = False
    edges = Edges(counts, fixed, np.ones(3, dtype=np.float32))
    value = [(edges, Outcome(np.ones(2), np.zeros(2), 3, True)), {"a": float("inf"), "b": None, 1: np.float32(0.1)}, ()]
    keep_value(tmp_path / "value", value)
    (one, told, nothing) = read_value(tmp_path / "value")
    assert type(one[0]) is Edges
    assert one[1].n_sweeps == 3
    assert one[1].converged is True
    assert not one[0].classes.flags.writeable
    assert one[0].counts.dtype == np.int8
    assert one[0].weights.flags.writeable
    assert told == value[1]
    assert type(told[1]) is np.float32
    assert nothing == ()
    with pytest.raises(TypeError, match="cannot keep a set"):
        keep_value(tmp_path / "set", {1, 2})
    assert not (tmp_path / "set").exists()


def test_the_command_line_has_it(tmp_path: Path) -> None:
    data = tmp_path / "train.svm"
    data.write_text("a 1:1\nb 2:1\na 1:1 2:0.5\n")
    model, folder = str(tmp_path / "model"), tmp_path / "kept"
    run("train", data, "-l", "svm", "-m", model, "--checkpoint", folder)
    before = Path(model).read_bytes()
    run("train", data, "-l", "svm", "-m", model, "--checkpoint", folder)
    assert Path(model).read_bytes() == before
    other = run("train", data, "-l", "svm", "--set", "C=3", "-m", model, "--checkpoint", folder, code=1)
    assert "belongs to another run" in other.stderr
    useless = run("train", data, "-l", "frequency", "-m", model, "--checkpoint", folder, code=2)
    assert "no use for a checkpoint" in useless.stderr

from __future__ import annotations

import gzip
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from abound import FeatureFocusClassifier, IndependentClassifier, Model
from abound.learn.online import OnlineClassifier
from abound.read.documents import Documents
from abound.serve.guard import guarded
from abound.serve.journal import Correction, Journal, Proposal, journal_path
from abound.serve.served import ServedModel
from abound.serve.training import TrainingInterrupted, train_model
from abound.store import ModelFileError
from cli_data import make_rows, run, run_json, write_svm, write_tsv


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_tsv(tmp_path / "train.tsv", make_rows(40))


@pytest.fixture
def model(texts: Path, tmp_path: Path) -> Path:
    run("train", texts, "--learner", "ff", "--model", tmp_path / "model")
    return tmp_path / "model"


def fails(*arguments: Any, **more: Any) -> str:
    """Run a command that must end with one clear line on standard error and nothing else."""
    result = run(*arguments, code=1, **more)
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("abound: error: ")
    return str(result.stderr)


def misused(*arguments: Any) -> str:
    result = run(*arguments, code=2)
    assert result.stdout == ""
    return " ".join(str(result.stderr).split())


def test_every_command_that_takes_a_model_asks_before_it_runs_its_pattern(texts: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    run("train", texts, "--model", model, "--text", r"token_pattern=(?u)(?:\w)+")
    with closing(Journal(journal_path(model), create=True)) as journal:
        journal.append([Proposal(Correction(("A",), "red"), "v1", None)])
    for command in (
        ("predict", model, texts),
        ("evaluate", model, texts),
        ("explain", model, "text"),
        ("inspect", model),
        ("prune", model, "--max-degree", 1, "--output", tmp_path / "p"),
        ("journal", model, "undo", 1),
        ("journal", model, "retrain", "--output", tmp_path / "r"),
        ("learn", model, texts),
    ):
        assert "--trust" in fails(*command)
        run(*command, "--trust")
    with pytest.raises(ModelFileError, match="--trust"):
        ServedModel("model", model)
    served = ServedModel("model", model, trust=True)
    served.close()


def test_missing_files(texts: Path, model: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    for arguments in (
        ("train", gone, "--model", tmp_path / "m"),
        ("train", texts, "--model", tmp_path / "m", "--taxonomy", gone),
        ("predict", gone, texts),
        ("predict", model, gone),
        ("evaluate", model, gone),
        ("learn", model, gone),
        ("inspect", gone),
        ("explain", gone, "text"),
        ("prune", gone, "--max-degree", 1, "--output", tmp_path / "p"),
        ("data", "austen", "--text", gone, "--output", tmp_path / "d"),
    ):
        assert f"{gone}: No such file" in fails(*arguments)
    assert "does not exist" in fails("train", texts, "--model", gone / "model")
    assert "is a folder" in fails("train", texts, "--model", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "train.tsv"]


def test_bad_lines_are_named_and_nothing_is_written(model: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text("tea\tgreen leaf\nno tab here\n")
    assert "bad.tsv, line 2" in fails("train", bad, "--model", tmp_path / "m")
    assert "bad.tsv, line 2" in fails("evaluate", model, bad)
    before = model.read_bytes()
    assert "bad.tsv, line 2" in fails("learn", model, bad)
    assert model.read_bytes() == before
    bad.write_text("tea\tgreen\n\tno label\n")
    assert "line 2: the label is missing" in fails("train", bad, "--model", tmp_path / "m")
    bad.write_bytes(b"tea\tgreen\ncoffee\t\xff\n")
    assert "line 2: not valid UTF-8" in fails("predict", model, bad, "--output", tmp_path / "out")
    (tmp_path / "cut.tsv.gz").write_bytes(gzip.compress(b"tea\tgreen leaf\n" * 1000)[:-20])
    assert "truncated" in fails("train", tmp_path / "cut.tsv.gz", "--model", tmp_path / "m")
    (tmp_path / "empty.tsv").write_text("")
    assert "empty" in fails("train", tmp_path / "empty.tsv", "--model", tmp_path / "m")
    (tmp_path / "bad.svm").write_text("tea 1:1\ncoffee 2:x\n")
    assert "bad.svm, line 2" in fails("train", tmp_path / "bad.svm", "--model", tmp_path / "m")
    written = {"bad.tsv", "bad.svm", "cut.tsv.gz", "empty.tsv", "model", "train.tsv"}
    assert {path.name for path in tmp_path.iterdir()} == written


def test_texts_and_vectors_are_not_mixed_up(model: Path, texts: Path, tmp_path: Path) -> None:
    vectors = write_svm(tmp_path / "train.svm", make_rows(40))
    run("train", vectors, "--model", tmp_path / "vector_model")
    assert "the model takes texts" in fails("predict", model, vectors)
    assert "the model takes vectors" in fails("evaluate", tmp_path / "vector_model", texts)
    assert "index:value" in fails("explain", tmp_path / "vector_model", "green leaf")
    assert "knows the features 1 to" in fails("explain", tmp_path / "vector_model", "99:1")
    (tmp_path / "zero.svm").write_text("tea 0:1\n")
    assert "index 0 in a file that counts from 1" in fails("predict", tmp_path / "vector_model", tmp_path / "zero.svm")


def test_wrong_usage(texts: Path, model: Path, tmp_path: Path) -> None:
    unnamed = ("train", texts, "--model", tmp_path / "m")
    assert "there are ff, ind, ema" in misused(*unnamed, "--learner", "fff")
    train = (*unnamed, "--learner", "ff")
    assert "no parameter 'margins'; it has boolean, calibrate, checkpoint, cut" in misused(*train, "--set", "margins=1")
    assert "expected key=value" in misused(*train, "--set", "margin")
    assert "given twice" in misused(*train, "--set", "margin=1", "--set", "margin=2")
    assert "passes=0: it must be a whole number at least 1" in misused(*train, "--set", "passes=0")
    assert "has no parameter 'validation_fraction'" in misused(
        *unnamed, "--learner", "frequency", "--validation-fraction", 0.1
    )
    assert "has no parameter 'ngrams'; it has analyzer" in misused(*train, "--text", "ngrams=2")
    assert "reading has no parameter 'part'; it has format" in misused(*train, "--read", "part=test")
    assert "--model" in misused("train", texts)
    assert "-k" in misused("predict", model, texts, "-k", 0)
    assert "n_jobs=0" in misused("predict", model, texts, "--jobs", 0)
    assert "say what to leave out" in misused("prune", model, "--output", tmp_path / "p")
    assert "there are austen and icd10" in misused("data", "iris", "--output", tmp_path / "d")
    assert "austen needs the text" in misused("data", "austen", "--output", tmp_path / "d")
    assert "neither official nor random" in misused("data", "icd10", "--split", "x", "--output", tmp_path / "d")
    assert "the demo has no learner 'svm'" in misused("demo", "--learners", "ff,svm")
    assert "No such command" in misused("fly")
    assert "builtin:icd10" in fails("train", "builtin:nothing", "--model", tmp_path / "m")
    assert "is not a class of this model" in fails("explain", model, "green", "--label", "gin")


@pytest.mark.parametrize("place", [5, 200, -1])
def test_damaged_model_file(place: int, model: Path, texts: Path) -> None:
    content = bytearray(model.read_bytes())
    content[place] ^= 0x55
    model.write_bytes(bytes(content))
    for arguments in (("predict", model, texts), ("inspect", model), ("learn", model, texts)):
        assert str(model) in fails(*arguments)
    model.write_bytes(bytes(content[:100]))
    assert str(model) in fails("evaluate", model, texts)


def test_models_that_cannot_learn(model: Path, texts: Path, tmp_path: Path) -> None:
    run("prune", model, "--max-degree", 2, "--output", tmp_path / "pruned")
    before = (tmp_path / "pruned").read_bytes()
    assert "saved or pruned without what it needs to learn on" in fails("learn", tmp_path / "pruned", texts)
    assert (tmp_path / "pruned").read_bytes() == before
    run("train", texts, "--learner", "ind", "--model", tmp_path / "ind")
    assert "'ind' is not online" in fails("learn", tmp_path / "ind", texts)


def test_label_that_tsv_cannot_hold(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"text": "green leaf", "label": "a\\tb"}\n')
    run("train", tmp_path / "train.jsonl", "--model", tmp_path / "model")
    message = fails("predict", tmp_path / "model", tmp_path / "train.jsonl", "--output", tmp_path / "out.tsv")
    assert "use --json" in message
    assert not (tmp_path / "out.tsv").exists()
    assert '"a\\tb"' in run("predict", tmp_path / "model", tmp_path / "train.jsonl", "--json").stdout


def test_unforeseen_errors_have_no_traceback_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise KeyError("a bug")

    small = typer.Typer()
    small.command()(guarded(broken))
    result = CliRunner().invoke(small)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "KeyError: 'a bug'" in result.stderr
    monkeypatch.setenv("ABOUND_DEBUG", "1")
    assert isinstance(CliRunner().invoke(small).exception, KeyError)


def test_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "simple_icd_10_cm", None)
    assert "pip install 'abound[demo]'" in fails("train", "builtin:icd10", "--model", tmp_path / "m")


def interrupt_after(monkeypatch: pytest.MonkeyPatch, n_passes: int) -> None:
    whole = OnlineClassifier._pass

    def interrupted(self: OnlineClassifier, number: int, *more: Any) -> None:
        if number > n_passes:
            raise KeyboardInterrupt
        whole(self, number, *more)

    monkeypatch.setattr(OnlineClassifier, "_pass", interrupted)


def test_interrupted_training_keeps_what_was_learned(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("train", texts, "-l", "ff", "--model", tmp_path / "two", "--set", "passes=2")
    interrupt_after(monkeypatch, 2)
    result = run("train", texts, "-l", "ff", "-m", tmp_path / "model", "--set", "passes=9", "--json", code=130)
    assert result.stdout == ""
    assert result.stderr == f"abound: interrupted: what was learned so far is in {tmp_path / 'model'}\n"
    model, two = Model.load(tmp_path / "model").estimator, Model.load(tmp_path / "two").estimator
    np.testing.assert_array_equal(model.index_.weights, two.index_.weights)
    assert len(model.history_) == 2  # type: ignore[attr-defined]


def test_interrupted_before_anything_was_learned(texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    interrupt_after(monkeypatch, 0)
    monkeypatch.setattr(IndependentClassifier, "_count", interrupt)
    for learner in ("ff", "ind"):
        result = run("train", texts, "--learner", learner, "--model", tmp_path / "model", code=130)
        assert (result.stdout, result.stderr) == ("", "abound: interrupted: nothing was written\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.tsv"]


def test_interrupted_learning_and_predicting_change_nothing(
    model: Path, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = model.read_bytes()
    monkeypatch.setattr(Model, "partial_fit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    result = run("learn", model, texts, code=130)
    assert "nothing was learned" in result.stderr
    assert model.read_bytes() == before
    monkeypatch.setattr(Model, "predict_topk", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    run("predict", model, texts, "--output", tmp_path / "out", code=130)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "train.tsv"]


def test_interrupted_training_in_python_hands_the_model_over(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_rows(40)
    documents = Documents.of([text for _, text in rows], [label for label, _ in rows])
    interrupt_after(monkeypatch, 1)
    with pytest.raises(TrainingInterrupted) as caught:
        train_model(documents, FeatureFocusClassifier(passes=3))
    assert len(caught.value.model.predict(["green leaf"])) == 1


def test_warnings_are_one_line(tmp_path: Path) -> None:
    rows = [("tea", "green leaf"), ("coffee", "bean")]
    run("train", write_tsv(tmp_path / "train.tsv", rows), "--model", tmp_path / "model")
    data = write_tsv(tmp_path / "sorted.tsv", rows[:1] * 300 + rows[1:] * 300)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("learn", tmp_path / "model", data)
    assert result.stderr.startswith("abound: warning: 300 rows of class")
    assert len(result.stderr.splitlines()) == 1


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("abound 0.")
    for command in ("train", "learn", "predict", "evaluate", "explain", "inspect", "prune", "learners", "data", "demo"):
        assert command in run("--help").stdout
        assert "--json" in run(command, "--help").stdout
    assert run_json("learners")

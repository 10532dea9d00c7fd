"""The program as a process of its own: what it imports, pipes, signals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli_data import make_rows, run, write_tsv

PROGRAM = [sys.executable, "-c", "from abound.serve.cli import main; main()"]

HEAVY = {"numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    run("train", write_tsv(folder / "train.tsv", make_rows(60)), "--model", folder / "model")
    return folder / "model"


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)


def test_importing_abound_loads_and_prints_nothing() -> None:
    done = python(f"import sys, abound; print(sorted({HEAVY | {'typer', 'rich', 'click'}!r} & set(sys.modules)))")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[]", "")


def test_help_loads_nothing_heavy() -> None:
    code = f"""
import sys
from abound.serve.cli import app
for arguments in ([], ["train"], ["learn"], ["predict"], ["evaluate"], ["explain"], ["inspect"], ["prune"],
                  ["learners"], ["data"], ["demo"]):
    assert app([*arguments, "--help"], standalone_mode=False) in (0, None)
print("loaded:", sorted({HEAVY!r} & set(sys.modules)))
"""
    done = python(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("loaded: []\n")


def test_standard_input_and_output(model: Path) -> None:
    arguments = ["predict", str(model), "-", "-k", "1", "--json"]
    done = subprocess.run([*PROGRAM, *arguments], input="green leaf\nbean roast\n", capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line)["labels"] for line in done.stdout.splitlines()] == [["tea"], ["coffee"]]


def test_reader_that_stops_early_is_no_error(model: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.txt"
    many.write_text("green leaf kettle\n" * 200_000)
    process = subprocess.Popen(
        [*PROGRAM, "predict", str(model), str(many)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith(b"tea\t")
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_reader_that_is_gone_is_no_error(options: list[str], model: Path) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "inspect", str(model), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_during_training_saves_the_model(model: Path, tmp_path: Path) -> None:
    code = """
import os, signal, sys
from abound.learn.online import OnlineClassifier
from abound.serve.cli import main
whole = OnlineClassifier._pass
def with_signal(self, number, *more):
    whole(self, number, *more)
    if number == 3:
        os.kill(os.getpid(), signal.SIGINT)
OnlineClassifier._pass = with_signal
main()
"""
    train = model.parent / "train.tsv"
    arguments = ["train", str(train), "--learner", "pa", "--model", str(tmp_path / "model"), "--set", "passes=100000"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 128 + signal.SIGINT
    assert (done.stdout, done.stderr) == (
        "",
        f"abound: interrupted: what was learned so far is in {tmp_path / 'model'}\n",
    )
    assert run("predict", tmp_path / "model", train, "-k", 1).stdout.count("\n") == 60

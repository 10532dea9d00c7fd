"""`kill -9` at any moment of a comparison: started again, it gives the same rows as one that was left alone."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from abound.compare.experiment import without_clock
from cli_data import make_rows, write_tsv
from compare_data import wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

LONGEST = 20.0
"""Seconds after which a comparison is killed at the latest, also where the machine has other things to do."""

PROGRAM = [sys.executable, "-c", "from abound.serve.cli import main; main()"]


def start(folder: Path, rows: Path) -> subprocess.Popen[bytes]:
    """Begin a comparison of three experiments."""
    options = ["--learners", "frequency,perceptron", "--jobs", "1", "--time-limit", "2h", "--memory-limit", "4GB"]
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return subprocess.Popen(
        [*PROGRAM, "compare", str(folder / "train.tsv"), *options, "--rows", str(rows)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(scratch)},
    )


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [without_clock(json.loads(line)) for line in path.read_text().splitlines()]


def kill_and_check(folder: Path, n_kills: int) -> None:
    """Kill a comparison so often, at moments spread over its whole length, each time to be started again."""
    write_tsv(folder / "train.tsv", make_rows(80))
    begin = time.monotonic()
    assert start(folder, folder / "undisturbed.jsonl").wait(timeout=600) == 0
    length = min(LONGEST, time.monotonic() - begin)
    expected = rows_of(folder / "undisturbed.jsonl")
    assert [row["error"] for row in expected] == [None] * 3
    rng = random.Random(0)
    kills = 0
    while kills < n_kills:
        rows = folder / f"killed-{kills}.jsonl"
        # Up to five kills to one file: later ones find rows of earlier runs.
        for _ in range(min(5, n_kills - kills)):
            process = start(folder, rows)
            time.sleep(rng.uniform(0.0, 1.1 * length))
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        assert start(folder, rows).wait(timeout=600) == 0
        assert rows_of(rows) == expected


def test_killed_three_times(tmp_path: Path) -> None:
    kill_and_check(tmp_path, 3)


@pytest.mark.long
def test_killed_twenty_times(tmp_path: Path) -> None:
    kill_and_check(tmp_path, 20)


def processes_in(folder: Path) -> list[str]:
    """The processes of experiments whose files lie in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            if b"abound.compare.child" in words and str(folder).encode() in words:
                found.append(entry.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes where Linux lists them")
def test_the_process_of_an_experiment_ends_with_its_comparison(tmp_path: Path) -> None:
    write_tsv(tmp_path / "train.tsv", make_rows(80))
    process = start(tmp_path, tmp_path / "rows.jsonl")
    scratch = tmp_path / "scratch"
    try:
        assert wait_for(lambda: processes_in(scratch), 120)
    finally:
        process.kill()
        process.wait()
    assert wait_for(lambda: not processes_in(scratch), 120), "it runs on"
    assert list(scratch.iterdir()) == [], "what it needed is still there"


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    write_tsv(tmp_path / "train.tsv", make_rows(80))
    rows = tmp_path / "rows.jsonl"
    arguments = ["compare", str(tmp_path / "train.tsv"), "--learners", "perceptron,frequency", "--rows", str(rows)]
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert wait_for(lambda: rows.exists() and rows.stat().st_size > 0, 120)
    process.send_signal(signal.SIGINT)
    output, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert (output, said) == ("", f"abound: interrupted: the same command goes on from what is in {rows}\n")
    assert rows_of(rows)[0]["experiment"]["learner"] == "perceptron"

"""Run one experiment in a process of its own, within limits of time and memory; whatever happens to it is a row."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import abound
from abound.compare.experiment import Experiment, Row, machine, versions
from abound.compare.prepared import Facts

MOST_OF_A_MESSAGE = 500


@dataclass(frozen=True)
class Limits:
    """What an experiment may take.

    Parameters
    ----------
    seconds : float
        From the start of its process to its end.
    memory : int or None
        Bytes; None for any number.
    """

    seconds: float
    memory: int | None = None

    def may_help(self, failed: Row) -> bool:
        """Tell whether an experiment that failed may do better now.

        Parameters
        ----------
        failed : dict
            Its row.

        Returns
        -------
        bool
            True if its process crashed, or ran out of time or memory and now has more.
        """
        error, before = failed.get("error") or {}, failed.get("limits", {})
        if error.get("kind") == "time":
            return self.seconds > 1.5 * float(before.get("seconds", 0.0))
        if error.get("kind") == "memory":
            limit = before.get("memory")
            return limit is not None and (self.memory is None or self.memory > 1.2 * limit)
        return error.get("kind") == "crash"


def run(experiment: Experiment, prepared: Path, facts: Facts, limits: Limits, scratch: Path) -> Row:
    """Run an experiment.

    Parameters
    ----------
    experiment : Experiment
        What to train and measure.
    prepared : Path
        The folder of its rows.
    facts : Facts
        What is known of them.
    limits : Limits
        What it may take.
    scratch : Path
        A folder for files that are needed meanwhile; the process removes it if this one is killed.

    Returns
    -------
    dict
        The row, with ``error`` if there are no measures.
    """
    begin = time.perf_counter()
    answer = _answer(experiment, prepared, limits, scratch)
    wall = time.perf_counter() - begin
    timings = {"vectorise": facts.vectorise_fit, "vectorise_held": facts.vectorise_held, "wall": wall}
    size = asdict(facts)
    sizes = {name: size[name] for name in ("fit_rows", "held_rows", "classes", "features", "nonzeros", "labels_a_row")}
    return {
        "key": experiment.key,
        "experiment": asdict(experiment),
        "sizes": sizes,
        "error": None,
        **answer,
        "timings": {**timings, **answer.get("timings", {})},
        "limits": asdict(limits),
        "versions": versions(),
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _answer(experiment: Experiment, prepared: Path, limits: Limits, scratch: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        request, answer, done = Path(folder, "request.json"), Path(folder, "answer.json"), Path(folder, "done")
        asked = {
            "scratch": str(scratch),
            "prepared": str(prepared),
            "progress": str(done),
            "memory_limit": limits.memory,
            "learner": experiment.learner,
            "parameters": experiment.parameters,
            "seed": experiment.seed,
            "jobs": experiment.jobs,
            "for_test": experiment.stage == "test",
        }
        request.write_text(json.dumps(asked), encoding="utf-8")
        said = Path(folder, "said")
        with open(said, "wb") as output:
            code = _wait(_start(request, answer, output), limits.seconds)
        if code is None:
            message = f"not finished after {limits.seconds:.0f} s, its share of the time limit"
            return {"error": {"kind": "time", "message": message, **_projected(done, limits.seconds)}}
        if code == 0 and answer.exists():
            found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
            return found
        last = said.read_bytes()[-MOST_OF_A_MESSAGE:].decode("utf-8", "replace").strip()
        return {"error": {"kind": "crash", "message": f"{_ending(code)}{': ' if last else ''}{last}"}}


def _projected(done: Path, seconds: float) -> dict[str, float]:
    """How long an experiment would have taken in all, by how far it was; at least so long."""
    with suppress(OSError, ValueError):
        part = float(done.read_text(encoding="utf-8"))
        if 0 < part < 1:
            return {"needs": round(seconds / part, 1)}
    return {}


def _start(request: Path, answer: Path, output: Any) -> subprocess.Popen[bytes]:
    home = str(Path(abound.__file__).parents[1])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "abound.compare.child", str(request), str(answer)],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Wait for a process to end and return its exit code; None if it had to be ended."""
    try:
        return process.wait(timeout=max(0.0, seconds))
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()


def _ending(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        return f"its process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"its process was ended by signal {-code}"

"""Runs hostile cases in forks of one warmed process, and tells of each what became of it.

As a script, `python tests/fuzzing.py --models 2000 --rows 2000 --seed 1` starts itself again with kernels that check
their bounds and a cache of their own (Numba's cache does not know the flag), trains all small models once, which
compiles every kernel, and then runs the cases. A case that crashes takes its fork with it and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from signal import ITIMER_PROF, ITIMER_REAL, SIG_DFL, SIGALRM, SIGPROF, SIGSEGV, Signals, setitimer, signal
from typing import Any

import numpy as np
from numba.core import event

from abound.compiled import kernel

SECONDS = 10.0
"""Processor time that a case may take; six times as long by the clock, which others on the machine slow down."""
MEMORY = 2 * 2**30
"""Bytes that a fork may add to those of its parent."""
A_FORK = 20
"""Cases of a fork."""
LONG = 2000
"""Cases of each kind in the long run."""

Case = Callable[[int], str]


class Finding(Exception):
    """What a case did is neither right nor a clear error."""


@cache
def long_run() -> dict[str, Any]:
    """The long run of all fuzzers, which shares one process and one cache; a test asks for its part."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        _start(["--models", str(LONG), "--rows", str(LONG), "--plant", "--report", str(path)])
        report: dict[str, Any] = json.loads(path.read_text())
        return report


def run(case: Case, seeds: Sequence[int], limit: float = SECONDS) -> dict[str, Any]:
    """Run cases in forks, some in each; a fork that breaks is blamed on its last case, if that breaks alone, too."""
    outcomes: Counter[str] = Counter()
    findings: dict[str, Any] = {}
    slowest, largest = (0.0, -1), (0, -1)
    left = list(seeds)
    begin = time.perf_counter()
    while left:
        told = _forked(case, left[:A_FORK], limit)
        left = left[len(told) :]
        last = told[-1]
        if last["kind"] == "broken" and len(told) > 1:
            alone = _forked(case, [last["seed"]], limit)[0]
            alone["why"] += "" if alone["kind"] == "broken" else f" (after others: {last['why']})"
            told[-1] = alone if alone["kind"] == "broken" else {**last, "why": alone["why"]}
        for each in told:
            outcomes[each["kind"]] += 1
            slowest = max(slowest, (each["seconds"], each["seed"]))
            largest = max(largest, (each["bytes"], each["seed"]))
            if each["kind"] in ("finding", "broken"):
                known = findings.setdefault(each["why"], {"seeds": [], "detail": each["detail"]})
                known["seeds"].append(each["seed"])
    return {
        "cases": len(seeds),
        "outcomes": dict(outcomes),
        "findings": findings,
        "slowest": slowest,
        "largest": largest,
        "seconds": time.perf_counter() - begin,
    }


def attempt(case: Case, seed: int) -> dict[str, Any]:
    """Run one case in this process; what it raises is a finding, what it warns of is not."""
    used, begin = _resident(), time.process_time()
    kind, why, detail = "finding", "", ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = case(seed)
    except Exception as error:
        why, detail = _blame(error), "".join(traceback.format_exception(error)[-30:])
    seconds = time.process_time() - begin
    return {
        "seed": seed,
        "kind": kind,
        "why": why,
        "detail": detail,
        "seconds": seconds,
        "bytes": max(0, _resident() - used),
    }


def _blame(error: Exception) -> str:
    """What happened and where, short enough to count by."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/abound/" in frame.filename]
    place = f"{frames[-1].filename.split('/abound/')[-1]}:{frames[-1].name}" if frames else "test"
    return f"{type(error).__name__} in {place}{f': {error}' if isinstance(error, Finding) else ''}"


def _resident() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class _Clock(event.Listener):
    """Stops the clock of a case while Numba compiles: that is done once, whoever comes first."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def on_start(self, event: Any) -> None:
        self.stop()

    def on_end(self, event: Any) -> None:
        self.wind()

    def stop(self) -> None:
        setitimer(ITIMER_PROF, 0)
        setitimer(ITIMER_REAL, 0)

    def wind(self) -> None:
        setitimer(ITIMER_PROF, self.limit)
        setitimer(ITIMER_REAL, 6 * self.limit)


def _forked(case: Case, seeds: Sequence[int], limit: float) -> list[dict[str, Any]]:
    """What became of each case, up to the one that broke the fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _be_child(case, seeds, limit, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        lines = [json.loads(line) for line in pipe.read().splitlines()]
    status = os.waitpid(child, 0)[1]
    if len(lines) < len(seeds):
        seed = seeds[len(lines)]
        why = Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status}"
        why = {"SIGPROF": f"over {limit:.0f} s", "SIGALRM": f"over {6 * limit:.0f} s by the clock"}.get(why, why)
        seconds = limit if why.startswith("over") else 0.0
        lines.append({"seed": seed, "kind": "broken", "why": why, "detail": "", "seconds": seconds, "bytes": 0})
    return lines


def _be_child(case: Case, seeds: Sequence[int], limit: float, writing: int) -> None:
    for number in (SIGALRM, SIGPROF):
        signal(number, SIG_DFL)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    clock = _Clock(limit)
    event.register("numba:compile", clock)
    for seed in seeds:
        clock.wind()
        told = attempt(case, seed)
        os.write(writing, json.dumps(told).encode() + b"\n")
    clock.stop()


@kernel
def _reads_past_its_end(numbers: Any, place: int) -> float:
    return numbers[place]


def planted(seed: int) -> str:
    """Cases that must be found; every other one is harmless."""
    if seed == 1:
        _reads_past_its_end(np.zeros(3), 3)
    if seed == 2:
        os.kill(os.getpid(), SIGSEGV)
    if seed == 3:
        while True:
            pass
    if seed == 5:
        np.ones(MEMORY // 4)
    return "used"


PLANTED = {
    "IndexError in test": [1],
    "SIGSEGV": [2],
    "over 1 s": [3],
    "MemoryError in test": [5],
}


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder in memory if there is one: nothing here needs to last."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
        yield Path(name)


def _start(arguments: list[str]) -> None:
    """Run this file with checked bounds and a cache of its own."""
    with tempfile.TemporaryDirectory() as kernels:
        cached = os.environ.get("ABOUND_FUZZ_CACHE", kernels)
        environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cached}
        subprocess.run([sys.executable, __file__, *arguments], env=environment, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=0, help="cases of model files")
    parser.add_argument("--rows", type=int, default=0, help="cases of rows")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one case, to see all of its error")
    parser.add_argument("--plant", action="store_true", help="a case that must be found")
    parser.add_argument("--report", help="where to write what was found, as JSON")
    chosen = parser.parse_args()
    if os.environ.get("NUMBA_BOUNDSCHECK") != "1":
        return _start(sys.argv[1:])
    warnings.simplefilter("ignore")
    report: dict[str, Any] = {}
    with _folder() as folder:
        if chosen.plant:
            report["planted"] = run(planted, range(6), 1.0)
            _tell("planted", report["planted"], False)
        for kind in ("models", "rows"):
            if getattr(chosen, kind):
                begin = time.perf_counter()
                case = _cases(kind, folder)
                say(f"{kind}: warmed in {time.perf_counter() - begin:.0f} s")
                first = chosen.seed * 10**6
                seeds = range(first, first + getattr(chosen, kind)) if chosen.only is None else [chosen.only]
                report[kind] = run(case, seeds)
                _tell(kind, report[kind], chosen.only is not None)
    if chosen.report:
        Path(chosen.report).write_text(json.dumps(report))


def _cases(kind: str, folder: Path) -> Case:
    if kind == "models":
        from fuzz_models import make_models, model_case

        return model_case(make_models(folder), folder)
    from fuzz_rows import row_case

    return row_case()


def _tell(kind: str, told: dict[str, Any], whole: bool) -> None:
    (seconds, slow), (size, large) = told["slowest"], told["largest"]
    say(f"{kind}: {told['cases']} cases in {told['seconds']:.0f} s: {told['outcomes']}")
    say(f"slowest {seconds:.2f} s (case {slow}), most memory {size / 2**20:.0f} MiB more (case {large})")
    for why, each in sorted(told["findings"].items(), key=lambda one: -len(one[1]["seeds"])):
        say(f"  {len(each['seeds']):4d} {why} {each['seeds'][:4]}")
        if whole:
            say(each["detail"])


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # What the cases import is not this script but the module of the same name.
    import fuzzing

    fuzzing.main()

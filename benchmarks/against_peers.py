"""Is there, for every peer, an abound learner that is at least as accurate in at most half its training time?

    python benchmarks/against_peers.py DATA [--sets austen ...] [--systems "omikuji, 3 trees" ...] [--threads 1]
        [--limit 900] [--peers-python PYTHON] [--pecos-python PYTHON] [--keep FOLDER] [--again NAME ...]
        [--choose-only] [--quick]

scikit-learn, LIBLINEAR, fastText, Vowpal Wabbit, omikuji, napkinXC and PECOS against ours on the same files, split and
number of threads, each run in a process of its own that is ended after --limit seconds. The settings of a small grid
(``SYSTEMS`` in ``peers/``) are tried on a random tenth of the training rows; the best is trained on all of them, and
the test rows are used once. A system that does not end in time is not tried further. Training is the
time from rows in memory to a model; fastText and Vowpal Wabbit read their files meanwhile. With several labels a row,
R1 is precision at 1. Peers are looked for in the interpreter --peers-python (or that of the variable PEERS_PYTHON),
PECOS in --pecos-python (PECOS_PYTHON); one that is not installed is a row, not an error. A run that is recorded is not
repeated, but for those named with --again. Accuracy does not depend on what else the machine does: with --choose-only
the settings can be tried beside other work, and the final runs, whose seconds count, follow on an idle machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from peers import ADAPTERS, OURS
from peers.files import STAGES, read_stages, write_file, write_matrices
from record import Recorder, Table
from write_results import read_rows

SETS = ("wordnet_hypernym", "austen", "tib_ddc", "yso_finna_en")
HERE = Path(__file__).parent
SHARE = 0.5
"""Of a peer's training time that ours may take."""

SYSTEMS: dict[str, Any] = {
    name: adapter
    for adapter in (importlib.import_module(f"peers.{word}") for word in ADAPTERS)
    for name in adapter.SYSTEMS
}
"""The adapter of each system."""

Outcome = dict[str, Any]


class Bench:
    """Runs settings in processes and knows which were run before."""

    def __init__(self, arguments: Any, recorder: Recorder, folder: Path, own: Path) -> None:
        self.arguments, self.recorder, self.folder = arguments, recorder, folder
        # Two benches may share a folder of prepared files, but not what their processes tell them.
        self.out, self.log = own / "outcome.json", own / "log.txt"
        path = recorder.path
        rows = read_rows(path) if recorder.keep and path.exists() else []
        self.known = {key_of(row["table"], row["setting"]): row["figures"] for row in rows if "figures" in row}

    def outcome(self, table: Table, setting: dict[str, Any], stage: str, chosen: dict[str, Any]) -> Outcome:
        """Return what a run gave, now or before; a new one is recorded."""
        before = self.known.get(key_of(table.name, setting))
        if before is not None and self.is_valid(before, setting["system"]):
            print(f"  {setting['system']}, {shown(chosen)}: recorded before, {before['status']}", flush=True)
            return before
        found = self.run(setting["system"], table.name.rsplit(" ", 1)[-1], stage, chosen)
        if stage == "final":
            found["chosen"] = shown(chosen)
        table.row(setting, found)
        return found

    def is_valid(self, before: Outcome, system: str) -> bool:
        """Whether a run need not be repeated: it is measured, or failed with as much time and memory."""
        if system in self.arguments.again or before["status"] == "not installed":
            return False
        limits = before.get("limit s", 0) >= self.arguments.limit and before.get("GB", 0) >= self.arguments.memory
        return before["status"].startswith(("measured", "not applicable")) or limits

    def run(self, system: str, data: str, stage: str, setting: dict[str, Any]) -> Outcome:
        """Train and measure in another process, for as long as it may take."""
        word = SYSTEMS[system].__name__.split(".")[-1]
        python = self.python_of(word)
        if python is None:
            return {"status": "not installed"}
        self.out.unlink(missing_ok=True)
        command = [str(python), "-m", "peers.run", word, str(self.folder / data / stage), json.dumps(setting)]
        command += [str(self.out)]
        command += ["--threads", str(self.arguments.threads), "--memory", str(self.arguments.memory)]
        command += ["--seconds", str(self.arguments.limit)]
        limits = {"limit s": self.arguments.limit, "GB": self.arguments.memory}
        with open(self.log, "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                command, cwd=HERE, env=environment(word, self.arguments.threads), stdout=log, stderr=log, **OWN_GROUP
            )
            try:
                process.wait(self.arguments.limit)
            except subprocess.TimeoutExpired:
                return {"status": f"not finished in {self.arguments.limit:g} s"} | limits
            finally:
                end(process)
        if self.out.exists():
            return dict(json.loads(self.out.read_text(encoding="utf-8")))
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        told = next((line for line in reversed(lines) if line.strip()), f"exit code {process.returncode}")
        return {"status": f"failed: {told[:120].replace(str(self.folder), 'FOLDER')}"} | limits

    def python_of(self, word: str) -> Path | None:
        """Return the interpreter of an adapter."""
        if word in (OURS, "sklearn"):
            return Path(sys.executable)
        given: Path | None = self.arguments.pecos_python if word == "pecos" else self.arguments.peers_python
        if given is None:
            return None if word == "pecos" else Path(sys.executable)
        # A virtual environment is told by the path of its interpreter, so links are not followed.
        return given.absolute()


OWN_GROUP: dict[str, Any] = {"start_new_session": True}


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started, if it is still there; the number of one that is gone may be another's."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def environment(word: str, threads: int) -> dict[str, str]:
    """The environment of a process: its number of threads, and no packages of this interpreter for the others."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    found = dict(os.environ) | dict.fromkeys(names, str(threads))
    if word != OURS:
        found.pop("PYTHONPATH", None)
    return found


def key_of(table: str, setting: dict[str, Any]) -> str:
    return json.dumps([table, setting], sort_keys=True)


def shown(setting: dict[str, Any]) -> str:
    """Write a setting in few words."""
    values = {name: f"{value:g}" if isinstance(value, float) else value for name, value in setting.items()}
    return ", ".join(f"{name} {value}" for name, value in values.items())


def choose(bench: Bench, table: Table, system: str, grid: list[dict[str, Any]]) -> dict[str, Any] | str:
    """Return the setting with the best R1 on held-out rows, or why there is none."""
    best, most = None, -1.0
    for setting in grid:
        full = {"system": system, "threads": bench.arguments.threads, "options": shown(setting)}
        found = bench.outcome(table, full, STAGES[0], setting)
        if found["status"] != "measured":
            return best or str(found["status"])
        if found["R1"] > most:
            best, most = setting, found["R1"]
    assert best is not None
    return best


def compare(bench: Bench, name: str) -> None:
    """All systems on one data set, and whether ours lead."""
    arguments, recorder = bench.arguments, bench.recorder
    stages = read_stages(arguments.data, name)
    for stage, rows in stages.items():
        rows = rows.shortened(2000) if arguments.quick else rows
        write_matrices(rows, bench.folder / name / stage)
        for file in sorted({file for system in arguments.systems for file in SYSTEMS[system].FILES}):
            write_file(rows, bench.folder / name / stage / file)
        size = f"{rows.X.shape[0]:,} rows, {rows.Y.shape[1]:,} classes, {rows.X.shape[1]:,} features"
    stages.clear()
    trials = recorder.table(f"Choosing on {name}", "R1 on a held-out tenth of the training rows.")
    chosen = {}
    for system in arguments.systems:
        grid = SYSTEMS[system].SYSTEMS[system]
        chosen[system] = choose(bench, trials, system, grid[:1] if arguments.quick else grid)
    if arguments.choose_only:
        return
    note = f"{size}, {arguments.threads} thread(s); test rows, used once with the setting chosen on held-out rows."
    table = recorder.table(f"Peers on {name}", note)
    found = {}
    for system, setting in chosen.items():
        full = {"system": system, "threads": arguments.threads}
        if isinstance(setting, str):
            found[system] = {"status": setting}
            table.row(full, found[system])
        else:
            found[system] = bench.outcome(table, full, STAGES[1], setting)
    # A run of some systems is judged with what is recorded of the others.
    for system in SYSTEMS.keys() - found.keys():
        before = bench.known.get(key_of(table.name, {"system": system, "threads": arguments.threads}))
        found |= {system: before} if before else {}
    for holds, text in verdicts(found):
        table.target(holds, f"{name}: {text}")


def verdicts(found: dict[str, Outcome]) -> list[tuple[bool, str]]:
    """Say for every measured peer whether one of ours is as accurate in at most half its time."""
    measured = {system: one for system, one in found.items() if one["status"] == "measured"}
    ours = {system: one for system, one in measured.items() if SYSTEMS[system].PACKAGE == "abound"}
    told = []
    for peer, its in measured.items():
        if peer in ours or not ours:
            continue
        accurate = {system: one for system, one in ours.items() if one["R1"] >= its["R1"]}
        beside = f"{peer} (R1 {its['R1']:.4f}, {its['training s']:.1f} s)"
        if not accurate:
            best = max(ours, key=lambda system: ours[system]["R1"])
            told.append((False, f"none of ours is as accurate as {beside}; the best is {facts(best, ours[best], its)}"))
            continue
        quickest = min(accurate, key=lambda system: accurate[system]["training s"])
        holds = accurate[quickest]["training s"] <= SHARE * its["training s"]
        told.append((holds, f"{facts(quickest, accurate[quickest], its)} is as accurate as {beside} in half its time"))
    return told


def facts(system: str, one: Outcome, its: Outcome) -> str:
    ratio = one["training s"] / max(its["training s"], 1e-9)
    return f"{system} (R1 {one['R1']:.4f}, {one['training s']:.1f} s, {ratio:.2f} of its time)"


def named(variable: str) -> Path | None:
    """Return the interpreter that a variable of the environment names."""
    return Path(os.environ[variable]) if os.environ.get(variable) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS), metavar="NAME")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=900, help="seconds that a run may take (default: 900)")
    parser.add_argument("--memory", type=float, default=6, help="gigabytes that a run may have (default: 6)")
    parser.add_argument(
        "--peers-python", type=Path, default=named("PEERS_PYTHON"), help="an interpreter with the peers"
    )
    parser.add_argument(
        "--pecos-python", type=Path, default=named("PECOS_PYTHON"), help="one with the package libpecos"
    )
    parser.add_argument("--keep", type=Path, help="folder for the prepared files; temporary if not given")
    parser.add_argument("--again", nargs="+", default=[], choices=list(SYSTEMS), metavar="NAME")
    parser.add_argument("--choose-only", action="store_true", help="only try settings on held-out rows")
    parser.add_argument("--quick", action="store_true", help="2,000 rows, one setting each, nothing recorded")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.limit = min(arguments.limit, 60)
    recorder = Recorder("against_peers", __doc__, data=arguments.data, keep=not arguments.quick)
    for place in (arguments.peers_python, arguments.pecos_python, arguments.keep):
        if place is not None:
            word = "FOLDER" if place is arguments.keep else "PYTHON"
            recorder.facts["command"] = recorder.facts["command"].replace(str(place), word)
    # Ended from outside, it ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        for name in arguments.sets:
            compare(Bench(arguments, recorder, folder, Path(temporary)), name)


if __name__ == "__main__":
    main()

"""Run every benchmark in order and write RESULTS.md.

    python benchmarks/run_all.py [DATA] [--quick] [--only NAME ...]

DATA is the folder with the data sets; without it, only what needs no data is run. Run it on a machine that does nothing
else. Every script of this folder that can be run is one, and its own text tells how: it needs data if its command has
DATA, and it records rows itself if it has a Recorder; what the others print is recorded as it is. The scripts of
``papers/`` come last, since they show what the others measured.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import write_results
from record import Recorder, shown_command

HERE = Path(__file__).parent
NOT_BENCHMARKS = ("run_all", "write_results", "before_after")


class Script(NamedTuple):
    """A benchmark, and what its text says about it."""

    path: Path
    question: str
    needs_data: bool
    records: bool
    has_quick: bool


def find_scripts() -> list[Script]:
    """Return the benchmarks by name."""
    scripts = []
    for path in [*sorted(HERE.glob("*.py")), *sorted(HERE.glob("papers/*.py"))]:
        text = path.read_text(encoding="utf-8")
        if path.stem in NOT_BENCHMARKS or "__main__" not in text:
            continue
        question = text.split('"""')[1].strip().splitlines()[0]
        needs_data = f"{path.name} DATA" in text
        records = "Recorder(" in text or path.parent != HERE
        scripts.append(Script(path, question, needs_data, records, "--quick]" in text or '"--quick"' in text))
    return scripts


def run(script: Script, data: Path | None, quick: bool) -> int:
    """Run a script that records its own rows; return its exit code."""
    words = [str(script.path), *([str(data)] if script.needs_data else []), *(["--quick"] if quick else [])]
    return subprocess.run([sys.executable, *words], cwd=HERE.parent, env=one_thread()).returncode


def run_printing(script: Script, data: Path | None) -> int:
    """Run a script that only prints, and record what it printed; return its exit code."""
    words = [str(script.path), *([str(data)] if script.needs_data else [])]
    recorder = Recorder(script.path.stem, script.question, data)
    recorder.facts["command"] = shown_command(words, data)
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=HERE.parent, env=one_thread(), stdout=subprocess.PIPE, text=True)
    text = done.stdout.replace(str(data), "DATA") if data else done.stdout
    print(text, flush=True)
    if done.returncode == 0:
        recorder.append({"table": "", "note": "", "setting": {}, "printed": text})
    return done.returncode


def one_thread() -> dict[str, str]:
    """The environment with one thread for BLAS and OpenMP: threads are the scripts' own choice."""
    return dict(os.environ) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--quick", action="store_true", help="small settings, to see that the scripts work")
    parser.add_argument("--only", nargs="+", help="run these scripts only", metavar="NAME")
    arguments = parser.parse_args()
    failed = []
    for script in find_scripts():
        name = script.path.stem
        if arguments.only and name not in arguments.only:
            continue
        if (script.needs_data and arguments.data is None) or (arguments.quick and not script.has_quick):
            print(f"\n=== {name}: left out", flush=True)
            continue
        print(f"\n=== {name}: {script.question}", flush=True)
        begin = time.perf_counter()
        code = run(script, arguments.data, arguments.quick) if script.records else run_printing(script, arguments.data)
        print(f"=== {name}: {time.perf_counter() - begin:.0f} s, exit code {code}", flush=True)
        failed += [name] if code else []
    if not arguments.quick:
        write_results.main()
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()

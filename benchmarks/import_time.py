"""How long do ``import abound`` and ``abound --help`` take, warm, and does the import print anything?

    python benchmarks/import_time.py [--repeats 5]

Each is a fresh process; the best of the repeats after a first one that warms the page cache. An empty Python program
stands beside them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from record import Recorder

LIMITS = {"import abound": 1.5, "abound --help": 0.5}


def commands() -> dict[str, list[str]]:
    """What to run; the command line as installed beside this Python."""
    installed = Path(sys.executable).with_name("abound")
    help_command = [str(installed)] if installed.exists() else [sys.executable, "-m", "abound.serve.cli"]
    return {
        "an empty program": [sys.executable, "-c", "pass"],
        "import abound": [sys.executable, "-c", "import abound"],
        "from abound import FeatureFocusClassifier": [
            *(sys.executable, "-c"),
            "from abound import FeatureFocusClassifier",
        ],
        "abound --help": [*help_command, "--help"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one repeat; nothing is recorded")
    arguments = parser.parse_args()
    recorder = Recorder("import_time", __doc__, keep=not arguments.quick)
    table = recorder.table("Seconds to start")
    seconds, printed = {}, {}
    for name, command in commands().items():
        best = float("inf")
        for _ in range(1 + (1 if arguments.quick else arguments.repeats)):
            begin = time.perf_counter()
            done = subprocess.run(command, check=True, capture_output=True)
            best = min(best, time.perf_counter() - begin)
        seconds[name], printed[name] = best, len(done.stdout) + len(done.stderr)
        table.row({"command": name}, {"seconds": best, "bytes printed": printed[name]})
    for name, limit in LIMITS.items():
        table.target(seconds[name] < limit, f"{name} takes less than {limit} s (here {seconds[name]:.2f})")
    table.target(printed["import abound"] == 0, "nothing is printed on import")


if __name__ == "__main__":
    main()

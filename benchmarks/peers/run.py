"""Train and measure one setting of one system, in this process.

    python -m peers.run ADAPTER FOLDER SETTING OUT --threads 1 --memory 6 --seconds 900

SETTING is JSON, FOLDER holds the prepared files, and OUT receives one JSON object: ``status`` is "measured", with the
figures, "not installed", or "not applicable" and why.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import resource
import signal
import time
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

from peers.protocol import Files, NotApplicable, measured


def run(adapter: Any, files: Files, setting: dict[str, Any], threads: int) -> dict[str, Any]:
    """Return what came out."""
    if importlib.util.find_spec(adapter.PACKAGE) is None:
        return {"status": "not installed"}
    try:
        seconds, rank = adapter.train(files, setting, threads)
    except NotApplicable as reason:
        return {"status": f"not applicable: {reason}"}
    begin = time.perf_counter()
    ids = rank()
    ranking = time.perf_counter() - begin
    figures = measured(ids, files.Y_test)
    return {
        "status": "measured",
        **figures,
        "training s": seconds,
        "rows/s": len(ids) / ranking,
        "version": version_of(adapter.PACKAGE),
    }


def version_of(package: str) -> str:
    """Return the version of an import name's distribution."""
    for name in packages_distributions().get(package, [package]):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("adapter")
    parser.add_argument("folder", type=Path)
    parser.add_argument("setting", type=json.loads)
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", type=float, default=6.0, help="gigabytes that the process may have")
    parser.add_argument("--seconds", type=float, help="after which it ends itself, if nobody has ended it")
    arguments = parser.parse_args()
    if arguments.seconds:
        # Should the driver be gone, the process ends by itself.
        signal.alarm(int(arguments.seconds) + 10)
    most = int(arguments.memory * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    adapter = importlib.import_module(f"peers.{arguments.adapter}")
    told = run(adapter, Files(arguments.folder), arguments.setting, arguments.threads)
    beside = arguments.out.with_suffix(".part")
    beside.write_text(json.dumps(told), encoding="utf-8")
    os.replace(beside, arguments.out)


if __name__ == "__main__":
    main()

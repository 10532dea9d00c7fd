"""How much memory does ranking need beyond the rows that go in and the answers that come out?

    python benchmarks/topk_memory.py [--rows 500000] [--classes 25000] [--quick]

A Feature Focus model of generated rows is saved. A fresh process loads model and rows, ranks a few rows so that kernels
are compiled, and then calls ``predict_topk`` on all of them. The figure is its peak resident memory, less what was
resident before the call, less the labels and scores it returned.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import abound
from abound import FeatureFocusClassifier
from ff_classes import make_rows
from record import Recorder

N_FEATURES = 200_000
MOST = 300


def memory(field: str) -> int:
    """Bytes of this process's memory that the system counts under a name."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def rank(folder: Path, k: int, decoded: bool, n_jobs: int) -> dict[str, float]:
    """Rank all rows in this process and return megabytes; used in a fresh one."""
    model: Any = abound.load(folder / "model")
    model.n_jobs = n_jobs
    parts = [np.load(folder / f"{name}.npy") for name in ("data", "indices", "indptr")]
    X = sp.csr_array(tuple(parts), shape=(len(parts[2]) - 1, N_FEATURES))
    inputs = sum(part.nbytes for part in parts) + model.index_.nbytes
    if decoded:
        model.classes_  # noqa: B018
    model.predict_topk(X[:1000], k=k)
    float(model.index_.weights.sum()) + float(model.index_.classes.sum())
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    labels, scores = model.predict_topk(X, k=k)
    peak = memory("VmHWM")
    outputs = labels.nbytes + scores.nbytes
    figures = {"inputs MB": inputs, "outputs MB": outputs, "peak beyond both MB": peak - before - outputs}
    return {name: value / 1e6 for name, value in figures.items()}


def in_fresh_process(folder: str, *words: Any) -> dict[str, float]:
    command = [sys.executable, __file__, "--rank", folder, *map(str, words)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def save_task(folder: Path, n_rows: int, n_classes: int) -> None:
    X, y = make_rows(n_rows, N_FEATURES, n_classes)
    labels = np.array([f"class {number}" for number in range(n_classes)])
    FeatureFocusClassifier().partial_fit(X, labels[y], classes=labels).save(folder / "model")
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(X, name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--classes", type=int, default=25_000)
    parser.add_argument("--quick", action="store_true", help="50,000 rows; nothing is recorded")
    parser.add_argument("--rank", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        folder, k, decoded, n_jobs = arguments.rank
        print(json.dumps(rank(Path(folder), int(k), decoded == "True", int(n_jobs))))
        return
    n_rows = 50_000 if arguments.quick else arguments.rows
    recorder = Recorder("topk_memory", __doc__, keep=not arguments.quick)
    table = recorder.table(
        "Peak memory of predict_topk", f"{n_rows:,} rows × {arguments.classes:,} classes, labels: text."
    )
    most = 0.0
    with tempfile.TemporaryDirectory() as folder:
        save_task(Path(folder), n_rows, arguments.classes)
        for k, decoded, n_jobs in ((5, False, 1), (5, True, 1), (5, True, 2), (50, False, 1), (50, True, 1)):
            figures = in_fresh_process(folder, k, decoded, n_jobs)
            setting = {"k": k, "labels": "decoded" if decoded else "mapped", "threads": n_jobs}
            table.row(setting, figures)
            most = max(most, figures["peak beyond both MB"]) if k == 5 else most
    dense = n_rows * arguments.classes * 4 / 1e6
    table.target(most <= MOST, f"at most {MOST} MB for k = 5 (here {most:.0f}; all scores would be {dense:,.0f} MB)")


if __name__ == "__main__":
    main()

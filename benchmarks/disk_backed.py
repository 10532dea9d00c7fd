"""Do FF, PA and label trees train from a set on disk three times as large as the memory they may take?

    python benchmarks/disk_backed.py [--memory 600MB] [--times 3] [--folder FOLDER] [--quick]

Rows are generated chunk by chunk and written as a file of mapped arrays, which is as large as the budget times three.
Each learner is trained in a fresh process with ``memory=`` set to the budget. The figures are what the system counts
for that process: the peak of all its resident memory (interpreter, libraries, model and the pages of mapped files that
were resident), and the peak of what is in memory alone and in no file. R1 is measured on rows that were not learned;
beside it stands Feature Focus with the same rows read into memory and shuffled all at once. With 20 MB, less than
Python takes, each must refuse before it begins.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from abound.labels import Labels
from abound.learn.registry import make_learner
from abound.memory import kernel_figure, parse_bytes
from abound.read import Vectors, open_rows, write_row_chunks
from record import Recorder

N_FEATURES, N_CLASSES, A_ROW, CHUNK = 20_000, 250, 300, 10_000
TEST_ROWS = 20_000
LEARNERS: dict[str, dict[str, Any]] = {"ff": {}, "pa": {"passes": 1}, "label-tree": {}}


def chunks(n_rows: int, seed: int) -> Iterator[Vectors]:
    """Rows of about 300 words by Zipf's law, an eighth of them from the 100 words of the row's class."""
    topics = np.random.default_rng(0).integers(0, N_FEATURES, size=(N_CLASSES, 100))
    frequency = np.cumsum(1 / (10 + np.arange(N_FEATURES)))
    classes = np.arange(N_CLASSES)
    rng = np.random.default_rng(seed)
    for begin in range(0, n_rows, CHUNK):
        n = min(CHUNK, n_rows - begin)
        y = rng.integers(0, N_CLASSES, n).astype(np.int32)
        words = np.searchsorted(frequency, rng.random((n, A_ROW + A_ROW // 8)) * frequency[-1])
        own = A_ROW // 8
        words[:, :own] = topics[y[:, None], rng.integers(0, 100, (n, own))]
        rows = np.repeat(np.arange(n), words.shape[1])
        X = sp.coo_array((np.ones(words.size, np.float32), (rows, words.ravel())), shape=(n, N_FEATURES)).tocsr()
        X.data = (1 + np.log(X.data)).astype(np.float32)
        norms = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
        X.data /= np.repeat(norms, np.diff(X.indptr)).astype(np.float32)
        yield Vectors(X, Labels(np.arange(n + 1), y, classes, "single"), zero_based=True)


def write_set(folder: Path, n_bytes: int) -> Path:
    """Write training rows of so many bytes, and rows to measure on."""
    path = folder / "train.rows"
    first = next(chunks(CHUNK, 1)).X.nnz / CHUNK
    write_row_chunks(path, chunks(int(n_bytes / (8 * first)), 1), sort_classes=False)
    write_row_chunks(folder / "test.rows", chunks(TEST_ROWS, 2), sort_classes=False)
    return path


class PeakOfAnonymous(threading.Thread):
    """Looks every few milliseconds how much memory is in no file."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, kernel_figure("/proc/self/status", "RssAnon") or 0)
            time.sleep(0.005)


def train(learner: str, folder: Path, memory: int | None) -> dict[str, Any]:
    """Train in this process and return figures; used in a fresh one."""
    watch = PeakOfAnonymous()
    watch.start()
    begin = time.perf_counter()
    data: Any = open_rows(folder / "train.rows")
    opened = time.perf_counter() - begin
    X = data if memory is not None else sp.csr_array(data.X, copy=True)
    settings = LEARNERS[learner] | ({} if memory is None else {"memory": memory})
    model: Any = make_learner(learner, **settings)
    begin = time.perf_counter()
    try:
        model.fit(X, data.labels)
    except MemoryError as error:
        return {"refused": str(error), "seconds": time.perf_counter() - begin}
    model.n_edges_  # noqa: B018
    if hasattr(model, "history_"):
        model.index_  # noqa: B018
    seconds = time.perf_counter() - begin
    peak = kernel_figure("/proc/self/status", "VmHWM") or 0
    anonymous = watch.peak
    test: Any = open_rows(folder / "test.rows")
    return {
        "peak MB": peak / 1e6,
        "of it in no file MB": anonymous / 1e6,
        "verify s": opened,
        "train s": seconds,
        "R1": float(model.score(test, test.labels.to_y())),
    }


def in_fresh_process(learner: str, folder: Path, memory: int | None) -> dict[str, Any]:
    command = [sys.executable, __file__, "--train", learner, str(folder), str(memory or 0)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", default="600MB")
    parser.add_argument("--times", type=float, default=3)
    parser.add_argument("--folder", type=Path, help="where to write the set; by default a temporary folder")
    parser.add_argument("--learners", nargs="*", default=list(LEARNERS))
    parser.add_argument("--quick", action="store_true", help="a set of half the budget; nothing is recorded")
    parser.add_argument("--train", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        learner, folder, memory = arguments.train
        print(json.dumps(train(learner, Path(folder), int(memory) or None)))
        return
    budget = parse_bytes(arguments.memory)
    size = int(budget * (0.6 if arguments.quick else arguments.times))
    recorder = Recorder("disk_backed", __doc__, data=arguments.folder, keep=not arguments.quick)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        path = write_set(folder, size)
        data = open_rows(path)
        note = f"{data.shape[0]:,} rows × {data.shape[1]:,} features, {N_CLASSES:,} classes"
        table = recorder.table(f"Training within {arguments.memory}", note + "; compiled kernels are cached.")
        shown = {"set MB": path.stat().st_size / 1e6, "budget MB": budget / 1e6}
        peaks, refused = [], []
        for learner in arguments.learners:
            figures = in_fresh_process(learner, folder, budget)
            refusal = in_fresh_process(learner, folder, 20_000_000)
            peaks.append(figures.get("peak MB", np.inf))
            refused.append("would take about" in refusal.get("refused", ""))
            table.row({"learner": learner, "rows": "on disk"} | shown, figures)
        if "ff" in arguments.learners:
            table.row({"learner": "ff", "rows": "in memory"} | shown, in_fresh_process("ff", folder, None))
    held = max(peaks) <= budget / 1e6 and all(refused)
    table.target(held, f"peak memory at most {arguments.memory} (here {max(peaks):,.0f} MB); 20MB is refused at once")


if __name__ == "__main__":
    main()

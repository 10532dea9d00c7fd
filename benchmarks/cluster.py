"""What does a Ray cluster cost over threads on one machine, and does a worker hold a second copy of the rows?

    python benchmarks/cluster.py DATA [--jobs 2] [--runs 2] [--rounds 50] [--places threads processes Ray]
        [--tables seconds bytes memory growth] [--quick]

The first table trains HR-SVM on tib_ddc in threads, in processes and on a Ray cluster of this machine, in turn. Ray is
running before the clock starts; how long it takes to start is told beside, and the processor time that this process and
all that it has started took for the training, which other work on the machine changes little. The second counts the
bytes that a flat SVM and HR-SVM send to workers and get back, beside what the cost model of docs/cluster.md expects.
The third trains a few classes on generated rows and watches the memory that a Ray worker has for itself. The fourth
measures what the cost model needs: the processor time of a block of sixteen classes at several sizes.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from abound import LinearClassifier, RecursiveClassifier
from abound.distribute import Serial, Spare, workers
from abound.learn import checkpoint
from abound.learn.class_costs import class_costs
from abound.learn.linear_rows import solver_rows
from abound.learn.linear_solver import LOSSES, Block, solve_background
from abound.learn.one_vs_rest import Problem, Settings, positives_of, solve_block
from abound.read.datasets import load_dataset
from abound.validation import as_rows, check_labels, make_generator
from generated import documents
from record import Recorder
from tasks import Task, text_task, warm_up

MOST_TIMES = 1.25
NAME = "tib_ddc"
PLACES: dict[str, str | None] = {"threads": None, "processes": "processes", "Ray": "local"}


def same(one: Any, other: Any) -> bool:
    """Tell whether two models have the same weights, bit for bit."""
    pairs = zip(
        (one.index_.indptr, one.index_.classes, one.index_.weights, one.index_.offset),
        (other.index_.indptr, other.index_.classes, other.index_.weights, other.index_.offset),
        strict=True,
    )
    return all(a.tobytes() == b.tobytes() for a, b in pairs)


def measure_seconds(task: Task, taxonomy: Any, arguments: Any, recorder: Recorder) -> None:
    """HR-SVM in threads, processes and on Ray."""
    jobs, n_runs = arguments.jobs, arguments.runs
    table = recorder.table(f"HR-SVM on {NAME}, seconds", f"{jobs} workers, best of {n_runs} runs, in turn.")
    best: dict[str, float] = {}
    busy: dict[str, float] = {}
    start: dict[str, float] = {}
    models: dict[str, Any] = {}
    for _ in range(n_runs):
        for name in arguments.places:
            cluster = PLACES[name]
            model = RecursiveClassifier(taxonomy, max_rounds=arguments.rounds, n_jobs=jobs, cluster=cluster)
            begin = time.perf_counter()
            with workers(jobs, cluster) as pool:
                list(pool.map(abs, range(jobs)))
                start[name] = min(start.get(name, np.inf), time.perf_counter() - begin)
                warm_up(model, task)
                begin, before = time.perf_counter(), processor_seconds()
                model.fit(task.X, task.y)
                best[name] = min(best.get(name, np.inf), time.perf_counter() - begin)
                busy[name] = min(busy.get(name, np.inf), processor_seconds() - before)
            models[name] = model
    for name, seconds in best.items():
        figures: dict[str, Any] = {
            "seconds": seconds,
            "times threads": seconds / best["threads"],
            "processor seconds": busy[name],
            "processor times threads": busy[name] / busy["threads"],
            "seconds to start": start[name],
            "rounds": len(models[name].history_),
            "same model": "yes" if same(models["threads"], models[name]) else "no",
        }
        table.row({"where": name, "classes": len(models[name].classes_), "rows": task.X.shape[0]}, figures)
    if "Ray" in best:
        ratio = best["Ray"] / best["threads"]
        table.target(ratio <= MOST_TIMES, f"Ray takes at most {MOST_TIMES} times as long as threads: {ratio:.2f}")


class Counting(Serial):
    """Works here, and counts what would have been sent."""

    def __init__(self, jobs: int) -> None:
        self.n_workers, self.shared, self.sent, self.received = jobs, 0, 0, 0
        self.before: list[pickle.PickleBuffer] = []

    def share(self, value: Any) -> Any:
        # What is shared already is only named when something that has it is shared.
        known = {address(buffer) for buffer in self.before}
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        self.shared += len(head) + sum(buffer.raw().nbytes for buffer in buffers if address(buffer) not in known)
        self.before += buffers
        return value

    def map(self, function: Callable[..., Any], parts: Iterable[Any], *shared: Any, cost: int = 0) -> Iterator[Any]:
        for part in parts:
            found = function(part, *shared)
            self.sent += pickled_bytes(part)
            self.received += pickled_bytes(found)
            yield found


def address(buffer: pickle.PickleBuffer) -> tuple[int, int]:
    whole = np.frombuffer(buffer.raw(), dtype=np.uint8)
    return whole.ctypes.data, whole.nbytes


def pickled_bytes(value: Any) -> int:
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)


def measure_bytes(task: Task, taxonomy: Any, jobs: int, recorder: Recorder) -> None:
    """What crosses the network, counted, and as the cost model has it."""
    table = recorder.table(f"MB that go to another machine and back on {NAME}", "Expected: docs/cluster.md.")
    n, z, F = task.X.shape[0], task.X.nnz, len(np.unique(task.X.indices))
    original = checkpoint.workers
    for learner in (LinearClassifier(), RecursiveClassifier(taxonomy, max_rounds=2, round_tol=0.0)):
        pool = Counting(jobs)

        class Here:
            """Stands in for the workers of `fit`."""

            def __init__(self, *_: Any, pool: Counting = pool) -> None:
                self.pool = pool

            def __enter__(self) -> Counting:
                return self.pool

            def __exit__(self, *_: object) -> None:
                pass

        checkpoint.workers = Here  # type: ignore[misc,assignment]
        try:
            model = learner.fit(task.X, task.y)
        finally:
            checkpoint.workers = original  # type: ignore[misc]
        C = len(model.classes_)
        rows = 8 * z + 32 * n
        figures = {"shared": pool.shared / 1e6, "sent": pool.sent / 1e6, "received": pool.received / 1e6}
        if isinstance(model, LinearClassifier):
            expected = {"shared": (rows + 4 * F) / 1e6, "received": (F * C / 16 + 8 * (model.n_edges_ + 64 * F)) / 1e6}
        else:
            nodes = sum(entry["inner_entries"] for entry in model.history_)
            vectors = sum(entry["support_vectors"] for entry in model.history_)
            before = model.history_[0]["support_vectors"]
            expected = {
                "shared": (rows + 8 * nodes + 2 * 4 * F) / 1e6,
                "sent": 8 * before / 1e6,
                "received": 8 * vectors / 1e6,
            }
        figures |= {f"{name} expected": value for name, value in expected.items()}
        table.row({"learner": model.learner, "rows": n, "non-zeros": z, "features": F, "classes": C}, figures)


def processor_seconds() -> float:
    """Return what this process and all that it has started have taken of the processor."""
    ticks = 0
    for process in descendants():
        with suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def descendants() -> dict[int, str]:
    """Return the processes that this one has started, and those that they have, by what they are called."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    family = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    names = {}
    for process in family:
        with suppress(OSError):
            names[process] = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return names


def own_memory(process: int) -> int:
    """Return the bytes that a process shares with no other and with no file."""
    with suppress(OSError):
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        return 1024 * int(re.findall(r"^Anonymous:\s+(\d+)", text, re.MULTILINE)[0])
    return 0


class Watching:
    """Watches the memory of Ray's workers while a block runs."""

    def __init__(self) -> None:
        self.peaks: dict[int, int] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watching:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.1):
            for process, name in descendants().items():
                if name.startswith("ray::"):
                    self.peaks[process] = max(self.peaks.get(process, 0), own_memory(process))


def measure_memory(jobs: int, quick: bool, recorder: Recorder) -> None:
    """What Ray's workers have for themselves, at few rows and at many."""
    note = "Flat SVM, 64 classes, memory of the largest Ray worker that it shares with no other process."
    table = recorder.table("Memory of a worker, MB", note)
    sizes = (5_000, 20_000) if quick else (20_000, 200_000)
    found: list[tuple[float, float, float]] = []
    with workers(jobs, "local"):
        for n_rows in sizes:
            X, y = documents(n_rows, 64, 100_000)
            model = LinearClassifier(tol=0.1, n_jobs=jobs, cluster="local")
            with Watching() as watching:
                model.fit(X, y)
            n, F = n_rows, len(np.unique(X.indices))
            rows, room, peak = 8 * X.nnz + 8 * n, 64 * F + 88 * n, max(watching.peaks.values())
            found.append((rows / 1e6, room / 1e6, peak / 1e6))
            names = ("the rows", "a block's room", "own memory")
            table.row({"rows": n, "non-zeros": X.nnz}, dict(zip(names, found[-1], strict=True)))
    (rows, room, own), (more_rows, more_room, more_own) = found
    grown, of_it = more_own - own - (more_room - room), more_rows - rows
    table.target(grown < of_it / 2, f"of {of_it:,.0f} MB more rows, a worker has {grown:,.0f} MB for itself")


def block_seconds(X: Any, y: Any, n_blocks: int) -> float:
    """Return the processor time of a block of sixteen classes of a flat SVM, the mean of some."""
    rows, labels = as_rows(X), check_labels(y, X.shape[0])
    weights = np.ones(rows.n_rows, dtype=np.float32)
    prepared = solver_rows(rows, weights, make_generator(0), 0.0)
    costs = class_costs(None, labels, weights)
    settings = Settings(LOSSES.index("squared_hinge"), 1e-3, 1000, 0.06, 0)
    room: Spare[Block] = Spare()
    block = room.take(Block, prepared)
    background = solve_background(block, 1.0, settings.loss, settings.tol, settings.max_sweeps, 0)
    room.give(block)
    problem = Problem(prepared, positives_of(labels, prepared), (1.0,), costs, settings, (background,), room)
    firsts = np.linspace(0, labels.n_classes - 16, n_blocks).astype(int).tolist()
    solve_block((firsts[0], [0.1]), problem)
    begin = time.process_time()
    for first in firsts:
        solve_block((first, [0.1]), problem)
    return (time.process_time() - begin) / n_blocks


def measure_growth(quick: bool, recorder: Recorder) -> None:
    """Seconds of a block by rows and features."""
    table = recorder.table("A block of sixteen classes of a flat SVM", "Generated rows, one thread, mean of 8 blocks.")
    sizes = [(10_000, 20_000), (20_000, 20_000), (20_000, 100_000)]
    sizes += [] if quick else [(80_000, 100_000), (80_000, 400_000), (80_000, 1_600_000)]
    for n_rows, n_features in sizes:
        X, y = documents(n_rows, max(64, n_rows // 10), n_features)
        seconds = block_seconds(X, y, 8)
        figures = {"milliseconds": 1e3 * seconds, "ns for a non-zero": 1e9 * seconds / X.nnz}
        table.row({"rows": n_rows, "non-zeros": X.nnz, "features": len(np.unique(X.indices))}, figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=50, help="rounds after which to stop in any case")
    parser.add_argument("--places", nargs="+", default=list(PLACES), choices=PLACES)
    parser.add_argument("--tables", nargs="+", default=["seconds", "bytes", "memory", "growth"])
    parser.add_argument("--quick", action="store_true", help="few rows, nothing recorded")
    arguments = parser.parse_args()
    recorder = Recorder("cluster", __doc__, arguments.data, keep=not arguments.quick)
    if {"seconds", "bytes"} & set(arguments.tables):
        task, taxonomy = text_task(arguments.data, NAME), load_dataset(arguments.data / NAME).taxonomy
        task = task.shortened(4_000) if arguments.quick else task
        if "seconds" in arguments.tables:
            measure_seconds(task, taxonomy, arguments, recorder)
        if "bytes" in arguments.tables:
            measure_bytes(task, taxonomy, arguments.jobs, recorder)
    if "memory" in arguments.tables:
        measure_memory(arguments.jobs, arguments.quick, recorder)
    if "growth" in arguments.tables:
        measure_growth(arguments.quick, recorder)


if __name__ == "__main__":
    main()

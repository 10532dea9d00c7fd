"""How long does HR-SVM take at the size of its paper, how much memory, and how does that grow?

    python benchmarks/recursive_size.py [--jobs 2] [--tables growth paper larger] [--blocks N] [--memory 6GB]
        [--folder FOLDER] [--quick]

The paper trained 12,294 classes on 128,710 documents in 8.2 minutes on a cluster of 64 nodes. Here: generated rows of
that number (see generated.py) under a random tree of 15,358 nodes and depth 6, with the stopping rule of the learner.
For the growth, one of rows, classes and depth is doubled at a time. Each fit runs in a process of its own, so that its
peak of memory, which includes the data, is its own.

The table "larger" has 100,000 classes and 300,000 rows, which are written to a file first, and a budget: what is solved
goes to temporary files. Its figures are what the system counts for the process, see disk_backed.py. With ``--blocks N``
only N blocks of 16 classes, of parents drawn at random, are learned, from all rows; what the whole would take is
computed from these, as if rounds and the making of the index cost the same for every block.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abound import LinearClassifier, RecursiveClassifier, Taxonomy
from abound.learn.recursive_tree import RecursiveTree
from abound.memory import kernel_figure, parse_bytes
from abound.read import open_rows, write_rows
from disk_backed import PeakOfAnonymous
from generated import documents
from record import Recorder, Table

MOST_MINUTES = 30
MOST_GB = 8
PAPER_MINUTES = 8.2


class Size(NamedTuple):
    """Of the data and the tree."""

    rows: int
    classes: int
    nodes: int
    depth: int


PAPER = Size(128_710, 12_294, 15_358, 6)
SMALL = Size(8_000, 1_000, 1_250, 6)
LARGER = Size(300_000, 100_000, 125_000, 6)
LANES = 16


def random_tree(size: Size, seed: int = 0) -> Any:
    """Make a tree whose leaves are the classes, all at the given depth.

    Inner nodes are shared out over the levels below the root, each level some times as wide as the one above, and
    parents are drawn at random; every inner node has a child, so that it is inner.
    """
    rng = np.random.default_rng(seed)
    n_inner = size.nodes - size.classes - 1
    n_levels = size.depth - 1
    growth = max(1.0, n_inner ** (1 / n_levels))
    shares = growth ** np.arange(1, n_levels + 1)
    widths = np.maximum(1, (n_inner * shares / shares.sum()).astype(int))
    widths[-1] += n_inner - widths.sum()
    levels = [["root"], *([f"{level}/{i}" for i in range(width)] for level, width in enumerate(widths.tolist(), 1))]
    levels.append(list(map(str, range(size.classes))))
    edges = []
    for above, below in pairwise(levels):
        parents = np.concatenate((np.arange(len(above)), rng.integers(0, len(above), size=len(below) - len(above))))
        parents = rng.permutation(parents)
        edges += [(above[parent], node) for parent, node in zip(parents.tolist(), below, strict=True)]
    return Taxonomy.from_edges(edges)


def labelled_rows(size: Size, n_features: int, n_test: int = 2_000) -> tuple[Any, Any]:
    """Make rows to learn and, behind them, rows to measure on; every class has a row to learn."""
    X, y = documents(size.rows + n_test, size.classes, n_features)
    # A class that no row was drawn for would not be learned: it takes a row of one that has others.
    learned = y[: size.rows]
    missing = np.setdiff1d(np.arange(size.classes), learned)
    _, firsts = np.unique(learned, return_index=True)
    spare = np.setdiff1d(np.arange(size.rows), firsts)
    by_class = spare[np.argsort(learned[spare], kind="stable")]
    learned[by_class[: len(missing)]] = missing
    return X, y.astype(str)


def measure(learner: str, size: Size, n_features: int, jobs: int, answer: Any) -> None:
    """Train on generated rows, and send what it took."""
    X, labels = labelled_rows(size, n_features)
    taxonomy = random_tree(size)
    before = peak_gb()
    model: Any
    if learner == "HR-SVM":
        model = RecursiveClassifier(taxonomy, "hinge", n_jobs=jobs)
    else:
        model = LinearClassifier("hinge", n_jobs=jobs)
    model.fit(X[:200], labels[:200])
    begin = time.perf_counter()
    model.fit(X[: size.rows], labels[: size.rows])
    seconds = time.perf_counter() - begin
    right = model.predict(X[size.rows :]) == labels[size.rows :]
    answer.put(
        {
            "nodes": len(taxonomy),
            "learned": len(model.classes_),
            "minutes": seconds / 60,
            "rounds": len(model.history_),
            "edges": model.n_edges_,
            "R1": float(np.mean(right)),
            "GB of the data": before,
            "peak GB": peak_gb(),
        }
    )


def peak_gb() -> float:
    """Most memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measured(learner: str, size: Size, n_features: int, jobs: int, table: Table) -> dict[str, float]:
    """Measure in a process of its own, and add a row."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=measure, args=(learner, size, n_features, jobs, answer))
    process.start()
    while process.is_alive() and answer.empty():
        process.join(1)
    if answer.empty():
        raise SystemExit(f"{learner} at {size} ended with exit code {process.exitcode}")
    figures: dict[str, float] = answer.get()
    process.join()
    shown = {"learner": learner, "rows": size.rows, "classes": size.classes, "depth": size.depth}
    table.row(shown, figures)
    return figures


def write_set(path: Path, size: Size, n_features: int, n_blocks: int | None) -> None:
    """Write the rows to learn, with all labels or those of some classes."""
    X, y = labelled_rows(size, n_features)
    labels = y[: size.rows]
    if n_blocks is None:
        write_rows(path, X[: size.rows], labels)
        return
    some = set(some_classes(size, LANES * n_blocks))
    write_rows(path, X[: size.rows], [[label] if label in some else [] for label in labels.tolist()])


def some_classes(size: Size, n_classes: int) -> list[str]:
    """Children of inner nodes drawn at random."""
    taxonomy = random_tree(size)
    found: list[str] = []
    for node in np.random.default_rng(1).permutation(size.nodes).tolist():
        name = taxonomy.names[node]
        found += [child for child in taxonomy.children(name) if child.isdigit()]
        if len(found) >= n_classes:
            break
    return found[:n_classes]


def train_within(path: Path, size: Size, memory: int, jobs: int) -> dict[str, Any]:
    """Train in this process and return figures; used in a fresh one."""
    watch = PeakOfAnonymous()
    watch.start()
    data = open_rows(path)
    model = RecursiveClassifier(random_tree(size), "hinge", n_jobs=jobs, memory=memory, cut=None)
    spent: list[float] = []
    make_index = RecursiveTree.index

    def timed_index(*given: Any) -> Any:
        begin = time.perf_counter()
        found = make_index(*given)
        spent.append(time.perf_counter() - begin)
        return found

    RecursiveTree.index = timed_index  # type: ignore[method-assign]
    begin = time.perf_counter()
    model.fit(data, data.labels)
    seconds = time.perf_counter() - begin
    peak = kernel_figure("/proc/self/status", "VmHWM") or 0
    n_blocks = -(-len(model.classes_) // LANES)
    rounds = [entry["seconds"] for entry in model.history_]
    share = size.classes / len(model.classes_)
    of_classes = sum(rounds) + sum(spent)
    return {
        "classes learned": len(model.classes_),
        "peak GB": peak / 1e9,
        "of it in no file GB": watch.peak / 1e9,
        "rounds": len(rounds),
        "s a block and round": sum(rounds) / len(rounds) / n_blocks,
        "minutes": seconds / 60,
        "whole, minutes": (seconds + (share - 1) * of_classes) / 60,
        "support vectors a class": model.history_[-1]["support_vectors"] / len(model.classes_),
        "GB of support vectors, whole": 8e-9 * share * max(entry["support_vectors"] for entry in model.history_),
        "GB of inner nodes, whole": 8e-9 * share * sum(entry["inner_entries"] for entry in model.history_),
        "edges": model.n_edges_,
    }


def larger(arguments: Any, recorder: Recorder) -> None:
    """More classes than their weights, or those of the inner nodes, would have room for."""
    size = SMALL if arguments.quick else LARGER
    n_features = 20_000 if arguments.quick else 350_000
    budget = parse_bytes(arguments.memory)
    n_blocks = 8 if arguments.quick and not arguments.blocks else arguments.blocks
    measured_on = "all classes" if n_blocks is None else f"{n_blocks} blocks of 16 classes; the whole is computed"
    note = f"{n_features:,} features, memory={arguments.memory!r}, {arguments.jobs} threads, hinge; {measured_on}."
    table = recorder.table("HR-SVM larger than memory", note)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "train.rows"
        context = multiprocessing.get_context("spawn")
        writer = context.Process(target=write_set, args=(path, size, n_features, n_blocks))
        writer.start()
        writer.join()
        if writer.exitcode:
            raise SystemExit(f"the rows could not be written: exit code {writer.exitcode}")
        given = json.dumps([str(path), list(size), budget, arguments.jobs])
        done = subprocess.run([sys.executable, __file__, "--train", given], check=True, stdout=subprocess.PIPE)
    figures = json.loads(done.stdout)
    table.row({"rows": size.rows, "classes": size.classes, "nodes": size.nodes, "depth": size.depth}, figures)
    held = figures["peak GB"] <= budget / 1e9
    table.target(held, f"peak memory at most {arguments.memory} (here {figures['peak GB']:.2f} GB)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    tables = ["growth", "paper", "larger"]
    parser.add_argument("--tables", nargs="+", default=tables, choices=tables)
    parser.add_argument("--blocks", type=int, help="of the larger set, learn so many blocks of 16 classes only")
    parser.add_argument("--memory", default="6GB", help="budget of the larger set")
    parser.add_argument("--folder", type=Path, help="where to write the larger set; by default a temporary folder")
    parser.add_argument("--quick", action="store_true", help="a small tree, nothing recorded")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        path, size, memory, jobs = json.loads(arguments.train)
        print(json.dumps(train_within(Path(path), Size(*size), memory, jobs)))
        return
    recorder = Recorder("recursive_size", __doc__, keep=not arguments.quick)
    if arguments.folder:
        recorder.facts["command"] = recorder.facts["command"].replace(str(arguments.folder), "FOLDER")
    if "growth" in arguments.tables:
        n_features = 20_000 if arguments.quick else 100_000
        base = SMALL if arguments.quick else Size(16_000, 1_500, 1_875, 6)
        table = recorder.table("HR-SVM by size", f"{n_features:,} features, {arguments.jobs} threads.")
        more = {
            "rows": base._replace(rows=2 * base.rows),
            "classes": base._replace(classes=2 * base.classes, nodes=2 * base.nodes),
            "depth": base._replace(depth=2 * base.depth),
        }
        minutes = measured("HR-SVM", base, n_features, arguments.jobs, table)["minutes"]
        grown = {
            what: measured("HR-SVM", size, n_features, arguments.jobs, table)["minutes"] / minutes
            for what, size in more.items()
        }
        told = ", ".join(f"{what} {times:.2f} times" for what, times in grown.items())
        table.target(max(grown.values()) <= 3, f"twice as many cost less than three times the time: {told}")
    if "paper" in arguments.tables:
        size = SMALL if arguments.quick else PAPER
        n_features = 20_000 if arguments.quick else 350_000
        note = f"{n_features:,} features, {arguments.jobs} threads; the paper: {PAPER_MINUTES} minutes on 64 nodes."
        table = recorder.table("HR-SVM at the size of its paper", note)
        found = measured("HR-SVM", size, n_features, arguments.jobs, table)
        table.target(
            found["minutes"] <= MOST_MINUTES and found["peak GB"] <= MOST_GB,
            f"at most {MOST_MINUTES} minutes and {MOST_GB} GB on {arguments.jobs} cores",
        )
        measured("flat SVM", size, n_features, arguments.jobs, table)
    if "larger" in arguments.tables:
        larger(arguments, recorder)


if __name__ == "__main__":
    main()

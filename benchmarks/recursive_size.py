"""How long does HR-SVM take at the size of its paper, how much memory, and how does that grow?

    python benchmarks/recursive_size.py [--jobs 2] [--tables paper growth] [--quick]

The paper trained 12,294 classes on 128,710 documents in 8.2 minutes on a cluster of 64 nodes. Here: generated rows of
that number (see generated.py) under a random tree of 15,358 nodes and depth 6, with the stopping rule of the learner.
For the growth, one of rows, classes and depth is doubled at a time. Each fit runs in a process of its own, so that its
peak of memory, which includes the data, is its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from abound import LinearClassifier, RecursiveClassifier, Taxonomy
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


def measure(learner: str, size: Size, n_features: int, jobs: int, answer: Any) -> None:
    """Train on generated rows, and send what it took."""
    n_test = 2_000
    X, y = documents(size.rows + n_test, size.classes, n_features)
    labels = y.astype(str)
    # A class that no row was drawn for would not be learned: it takes a row of the most frequent one.
    missing = np.setdiff1d(np.arange(size.classes), y[: size.rows])
    labels[np.flatnonzero(y[: size.rows] == 0)[: len(missing)]] = missing.astype(str)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tables", nargs="+", default=["growth", "paper"], choices=["growth", "paper"])
    parser.add_argument("--quick", action="store_true", help="a small tree, nothing recorded")
    arguments = parser.parse_args()
    recorder = Recorder("recursive_size", __doc__, keep=not arguments.quick)
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


if __name__ == "__main__":
    main()

"""Does the cost of Feature Focus follow the edges it touches, whatever the number of classes?

    python benchmarks/ff_classes.py [--rows 500000] [--features 200000] [--repeats 3] [--quick]

Generated rows with 20 features each: ten that speak for the row's class (three alternatives each, six in ten of them
replaced by chance) and ten common ones. Rows, features and non-zeros stay the same; classes, drawn by Zipf's law, grow
from a thousand to a million. All classes are known to the model from the start, though not all occur. The time is the
CPU time of one pass with the paper's settings on one core, scratch arrays and growing lists included, the best of the
repeats. An edge is touched when it votes and updated when a feature adds to it.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from abound import FeatureFocusClassifier
from record import RESULTS, Recorder

NON_ZEROS = 20
OWN = 10
ALTERNATIVES = 3
CHANCE = 0.6
MOST = 2.5
PLOT = "ff_classes.svg"


class CountingFeatureFocus(FeatureFocusClassifier):
    """Feature Focus that keeps how many edges voted in the last pass, and its CPU seconds."""

    def _learn(self, examples: Any, first_pass: bool) -> Any:
        begin = time.process_time()
        tally = super()._learn(examples, first_pass)
        self.seconds_, self.touched_ = time.process_time() - begin, int(tally[2])
        return tally


def zipf(rng: np.random.Generator, n_values: int, size: Any) -> Any:
    """Draw numbers below ``n_values``, number r with a probability proportional to 1 / (r + 1)."""
    cumulated = np.cumsum(1.0 / np.arange(1, n_values + 1))
    return np.searchsorted(cumulated, rng.random(size) * cumulated[-1])


def scatter(numbers: Any) -> Any:
    """Map numbers to numbers that look random (Fibonacci hashing)."""
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(11400714819323198485)
    return (mixed ^ (mixed >> np.uint64(29))) >> np.uint64(8)


def make_rows(n_rows: int, n_features: int, n_classes: int) -> tuple[Any, Any]:
    """Each of a row's 20 features comes from its own twentieth of the features, so that none occurs twice."""
    rng = np.random.default_rng(0)
    y = rng.permutation(n_classes)[zipf(rng, n_classes, n_rows)]
    block = n_features // NON_ZEROS
    places = np.arange(OWN)
    choice = rng.integers(0, ALTERNATIVES, (n_rows, OWN))
    own = scatter((y[:, None] * OWN + places) * ALTERNATIVES + choice) % np.uint64(block)
    by_chance = rng.random((n_rows, OWN)) < CHANCE
    own = np.where(by_chance, rng.integers(0, block, (n_rows, OWN)), own.astype(np.int64))
    common = zipf(rng, block, (n_rows, NON_ZEROS - OWN))
    indices = (np.hstack((own, common)) + block * np.arange(NON_ZEROS)).astype(np.int32).ravel()
    data = np.full(len(indices), NON_ZEROS**-0.5, dtype=np.float32)
    indptr = np.arange(0, len(indices) + 1, NON_ZEROS, dtype=np.int64)
    return sp.csr_array((data, indices, indptr), shape=(n_rows, n_features)), y


def one_pass(X: Any, y: Any, n_classes: int, repeats: int) -> dict[str, Any]:
    """Return the figures of the quickest of several first passes."""
    best: dict[str, Any] = {}
    for _ in range(repeats):
        model = CountingFeatureFocus().partial_fit(X, y, classes=np.arange(n_classes))
        history = model.history_[-1]
        if not best or model.seconds_ < best["seconds"]:
            updated = history["updates"] * NON_ZEROS
            best = {
                "classes that occur": len(np.unique(y)),
                "edges touched": model.touched_,
                "edges updated": updated,
                "W": model.n_edges_,
                "online R1": history["online_R1"],
                "seconds": model.seconds_,
                "ns an edge": model.seconds_ * 1e9 / (model.touched_ + updated),
            }
    return best


def draw(results: dict[int, dict[str, Any]]) -> None:
    """Plot the cost of an edge, and of the whole pass, against the number of classes."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "abound"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), constrained_layout=True)
    for axis, key, title in zip(
        axes, ("ns an edge", "seconds"), ("nanoseconds an edge", "seconds for the pass"), strict=True
    ):
        axis.plot(list(results), [figures[key] for figures in results.values()], marker="o")
        axis.set(xscale="log", xlabel="classes", title=title, ylim=(0, None))
        axis.grid(alpha=0.3)
    figure.savefig(RESULTS / PLOT, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--features", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="50,000 rows, one repeat; nothing is recorded")
    arguments = parser.parse_args()
    n_rows, repeats = (50_000, 1) if arguments.quick else (arguments.rows, arguments.repeats)
    recorder = Recorder("ff_classes", __doc__, keep=not arguments.quick)
    CountingFeatureFocus().partial_fit(*make_rows(200, arguments.features, 10))
    table = recorder.table(
        "One pass of Feature Focus over Zipf classes",
        f"{n_rows:,} rows, {arguments.features:,} features, {NON_ZEROS} non-zeros a row.",
    )
    results = {}
    for n_classes in (1_000, 10_000, 100_000, 1_000_000):
        results[n_classes] = one_pass(*make_rows(n_rows, arguments.features, n_classes), n_classes, repeats)
        plot = f"results/{PLOT}" if n_classes == 1_000_000 else None
        table.row({"classes": n_classes}, results[n_classes], plot=plot)
    costs = [figures["ns an edge"] for figures in results.values()]
    ratio = max(costs) / costs[0]
    table.target(
        ratio <= MOST, f"nanoseconds an edge rise by at most {MOST} from 10³ to 10⁶ classes (here {ratio:.2f})"
    )
    if recorder.keep:
        draw(results)


if __name__ == "__main__":
    main()

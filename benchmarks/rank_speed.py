"""How many rows a second are ranked, against scipy's ``X @ W`` and numpy's ``argpartition`` on the same index?

    python benchmarks/rank_speed.py [--rows 50000] [--classes 1000 25000 200000] [--repeats 3] [--quick]

A Feature Focus model of generated rows (see ff_classes.py) ranks the five best classes of each row. The peers multiply
blocks of 500 rows with the index as a sparse matrix; one makes the block's scores dense (it gets fewer rows, as it is
slow), the other looks at each row's scores alone. They run in turns with abound, on one thread and on two; the best of
the repeats counts. The scores are compared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from abound import FeatureFocusClassifier
from ff_classes import make_rows
from record import Recorder

K = 5
BLOCK = 500
N_FEATURES = 200_000
TRAINING_ROWS = 300_000
DENSE_SCORES = 25_000_000
"""Scores that the dense peer makes in all."""


def top_of_dense(scores: Any) -> tuple[Any, Any]:
    """The best classes of a block, its scores made dense."""
    dense = scores.toarray()
    ids = np.argpartition(dense, -K, axis=1)[:, -K:]
    values = np.take_along_axis(dense, ids, axis=1)
    order = np.argsort(-values, axis=1)
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(values, order, axis=1)


def top_of_sparse(scores: Any) -> tuple[Any, Any]:
    """The best classes of a block, row by row."""
    ids = np.full((scores.shape[0], K), -1)
    values = np.zeros((scores.shape[0], K), dtype=np.float32)
    for i, (low, high) in enumerate(zip(scores.indptr[:-1], scores.indptr[1:], strict=True)):
        row = scores.data[low:high]
        best = np.argpartition(row, -K)[-K:] if len(row) > K else np.arange(len(row))
        best = best[np.argsort(-row[best])]
        ids[i, : len(best)], values[i, : len(best)] = scores.indices[low:high][best], row[best]
    return ids, values


def by_scipy(X: Any, W: Any, top: Callable[[Any], tuple[Any, Any]], n_threads: int) -> Any:
    """Scores of the best classes, block by block."""
    blocks = [X[begin : begin + BLOCK] for begin in range(0, X.shape[0], BLOCK)]
    with ThreadPoolExecutor(n_threads) as pool:
        return np.vstack([values for _, values in pool.map(lambda block: top(block @ W), blocks)])


def compare(n_classes: int, n_rows: int, repeats: int, n_threads: int) -> tuple[dict[str, float], float]:
    """Rows a second of each way, and the largest difference between the scores."""
    X, y = make_rows(TRAINING_ROWS, N_FEATURES, n_classes)
    model = FeatureFocusClassifier(n_jobs=n_threads).partial_fit(X, y, classes=np.arange(n_classes))
    X, W = X[:n_rows], model.index_.to_matrix()
    n_dense = min(n_rows, DENSE_SCORES // n_classes)
    ways: dict[str, Callable[[], Any]] = {
        "abound": lambda: model.predict_topk(X, k=K).scores,
        "scipy, dense blocks": lambda: by_scipy(X[:n_dense], W, top_of_dense, n_threads),
        "scipy, sparse rows": lambda: by_scipy(X, W, top_of_sparse, n_threads),
    }
    model.predict_topk(X[:100], k=K)
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(repeats):
        scores: dict[str, Any] = {}
        for name, way in ways.items():
            begin = time.perf_counter()
            scores[name] = way()
            best[name] = min(best[name], time.perf_counter() - begin)
    scores["abound"] = ours = np.maximum(scores["abound"], 0)
    difference = max(float(np.abs(ours[: len(values)] - values).max()) for values in scores.values())
    return {name: len(scores[name]) / seconds for name, seconds in best.items()}, difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, nargs="+", default=[1_000, 25_000, 200_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="2,000 rows, one repeat; nothing is recorded")
    arguments = parser.parse_args()
    n_rows, repeats = (2_000, 1) if arguments.quick else (arguments.rows, arguments.repeats)
    recorder = Recorder("rank_speed", __doc__, keep=not arguments.quick)
    table = recorder.table(f"Rows ranked a second, k = {K}", f"{n_rows:,} rows with 20 non-zeros.")
    ratios = []
    for n_classes in arguments.classes:
        for n_threads in (1, 2):
            speed, difference = compare(n_classes, n_rows, repeats, n_threads)
            ratio = speed["abound"] / max(value for name, value in speed.items() if name != "abound")
            ratios.append(ratio)
            figures = {name: float(round(value)) for name, value in speed.items()}
            setting = {"classes": n_classes, "threads": n_threads}
            table.row(setting, figures | {"ratio to the faster": ratio, "largest difference": f"{difference:.0e}"})
    table.target(min(ratios) > 1, f"abound ranks {min(ratios):.1f} to {max(ratios):.1f} times as fast")


if __name__ == "__main__":
    main()

"""abound's own learners, measured as the peers are.

Kernels are compiled on a few rows before the clock runs. No cut is learned, since only rankings are compared.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peers.protocol import Files, K, Ranking, padded

PACKAGE = "abound"
FILES: tuple[str, ...] = ()
TREES: list[dict[str, Any]] = [{"C": 0.7}, {"C": 0.3}, {"C": 2.0}, {"C": 2.0, "arity": 16}]
"""Settings of label trees; with more rows a class they need less C, with few, narrower nodes."""

SYSTEMS: dict[str, list[dict[str, Any]]] = {
    "abound ind": [{"learner": "ind"}],
    "abound ff, 1 pass": [{"learner": "ff", "margin": margin} for margin in (0.0, 0.1, 0.5)],
    "abound ff": [{"learner": "ff", "margin": m, "passes": p} for m, p in ((0.1, 4), (0.5, 2), (0.5, 4))],
    "abound pa, 1 pass": [{"learner": "pa", "passes": 1}, {"learner": "pa", "passes": 1, "C": 0.1}],
    "abound pa": [{"learner": "pa", "passes": p, "C": c} for p, c in ((3, 1.0), (3, 0.1), (6, 0.1))],
    "abound label-tree": [{"learner": "label-tree"} | tree for tree in TREES],
    **{f"abound {n} trees": [{"learner": "label-tree", "n_trees": n} | tree for tree in TREES] for n in (3, 5, 8)},
    "abound svm": [{"learner": "svm", "C": c} for c in (1.0, 0.3, 3.0)],
}


def train(files: Files, setting: dict[str, Any], threads: int) -> tuple[float, Ranking]:
    from abound.learn.registry import LEARNERS, make_learner

    options = {name: value for name, value in setting.items() if name != "learner"}
    takes = LEARNERS[setting["learner"]]().get_params()
    options |= {"n_jobs": threads} if "n_jobs" in takes else {}
    options |= {"cut": None} if "cut" in takes else {}
    X, X_test, y = files.X, files.X_test, labels_of(files)
    few = min(500, len(y))
    make_learner(setting["learner"], **options).fit(X[:few], y[:few]).predict_topk(X_test[:100], 1)
    model = make_learner(setting["learner"], **options)
    begin = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - begin

    def rank() -> Any:
        labels = model.predict_topk(X_test, min(K, len(model.classes_))).labels
        if labels.dtype == object:
            labels = np.where(np.equal(labels, None), -1, labels)
        return padded(labels.astype(np.int64))

    return seconds, rank


def labels_of(files: Files) -> Any:
    """Return an array of ids, or lists of them where a row has several."""
    if files.is_single:
        return files.Y.indices.astype(np.int64)
    ends = zip(files.Y.indptr[:-1].tolist(), files.Y.indptr[1:].tolist(), strict=True)
    return [files.Y.indices[low:high].tolist() for low, high in ends]

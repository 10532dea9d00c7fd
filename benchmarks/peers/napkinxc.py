"""napkinXC: probabilistic label trees. Training writes the model to disk, which is part of its time."""

from __future__ import annotations

import tempfile
import time
from typing import Any

from peers.protocol import Files, K, Ranking, of_lists

PACKAGE = "napkinxc"
FILES: tuple[str, ...] = ()
SYSTEMS: dict[str, list[dict[str, Any]]] = {
    "napkinXC": [
        {"loss": "log", "liblinear_c": 10.0},
        {"loss": "l2", "liblinear_c": 1.0},
        {"loss": "log", "liblinear_c": 30.0},
    ]
}


def train(files: Files, setting: dict[str, Any], threads: int) -> tuple[float, Ranking]:
    from napkinxc.models import PLT

    place = tempfile.mkdtemp(dir=files.folder)
    model = PLT(place, seed=1, threads=threads, **setting)
    X, X_test, labels = files.X, files.X_test, lists_of(files.Y)
    begin = time.perf_counter()
    model.fit(X, labels)
    seconds = time.perf_counter() - begin
    return seconds, lambda: of_lists(model.predict(X_test, top_k=K))


def lists_of(Y: Any) -> list[list[int]]:
    """The labels of each row."""
    ends = zip(Y.indptr[:-1].tolist(), Y.indptr[1:].tolist(), strict=True)
    return [Y.indices[low:high].tolist() for low, high in ends]

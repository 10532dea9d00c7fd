"""PECOS: XR-Linear over a tree of balanced k-means. It needs numpy < 2, and so an environment of its own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peers.protocol import Files, K, Ranking, of_lists

PACKAGE = "pecos"
FILES: tuple[str, ...] = ()
# C = 10 was tried on wordnet_hypernym and tib_ddc, and was below 3 on both.
SYSTEMS: dict[str, list[dict[str, Any]]] = {"PECOS": [{"Cp": c, "Cn": c} for c in (1.0, 0.3, 3.0)]}


def train(files: Files, setting: dict[str, Any], threads: int) -> tuple[float, Ranking]:
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    X, Y, X_test = (matrix.astype(np.float32) for matrix in (files.X, files.Y, files.X_test))
    begin = time.perf_counter()
    labels = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=threads)
    tree = Indexer.gen(labels, indexer_type="hierarchicalkmeans", threads=threads)
    model = XLinearModel.train(X, Y, C=tree, threads=threads, **setting)
    seconds = time.perf_counter() - begin

    def rank() -> Any:
        found = model.predict(X_test, beam_size=10, only_topk=K, threads=threads)
        ends = zip(found.indptr[:-1], found.indptr[1:], strict=True)
        return of_lists(
            [found.indices[low:high][np.argsort(-found.data[low:high], kind="stable")] for low, high in ends]
        )

    return seconds, rank

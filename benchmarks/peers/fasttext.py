"""fastText, which reads words and learns vectors of them; its reading is part of its training."""

from __future__ import annotations

import time
from typing import Any

from peers.protocol import Files, K, Ranking, of_lists

PACKAGE = "fasttext"
FILES = ("train.txt", "test.txt")
SYSTEMS: dict[str, list[dict[str, Any]]] = {
    "fastText": [
        {"loss": "hs", "lr": 0.5, "epoch": 25, "wordNgrams": 1},
        {"loss": "hs", "lr": 1.0, "epoch": 25, "wordNgrams": 2},
        {"loss": "hs", "lr": 1.0, "epoch": 100, "wordNgrams": 2},
        {"loss": "softmax", "lr": 0.5, "epoch": 25, "wordNgrams": 1},
    ]
}


def train(files: Files, setting: dict[str, Any], threads: int) -> tuple[float, Ranking]:
    import fasttext

    begin = time.perf_counter()
    model = fasttext.train_supervised(str(files.path("train.txt")), thread=threads, verbose=0, **setting)
    seconds = time.perf_counter() - begin
    texts = files.path("test.txt").read_text(encoding="utf-8").split("\n")[:-1]

    def rank() -> Any:
        labels, _ = model.predict(texts, k=K)
        return of_lists([[int(label.removeprefix("__label__")) for label in row] for row in labels])

    return seconds, rank

"""omikuji: Parabel's forests of label trees. What it takes to read its file is not counted."""

from __future__ import annotations

import re
import time
from typing import Any

from peers.protocol import Files, K, Ranking, captured, of_lists

PACKAGE = "omikuji"
FILES = ("train.xmc",)
SYSTEMS: dict[str, list[dict[str, Any]]] = {
    "omikuji, 1 tree": [{"n_trees": 1, "linear_c": c} for c in (1.0, 0.3, 3.0, 10.0)],
    # C = 10 was tried on wordnet_hypernym and tib_ddc, and was below 3 on both.
    "omikuji, 3 trees": [{"n_trees": 3, "linear_c": c} for c in (1.0, 0.3, 3.0)],
}


def train(files: Files, setting: dict[str, Any], threads: int) -> tuple[float, Ranking]:
    import omikuji

    settings = omikuji.Model.default_hyper_param()
    for name, value in setting.items():
        setattr(settings, name, value)
    with captured(files.path("omikuji.log")) as log:
        begin = time.perf_counter()
        model = omikuji.Model.train_on_data(str(files.path("train.xmc")), settings, threads)
        seconds = time.perf_counter() - begin
    told = re.findall(r"Model training complete; it took ([0-9.]+)s", log.read_text(errors="replace"))
    model.init_prediction_thread_pool(threads)
    X = files.X_test
    rows = [
        list(zip(X.indices[low:high].tolist(), X.data[low:high].tolist(), strict=True))
        for low, high in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
    ]

    def rank() -> Any:
        return of_lists([[c for c, _ in model.predict(row, beam_size=10, top_k=K)] for row in rows])

    return float(told[-1]) if told else seconds, rank

"""Vowpal Wabbit: its label tree, and one-against-all where a row has one label. It learns on one thread."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from peers.protocol import Files, K, NotApplicable, Ranking, of_lists

PACKAGE = "vowpalwabbit"
FILES = ("train.oaa.vw", "train.plt.vw", "test.vw")
SYSTEMS: dict[str, list[dict[str, Any]]] = {
    "Vowpal Wabbit plt": [
        {"reduction": "plt", "passes": passes, "rate": rate} for passes, rate in ((3, 0.5), (10, 0.5), (10, 2.0))
    ],
    "Vowpal Wabbit oaa": [
        {"reduction": "oaa", "passes": passes, "rate": rate} for passes, rate in ((3, 0.5), (10, 0.5), (3, 2.0))
    ],
}
BITS = 26
"""Of the table of weights: half a gigabyte with what the optimiser keeps beside a weight."""


def train(files: Files, setting: dict[str, Any], threads: int) -> tuple[float, Ranking]:
    import vowpalwabbit

    reduction, n_classes = setting["reduction"], files.Y.shape[1]
    if reduction == "oaa" and not files.is_single:
        raise NotApplicable("one label a row")
    place = Path(tempfile.mkdtemp(dir=files.folder))
    model, answers = place / "model", place / "answers"
    how = f"--{reduction} {n_classes} -b {BITS} -l {setting['rate']} --passes {setting['passes']} --holdout_off"
    how += " --loss_function logistic" + (" --kary_tree 16" if reduction == "plt" else "")
    data = f"-d {files.path(f'train.{reduction}.vw')} -c -k --cache_file {place / 'cache'} -f {model} --quiet"
    begin = time.perf_counter()
    vowpalwabbit.Workspace(f"{how} {data}").finish()
    seconds = time.perf_counter() - begin

    def rank() -> Any:
        best = f" --top_k {K} --loss_function logistic" if reduction == "plt" else ""
        ask = f"-t -i {model} -d {files.path('test.vw')} -p {answers} --quiet{best}"
        vowpalwabbit.Workspace(ask).finish()
        lines = answers.read_text(encoding="ascii").split("\n")[:-1]
        if reduction == "oaa":
            return of_lists([[int(float(line)) - 1] for line in lines])
        found = ([int(pair.split(":")[0]) for pair in line.split(",") if pair] for line in lines)
        # Its tree has leaves beyond the last class.
        return of_lists([[c for c in row if c < n_classes] for row in found])

    return seconds, rank

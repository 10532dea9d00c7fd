"""How many weights does a linear model need, and how fast is it then ranked?

    python benchmarks/pruning.py DATA [--jobs 2] [--sets wordnet_hypernym tib_ddc] [--learners SVM LR HR-SVM HR-LR]
        [--tables edges speed] [--quick]

Weights are differences from what all classes share; those below ``min_weight`` are left out. The table shows R1 by
``min_weight`` on held-out tenths of the training rows, on which the default was chosen (flat SVM on wordnet_hypernym,
three tenths, and tib_ddc, one; the others on wordnet_hypernym, one), and on the test rows. It is a part of a typical
class's largest weight. On tib_ddc the full model has a thousand million weights; what stands for it there is a model
without the weights below 0.007 of that.
For speed, the test rows are ranked by the model at its default, and by scipy's product of blocks of rows with the same
weights followed by numpy's partial sort, in turns.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from abound import LinearClassifier, RecursiveClassifier
from abound.learn import linear, recursive
from abound.measure import recall_at_k
from abound.read.datasets import load_dataset
from rank_speed import K, by_scipy, top_of_dense, top_of_sparse
from record import Recorder
from tasks import Parts, Task, text_parts

LEARNERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "SVM": (LinearClassifier, {"loss": "squared_hinge", "C": 1.0}),
    "LR": (LinearClassifier, {"loss": "logistic", "C": 10.0}),
    "HR-SVM": (RecursiveClassifier, {"loss": "squared_hinge", "C": 1.0}),
    "HR-LR": (RecursiveClassifier, {"loss": "logistic", "C": 10.0}),
}
USUAL = {LinearClassifier: linear.LIGHTEST, RecursiveClassifier: recursive.LIGHTEST}
UNPRUNED = {"wordnet_hypernym": 0.0, "tib_ddc": 0.007}
CHOSEN_ON = "wordnet_hypernym"
"""Where the default of the learners other than the flat SVM was chosen."""
TENTHS = {"wordnet_hypernym": 3, "tib_ddc": 1}
LEVELS = (0.015, 0.025, 0.04, 0.05, 0.06, 0.08, 0.12)
MOST_EDGES = {"wordnet_hypernym": 1_200_000, "tib_ddc": 5_000_000}
"""Edges within which the flat SVM is to keep its R1."""
LOSS_TEST = 0.002
TIMES_WANTED = 3


def fitted(label: str, task: Task, taxonomy: Any, min_weight: float, jobs: int) -> Any:
    """Return a learner that has learned a task's rows."""
    learner, options = LEARNERS[label]
    more = {"taxonomy": taxonomy} if learner is RecursiveClassifier else {}
    return learner(**options, **more, min_weight=min_weight, n_jobs=jobs).fit(task.X, task.y)


def by_level(label: str, task: Task, taxonomy: Any, least: float, jobs: int) -> dict[float, tuple[Any, float]]:
    """Return model and R1 on the test rows by ``min_weight``; the same model, more and more pruned."""
    model = fitted(label, task, taxonomy, least, jobs)
    typical = float(np.median(abs(model.index_.to_matrix()).max(axis=0).toarray()))
    found = {}
    for level in (least, *LEVELS):
        model = model._pruned(min_weight=level * typical)
        found[level] = model, recall_at_k(task.y_test, model.predict_topk(task.X_test, k=1).labels, 1)
    return found


def usual(label: str) -> float:
    """Return the default ``min_weight`` of a learner."""
    learner, options = LEARNERS[label]
    return USUAL[learner].of(None, options["loss"])


def edges(label: str, parts: Parts, name: str, taxonomy: Any, jobs: int, recorder: Recorder) -> Any:
    """Edges and R1 by ``min_weight``; return the model at its default."""
    loss, cost = (LEARNERS[label][1][key] for key in ("loss", "C"))
    note = f"{loss}, C = {cost:g}; the first row is the unpruned model"
    note += f", but for weights below {UNPRUNED[name]}." if UNPRUNED[name] else "."
    table = recorder.table(f"{label} pruned on {name}", note)
    tenths = parts.validation if label == "SVM" else parts.validation[: int(name == CHOSEN_ON)]
    helds = [by_level(label, tenth, taxonomy, UNPRUNED[name], jobs) for tenth in tenths]
    tested = by_level(label, parts.final, taxonomy, UNPRUNED[name], jobs)
    full_model, full_R1 = tested[UNPRUNED[name]]
    for level, (model, R1) in tested.items():
        n_edges = model.index_.n_edges
        figures: dict[str, Any] = {"held-out R1": float(np.mean([one[level][1] for one in helds]))} if helds else {}
        figures |= {"edges": n_edges, "share": f"{n_edges / full_model.index_.n_edges:.2%}", "R1": R1}
        table.row({"min_weight": level}, figures | {"R1 lost": full_R1 - R1})
    model, R1 = tested[usual(label)]
    lost, n_edges = full_R1 - R1, model.index_.n_edges
    what = f"default min_weight {usual(label):g}: {n_edges:,} edges, R1 {R1:.4f} ({-lost:+.4f})"
    if label == "SVM":
        told = f"at most {MOST_EDGES[name] / 1e6:g} million edges lose at most {LOSS_TEST} of R1; {what}"
        table.target(lost <= LOSS_TEST and n_edges <= MOST_EDGES[name], told)
    else:
        table.finding(lost <= LOSS_TEST, f"the default loses at most {LOSS_TEST} of R1; {what}")
    return model


def speed(label: str, model: Any, task: Task, name: str, recorder: Recorder) -> None:
    """Rows a second, against scipy on the same weights."""
    note = f"k = {K}, best of 3; scipy: the faster of dense blocks and sparse rows, both on the same threads."
    table = recorder.table(f"{label} ranked on {name}", note)
    W, ratios = model.index_.to_matrix(), []
    n_dense = min(task.X_test.shape[0], 2000)
    for threads in (1, 2):
        ways: dict[str, tuple[int, Callable[[], Any]]] = {
            "abound": (task.X_test.shape[0], lambda: model.predict_topk(task.X_test, k=K)),
            "scipy, dense blocks": (n_dense, lambda n=threads: by_scipy(task.X_test[:n_dense], W, top_of_dense, n)),
            "scipy, sparse rows": (n_dense, lambda n=threads: by_scipy(task.X_test[:n_dense], W, top_of_sparse, n)),
        }
        model.set_params(n_jobs=threads).predict_topk(task.X_test[:100], k=K)
        best = dict.fromkeys(ways, np.inf)
        for _ in range(3):
            for way, (_, rank) in ways.items():
                begin = time.perf_counter()
                rank()
                best[way] = min(best[way], time.perf_counter() - begin)
        rows = {way: float(round(n_rows / best[way])) for way, (n_rows, _) in ways.items()}
        ratios.append(rows["abound"] / max(rows[way] for way in ways if way != "abound"))
        setting = {"min_weight": usual(label), "edges": model.index_.n_edges, "threads": threads}
        table.row(setting, {f"{way}, rows/s": value for way, value in rows.items()} | {"ratio": ratios[-1]})
    told = f"at least {TIMES_WANTED} times as fast as scipy ({min(ratios):.1f} to {max(ratios):.1f})"
    table.target(min(ratios) >= TIMES_WANTED, told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sets", nargs="+", default=list(UNPRUNED), choices=list(UNPRUNED))
    parser.add_argument("--learners", nargs="+", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--tables", nargs="+", default=["edges", "speed"], choices=["edges", "speed"])
    parser.add_argument("--quick", action="store_true", help="a part of the rows, nothing recorded")
    arguments = parser.parse_args()
    recorder = Recorder("pruning", __doc__, data=arguments.data, keep=not arguments.quick)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in arguments.sets:
        taxonomy = load_dataset(arguments.data / name).taxonomy
        parts = text_parts(arguments.data, name, TENTHS[name])
        parts = parts.shortened(2000) if arguments.quick else parts
        for label in arguments.learners:
            if "edges" in arguments.tables:
                model = edges(label, parts, name, taxonomy, arguments.jobs, recorder)
            else:
                model = fitted(label, parts.final, taxonomy, usual(label), arguments.jobs)
            if "speed" in arguments.tables:
                speed(label, model, parts.final, name, recorder)


if __name__ == "__main__":
    main()

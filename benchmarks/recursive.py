"""Is recursive regularization over a taxonomy better than the flat classifier, and what does it cost?

    python benchmarks/recursive.py DATA [--jobs 2] [--sets wordnet_hypernym ...] [--losses hinge ...] [--costs 1 ...]
        [--tables accuracy seconds graph] [--keep FOLDER] [--quick]

HR-SVM against the flat SVM and HR-LR against flat LR (Gopal and Yang, KDD 2013), at the same C over a grid and each at
its own C. C is chosen as in ``clef.py``, by micro-F1 + macro-F1: on the official validation rows of a set that has
them, else on a tenth of the training rows, whose features are those of the other rows. With one label a row, micro-F1
is R1. The tests are the paper's: a sign test on decisions for micro-F1, and Wilcoxon's signed-rank test on the F1 of
each class for macro-F1. The last table is a DAG with several labels a row, where C is chosen on the official validation
rows. HR-LR takes long: with ``--keep`` a run that was broken off goes on.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score

from abound import LinearClassifier, RecursiveClassifier
from abound.measure import class_f1_test, decision_sign_test, macro_f1, micro_f1, wilcoxon_test
from abound.read.datasets import load_dataset
from record import Recorder, Table
from tasks import Parts, Task, official_parts, warm_up

TREES = ("wordnet_hypernym", "tib_ddc")
GRAPH = "yeast_cellcycle_go"
GRID = {
    "squared_hinge": (0.1, 1.0, 10.0),
    "hinge": (0.1, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0),
    "logistic": (0.1, 1.0, 10.0, 30.0),
}
GRAPH_GRID = (0.001, 0.01, 0.1, 1.0, 10.0)
MOST_TIMES = 4
MIN_WEIGHT = 0.015
"""Lighter than the defaults, so that what is compared is learning, not pruning, which has a table of its own."""


def learners(loss: str, cost: float, taxonomy: Any, jobs: int) -> dict[str, Any]:
    """Return the flat learner and its recursive counterpart, unfitted."""
    return {
        "flat": LinearClassifier(loss=loss, C=cost, min_weight=MIN_WEIGHT, n_jobs=jobs),
        "HR": RecursiveClassifier(taxonomy, loss=loss, C=cost, min_weight=MIN_WEIGHT, n_jobs=jobs),
    }


def predictions(loss: str, cost: float, parts: dict[str, Task], name: str, taxonomy: Any, arguments: Any) -> Any:
    """Return what both learners say about the test rows of each part; what is in the folder is not done again."""
    found: dict[str, dict[str, Any]] = {}
    for key, model in learners(loss, cost, taxonomy, arguments.jobs).items():
        learned = None
        for part, task in parts.items():
            kept = arguments.keep and arguments.keep / f"{name}-{loss}-{cost:g}-{part}-{key}.npy"
            if kept and kept.exists():
                said = np.load(kept)
            else:
                if learned is not task.X:
                    model.fit(task.X, task.y)
                    learned = task.X
                said = np.asarray(model.predict(task.X_test), dtype=str)
                if kept:
                    np.save(kept, said)
            found.setdefault(part, {})[key] = said
    return found["held"], found["final"]


def compared(y: Any, flat: Any, HR: Any) -> dict[str, Any]:
    """Return both measures of both, and how likely the difference is luck."""
    return {
        "micro-F1 flat": micro_f1(y, flat),
        "micro-F1 HR": micro_f1(y, HR),
        "sign test": verdict(decision_sign_test(y, HR, flat)),
        "macro-F1 flat": macro_f1(y, flat),
        "macro-F1 HR": macro_f1(y, HR),
        "Wilcoxon": verdict(class_f1_test(y, HR, flat)),
    }


def verdict(test: Any) -> str:
    """Write which is better and the p-value."""
    ahead = {"first": "HR", "second": "flat", None: "neither"}[test.better]
    return f"{ahead}, p={test.p_value:.1g}"


def accuracy(parts: Parts, name: str, taxonomy: Any, arguments: Any, recorder: Recorder) -> None:
    """Both learners over the grid, then each at the C that held-out rows choose."""
    held, final = parts.validation[0], parts.final
    n_held = f"{len(held.y_test):,} {'validation' if held.X is final.X else 'training'} rows"
    note = f"Held-out columns: {n_held} that were not learned; the others: test rows. min_weight {MIN_WEIGHT}."
    grid = recorder.table(f"HR and flat at the same C on {name}", note)
    chosen: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for loss in arguments.losses:
        worth: dict[str, dict[float, float]] = {"flat": {}, "HR": {}}
        found = {}
        for cost in costs_of(loss, arguments):
            shown, found[cost] = predictions(loss, cost, {"held": held, "final": final}, name, taxonomy, arguments)
            figures = {}
            for key, said in shown.items():
                micro, macro = micro_f1(held.y_test, said), macro_f1(held.y_test, said)
                figures |= {f"held-out micro-F1 {key}": micro, f"held-out macro-F1 {key}": macro}
                worth[key][cost] = micro + macro
            grid.row({"loss": loss, "C": cost}, figures | compared(final.y_test, **found[cost]))
        own = {key: max(worth[key], key=worth[key].__getitem__) for key in worth}
        figures = {"chosen on": n_held} | {f"C {key}": f"{cost:g}" for key, cost in own.items()}
        figures |= compared(final.y_test, **{key: found[cost][key] for key, cost in own.items()})
        chosen.append(({"loss": loss}, figures))
    title = f"HR and flat, each at its own C, on {name}"
    table = recorder.table(title, "C by micro-F1 + macro-F1 on rows that were not learned, where nothing else is said.")
    for setting, figures in chosen:
        table.row(setting, figures)
    for setting, figures in chosen:
        micro, macro = (figures[f"{kind}-F1 HR"] - figures[f"{kind}-F1 flat"] for kind in ("micro", "macro"))
        gains = f"micro-F1 ({micro:+.4f}) and above it in macro-F1 ({macro:+.4f})"
        told = f"{setting['loss']}: HR is not below flat in {gains}"
        table.finding(micro >= 0 and macro > 0, told, loss=setting["loss"])


def costs_of(loss: str, arguments: Any) -> list[float]:
    """The values of C that are asked for."""
    return [cost for cost in GRID[loss] if not arguments.costs or cost in arguments.costs]


def seconds(parts: Parts, name: str, taxonomy: Any, arguments: Any, recorder: Recorder) -> None:
    """How long both take on the same rows at the same C."""
    note = (
        f"Whole fits with default tolerances and pruning, {arguments.jobs} threads, one run each; CPU: of all threads."
    )
    table = recorder.table(f"Seconds of HR and flat on {name}", note)
    times = {}
    for loss in arguments.losses:
        for cost in costs_of(loss, arguments):
            taken, cpu, said, rounds = {}, {}, {}, 0
            for key, model in learners(loss, cost, taxonomy, arguments.jobs).items():
                model.set_params(min_weight=None)
                warm_up(model, parts.final)
                begin, cpu_begin = time.perf_counter(), time.process_time()
                model.fit(parts.final.X, parts.final.y)
                taken[key], cpu[key] = time.perf_counter() - begin, time.process_time() - cpu_begin
                said[key], rounds = model.predict(parts.final.X_test), len(model.history_)
            figures: dict[str, Any] = {f"seconds {key}": value for key, value in taken.items()}
            figures |= {
                "HR/flat": taken["HR"] / taken["flat"],
                "HR/flat CPU": cpu["HR"] / cpu["flat"],
                "rounds": rounds,
            }
            times[loss, cost] = figures["HR/flat"]
            table.row({"loss": loss, "C": cost}, figures | compared(parts.final.y_test, **said))
    worst = max(times.values())
    table.target(worst <= MOST_TIMES, f"HR takes at most {MOST_TIMES} times as long as flat (here {worst:.1f} at most)")


def graph(data: Path, arguments: Any, recorder: Recorder) -> None:
    """Several labels a row, on inner nodes of a DAG as well."""
    dataset = load_dataset(data / GRAPH)
    parts = [dataset.part(part) for part in ("train", "valid", "test")]
    X = [part.X for part in parts]
    for labels in ("as given", "with all ancestors"):
        y = [part.labels.to_y() for part in parts]
        if labels != "as given":
            y = [[with_ancestors(row, dataset.taxonomy) for row in rows] for rows in y]
        choosing = Task(X[0], y[0], X[1], y[1])
        final = Task(sp.vstack(X[:2], format="csr"), list(y[0]) + list(y[1]), X[2], y[2])
        note = "C by pooled area on the validation rows, then trained on both; bias 1; the learners' own cuts."
        table = recorder.table(f"A DAG with several labels a row, labels {labels}: {GRAPH}", note)
        for loss in arguments.losses:
            graph_rows(loss, choosing, final, dataset.taxonomy, arguments, table)


def graph_rows(loss: str, choosing: Task, final: Task, taxonomy: Any, arguments: Any, table: Table) -> None:
    """One loss: both learners at their own C, and the paired tests."""
    found = {}
    for key in ("flat", "HR"):
        areas = {}
        for cost in GRAPH_GRID:
            model = graph_learner(key, loss, cost, taxonomy, arguments.jobs).fit(choosing.X, choosing.y)
            areas[cost] = pooled_area(model, choosing)
        cost = max(areas, key=lambda one: areas[one])
        model = graph_learner(key, loss, cost, taxonomy, arguments.jobs).fit(final.X, final.y)
        predicted = model.predict(final.X_test)
        found[key] = predicted, class_areas(model, final)
        figures = {
            "micro-F1": micro_f1(final.y_test, predicted),
            "macro-F1": macro_f1(final.y_test, predicted),
            "pooled area": pooled_area(model, final),
            "mean class area": float(np.mean(list(found[key][1].values()))),
        }
        table.row({"loss": loss, "learner": key, "C": cost}, figures)
    by_class = [list(found[key][1].values()) for key in ("HR", "flat")]
    tests = {
        "decisions (sign)": decision_sign_test(final.y_test, found["HR"][0], found["flat"][0]),
        "F1 of classes (Wilcoxon)": class_f1_test(final.y_test, found["HR"][0], found["flat"][0]),
        "area of classes (Wilcoxon)": wilcoxon_test(*by_class),
    }
    told = "; ".join(f"{name}: {verdict(test)}, {test.wins}:{test.losses}" for name, test in tests.items())
    higher = float(np.mean(by_class[0])) > float(np.mean(by_class[1]))
    table.finding(higher, f"{loss}: HR has the higher mean area of classes; {told}")


def graph_learner(key: str, loss: str, cost: float, taxonomy: Any, jobs: int) -> Any:
    """Return the flat or recursive learner, all weights kept: the rows are dense and few."""
    options: dict[str, Any] = {"loss": loss, "C": cost, "bias": 1.0, "min_weight": 0.0, "n_jobs": jobs}
    return LinearClassifier(**options) if key == "flat" else RecursiveClassifier(taxonomy, **options)


def with_ancestors(row: Any, taxonomy: Any) -> list[Any]:
    """A row's labels and all that stand above them but the root."""
    roots = {taxonomy.names[root] for root in taxonomy.root_ids}
    return sorted({node for label in row for node in (label, *taxonomy.ancestors(label))} - roots)


def indicator(model: Any, y: Any) -> tuple[Any, Any]:
    """True labels as a matrix over the model's classes, and which of these occur; unknown ones are left out."""
    column = {label: c for c, label in enumerate(model.classes_.tolist())}
    truth = np.zeros((len(y), len(column)), dtype=bool)
    for i, row in enumerate(y):
        truth[i, [column[label] for label in row if label in column]] = True
    return truth, np.flatnonzero(truth.any(axis=0))


def pooled_area(model: Any, task: Task) -> float:
    """Area under the precision-recall curve of all rows and classes taken together."""
    truth, _ = indicator(model, task.y_test)
    return float(average_precision_score(truth.ravel(), model.decision_function(task.X_test).ravel()))


def class_areas(model: Any, task: Task) -> dict[Any, float]:
    """Area under the precision-recall curve of each class that occurs in the test rows."""
    truth, occurring = indicator(model, task.y_test)
    scores = model.decision_function(task.X_test)
    return {model.classes_[c]: float(average_precision_score(truth[:, c], scores[:, c])) for c in occurring}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sets", nargs="+", default=list(TREES), choices=list(TREES))
    parser.add_argument("--losses", nargs="+", default=list(GRID), choices=list(GRID))
    parser.add_argument("--costs", nargs="+", type=float, help="only these values of C of the grid")
    tables = ("accuracy", "seconds", "graph")
    parser.add_argument("--tables", nargs="+", default=list(tables), choices=tables)
    parser.add_argument("--keep", type=Path, help="folder for what the learners say; what is there is used")
    parser.add_argument("--quick", action="store_true", help="a part of the rows, nothing recorded")
    arguments = parser.parse_args()
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    recorder = Recorder("recursive", __doc__, data=arguments.data, keep=not arguments.quick)
    warnings.simplefilter("ignore", ConvergenceWarning)
    ways = {"accuracy": accuracy, "seconds": seconds}
    for name in arguments.sets if set(arguments.tables) & set(ways) else ():
        taxonomy = load_dataset(arguments.data / name).taxonomy
        parts = official_parts(arguments.data, name)
        parts = parts.shortened(2000) if arguments.quick else parts
        for table in ways:
            if table in arguments.tables:
                ways[table](parts, name, taxonomy, arguments, recorder)
    if "graph" in arguments.tables:
        graph(arguments.data, arguments, recorder)


if __name__ == "__main__":
    main()

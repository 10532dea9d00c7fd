"""How accurate is an answer within a budget: SaDyC, output codes and label trees against one-vs-all?

    python benchmarks/budget.py DATA [--keep FOLDER] [--rows N] [--subsets N] [--steps NAME ...] [--quick]

Five subsets of 1,000 classes of DATA/tib_ddc: a random class and the 999 nearest to it by the cosine of their training
centroids, as the SaDyC paper made its own from DMOZ. All learners have C = 1, chosen for none of them on these test
rows. The complexity ratio is the number of classifiers that a row asks, over the number of classes; the wall time is on
one core. SaDyC has a pool of 3,000; its sampled oracle looks at 100 candidates a step. "SaDyC (print)" is the paper's
form: hard votes, a uniform pool, no smoothing.

*accuracy* trains and answers, *seconds* times the models of the first subset, and *report* writes the tables and plots
from what both left in FOLDER, of which nothing that is there is done again. Without ``--keep`` the folder is temporary.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

import abound
from abound import LinearClassifier, OutputCodeClassifier, SequentialClassifier
from abound.distribute import workers
from abound.read.datasets import load_dataset
from budget_report import report
from budget_seconds import time_models
from record import Recorder
from tasks import Task, text_task

SET = "tib_ddc"
SEEDS = (0, 1, 2, 3, 4)
N_CLASSES = 1000
CANDIDATES = 100
RATIO = 0.2
MARKS = (0.01, 0.025, 0.05, 0.1, 0.2)
"""Complexity ratios of the curves."""
PRINT = {"vote": "hard", "pool": "uniform", "smoothing": 0.0}


class Answers(NamedTuple):
    """What a method says about the test rows of a subset."""

    predicted: Any
    """At the ratio of the table."""
    ratio: float
    curve: list[tuple[float, float]]
    """Complexity ratio and accuracy."""
    density: Any = ()
    """Mean density of the classifiers, step by step."""
    left: Any = ()
    """Mean number of classes left, step by step."""


class Method(NamedTuple):
    """How a method is trained, and how it answers."""

    model: str
    """Methods with the same word share a model."""
    make: Callable[[Any], Any]
    """From the taxonomy."""
    answer: Callable[[Any, Task, int], Answers]


def label_tree(**options: Any) -> Any:
    """Return a label tree, unfitted."""
    return abound.LabelTreeClassifier(min_weight=0.01, **options)


def share_right(predicted: Any, task: Task) -> float:
    """Return the accuracy."""
    return float(np.mean(predicted == task.y_test))


def ask_all(model: Any, task: Task, n_jobs: int) -> Answers:
    """One-vs-all: every classifier is asked."""
    predicted = model.set_params(n_jobs=n_jobs).predict(task.X_test)
    return Answers(predicted, 1.0, [(1.0, share_right(predicted, task))])


def path_costs(tree: Any) -> dict[int, int]:
    """Return how many models a greedy walk asks on its way to each class."""
    from abound.rank.tree_weights import EMPTY

    spent, costs = {0: 0}, {}
    for node in range(tree.n_nodes):
        slots = tree.slots[tree.slot_indptr[node] : tree.slot_indptr[node + 1]]
        children = slots[slots != EMPTY].tolist()
        for child in children:
            (spent if child >= 0 else costs)[child if child >= 0 else ~child] = spent[node] + len(children)
    return costs


def walk_ontology(model: Any, task: Task, n_jobs: int) -> Answers:
    """The given tree, greedily."""
    predicted = model.set_params(n_jobs=n_jobs).predict(task.X_test)
    costs = path_costs(model.trees_[0])
    ids = np.searchsorted(model.classes_, predicted)
    ratio = float(np.mean([costs[c] for c in ids.tolist()])) / len(model.classes_)
    return Answers(predicted, ratio, [(ratio, share_right(predicted, task))])


def walk_clusters(model: Any, task: Task, n_jobs: int) -> Answers:
    """The spectral tree of two levels, with as wide a beam as the ratio allows."""
    tree = model.trees_[0]
    n_inner = tree.n_nodes - 1
    curve, predicted = [], None
    for beam in (1, 2, 3):
        predicted = model.set_params(n_jobs=n_jobs, beam=beam).predict(task.X_test)
        asked = n_inner + min(beam, n_inner) * len(model.classes_) / n_inner if n_inner else len(model.classes_)
        curve.append((asked / len(model.classes_), share_right(predicted, task)))
    return Answers(predicted, curve[-1][0], curve)


def decode_by(decode: str) -> Callable[[Any, Task, int], Answers]:
    """Output codes with one of the two decoders."""

    def answer(model: Any, task: Task, n_jobs: int) -> Answers:
        predicted = model.set_params(n_jobs=n_jobs, decode=decode).predict(task.X_test)
        ratio = model.dichotomizers_.n_classifiers / len(model.classes_)
        return Answers(predicted, ratio, [(ratio, share_right(predicted, task))])

    return answer


def step_by_step(n_candidates: int | None) -> Callable[[Any, Task, int], Answers]:
    """SaDyC with the exact or the sampled oracle."""

    def answer(model: Any, task: Task, n_jobs: int) -> Answers:
        model.set_params(n_candidates=n_candidates)
        n_classes = len(model.classes_)
        budget = round(RATIO * n_classes)
        with workers(n_jobs) as pool:
            paths = list(pool.map(lambda i: model.trajectory(task.X_test[[i]], budget), range(len(task.y_test))))
        # A row that is finished before its budget is spent keeps its answer.
        places = [np.minimum(np.arange(budget), len(path.best) - 1) for path in paths]
        best = np.array([path.best[place] for path, place in zip(paths, places, strict=True)])
        curve = [(mark, share_right(best[:, max(1, round(mark * n_classes)) - 1], task)) for mark in MARKS]
        density = np.mean([path.density[place] for path, place in zip(paths, places, strict=True)], axis=0)
        left = np.mean([path.left[place] for path, place in zip(paths, places, strict=True)], axis=0)
        ratio = float(np.mean([len(path.best) for path in paths])) / n_classes
        return Answers(best[:, -1], ratio, curve, density, left)

    return answer


def codes(n_bits: int) -> Callable[[Any], Any]:
    """Return how to make output codes of a length."""
    return lambda _: OutputCodeClassifier(n_bits=n_bits)


METHODS: dict[str, Method] = {
    "OAA": Method("oaa", lambda _: LinearClassifier(class_weight="balanced", min_weight=0.01), ask_all),
    "ontology tree": Method("ontology", lambda taxonomy: label_tree(tree=taxonomy, beam=1), walk_ontology),
    "H-SC": Method("spectral", lambda _: label_tree(tree="spectral", beam=3), walk_clusters),
    "E-Hamming": Method("codes-200", codes(200), decode_by("hamming")),
    "E-LossBased": Method("codes-200", codes(200), decode_by("loss")),
    "E-Hamming, 50 bits": Method("codes-50", codes(50), decode_by("hamming")),
    "E-LossBased, 50 bits": Method("codes-50", codes(50), decode_by("loss")),
    "E-Hamming, 100 bits": Method("codes-100", codes(100), decode_by("hamming")),
    "E-LossBased, 100 bits": Method("codes-100", codes(100), decode_by("loss")),
    "SaDyC": Method("sadyc", lambda _: SequentialClassifier(), step_by_step(None)),
    "SaDyC, sampled": Method("sadyc", lambda _: SequentialClassifier(), step_by_step(CANDIDATES)),
    "SaDyC (print)": Method("print", lambda _: SequentialClassifier(**PRINT), step_by_step(None)),
    "SaDyC (print), sampled": Method("print", lambda _: SequentialClassifier(**PRINT), step_by_step(CANDIDATES)),
}


def subsets(task: Task, n_classes: int, n_rows: int | None) -> Iterator[Task]:
    """Cut out a random class and those nearest to it, once for each seed."""
    classes, ids = np.unique(task.y, return_inverse=True)
    shape = (len(classes), len(ids))
    members = sp.csr_array((np.ones(len(ids), dtype=np.float32), (ids, np.arange(len(ids)))), shape=shape)
    centres = normalize(members @ task.X)
    for seed in SEEDS:
        centre = np.random.default_rng(seed).integers(len(classes))
        nearness = (centres @ centres[[centre]].T).toarray().ravel()
        kept = classes[np.sort(np.argsort(-nearness, kind="stable")[:n_classes])]
        train, test = (np.flatnonzero(np.isin(y, kept)) for y in (task.y, task.y_test))
        test = np.sort(np.random.default_rng(seed).permutation(test)[:n_rows])
        used = np.unique(task.X[train].indices)
        yield Task(task.X[train][:, used], task.y[train], task.X_test[test][:, used], task.y_test[test])


def measure_accuracy(parts: list[Task], taxonomy: Any, arguments: Any, folder: Path) -> None:
    """Train and answer what is not in the folder yet."""
    by_model: dict[str, list[str]] = {}
    for name in arguments.methods:
        by_model.setdefault(METHODS[name].model, []).append(name)
    for word, names in by_model.items():
        for number, task in enumerate(parts):
            wanted = [name for name in names if not answers_path(folder, number, name).exists()]
            if not wanted:
                continue
            path, begin = folder / f"{number}-{word}.model", time.perf_counter()
            if not path.exists():
                METHODS[names[0]].make(taxonomy).set_params(n_jobs=arguments.jobs).fit(task.X, task.y).save(path)
            model, trained = abound.load(path), time.perf_counter() - begin
            for name in wanted:
                begin = time.perf_counter()
                found = METHODS[name].answer(model, task, arguments.jobs)
                took = time.perf_counter() - begin
                keep(answers_path(folder, number, name), found, task)
                told = f"ratio {found.ratio:.3f}, trained in {trained:.0f} s, answered in {took:.0f} s"
                print(f"  subset {number + 1}, {name}: {share_right(found.predicted, task):.4f}, {told}", flush=True)


def answers_path(folder: Path, number: int, name: str) -> Path:
    """Return where a method's answers for a subset are."""
    return folder / f"{number}-{name.replace(' ', '_')}.npz"


def keep(path: Path, found: Answers, task: Task) -> None:
    """Write answers, beside and renamed."""
    beside = path.with_suffix(".part.npz")
    right = found.predicted == task.y_test
    np.savez(beside, right=right, ratio=found.ratio, curve=found.curve, density=found.density, left=found.left)
    beside.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--jobs", type=int, default=2, help="threads of training and answering; times are of one")
    parser.add_argument("--keep", type=Path, help="folder for models and answers; what is there is used")
    parser.add_argument("--rows", type=int, help="test rows of a subset, drawn at random; all if not given")
    parser.add_argument("--subsets", type=int, default=len(SEEDS), help="the first so many only")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="NAME")
    steps = ("accuracy", "seconds", "report")
    parser.add_argument("--steps", nargs="+", default=list(steps), choices=steps)
    parser.add_argument("--quick", action="store_true", help="100 classes, 100 rows; nothing is recorded")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    recorder = Recorder("budget", __doc__, data=arguments.data, keep=not arguments.quick)
    if arguments.keep:
        recorder.facts["command"] = recorder.facts["command"].replace(str(arguments.keep), "FOLDER")
    n_classes, n_rows = (100, 100) if arguments.quick else (N_CLASSES, arguments.rows)
    parts: list[Task] = []
    taxonomy = None
    if set(arguments.steps) & {"accuracy", "seconds"}:
        taxonomy = load_dataset(arguments.data / SET).taxonomy
        parts = list(islice(subsets(text_task(arguments.data, SET), n_classes, n_rows), arguments.subsets))
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        if "accuracy" in arguments.steps:
            measure_accuracy(parts, taxonomy, arguments, folder)
        if "seconds" in arguments.steps:
            time_models(parts[0], METHODS, folder)
        if "report" in arguments.steps:
            report(recorder, folder, arguments.methods, arguments.subsets)


if __name__ == "__main__":
    main()

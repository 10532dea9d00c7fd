"""Are label trees as accurate as omikuji and PECOS, and how much faster? What do ten times the classes cost?

    python benchmarks/label_tree.py DATA [--tables austen yso growth threads] [--peers omikuji-1 omikuji-3 pecos]
        [--pecos-python PYTHON] [--peer-rows N] [--repeats 3] [--quick]

Jane Austen (a word from its neighbours, one label) and yso_finna_en (subjects of titles, several labels): one tree and
a forest of five against omikuji with one tree and with its default of three, and against PECOS (XR-Linear with its
defaults), all on one thread and the same rows in the same run, the best five classes of each test row. Training is the
time from sparse rows to a model; what omikuji takes to read its file is not counted. omikuji is asked row by row, as
its Python package has it, with rows converted beforehand; with --peer-rows on so many random test rows, whose measures
are then given for all systems. PECOS runs in an interpreter of its own, given by --pecos-python, and is left out
without one.

Then a thousand to a million classes of generated rows, five rows a class where there are most. Once the rows are the
same each time, and tell apart a thousand classes, ten in each of these, ten in each of those, and so on, as codes of
products or subjects do; and once they are others each time, in which larger groups of classes have nothing in common:
there more classes are also harder to tell apart, and a walk opens more nodes. Last, one thread against two.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from abound import LabelTreeClassifier
from abound.labels import encode
from abound.measure import evaluate_labels
from record import Recorder, Table
from tasks import Task, austen_parts, text_task, warm_up

TABLES = ("austen", "yso", "growth", "threads")
PEERS = ("omikuji-1", "omikuji-3", "pecos")
K = 5
NOISE = 0.003
SHARE = 4
MOST = 1.6
N_CLASSES = (1_000, 10_000, 100_000, 1_000_000)
FEATURES = 200_000
OURS = {"one tree": {}, "forest of 5": {"n_trees": 5}}

PECOS_PROGRAM = """
import json, sys, tempfile, time
import numpy as np, scipy.sparse as sp
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
folder, k = sys.argv[1], int(sys.argv[2])
X, Y, X_test = (sp.load_npz(f"{folder}/{name}.npz").astype(np.float32) for name in ("X", "Y", "X_test"))
begin = time.perf_counter()
labels = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=1)
tree = Indexer.gen(labels, indexer_type="hierarchicalkmeans", threads=1)
model = XLinearModel.train(X, Y, C=tree, threads=1)
trained = time.perf_counter()
with tempfile.TemporaryDirectory() as place:
    model.save(place)
    model = XLinearModel.load(place, is_predict_only=True)
seconds = []
for _ in range(3):
    begun = time.perf_counter()
    found = model.predict(X_test, beam_size=10, only_topk=k, threads=1)
    seconds.append(time.perf_counter() - begun)
ids = np.full((X_test.shape[0], k), -1)
for i in range(len(ids)):
    part = slice(found.indptr[i], found.indptr[i + 1])
    best = found.indices[part][np.argsort(-found.data[part], kind="stable")]
    ids[i, : len(best)] = best
np.save(f"{folder}/ids.npy", ids)
print(json.dumps({"training": trained - begin, "ranking": min(seconds)}))
"""


class Outcome(NamedTuple):
    """What a system did: seconds of training, rows a second, and the labels of the rows that were ranked."""

    training: float
    rate: float
    labels: Any


class Peer:
    """The data as the peers take it: ids of classes, and files."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.task, self.folder = task, folder
        labels = encode(task.y)
        self.classes = labels.classes
        shape = len(labels), labels.n_classes
        self.X, self.X_test = (sp.csr_matrix(part, dtype=np.float32) for part in (task.X, task.X_test))
        self.X.sort_indices()
        self.Y = sp.csr_matrix((np.ones(len(labels.ids), np.float32), labels.ids, labels.indptr), shape=shape)

    def named(self, ids: Any) -> Any:
        """The labels of ids, None for -1."""
        labels = np.append(self.classes.astype(object), None)
        return labels[ids]

    def omikuji(self, n_trees: int) -> Outcome:
        """Train with its defaults but for the number of trees; its log tells how long that took."""
        import omikuji

        settings = omikuji.Model.default_hyper_param()
        settings.n_trees = n_trees
        path = self.folder / "train.txt"
        if not path.exists():
            write_xmc(path, self.X, self.Y)
        with logged(self.folder / "log.txt") as log:
            begin = time.perf_counter()
            model = omikuji.Model.train_on_data(str(path), settings, 1)
            seconds = time.perf_counter() - begin
        told = re.findall(r"Model training complete; it took ([0-9.]+)s", log.read_text(errors="replace"))
        model.init_prediction_thread_pool(1)
        X = self.X_test
        rows = [
            list(zip(X.indices[low:high].tolist(), X.data[low:high].tolist(), strict=True))
            for low, high in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
        ]
        begin = time.perf_counter()
        found = [model.predict(row, beam_size=10, top_k=K) for row in rows]
        rate = len(rows) / (time.perf_counter() - begin)
        ids = np.full((len(rows), K), -1)
        for row, best in enumerate(found):
            ids[row, : len(best)] = [c for c, _ in best]
        return Outcome(float(told[-1]) if told else seconds, rate, self.named(ids))

    def pecos(self, python: Path) -> Outcome:
        """Train with its defaults in another interpreter."""
        for name in ("X", "Y", "X_test"):
            sp.save_npz(self.folder / f"{name}.npz", getattr(self, name), compressed=False)
        command = [str(python), "-c", PECOS_PROGRAM, str(self.folder), str(K)]
        environment = dict(os.environ) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment.pop("PYTHONPATH", None)
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        told = json.loads(done.stdout.strip().splitlines()[-1])
        ids = np.load(self.folder / "ids.npy")
        return Outcome(told["training"], len(ids) / told["ranking"], self.named(ids))


class logged:  # noqa: N801 - reads as a verb
    """Send what libraries write to standard output into a file for a ``with`` block."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Path:
        sys.stdout.flush()
        self.before = os.dup(1)
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.close(file)
        return self.path

    def __exit__(self, *exception: object) -> None:
        os.dup2(self.before, 1)
        os.close(self.before)


def write_xmc(path: Path, X: Any, Y: Any) -> None:
    """Write rows in the format of the Extreme Classification Repository; omikuji takes none without features."""
    used = np.flatnonzero((np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0))
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{len(used)} {X.shape[1]} {Y.shape[1]}\n")
        for i in used.tolist():
            labels = Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()
            span = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[span].tolist(), X.data[span].tolist(), strict=True)
            file.write(",".join(map(str, labels)) + " " + " ".join(f"{f}:{x:.7g}" for f, x in pairs) + "\n")


def ours(task: Task, options: dict[str, Any], repeats: int) -> Outcome:
    """Train and rank on one thread, the best of several; no cut is learned, since only rankings are compared."""
    training, ranking, labels = np.inf, np.inf, None
    for _ in range(repeats):
        model = LabelTreeClassifier(cut=None, n_jobs=1, **options)
        begin = time.perf_counter()
        model.fit(task.X, task.y)
        training = min(training, time.perf_counter() - begin)
        begin = time.perf_counter()
        labels = model.predict_topk(task.X_test, K).labels
        ranking = min(ranking, time.perf_counter() - begin)
    return Outcome(training, task.X_test.shape[0] / ranking, labels)


def compare(name: str, task: Task, arguments: Any, table: Table) -> None:
    """All systems on one data set, and whether ours keeps its promises."""
    if arguments.peer_rows:
        some = np.sort(np.random.default_rng(0).permutation(task.X_test.shape[0])[: arguments.peer_rows])
        y_test = task.y_test[some] if isinstance(task.y_test, np.ndarray) else [task.y_test[i] for i in some.tolist()]
        task = task._replace(X_test=task.X_test[some], y_test=y_test)
    classes = encode(task.y).classes
    wanted = ("R1", "R5") if name == "austen" else ("P@1", "P@3", "P@5", "R5")
    warm_up(LabelTreeClassifier(cut=None), few_of(task))
    outcomes: dict[str, Outcome] = {}
    figures: dict[str, dict[str, float]] = {}

    def record(system: str, outcome: Outcome) -> None:
        measured = evaluate_labels(task.y_test, outcome.labels, classes=classes, ks=(1, 3, 5))
        outcomes[system], figures[system] = outcome, {measure: float(measured[measure]) for measure in wanted}
        base = outcomes["one tree"]
        speed = {"training s": outcome.training, "rows/s": outcome.rate}
        ratios = {"times ours": outcome.training / base.training, "our rows/s to its": base.rate / outcome.rate}
        table.row({"data": name, "system": system}, figures[system] | speed | ratios)

    for system, options in OURS.items():
        record(system, ours(task, options, arguments.repeats))
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer(task, Path(folder))
        for system in arguments.peers:
            if system == "pecos" and arguments.pecos_python is not None:
                record("PECOS", peer.pecos(arguments.pecos_python))
            elif system != "pecos":
                n_trees = int(system.removeprefix("omikuji-"))
                record(f"omikuji, {n_trees} tree{'s' * (n_trees > 1)}", peer.omikuji(n_trees))
    for promise in promises(name, outcomes, figures):
        table.target(*promise)


def promises(name: str, outcomes: dict[str, Outcome], figures: dict[str, Any]) -> list[tuple[bool, str]]:
    """What is to hold of what was run."""
    found = []

    def level(system: str, other: str, measures: tuple[str, ...]) -> None:
        gains = {measure: figures[system][measure] - figures[other][measure] for measure in measures}
        told = ", ".join(f"{measure} {gain:+.4f}" for measure, gain in gains.items())
        holds = all(gain >= -NOISE for gain in gains.values())
        found.append((holds, f"{name}: {system} is as accurate as {other}, but for {NOISE} ({told})"))

    def quick(system: str, other: str) -> None:
        ratio = outcomes[other].training / outcomes[system].training
        found.append((ratio >= SHARE, f"{name}: {system} trains in a fourth of the time of {other} ({ratio:.1f})"))

    def rate(other: str, times: float) -> None:
        ratio = outcomes["one tree"].rate / outcomes[other].rate
        found.append((ratio >= times, f"{name}: one tree ranks {times:g} times as many rows as {other} ({ratio:.1f})"))

    first = ("R1", "R5") if name == "austen" else ("P@1",)
    if name == "austen":
        own = figures["one tree"]
        holds = own["R1"] >= 0.325 and own["R5"] >= 0.536
        found.append((holds, f"austen: one tree has R1 of 0.325 and R5 of 0.536 ({own['R1']:.4f}, {own['R5']:.4f})"))
    if "omikuji, 1 tree" in outcomes:
        quick("one tree", "omikuji, 1 tree")
        rate("omikuji, 1 tree", 10)
    if "omikuji, 3 trees" in outcomes:
        level("forest of 5", "omikuji, 3 trees", first)
        quick("forest of 5", "omikuji, 3 trees")
    if "PECOS" in outcomes:
        rate("PECOS", 1)
        if name == "yso":
            level("forest of 5", "PECOS", first)
            quick("forest of 5", "PECOS")
    return found


def few_of(task: Task) -> Task:
    """A few rows, to compile on."""
    y = task.y[:500] if isinstance(task.y, np.ndarray) else np.array([row[0] for row in task.y[:500]])
    return Task(task.X[:500], y, task.X_test[:100], y[:100])


def drawn_classes(n_rows: int, n_classes: int, rng: Any) -> Any:
    """Classes of rows and, for each ten of these, of a test row: one row each at least, the others by Zipf's law."""
    cumulated = np.cumsum(1 / np.arange(1, n_classes + 1))
    drawn = np.searchsorted(cumulated, rng.random(n_rows - n_classes) * cumulated[-1])
    y = rng.permutation(np.concatenate((np.arange(n_classes), drawn)))
    return np.concatenate((y, y[rng.integers(0, n_rows, n_rows // 10)]))


def words_of(sources: Any, n_features: int, rng: Any) -> Any:
    """Rows of ten features: a word of each source, one of three, or by chance any; then common ones by Zipf's law."""
    n, n_own = sources.shape
    block, places = n_features // 10, np.arange(n_own)
    words = sources.astype(np.uint64) * np.uint64(3 * n_own) + (3 * places + rng.integers(0, 3, (n, n_own))).astype(
        np.uint64
    )
    own = (words * np.uint64(11400714819323198485) >> np.uint64(20)) % np.uint64(block)
    own = np.where(rng.random(own.shape) < 0.3, rng.integers(0, block, own.shape), own.astype(np.int64))
    common = (block ** rng.random((n, 10 - n_own))).astype(np.int64)
    indices = (np.hstack((own, common)) + block * np.arange(10)).astype(np.int32).ravel()
    data = np.full(len(indices), 10**-0.5, dtype=np.float32)
    return sp.csr_array((data, indices, np.arange(0, len(indices) + 1, 10)), shape=(n, n_features))


def generated(n_rows: int, n_classes: int, n_features: int, seed: int) -> Task:
    """Rows of ten features: four of their class, three of its neighbourhood of 30 classes, three common ones.

    Rows, features and non-zeros are as many for any number of classes. Neighbourhoods have nothing in common.
    """
    rng = np.random.default_rng(seed)
    y = drawn_classes(n_rows, n_classes, rng)
    X = words_of(np.where(np.arange(7) < 4, y[:, None], n_classes + y[:, None] // 30), n_features, rng)
    return Task(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def graded(n_rows: int, n_classes: int, n_features: int, seed: int) -> Task:
    """Rows of ten features: two each of their class, of its ten, its hundred and its thousand classes, two common ones.

    Weights are tf-idf, rows have length 1. ``y // 10`` are the classes of the same rows if a tenth as many are told
    apart.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(n_classes)[drawn_classes(n_rows, n_classes, rng)]
    grade = np.arange(8) // 2
    X = words_of(10 * n_classes * grade + y[:, None] // 10**grade, n_features, rng)
    idf = 1 + np.log((1 + n_rows) / (1 + np.bincount(X[:n_rows].indices, minlength=n_features)))
    weights = idf[X.indices].reshape(-1, 10)
    X.data = (weights / np.linalg.norm(weights, axis=1, keepdims=True)).astype(np.float32).ravel()
    return Task(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def growth(arguments: Any, table: Table, tasks: Iterator[tuple[int, Task]]) -> None:
    """The cost of ten times the classes."""
    before: Outcome | None = None
    worst = {"training": 0.0, "ranking": 0.0}
    for n_classes, task in tasks:
        warm_up(LabelTreeClassifier(cut=None), few_of(task))
        outcome = ours(task, {}, arguments.growth_repeats)
        hits = outcome.labels == task.y_test[:, None]
        figures = {"R1": float(hits[:, 0].mean()), "R5": float(hits.any(axis=1).mean())}
        figures |= {"training s": outcome.training, "rows/s": outcome.rate}
        if before is not None:
            ratios = {"training": outcome.training / before.training, "ranking": before.rate / outcome.rate}
            worst = {part: max(ratio, worst[part]) for part, ratio in ratios.items()}
            figures |= {f"{part}, times the last": ratio for part, ratio in ratios.items()}
        table.row({"classes": n_classes}, figures)
        before = outcome
    for part, ratio in worst.items():
        table.target(ratio <= MOST, f"ten times the classes cost at most {MOST} times in {part} ({ratio:.2f})")


def same_rows(n_rows: int, most: int) -> Iterator[tuple[int, Task]]:
    """The same rows again and again, with ten times the classes each time."""
    task = graded(n_rows, most, FEATURES, 0)
    for n_classes in [n for n in N_CLASSES if n <= most]:
        together = most // n_classes
        yield n_classes, task._replace(y=task.y // together, y_test=task.y_test // together)


def other_rows(n_rows: int, most: int) -> Iterator[tuple[int, Task]]:
    """As many rows each time, of ten times the classes."""
    for n_classes in [n for n in N_CLASSES if n <= most]:
        yield n_classes, generated(n_rows, n_classes, FEATURES, 0)


def threads(arguments: Any, table: Table) -> None:
    """One thread against two: the same bits."""
    task = generated(arguments.growth_rows // 16, min(10_000, arguments.growth_rows // 64), FEATURES, 0)
    warm_up(LabelTreeClassifier(cut=None), few_of(task))
    models, times = {}, {}
    for n_jobs in (1, 2):
        times[n_jobs] = [np.inf, np.inf]
        for _ in range(arguments.repeats):
            model = models[n_jobs] = LabelTreeClassifier(cut=None, n_trees=2, n_jobs=n_jobs)
            begin = time.perf_counter()
            model.fit(task.X, task.y)
            times[n_jobs][0] = min(times[n_jobs][0], time.perf_counter() - begin)
            begin = time.perf_counter()
            model.predict_topk(task.X_test, K)
            times[n_jobs][1] = min(times[n_jobs][1], time.perf_counter() - begin)
        table.row({"threads": n_jobs}, {"training s": times[n_jobs][0], "ranking s": times[n_jobs][1]})
    same = all(
        np.array_equal(one, other)
        for tree, twin in zip(models[1].trees_, models[2].trees_, strict=True)
        for one, other in zip(tree, twin, strict=True)
    )
    table.target(same, "two threads make the same trees and weights, bit for bit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--pecos-python", type=Path, help="an interpreter that has the package libpecos")
    parser.add_argument("--peer-rows", type=int, help="rank so many random test rows only; all by default")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many counts; peers run once")
    parser.add_argument("--growth-rows", type=int, default=5_000_000)
    parser.add_argument("--growth-repeats", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few rows, no peers, nothing recorded")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.peers, arguments.repeats, arguments.growth_rows = [], 1, 60_000
    recorder = Recorder("label_tree", __doc__, data=arguments.data, keep=not arguments.quick)
    for name in arguments.tables:
        if name in ("austen", "yso"):
            task = austen_parts(arguments.data).final if name == "austen" else text_task(arguments.data, "yso_finna_en")
            if arguments.quick:
                task = task._replace(X=task.X[:2000], y=task.y[:2000])
            title = {"austen": "Label trees on Jane Austen", "yso": "Label trees on yso_finna_en"}[name]
            note = f"{task.X.shape[0]:,} rows, {task.X.shape[1]:,} features, {task.X_test.shape[0]:,} test rows."
            compare(name, task, arguments, recorder.table(title, note))
        elif name == "growth":
            n_rows = arguments.growth_rows
            most = max(n for n in N_CLASSES if 5 * n <= n_rows)
            note = f"{n_rows:,} rows of ten non-zeros, {FEATURES:,} features, one thread, default settings"
            title = "Label trees and the number of classes"
            same = recorder.table(title, f"{note}; the same rows each time, their classes put together by tens.")
            growth(arguments, same, same_rows(n_rows, most))
            other = recorder.table(f"{title}, rows of their own", f"{note}; no class is near another but by thirties.")
            growth(arguments, other, other_rows(n_rows, most))
        else:
            threads(arguments, recorder.table("Label trees on one thread and on two", "A forest of two trees."))


if __name__ == "__main__":
    main()

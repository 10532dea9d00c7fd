"""Has a change made learning, ranking or serving slower?

    python benchmarks/before_after.py DATA BEFORE [--pairs 7] [--only rank serve] [--seconds 3] [--quick]

BEFORE is the folder of another state of the project, such as `git worktree add /tmp/before COMMIT` makes. Both states
are loaded side by side, each in a process of its own with a cache of its own, and do the same work in turns: before,
after, after, before, ... Each learner has the defaults of its state. What counts is the median over the pairs of how
much faster the state after is; above 1 is faster. Servers are asked over 16 connections, in turns as well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from abound import Model, TextVectorizer
from abound.learn.registry import make_learner
from abound.read.datasets import load_dataset, load_icd10
from ff_classes import make_rows
from record import Recorder
from serve_load import free_port, load, post
from tasks import austen_parts

LEARNERS = ("ff", "pa", "ooz", "svm")
CLASSES = (1_000, 25_000, 200_000)
AS_FAST = 0.97
HERE = Path(__file__).resolve().parent

Work = Callable[[], Any]


def learning(data: Path) -> dict[str, Work]:
    """One pass of FF and of PA."""
    austen, wordnet = austen_parts(data).final, wordnet_rows(data)
    return {
        "learn: ff, austen": lambda: make_learner("ff", passes=1, cut=None).fit(austen.X, austen.y),
        "learn: pa, wordnet_hypernym": lambda: make_learner("pa", passes=1, cut=None).fit(*wordnet),
        "learn: pa without a bias, wordnet_hypernym": lambda: unbiased_pa().fit(*wordnet),
    }


def unbiased_pa() -> Any:
    """PA, also of a state that knows no bias."""
    learner = make_learner("pa", passes=1, cut=None)
    return learner.set_params(bias=0) if "bias" in learner.get_params() else learner


def ranking(data: Path) -> dict[str, Work]:
    """The five best classes of rows like those of `rank_speed.py`, and of short texts."""
    works: dict[str, Work] = {}
    for n in CLASSES:
        X, y = make_rows(300_000, 200_000, n)
        model = make_learner("ff").partial_fit(X, y, classes=np.arange(n))
        works[f"rank: ff, generated, {n:,} classes"] = lambda X=X[:50_000], model=model: model.predict_topk(X, k=5)
    X, y = wordnet_rows(data)
    for name in LEARNERS:
        model = make_learner(name).fit(X, y)
        works[f"rank: {name}, wordnet_hypernym"] = lambda model=model: model.predict_topk(X, k=5)
    return works


def wordnet_rows(data: Path) -> tuple[Any, Any]:
    """The same rows for both states: words of two characters, as all states have known them."""
    train: Any = load_dataset(data / "wordnet_hypernym").train
    return TextVectorizer(token_pattern=r"(?u)\b\w\w+\b").fit_transform(train.text_bytes), train.labels.to_y()


def save_models(folder: Path) -> None:
    """Models of diagnosis codes to serve."""
    dataset = load_icd10()
    train: Any = dataset.train
    vectoriser = TextVectorizer()
    X = vectoriser.fit_transform(train.text_bytes)
    for name in LEARNERS:
        learner = make_learner(name, **({"average": False} if name == "pa" else {})).fit(X, train.labels.to_y())
        Model(learner, vectoriser, dataset.taxonomy, dataset.titles).save(folder / name)


def work(data: Path, folder: Path, kinds: list[str]) -> None:
    """Be one of the two states: do what is asked for on a line, and answer with the seconds that it took."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    works = (learning(data) if "learn" in kinds else {}) | (ranking(data) if "rank" in kinds else {})
    for once in works.values():
        once()
    if "serve" in kinds:
        save_models(folder)
    print(json.dumps(list(works)), file=answers, flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        works[json.loads(line)]()
        print(time.perf_counter() - begin, file=answers, flush=True)


class State:
    """A state of the project, in a process and a folder of its own."""

    def __init__(self, source: Path, data: Path, folder: Path, kinds: list[str]) -> None:
        self.folder = folder
        folder.mkdir()
        path = f"{source / 'src'}{os.pathsep}{HERE}"
        self.environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "kernels")}
        words = [sys.executable, __file__, str(data), str(source), "--be", str(folder), "--only", *kinds]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, env=self.environment, stdin=pipe, stdout=pipe, text=True)
        self.names: list[str] = json.loads(self._line())

    def seconds(self, name: str) -> float:
        """Do a piece of work."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(name) + "\n")
        self.process.stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    @contextmanager
    def serving(self, learner: str) -> Iterator[int]:
        """A server of this state; gives its port."""
        port = free_port()
        words = [sys.executable, "-m", "abound.serve.cli", "serve", f"icd10={self.folder / learner}"]
        server = subprocess.Popen(
            [*words, "--port", str(port)],
            env=self.environment | {"ABOUND_TOKEN": "benchmark"},
            stderr=subprocess.DEVNULL,
        )
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready").read()
                    break
                except OSError:
                    time.sleep(0.1)
            yield port
        finally:
            server.terminate()
            server.wait()


def in_turns(n_pairs: int, before: Work, after: Work) -> list[tuple[float, float]]:
    """Pairs of what both give; who comes first changes from pair to pair."""
    pairs = []
    for number in range(n_pairs):
        if number % 2:
            second = after()
            pairs.append((before(), second))
        else:
            pairs.append((before(), after()))
    return pairs


def serve_in_turns(
    n_pairs: int, seconds: float, learner: str, before: State, after: State
) -> list[tuple[float, float]]:
    """Seconds a suggestion of both servers, in pairs; the first answers of each do not count."""
    texts = [post("suggest", {"text": text, "limit": 5}) for text in load_icd10().part("test").texts]

    def late(port: int) -> float:
        run = asyncio.run(load(port, seconds, texts, None))
        assert not run["errors"]
        return 1 / float(run["rate"])

    with before.serving(learner) as one, after.serving(learner) as other:
        late(one), late(other)
        return in_turns(n_pairs, lambda: late(one), lambda: late(other))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("before", type=Path)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", nargs="+", default=["learn", "rank", "serve"], metavar="KIND")
    parser.add_argument("--seconds", type=float, default=3.0, help="of load on a server, in each turn")
    parser.add_argument("--quick", action="store_true", help="one pair; nothing is recorded")
    parser.add_argument("--be", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.be is not None:
        return work(arguments.data, arguments.be, arguments.only)
    n_pairs = 1 if arguments.quick else arguments.pairs
    commit = subprocess.run(["git", "-C", str(arguments.before), "rev-parse", "--short", "HEAD"], capture_output=True)
    sys.argv[sys.argv.index(str(arguments.before))] = commit.stdout.decode().strip() or "BEFORE"
    recorder = Recorder("before_after", __doc__, arguments.data, keep=not arguments.quick)
    table = recorder.table("Before and after", f"one thread, {n_pairs} pairs in turns; seconds are the best of them")
    slower = []

    def tell(name: str, pairs: list[tuple[float, float]]) -> None:
        ratios = [one / other for one, other in pairs]
        ratio = statistics.median(ratios)
        figures = {"before s": min(one for one, _ in pairs), "after s": min(other for _, other in pairs)}
        if name.startswith("serve"):
            figures = {key.replace(" s", "/s"): 1 / value for key, value in figures.items()}
        table.row({"work": name}, figures | {"ratio": ratio, "lowest": min(ratios), "highest": max(ratios)})
        if ratio < AS_FAST:
            slower.append(f"{name} {ratio:.3f}")

    with tempfile.TemporaryDirectory() as folder:
        states = [
            State(source.resolve(), arguments.data, Path(folder, name), arguments.only)
            for name, source in (("before", arguments.before), ("after", HERE.parent))
        ]
        for name in states[0].names:
            tell(
                name,
                in_turns(n_pairs, lambda name=name: states[0].seconds(name), lambda name=name: states[1].seconds(name)),
            )
        for state in states:
            state.process.kill()
        for learner in LEARNERS if "serve" in arguments.only else ():
            tell(f"serve: {learner}", serve_in_turns(n_pairs, arguments.seconds, learner, *states))
    what = f"no work is slower than {AS_FAST} of before" + (f", but for {', '.join(slower)}" if slower else "")
    table.target(not slower, what)


if __name__ == "__main__":
    main()

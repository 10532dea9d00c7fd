"""The protocol: settings are chosen on held-out training rows, the test rows are measured once, all learners alike."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from abound.compare.budget import Budget
from abound.compare.elsewhere import Task, run_elsewhere
from abound.compare.experiment import Experiment, Row, Stage
from abound.compare.grid import Setting, needs_choosing, settings_of
from abound.compare.launch import Limits, run
from abound.compare.prepared import Facts, load, prepare, save
from abound.compare.rows import RowFile
from abound.compare.splits import choosing_split, compact, final_split, fingerprint
from abound.distribute import Workers, workers
from abound.labels import Labels, encode
from abound.progress import Track, track
from abound.read.datasets import Dataset

MAIN = "R1"
"""The measure that settings are chosen by."""


@dataclass(frozen=True)
class Plan:
    """What is to be compared, and within what.

    Parameters
    ----------
    learners : tuple of str
        Short names.
    time_limit : float
        Seconds in all.
    memory_limit : int or None
        Bytes that an experiment may take.
    n_splits : int
        Splits into training and test rows.
    seed : int
        Of all random choices.
    jobs : int
        Threads of an experiment.
    text : dict
        Parameters of the vectoriser.
    cluster : str or None
        Where experiments run side by side; None runs one after another here. See `abound.distribute.workers`.
    n_workers : int
        Processes of the cluster, if it is on this machine.
    calibrate : str or None
        How learners learn probabilities in the test run; None if they learn none.
    """

    learners: tuple[str, ...]
    time_limit: float = 240.0
    memory_limit: int | None = None
    n_splits: int = 1
    seed: int = 0
    jobs: int = 1
    text: dict[str, Any] = field(default_factory=dict)
    cluster: str | None = None
    n_workers: int = 1
    calibrate: str | None = None


@dataclass
class Contender:
    """What became of one learner.

    Parameters
    ----------
    learner : str
        Its short name.
    tried : list of dict
        Rows of the settings that were tried.
    untried : list of dict
        Settings there was no time for.
    chosen : dict or None
        The setting chosen; None if none could be.
    tests : list of dict
        Rows of the test, split by split.
    """

    learner: str
    tried: list[Row] = field(default_factory=list)
    untried: list[Setting] = field(default_factory=list)
    chosen: Setting | None = None
    tests: list[Row] = field(default_factory=list)

    @property
    def error(self) -> str | None:
        """Why there is no result, if there is none."""
        failed = [row["error"]["message"] for row in (*self.tests, *self.tried) if row["error"]]
        if self.tests and self.tests[0]["error"] is None:
            return None
        return failed[0] if failed else "there was no time for it"


@dataclass
class Comparison:
    """What a comparison has found.

    Parameters
    ----------
    dataset : Dataset
        The data.
    plan : Plan
        What was asked for.
    contenders : list of Contender
        In the order of the plan.
    n_splits : int
        Splits that every learner was tested on.
    """

    dataset: Dataset
    plan: Plan
    contenders: list[Contender]
    n_splits: int = 1

    def truth(self) -> Labels:
        """Return the labels of the first split's test rows, numbered as in its rows."""
        halves = final_split(self.dataset, 0, self.plan.n_splits, self.plan.seed)
        return encode(compact(halves.held.labels), known=compact(halves.fit.labels).classes)


def compare(dataset: Dataset, plan: Plan, rows: RowFile) -> Comparison:
    """Train learners side by side and measure them.

    Parameters
    ----------
    dataset : Dataset
        The data.
    plan : Plan
        Learners and limits.
    rows : RowFile
        Gets a row for each experiment; those it has already are not run again.

    Returns
    -------
    Comparison
        All rows.
    """
    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="abound-compare-", ignore_cleanup_errors=True)
        scratch = Path(stack.enter_context(folder))
        pool = None if plan.cluster is None else stack.enter_context(workers(plan.n_workers, plan.cluster))
        planned = sum(len(settings_of(name)) if needs_choosing(name) else 0 for name in plan.learners)
        progress = stack.enter_context(track("compare", planned + len(plan.learners) * plan.n_splits))
        return _Run(dataset, plan, rows, scratch, progress, pool).all()


class _Run:
    """One comparison under way."""

    def __init__(
        self, dataset: Dataset, plan: Plan, rows: RowFile, scratch: Path, progress: Track, pool: Workers | None
    ) -> None:
        self.dataset, self.plan, self.rows, self.scratch, self.progress = dataset, plan, rows, scratch, progress
        self.pool, self.n_at_once = pool, 1 if pool is None else pool.n_workers
        self.fingerprint = fingerprint(dataset)
        self.budget = Budget(plan.time_limit, plan.learners)
        self.contenders = {name: Contender(name, untried=settings_of(name)) for name in plan.learners}
        self._prepared: dict[tuple[Stage, int], tuple[Path, Facts]] = {}
        self._shared: dict[tuple[Stage, int], Any] = {}

    def all(self) -> Comparison:
        self.choose()
        n_splits = self.test()
        return Comparison(self.dataset, self.plan, list(self.contenders.values()), n_splits)

    def choose(self) -> None:
        """Try settings: the first of every learner, then one more of whoever has used least time, while it fits."""
        choosing = [name for name in self.contenders if needs_choosing(name)]
        self._try(((name, self.budget.first_limit(choosing[number:])) for number, name in enumerate(choosing)))
        while True:
            fitting = [name for name in choosing if self._fits(self.contenders[name])]
            if not fitting:
                break
            least = sorted(fitting, key=lambda name: self.budget.used[name])[: self.n_at_once]
            seconds = max(1.0, self.budget.left() / len(least))
            self._try([(name, seconds) for name in least])
        for contender in self.contenders.values():
            if contender.learner not in choosing:
                contender.chosen = contender.untried.pop(0)
            else:
                contender.chosen = best_setting(contender.tried)
            if contender.chosen is not None and self.plan.calibrate is not None:
                contender.chosen = {**contender.chosen, "calibrate": self.plan.calibrate}

    def test(self) -> int:
        """Test the chosen settings, split by split; return the number of splits that all learners have."""
        running = [contender for contender in self.contenders.values() if contender.chosen is not None]
        self._test_split(running, 0)
        running = [contender for contender in running if contender.error is None]
        n_splits = self.budget.splits_that_fit(self.plan.n_splits) if running else 1
        for split in range(1, n_splits):
            self._test_split(running, split)
            if any(contender.tests[split]["error"] for contender in running):
                return split
        return n_splits

    def _test_split(self, running: list[Contender], split: int) -> None:
        waiting = [contender.learner for contender in running]
        asked = (
            (contender.learner, contender.chosen or {}, self.budget.test_limit(contender.learner, waiting[number:]))
            for number, contender in enumerate(running)
        )
        for contender, row in zip(running, self._rows("test", split, asked), strict=True):
            contender.tests.append(row)
            self.budget.test_done(contender.learner, row["timings"]["wall"])

    def _try(self, learners: Iterable[tuple[str, float]]) -> None:
        """Try the next setting of some learners, each within some seconds."""
        trying: list[Contender] = []

        def asked() -> Iterator[tuple[str, Setting, float]]:
            for learner, seconds in learners:
                trying.append(self.contenders[learner])
                yield learner, trying[-1].untried.pop(0), seconds

        for number, row in enumerate(self._rows("choose", 0, asked())):
            contender = trying[number]
            contender.tried.append(row)
            good = [tried["timings"]["wall"] for tried in contender.tried if tried["error"] is None]
            self.budget.spend(contender.learner, row["timings"]["wall"], max(good) if good else None)

    def _fits(self, contender: Contender) -> bool:
        """Whether there is time for another setting; one that took too long is not followed by others."""
        if not contender.untried or any(row["error"] for row in contender.tried):
            return False
        return float(contender.tried[-1]["timings"]["wall"]) <= self.budget.left()

    def _rows(self, stage: Stage, split: int, asked: Iterable[tuple[str, Setting, float]]) -> Iterator[Row]:
        """The rows of learners, settings and seconds; without a cluster, one is asked for when the last is there."""
        tasks: Iterable[Task] = (self._task(stage, split, *each) for each in asked)
        fresh: Iterator[Row] = iter(())
        if self.pool is not None:
            tasks = list(tasks)
            lacking = [task for task in tasks if self._known(task) is None]
            if lacking:
                fresh = self.pool.map(run_elsewhere, lacking, self._ready_elsewhere(stage, split))
        for task in tasks:
            note = f"{task.experiment.learner} {shown_setting(task.experiment.parameters)}"
            self.progress.advance(0, note)
            row = self._known(task)
            if row is None and self.pool is not None:
                row = next(fresh)
                self.rows.append(row)
            elif row is None:
                row = run(task.experiment, *self._ready(stage, split), task.limits, self.scratch)
                self.rows.append(row)
            self.progress.advance(1, note)
            yield row

    def _task(self, stage: Stage, split: int, learner: str, setting: Setting, seconds: float) -> Task:
        plan = self.plan
        experiment = Experiment(
            *(self.dataset.name, self.fingerprint, stage, split, learner, setting, plan.text, plan.seed, plan.jobs)
        )
        return Task(experiment, Limits(seconds, plan.memory_limit))

    def _known(self, task: Task) -> Row | None:
        row = self.rows.get(task.experiment.key)
        return None if row is None or task.limits.may_help(row) else row

    def _ready_elsewhere(self, stage: Stage, split: int) -> Any:
        """The prepared rows of a stage, where all workers can read them."""
        assert self.pool is not None
        if (stage, split) not in self._shared:
            self._shared[stage, split] = self.pool.share(load(self._ready(stage, split)[0]))
        return self._shared[stage, split]

    def _ready(self, stage: Stage, split: int) -> tuple[Path, Facts]:
        """The prepared rows of a stage, made when they are first needed."""
        if (stage, split) not in self._prepared:
            if stage == "choose":
                halves = choosing_split(self.dataset, self.plan.n_splits, self.plan.seed)
            else:
                halves = final_split(self.dataset, split, self.plan.n_splits, self.plan.seed)
            threads = max(self.plan.jobs, self.plan.n_workers)
            prepared = prepare(halves, self.plan.text, self.dataset.taxonomy, threads)
            folder = Path(tempfile.mkdtemp(dir=self.scratch))
            save(prepared, folder)
            self._prepared[stage, split] = folder, prepared.facts
            self.budget.spend_otherwise(prepared.facts.vectorise_fit + prepared.facts.vectorise_held)
        return self._prepared[stage, split]


def best_setting(tried: list[Row]) -> Setting | None:
    """Return the setting with the highest R1, with the best number of passes; the earlier one of equals.

    Parameters
    ----------
    tried : list of dict
        Rows.

    Returns
    -------
    dict or None
        None if none has a result.

    Examples
    --------
    >>> row = {"error": None, "experiment": {"parameters": {"passes": 2}}, "measures": {"R1": 0.4},
    ...        "history": [{"pass": 1, "R1": 0.5}, {"pass": 2, "R1": 0.4}]}
    >>> best_setting([row])
    {'passes': 1}
    """
    best: tuple[float, Setting] | None = None
    for row in tried:
        if row["error"]:
            continue
        setting = dict(row["experiment"]["parameters"])
        passes = [entry for entry in row["history"] if "pass" in entry and MAIN in entry] if "passes" in setting else []
        found = [(entry[MAIN], {**setting, "passes": entry["pass"]}) for entry in passes]
        for score, candidate in found or [(row["measures"][MAIN], setting)]:
            if best is None or score > best[0]:
                best = score, candidate
    return None if best is None else best[1]


def shown_setting(setting: Setting) -> str:
    """Write a setting for people.

    Parameters
    ----------
    setting : dict
        Parameters.

    Returns
    -------
    str
        Such as ``C=1, passes=3``.
    """
    return ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in setting.items()
    )

"""EMA: Feature Focus with a fading memory, for streams whose classes drift.

Madani and Huang: On updates that constrain the features' connections during learning, KDD 2008. Retrieval and trigger
are Feature Focus's, without ratings. An update fades every weight of an active feature,
``w[f, c] ← (1 - β x_f) w[f, c]``, gives ``β x_f`` to the true class, and drops edges lighter than ``min_weight``. A
feature's weights sum to at most 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from abound.learn import _online_kernels as kernels
from abound.learn._edge_lists import EdgeLists
from abound.learn.index_learner import IndexLearner, Scratch
from abound.learn.online import Examples
from abound.validation import check_number


class EMAClassifier(IndexLearner):
    """Index learning by exponential moving averages.

    Parameters
    ----------
    rate : float, default=0.1
        β: the share of a feature's weights that an update renews. Of 0.3, 0.1 and 0.03, the papers' candidates, the
        middle one; choose on validation data.
    passes : int, default=1
        Passes over the rows in ``fit``.
    margin : float, default=0
        Learn a row when the true class leads by no more than this.
    min_weight : float or None, default=None
        Edges lighter than this are dropped. None takes ``min(0.01, rate / 50)``: a new edge starts at ``rate`` · x_f
        and must survive.
    max_degree : int or None, default=25
        How many classes a feature votes for at most, the heaviest. None for all.
    vote_weight : float, default=0
        Edges lighter than this are kept but do not vote.
    negative : {"ignore", "split"}, default="ignore"
        Non-positive values are ignored, or a feature becomes two, one for each sign.
    shuffle : bool, default=True
        A new random order each pass, the first one too.
    validation_fraction : float, default=0
        Part of the rows held out to measure R1 and R5 after each pass.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the orders and the held-out part.
    n_jobs : int or None, default=None
        Threads when ranking; -1 for all cores.
    checkpoint : path or None, default=None
        A folder for what was learned after each pass: a training that was broken off goes on from there when it is
        started again with the same data and parameters, and ends with the same model.
    memory : str, int or None, default=None
        Most memory that the process may take to train, such as "4GB"; what would need more is refused before it begins.
        Rows on disk that are larger than half of it are shuffled in windows.

    Examples
    --------
    >>> from abound import EMAClassifier
    >>> model = EMAClassifier().fit([[1, 0], [0, 1], [1, 1]], ["a", "b", "a"])
    >>> model.predict([[1, 0]]).tolist()
    ['a']
    """

    learner: ClassVar[str] = "ema"

    def __init__(
        self,
        rate: float = 0.1,
        passes: int = 1,
        margin: float = 0.0,
        min_weight: float | None = None,
        max_degree: int | None = 25,
        vote_weight: float = 0.0,
        negative: str = "ignore",
        shuffle: bool = True,
        validation_fraction: float = 0.0,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        memory: str | int | None = None,
    ) -> None:
        self.rate = rate
        self.passes = passes
        self.margin = margin
        self.min_weight = min_weight
        self.max_degree = max_degree
        self.vote_weight = vote_weight
        self.negative = negative
        self.shuffle = shuffle
        self.validation_fraction = validation_fraction
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.memory = memory

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("rate", self.rate, 0, 1, above=True)
        check_number("min_weight", self.min_weight, 0, 1, or_none=True)

    def _step(self, examples: Examples, first_pass: bool, scratch: Scratch) -> Callable[[EdgeLists, int], int]:
        rows, labels = examples.rows, examples.labels
        min_weight = self._lightest

        def step(lists: EdgeLists, place: int) -> int:
            reached: int = kernels.ema(
                *(rows.indptr, rows.indices, rows.data),
                *(labels.indptr, labels.ids, examples.weights, examples.order, place),
                *(lists, float(self.margin), float(min_weight), self._degree_limit, float(self.vote_weight)),
                *(float(self.rate), *scratch),
            )
            return reached

        return step

    @property
    def _lightest(self) -> float:
        return min(0.01, self.rate / 50) if self.min_weight is None else self.min_weight

    def _edges_a_feature(self, n_classes: int) -> int:
        return int(min(n_classes, 1 / self._lightest + 1)) if self._lightest > 0 else n_classes

"""Feature Focus: every feature keeps a short list of the classes it votes for, and counts when the vote was wrong.

Madani, Connor, Greiner: Learning When Concepts Abound, JMLR 10 (2009), figure 4. For each row ``x`` of class ``y`` the
active features vote, ``s_c = Σ_f r_f · w[f, c] · x_f``. If the margin ``s_y - max_{c≠y} s_c`` is not above ``margin``,
each active feature updates (FSU): ``n[f, y] += x_f``, ``n[f] += x_f``, ``w[f, c] = n[f, c] / n[f]``, and edges with
``w < min_weight`` are dropped. A row costs the edges it touches, whatever the number of classes.

The paper looks for the true class among the 50 best and takes its score as 0 beyond. With a margin of 0 or more that
changes nothing (such a row is learned anyway), so there is no option for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from abound.learn import _online_kernels as kernels
from abound.learn._edge_lists import EdgeLists
from abound.learn.index_learner import IndexLearner, Scratch, boolean_rows
from abound.learn.online import Examples
from abound.validation import Float64Array, Rows, check_choice, check_number


class FeatureFocusClassifier(IndexLearner):
    """Feature Focus (FF): index learning by counting where the margin is too small.

    Fast, online, sparse. Defaults are the paper's.

    Parameters
    ----------
    passes : int, default=1
        Passes over the rows in ``fit``.
    margin : float, default=0
        Learn a row when the true class leads by no more than this. 0 learns from mistakes only; 0.1 and 0.5 suit
        fewer classes; Boolean vectors that are not normalised want about 7.
    min_weight : float, default=0.01
        Edges lighter than this are dropped, so that a feature has at most ``1 / min_weight`` of them.
    max_degree : int or None, default=25
        How many classes a feature votes for at most, the heaviest. None for all.
    vote_weight : float, default=0
        Edges lighter than this are kept but do not vote (section 6.3.2).
    rate_features : int or None, default=10
        A feature seen fewer times than this votes with less, ``r_f = min(1, seen / rate_features)``. None turns it off.
    leak : bool, default=True
        Whether the count of a dropped edge stays in the feature's total, which weakens uninformative features.
    boolean : bool, default=False
        Take every positive value as 1.
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
    >>> from abound import FeatureFocusClassifier
    >>> X = [[1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0]]
    >>> model = FeatureFocusClassifier().fit(X, ["tea", "coffee", "tea", "coffee"])
    >>> model.predict([[1, 0, 1]]).tolist()
    ['tea']
    >>> labels, scores = model.predict_topk([[0, 1, 1]], k=2)
    >>> str(labels[0, 0])
    'coffee'
    """

    learner: ClassVar[str] = "ff"

    def __init__(
        self,
        passes: int = 1,
        margin: float = 0.0,
        min_weight: float = 0.01,
        max_degree: int | None = 25,
        vote_weight: float = 0.0,
        rate_features: int | None = 10,
        leak: bool = True,
        boolean: bool = False,
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
        self.passes = passes
        self.margin = margin
        self.min_weight = min_weight
        self.max_degree = max_degree
        self.vote_weight = vote_weight
        self.rate_features = rate_features
        self.leak = leak
        self.boolean = boolean
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
        check_number("min_weight", self.min_weight, 0, 1)
        check_number("rate_features", self.rate_features, 1, whole=True, or_none=True)
        check_choice("leak", self.leak, (True, False))
        check_choice("boolean", self.boolean, (True, False))

    def _view(self, rows: Rows) -> Rows:
        rows = super()._view(rows)
        return boolean_rows(rows) if self.boolean else rows

    def _step(self, examples: Examples, first_pass: bool, scratch: Scratch) -> Callable[[EdgeLists, int], int]:
        rows, labels = examples.rows, examples.labels

        def step(lists: EdgeLists, place: int) -> int:
            reached: int = kernels.feature_focus(
                *(rows.indptr, rows.indices, rows.data),
                *(labels.indptr, labels.ids, examples.weights, examples.order, place),
                *(lists, first_pass),
                *(float(self.margin), float(self.min_weight), self._degree_limit, float(self.vote_weight)),
                *(float(self.rate_features or 0), bool(self.leak)),
                *scratch,
            )
            return reached

        return step

    def _edges_a_feature(self, n_classes: int) -> int:
        # Weights of at least min_weight that add up to 1 at most.
        return int(min(n_classes, 1 / self.min_weight + 1)) if self.min_weight > 0 else n_classes

    def _factors(self) -> Float64Array:
        """Counts become weights, w[f, c] = n[f, c] / n[f]."""
        totals = self._state.lists.heads["total"]
        factors: Float64Array = np.divide(1.0, totals, out=np.zeros(len(totals)), where=totals > 0)
        return factors

    def _rates(self) -> Float64Array | None:
        """r_f = min(1, #_f / rate_features)."""
        seen = self._state.lists.heads["seen"]
        return None if self.rate_features is None else np.minimum(1.0, seen / self.rate_features)

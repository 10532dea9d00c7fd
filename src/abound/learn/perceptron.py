"""Perceptrons, one a class, ranked by their scores; alone or as a committee averaged into one linear model.

Rosenblatt's rule, one-versus-rest: a true class that scores 0 or less gains the row, a wrong one that scores above 0
loses it. The committee is that of Madani, Connor, Greiner, Learning When Concepts Abound (JMLR 2009): members start
from random weights in [-1, 1] and stop after five passes without a better training error; their mean ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from abound.distribute import workers
from abound.learn import _prototype_kernels as kernels
from abound.learn._prototype_lists import lists_from
from abound.learn.online import Examples
from abound.learn.prototype import PrototypeLearner, PrototypeState
from abound.learn.prototype_bias import no_bias
from abound.learn.prototype_parts import Batch
from abound.validation import (
    check_choice,
    check_dense,
    check_labels,
    check_number,
    check_rows,
    check_sample_weight,
    make_generator,
)

PASSES_WITHOUT_GAIN = 5
"""A member of a committee stops after so many passes without a better training error."""


class PerceptronClassifier(PrototypeLearner):
    """One perceptron a class, or a committee of them.

    Parameters
    ----------
    n_members : int, default=1
        Members of the committee; more than 1 start from random weights, and their mean is the model. The paper: 10.
    init : {"zero", "random"}, default="zero"
        First weights: 0, or random in [-1, 1], which needs features × classes numbers. A committee is always random.
    rate : float, default=1
        A factor on every change.
    average : bool, default=True
        Rank by the mean of the weights over all steps rather than the last ones.
    bias : float or "auto", default="auto"
        Every row has one more feature of this value, whose weight is learned like the others but never cut; "auto" is
        half the root mean square length of the rows, those of ``fit`` or of the first ``partial_fit``: 0.5 if they have
        unit length. 0 is none.
    passes : int, default=5
        Passes over the rows in ``fit``, at most; 1 is the single-pass mode.
    keep : float, int or None, default=None
        Keep only this share (below 1) or number of the heaviest weights.
    keep_when : {"end", "pass"}, default="end"
        Cut the model that ranks, or after each pass what has been learned.
    oversample : int or None, default=None
        Repeat rows of classes with fewer than so many, up to it.
    resample : bool, default=False
        Choose the repeated rows afresh each pass.
    shuffle : bool, default=True
        A new random order each pass, the first one too.
    validation_fraction : float, default=0
        Part of the rows held out to measure R1 and R5 after each pass.
    patience : int or None, default=None
        Stop after so many passes without a better R1 on the held-out part, and keep the best pass.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the orders, the first weights, the repeated rows and the held-out part.
    n_jobs : int or None, default=None
        Threads, in training and ranking; -1 for all cores. They do not change the result.
    memory : str, int or None, default=None
        Most memory that the process may take to train, such as "4GB"; what would need more is refused before it begins.
        Rows on disk that are larger than half of it are shuffled in windows.

    Examples
    --------
    >>> from abound import PerceptronClassifier
    >>> model = PerceptronClassifier().fit([[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["tea", "coffee", "both"])
    >>> model.predict([[1, 0, 1]]).tolist()
    ['tea']
    """

    learner: ClassVar[str] = "perceptron"

    def __init__(
        self,
        n_members: int = 1,
        init: str = "zero",
        rate: float = 1.0,
        average: bool = True,
        bias: float | str = "auto",
        passes: int = 5,
        keep: float | int | None = None,
        keep_when: str = "end",
        oversample: int | None = None,
        resample: bool = False,
        shuffle: bool = True,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        memory: str | int | None = None,
    ) -> None:
        self.n_members = n_members
        self.init = init
        self.rate = rate
        self.average = average
        self.bias = bias
        self.passes = passes
        self.keep = keep
        self.keep_when = keep_when
        self.oversample = oversample
        self.resample = resample
        self.shuffle = shuffle
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory = memory

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch; see `OnlineClassifier.fit`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.
        y : array, list of lists or indicator
            Their labels.
        sample_weight : array of shape (n,), optional
            How much each row counts.

        Returns
        -------
        self
            The fitted learner. Of a committee, ``history_`` has the passes of all members, one after another, and
            Ctrl-C leaves no model.
        """
        self._check_parameters()
        if self.n_members == 1:
            return super().fit(X, y, sample_weight)
        seeds = make_generator(self.random_state).integers(2**31, size=self.n_members)
        settings = {"n_members": 1, "init": "random", "n_jobs": None}

        def train(seed: int) -> PerceptronClassifier:
            member: PerceptronClassifier = clone(self).set_params(**settings, random_state=seed)
            member._in_committee = member._is_part = True
            return member.fit(X, y, sample_weight)

        with workers(self.n_jobs) as pool:
            members = list(pool.map(train, seeds.tolist()))
        first = members[0]
        self._remember_from(first)
        weights = sum(member._mean_weights() for member in members) / self.n_members
        lists, known = lists_from(weights.astype(np.float32).tocsr()), first._state
        bias = replace(no_bias(weights.shape[1]), constant=known.bias.constant)
        bias.added[:] = sum(member._mean_bias() for member in members) / self.n_members
        self._state = PrototypeState(known.n_features, known.n_classes, None, lists, known.since, bias)
        self.history_ = [entry | {"member": j} for j, member in enumerate(members) for entry in member.history_]
        n_rows = check_rows(self, X, reset=False).n_rows
        return self._learn_decisions(X, check_labels(y, n_rows), check_sample_weight(sample_weight, n_rows))

    _in_committee = False

    def _remember_from(self, member: PerceptronClassifier) -> None:
        self.n_features_in_ = member.n_features_in_
        names = getattr(member, "feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        self._classes, self._kind = member._classes, member._kind
        self.class_counts_, self._labels_a_row = member.class_counts_, member._labels_a_row
        self._run = (None, 0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_members", self.n_members, 1, whole=True)
        if self.n_members > 1 and self.memory is not None:
            raise ValueError(f"memory={self.memory!r}: the members of a committee are in memory together; set None")
        check_choice("init", self.init, ("zero", "random"))
        check_number("rate", self.rate, 0, above=True)

    def _start(self, n_features: int, n_classes: int) -> PrototypeState:
        state = super()._start(n_features, n_classes)
        if self.init == "random":
            check_dense(n_features, n_classes, 4, "use init='zero' and a single member, which stay sparse")
            heads = state.lists.heads
            heads["row"] = np.arange(n_features)
            first = make_generator(self.random_state).random((n_features, n_classes), dtype=np.float32) * 2 - 1
            state.lists.used[1] = n_features
            state.lists = state.lists._replace(dense=first)
        return state

    def _is_enough(self) -> bool:
        if not self._in_committee:
            return super()._is_enough()
        recalls = [entry["online_R1"] for entry in self.history_]
        return len(recalls) - 1 - int(np.argmax(recalls)) >= PASSES_WITHOUT_GAIN

    def _changes_a_row(self, width: int) -> int:
        return width

    def _walk(self, examples: Examples, batch: Batch) -> Callable[[int, int], None]:
        labels = examples.labels

        def walk(begin: int, end: int) -> None:
            kernels.perceptrons(
                *(labels.indptr, labels.ids, examples.weights),
                *(examples.order, begin, end, float(self.rate)),
                *(batch.change_indptr, batch.change_classes, batch.changes, batch.products),
                *(batch.scores, batch.tally),
            )

        return walk

"""PA, PA-I, PA-II: passive-aggressive learning of class prototypes.

Crammer et al., Online passive-aggressive algorithms, JMLR 7 (2006), as used in Madani and Huang, Large-Scale Many-Class
Prediction via Flat Techniques. For each row: the hinge loss ``L = max(0, margin - s_y + s_c')`` with ``c'`` the best
wrong class of all; if it is positive, ``w_y += ητx`` and ``w_c' -= ητx``. Rows are taken one by one in effect; in fact
they are scored in batches whose earlier updates are accounted for, see `abound.learn._batch_kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from abound.learn import _prototype_kernels as kernels
from abound.learn.online import Examples
from abound.learn.prototype import PrototypeLearner
from abound.learn.prototype_parts import Batch
from abound.validation import check_choice, check_number


class PAClassifier(PrototypeLearner):
    """Multi-class passive-aggressive learning.

    Parameters
    ----------
    variant : {"PA-II", "PA-I", "PA"}, default="PA-II"
        PA-II adds a slack term to the step, PA-I caps it, PA takes it whole.
    C : float, default=1
        Aggressiveness of PA-I and PA-II.
    step : {"original", "paper"}, default="original"
        "original": Crammer et al., τ = L / (2‖x‖² + 1/(2C)) for PA-II, L / 2‖x‖² for PA, and at most C for PA-I.
        "paper": ‖x‖² in place of 2‖x‖², as the flat-techniques papers print it; it moves two classes by what suffices
        for one and so overshoots the margin. The default was chosen on validation data: with averaging it was better
        on long-tailed classes and no worse elsewhere.
    margin : float, default=1
        The lead that a true class should have. From a zero start only its ratio to ``rate`` matters in PA and PA-II.
    rate : float, default=1
        η, a factor on every step.
    average : bool, default=True
        Rank by the mean of the weights over all steps rather than the last ones. Better on validation data from the
        second or third pass on; the last weights react to one example at once.
    bias : float or "auto", default="auto"
        Every row has one more feature of this value, whose weight is learned like the others but never cut; "auto" is
        half the root mean square length of the rows, those of ``fit`` or of the first ``partial_fit``: 0.5 if they have
        unit length. 0 is none.
    passes : int, default=5
        Passes over the rows in ``fit``.
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
        Seed of the orders, the repeated rows and the held-out part.
    n_jobs : int or None, default=None
        Threads, in training and ranking; -1 for all cores. They do not change the result.
    checkpoint : path or None, default=None
        A folder for what was learned after each pass: a training that was broken off goes on from there when it is
        started again with the same data and parameters, and ends with the same model.
    memory : str, int or None, default=None
        Most memory that the process may take to train, such as "4GB"; what would need more is refused before it begins.
        Rows on disk that are larger than half of it are shuffled in windows.

    Examples
    --------
    >>> from abound import PAClassifier
    >>> model = PAClassifier().fit([[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["tea", "coffee", "both"])
    >>> model.predict([[1, 0, 1]]).tolist()
    ['tea']
    """

    learner: ClassVar[str] = "pa"

    def __init__(
        self,
        variant: str = "PA-II",
        C: float = 1.0,
        step: str = "original",
        margin: float = 1.0,
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
        checkpoint: Any = None,
        memory: str | int | None = None,
    ) -> None:
        self.variant = variant
        self.C = C
        self.step = step
        self.margin = margin
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
        self.checkpoint = checkpoint
        self.memory = memory

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("variant", self.variant, ("PA-II", "PA-I", "PA"))
        check_choice("step", self.step, ("paper", "original"))
        check_number("C", self.C, 0, above=True)
        check_number("margin", self.margin, 0)
        check_number("rate", self.rate, 0, above=True)

    _log: Any = None

    def _walk(self, examples: Examples, batch: Batch) -> Callable[[int, int], None]:
        rows, labels, constant = examples.rows, examples.labels, self._state.bias.squared
        log = np.empty((0, 4)) if self._log is None else self._log
        bits = batch.scores.view(np.int32)

        def walk(begin: int, end: int) -> None:
            kernels.passive_aggressive(
                *(rows.indptr, rows.data, labels.indptr, labels.ids, examples.weights),
                *(examples.order, begin, end, float(self.margin), float(self.rate), float(self.C)),
                *(self.variant == "PA-II", self.variant == "PA-I", self.step == "original", constant),
                *(batch.change_indptr, batch.change_classes, batch.changes, batch.products),
                *(batch.scores, bits, batch.tally, log),
            )

        return walk

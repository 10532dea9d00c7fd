"""MMP: the multi-class multi-label perceptron, which moves every wrongly ordered pair of a true and a wrong class.

Crammer and Singer, A family of additive online algorithms for category ranking, JMLR 3 (2003). With
``E = {(r, c): r true, c wrong, s_r ≤ s_c}``, ties and classes never seen (score 0) included, a true class gains
``x · |{c: (r, c) ∈ E}| / |E|`` and a wrong one loses ``x · |{r: (r, c) ∈ E}| / |E|``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from abound.learn import _prototype_kernels as kernels
from abound.learn.online import Examples
from abound.learn.prototype import PrototypeLearner
from abound.learn.prototype_parts import Batch
from abound.validation import check_choice, check_number


class MMPClassifier(PrototypeLearner):
    """Multi-class multi-label perceptron.

    Parameters
    ----------
    pairs : {"all", "max"}, default="all"
        Move all wrongly ordered pairs, or only the worst one.
    rate : float, default=1
        A factor on every change.
    average : bool, default=True
        Rank by the mean of the weights over all steps rather than the last ones.
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
    >>> from abound import MMPClassifier
    >>> model = MMPClassifier().fit([[1, 0, 1], [0, 1, 1], [1, 1, 0]], [["tea"], ["coffee"], ["tea", "coffee"]])
    >>> model.predict([[1, 0, 1]])
    [['tea']]
    """

    learner: ClassVar[str] = "mmp"
    n_common: ClassVar[int] = 1

    def __init__(
        self,
        pairs: str = "all",
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
        self.pairs = pairs
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
        check_choice("pairs", self.pairs, ("all", "max"))
        check_number("rate", self.rate, 0, above=True)

    def _changes_a_row(self, width: int) -> int:
        return 2 if self.pairs == "max" else width

    def _walk(self, examples: Examples, batch: Batch) -> Callable[[int, int], None]:
        labels = examples.labels

        def walk(begin: int, end: int) -> None:
            kernels.multilabel_perceptron(
                *(labels.indptr, labels.ids, examples.weights),
                *(examples.order, begin, end, float(self.rate), self.pairs == "max"),
                *(batch.change_indptr, batch.change_classes, batch.changes, batch.products),
                *(batch.scores, batch.tally),
            )

        return walk

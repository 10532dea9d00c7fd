"""ECOC: error-correcting output codes with random ternary words.

Allwein, Schapire, Singer: Reducing Multiclass to Binary (JMLR 2000). Entries are 0, +1, -1 with probability ½, ¼, ¼;
no row is empty and each column has both signs. Of many random matrices the one whose nearest two words are furthest
apart is taken, by ``Σ (1 − u v)/2``. A row x goes to the class whose word is nearest to the outputs ``f(x)`` of the
classifiers: by Hamming distance ``Σ (1 − sign(m f))/2``, where zeros count ½, or by loss, ``Σ L(m f)`` with the squared
hinge loss ``L(z) = max(0, 1 − z)²`` that the classifiers were trained with, where zeros count ``L(0)``.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from abound.distribute import spans, workers
from abound.index.class_index import ClassIndex
from abound.learn import _code_kernels as kernels
from abound.learn.base import RankingClassifier
from abound.learn.checkpoint import training_workers
from abound.learn.dichotomizers import Codes, Dichotomizers, dichotomizers_from, train_dichotomizers
from abound.learn.index_parts import prefixed
from abound.learn.linear_rows import solver_rows
from abound.learn.one_vs_rest import Settings
from abound.learn.row_views import check_bias, own_bias
from abound.progress import track
from abound.rank.topk import Ranking, score_all, spread
from abound.store import Section
from abound.validation import (
    Float32Array,
    IdArray,
    Rows,
    check_choice,
    check_labels,
    check_number,
    check_rows,
    check_sample_weight,
    frozen,
    make_generator,
)

BITS_A_DOUBLING = 15
"""Default length of a word: 15 log₂ n_classes, as Allwein et al. have it for ternary codes."""

PAIRS = 3_000_000_000
"""Pairs of words that are compared at most to find a good matrix: with more than 1,000 classes fewer matrices."""

PAIRS_A_CALL = 20_000_000
"""Pairs that one kernel call compares: a fraction of a second, so that Ctrl-C is heard."""

OUTPUTS_A_BLOCK = 2_000_000
"""Outputs of classifiers that are held at once."""


class OutputCodeClassifier(RankingClassifier):
    """Error-correcting output codes (ECOC): a word of n bits for each class, a linear SVM for each bit.

    Parameters
    ----------
    n_bits : int or None, default=None
        Number of classifiers. None is 15 log₂ of the number of classes, rounded up.
    decode : {"loss", "hamming"}, default="loss"
        Whether the nearest word is found by how far the classifiers are on its side, or by which side they are on.
    n_codes : int, default=5000
        The best of so many random matrices is taken. Beyond 1,000 classes fewer are tried: as many as make three
        thousand million pairs of words.
    C : float, default=1.0
        What errors of the classifiers cost against the length of their weights.
    bias : float or "auto", default="auto"
        See `LinearClassifier`.
    tol : float, default=0.02
        A classifier is solved when its duality gap is at most this part of its objective.
    max_sweeps : int, default=1000
        Sweeps over the rows after which classifiers are left as they are, with a warning.
    min_weight : float, default=0.01
        Lighter weights are left out. 0 keeps all.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the words and of the order in which rows are taken.
    n_jobs : int or None, default=None
        Threads, in training and when ranking; -1 for all cores. The model does not depend on it.
    cluster : None, "processes", "local" or "host:port", default=None
        Where classifiers are trained: in threads, in ``n_jobs`` processes, on a Ray cluster of this machine alone,
        or on the one at an address. The model does not depend on it, and does not keep it.
    checkpoint : path or None, default=None
        A folder for finished classifiers: a training that was broken off goes on from there when it is
        started again with the same data and parameters, and ends with the same model.

    Attributes
    ----------
    dichotomizers_ : Dichotomizers
        The classifiers and the words.
    index_ : ClassIndex
        The linear part of the decoding, made when it is asked for; the classifiers' own is ``dichotomizers_.index``.

    Notes
    -----
    Scores are minus the mean distance of a class's word, at most 0. With several labels a row, a row with labels on
    both sides of a classifier is left out of that classifier's training.

    Examples
    --------
    >>> from abound import OutputCodeClassifier
    >>> model = OutputCodeClassifier(n_bits=12).fit([[1, 0, 0], [0, 1, 0], [0, 0, 1]], ["tea", "milk", "rum"])
    >>> model.predict([[0, 1, 0]]).tolist()
    ['milk']
    """

    learner: ClassVar[str] = "ecoc"
    ranks_every_class: ClassVar[bool] = True

    dichotomizers_: Dichotomizers

    def __init__(
        self,
        n_bits: int | None = None,
        decode: str = "loss",
        n_codes: int = 5000,
        C: float = 1.0,
        bias: float | str = "auto",
        tol: float = 0.02,
        max_sweeps: int = 1000,
        min_weight: float = 0.01,
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        cluster: str | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_bits = n_bits
        self.decode = decode
        self.n_codes = n_codes
        self.C = C
        self.bias = bias
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.min_weight = min_weight
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.cluster = cluster
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the words and train a classifier for each bit.

        Ctrl-C stops without a model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.
        y : array, list of lists or indicator
            Their labels.
        sample_weight : array of shape (n,), optional
            Multiplies C, row by row.

        Returns
        -------
        self
            The fitted learner.
        """
        self._check_parameters()
        rows = check_rows(self, X, reset=True)
        labels = check_labels(y, rows.n_rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        self._remember(labels)
        generator = make_generator(self.random_state)
        seed = int(generator.integers(2**31))
        n_bits = self.n_bits or int(np.ceil(BITS_A_DOUBLING * np.log2(labels.n_classes)))
        codes = best_codes(labels.n_classes, n_bits, self.n_codes, seed, self.n_jobs)
        settings = Settings(0, self.tol, self.max_sweeps, self.min_weight, seed)
        prepared = solver_rows(rows, weights, generator, own_bias(self.bias, rows, weights))
        with training_workers(self, rows, labels, weights) as pool:
            self.dichotomizers_, _, n_unfinished = train_dichotomizers(
                prepared, labels, codes, self.C, settings, rows.n_features, pool
            )
            warn_unfinished(n_unfinished, self.tol, self.max_sweeps)
            return self._learn_decisions(X, labels, weights)

    @property
    def index_(self) -> ClassIndex:
        """The linear part of the decoding: the mean output of the classifiers, turned towards each class."""
        return self.dichotomizers_.linear_index(len(self.class_counts_))

    @property
    def n_edges_(self) -> int:
        """|W|: the weights of the classifiers."""
        return self.dichotomizers_.index.n_edges

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_bits", self.n_bits, 1, whole=True, or_none=True)
        check_choice("decode", self.decode, ("loss", "hamming"))
        check_number("n_codes", self.n_codes, 1, whole=True)
        check_number("C", self.C, 0, above=True)
        check_bias(self.bias)
        check_number("tol", self.tol, 0, above=True)
        check_number("max_sweeps", self.max_sweeps, 1, whole=True)
        check_number("min_weight", self.min_weight, 0)

    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        found, n_classes = self.dichotomizers_, len(self.class_counts_)
        ids = np.full((rows.n_rows, min(k, n_classes)), -1, dtype=np.int32)
        scores = np.full(ids.shape, -np.inf, dtype=np.float32)
        mask = frozen(np.empty(0) if allowed is None else allowed, np.bool_)
        by_classifier = frozen(found.codes.T, np.int8)

        def rank_span(span: tuple[int, int]) -> int:
            begin, end = span
            outputs = score_all(found.index, rows.part(begin, end))
            kernels.decode_rows(
                *(frozen(outputs, np.float32), by_classifier, self.decode == "loss", found.class_of, mask),
                *(np.empty(n_classes, dtype=np.float32), ids[begin:end], scores[begin:end]),
            )
            return end - begin

        with workers(self.n_jobs) as pool, track("rank", rows.n_rows) as progress:
            n_parts = 4 * pool.n_workers + rows.n_rows * found.n_classifiers // OUTPUTS_A_BLOCK
            for done in pool.map(rank_span, spans(np.arange(rows.n_rows + 1), n_parts)):
                progress.advance(done)
        frequent = self._most_frequent(allowed)
        if frequent >= 0:
            put_first(ids, scores, frequent, found.silent(rows))
        return Ranking(ids, scores)

    def _score_all(self, rows: Rows) -> Float32Array:
        n_classes = len(self.class_counts_)
        return spread(self._rank(rows, n_classes, None), n_classes)

    def _contributions(self, rows: Rows, c: int) -> list[tuple[Any, float]]:
        return self.dichotomizers_.contributions(rows, c, len(self.class_counts_))

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        self.dichotomizers_ = self.dichotomizers_.remap_classes(new_ids)

    def _pruned(self, **limits: Any) -> Self:
        twin = copy.copy(self)
        twin.dichotomizers_ = self.dichotomizers_.prune(**limits)
        return twin

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return prefixed("dichotomizers/", self.dichotomizers_.to_arrays())

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        shape = self.n_features_in_, len(self.class_counts_)
        self.dichotomizers_ = dichotomizers_from(stored.section("dichotomizers/"), *shape)

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        raise ValueError("output codes rank by classifiers and words and not by one index")


def warn_unfinished(n_unfinished: int, tol: float, max_sweeps: int) -> None:
    """Warn if classifiers were left unfinished.

    Parameters
    ----------
    n_unfinished : int
        Blocks of classifiers.
    tol, max_sweeps : float, int
        What the user set.
    """
    if n_unfinished:
        warnings.warn(
            f"{n_unfinished} blocks of classifiers did not reach tol={tol} within max_sweeps={max_sweeps}; "
            "raise max_sweeps or tol, or lower C",
            ConvergenceWarning,
            stacklevel=3,
        )


def put_first(ids: IdArray, scores: Float32Array, c: int, rows: npt.NDArray[np.bool_]) -> None:
    """Put a class first in some rows whose classes all have the same score.

    Parameters
    ----------
    ids, scores : arrays of shape (n, k)
        A ranking; written.
    c : int
        The class.
    rows : bool array of shape (n,)
        In which rows.
    """
    for i in np.flatnonzero(rows):
        others = ids[i][ids[i] != c]
        ids[i] = np.concatenate(([c], others))[: ids.shape[1]]
        scores[i, 0] = np.nextafter(scores[i, 0], np.float32(np.inf))


def best_codes(n_classes: int, n_bits: int, n_codes: int, seed: int, n_jobs: int | None) -> Codes:
    """Draw random ternary matrices and return the one whose nearest two words are furthest apart.

    Parameters
    ----------
    n_classes, n_bits : int
        The shape.
    n_codes : int
        Matrices to draw at most; see `PAIRS`.
    seed : int
        Of the matrices.
    n_jobs : int or None
        Threads; the result does not depend on it.

    Returns
    -------
    int8 array of shape (n_classes, n_bits)
        The first of equals. A single class needs no classifiers.
    """
    if n_classes < 2:
        return np.zeros((n_classes, 0), dtype=np.int8)
    pairs = n_classes * (n_classes - 1) // 2
    n_codes = max(1, min(n_codes, PAIRS // pairs))
    size = max(1, min(64, PAIRS_A_CALL // pairs))
    shape = n_classes, -(-n_bits // kernels.WORD)
    nearest = [n_bits + 1]

    def search(begin: int) -> tuple[int, int]:
        planes = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
        # A bound that is out of date only makes the search longer.
        number, agree = kernels.best_planes(seed, begin, min(begin + size, n_codes), n_bits, nearest[0], *planes)
        return number, agree

    best = -1
    with workers(n_jobs) as pool, track("draw words", n_codes) as progress:
        for number, agree in pool.map(search, range(0, n_codes, size)):
            if number >= 0 and agree < nearest[0]:
                nearest[0], best = agree, number
            progress.advance(size)
    used, signs = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
    kernels.draw_planes(seed, best, n_bits, used, signs)
    places = np.arange(n_bits, dtype=np.uint64)
    words, bits = places // np.uint64(kernels.WORD), places % np.uint64(kernels.WORD)
    entries = (used[:, words] >> bits) & np.uint64(1), (signs[:, words] >> bits) & np.uint64(1)
    return np.where(entries[0] == 0, 0, np.where(entries[1] == 1, 1, -1)).astype(np.int8)

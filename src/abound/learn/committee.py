"""Committees: models of several seeds and several passes vote.

Madani and Huang, Large-Scale Many-Class Prediction via Flat Techniques, Algorithm 1: online learners end a little
differently with every order of the rows and every pass, so the models after certain passes of a few runs make a
committee at the price of the runs alone. With ``J`` members, ``v_c`` those that rank class ``c`` first and ``ρ_j(c)``
its rank in member ``j``:

- majority: ``v_c + Σ_j 1/ρ_j(c) / (J + 1)``: most votes; ties, and the order of the rest, by reciprocal ranks (ours).
- rare: of the classes with a vote the one with fewest training rows, then the others as by majority.
- mean: the mean of the members' scores, standardised per row if members are of different kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import get_tags

from abound.distribute import workers
from abound.index.class_index import ClassIndex
from abound.learn import _vote_kernels as kernels
from abound.learn.base import RankingClassifier
from abound.learn.checkpoint import training_workers
from abound.learn.committee_parts import Given, changes_between, draws, is_linear, standardised, train_run
from abound.learn.fitted_values import history_from
from abound.learn.index_parts import folded, mean_index, prefixed
from abound.learn.pa import PAClassifier
from abound.learn.row_views import take_rows
from abound.progress import track
from abound.rank._topk_kernels import no_votes
from abound.rank.topk import Ranking, spread
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

DEPTH = 50
"""Places of a member's ranking whose reciprocal rank counts."""

BLOCK_BYTES = 2**25
"""Rankings or scores of a block of rows take no more than this."""

SAMPLE = 10_000
"""Training rows on which the changes from pass to pass are counted."""


class CommitteeClassifier(RankingClassifier):
    """Committee of models from several seeds and passes.

    Parameters
    ----------
    members : learner or list of learners, default=None
        What to train; None is ``PAClassifier(average=False)``, as in the papers. Their ``random_state`` and, if they
        are online, ``passes`` are set by the committee.
    n_seeds : int, default=4
        Training runs of each learner, each with a seed of its own; one if the learner draws nothing.
    keep_passes : tuple of int, default=(5, 6, 7)
        Passes of a run after which an online learner's model becomes a member. Other learners give one a run.
    vote : {"majority", "rare", "mean"}, default="majority"
        How members decide: most first places; of the classes with a first place the least frequent, which suits
        macro-F1; or the mean score.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the seeds.
    n_jobs : int or None, default=None
        Threads; runs are trained, and rows are ranked, in parallel. They do not change the result.
    cluster : None, "processes", "local" or "host:port", default=None
        Where runs are trained: in threads, in ``n_jobs`` processes, on a Ray cluster of this machine alone,
        or on the one at an address. The model does not depend on it, and does not keep it.
    checkpoint : path or None, default=None
        A folder for finished runs: a training that was broken off goes on from there when it is
        started again with the same data and parameters, and ends with the same model.

    Attributes
    ----------
    indexes_ : list of ClassIndex
        What each member ranks by.
    index_ : ClassIndex
        Their mean, over the user's features.
    changes_ : list of lists of float
        For each run, the share of training rows (10,000 at most) whose best class differs from one kept pass to the
        next; see `count_changes` for other rows.
    history_ : list of dict
        The passes of all runs; see `OnlineClassifier`.

    Notes
    -----
    The members vote among the classes that are left by ``include`` and ``exclude``. A committee is as large as its
    members together: ``keep`` of the prototype learners makes them smaller.

    Examples
    --------
    >>> from abound import CommitteeClassifier
    >>> model = CommitteeClassifier(n_seeds=2).fit([[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["tea", "coffee", "both"])
    >>> len(model.indexes_), model.predict([[1, 0, 1]]).tolist()
    (6, ['tea'])
    """

    learner: ClassVar[str] = "committee"
    ranks_every_class: ClassVar[bool] = True

    history_: list[dict[str, float]]
    changes_: list[list[float]]
    _members: list[RankingClassifier]
    _mean: list[ClassIndex]
    """The mean of the indexes, once it has been asked for; in a list, for predicting sets no attribute."""

    def __init__(
        self,
        members: Any = None,
        n_seeds: int = 4,
        keep_passes: Sequence[int] = (5, 6, 7),
        vote: str = "majority",
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        cluster: str | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.members = members
        self.n_seeds = n_seeds
        self.keep_passes = keep_passes
        self.vote = vote
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.cluster = cluster
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train all members.

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
            The fitted committee.
        """
        self._check_parameters()
        rows = check_rows(self, X, reset=True)
        labels = check_labels(y, rows.n_rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        generator = make_generator(self.random_state)
        seeds = generator.integers(2**31, size=self.n_seeds).tolist()
        sample = take_rows(rows, np.sort(generator.permutation(rows.n_rows)[:SAMPLE]))
        matrix = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
        runs = [(learner, seed) for learner in self._learners() for seed in (seeds if draws(learner) else [None])]

        members: list[RankingClassifier] = []
        changes: list[list[float]] = []
        history: list[dict[str, float]] = []
        with training_workers(self, rows, labels, weights) as pool:
            shared = pool.share(Given(tuple(self.keep_passes), matrix, labels, weights, sample))
            with track("train committee", len(runs)) as progress:
                for number, (kept, differences, entries) in enumerate(pool.map(train_run, runs, shared)):
                    members += kept
                    changes.append(differences)
                    history += [entry | {"run": number} for entry in entries]
                    progress.advance()
            self._remember(labels)
            self._members, self._mean = members, []
            self.changes_, self.history_ = changes, history
            return self._learn_decisions(X, labels, weights)

    @property
    def indexes_(self) -> list[ClassIndex]:
        """What each member ranks by."""
        return [member.index_ for member in self._members]

    @property
    def index_(self) -> ClassIndex:
        """The mean of the members' indexes, over the user's features; made when it is first asked for."""
        if not self._mean:
            self._mean.append(mean_index([folded(index, self.n_features_in_) for index in self.indexes_]))
        return self._mean[0]

    @property
    def n_edges_(self) -> int:
        """|W|: the edges of all members."""
        return sum(member.n_edges_ for member in self._members)

    def count_changes(self, X: Any) -> list[list[float]]:
        """Count how many rows change their best class from one kept pass to the next.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows. Of rows that were not learned about 10% change, the papers say; of those that were, far fewer.

        Returns
        -------
        list of lists of float
            For each run, the share of the rows, one number less than it has members.
        """
        rows = self._rows(X)
        lengths = [len(changes) + 1 for changes in self.changes_]
        ends = np.cumsum(lengths).tolist()
        return [changes_between(self._members[end - n : end], rows) for n, end in zip(lengths, ends, strict=True)]

    def _learners(self) -> list[RankingClassifier]:
        if self.members is None:
            return [PAClassifier(average=False)]
        return list(self.members) if isinstance(self.members, list | tuple) else [self.members]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        learners = self._learners()
        if not learners or not all(isinstance(learner, RankingClassifier) for learner in learners):
            raise ValueError(f"members={self.members!r}: it must be a learner, or a list of at least one learner")
        for learner in learners:
            learner._check_parameters()
        check_number("n_seeds", self.n_seeds, 1, whole=True)
        if isinstance(self.keep_passes, str) or not isinstance(self.keep_passes, Sequence) or not self.keep_passes:
            raise ValueError(f"keep_passes={self.keep_passes!r}: it must be a tuple of at least one pass")
        for number in self.keep_passes:
            check_number("keep_passes", number, 1, whole=True)
        check_choice("vote", self.vote, ("majority", "rare", "mean"))

    def _rank(self, rows: Rows, k: int, allowed: npt.NDArray[np.bool_] | None) -> Ranking:
        if self.vote == "mean" and self._is_one_linear_model():
            return self._mean_member()._rank(rows, k, allowed)
        n_classes = len(self.class_counts_)
        ids = np.full((rows.n_rows, min(k, n_classes)), -1, dtype=np.int32)
        scores = np.full(ids.shape, -np.inf, dtype=np.float32)
        depth = min(n_classes, max(k, DEPTH))
        rank_block = self._take_means if self.vote == "mean" else self._count_votes
        width = 3 * n_classes if self.vote == "mean" else 2 * depth * len(self._members)
        size = max(1, BLOCK_BYTES // (4 * max(1, width)))
        spans = [(begin, min(begin + size, rows.n_rows)) for begin in range(0, rows.n_rows, size)]

        def rank_span(span: tuple[int, int]) -> int:
            begin, end = span
            block = take_rows(rows, np.arange(begin, end))
            rank_block(block, depth, allowed, Ranking(ids[begin:end], scores[begin:end]))
            return end - begin

        with workers(self.n_jobs) as pool, track("rank", rows.n_rows) as progress:
            for done in pool.map(rank_span, spans):
                progress.advance(done)
        return Ranking(ids, scores)

    def _count_votes(self, rows: Rows, depth: int, allowed: npt.NDArray[np.bool_] | None, out: Ranking) -> None:
        ranked = np.stack([member._rank(member._view(rows), depth, allowed).ids for member in self._members])
        n_classes = len(self.class_counts_)
        counts = frozen(self.class_counts_, np.int64)
        kernels.count_votes(ranked, counts, DEPTH, self.vote == "rare", no_votes(n_classes, np.float64), *out)

    def _take_means(self, rows: Rows, depth: int, allowed: npt.NDArray[np.bool_] | None, out: Ranking) -> None:
        mask = frozen(np.empty(0) if allowed is None else allowed, np.bool_)
        any_score = self._standardises() or all(member._ranks_any_score() for member in self._members)
        kernels.take_best(self._mean_scores(rows, allowed), mask, any_score, *out)

    def _score_all(self, rows: Rows) -> Float32Array:
        if self.vote != "mean":
            n_classes = len(self.class_counts_)
            return spread(self._rank(rows, n_classes, None), n_classes)
        if self._is_one_linear_model():
            return self._mean_member()._score_and_fill(rows)
        return self._mean_scores(rows, None)

    def _mean_scores(self, rows: Rows, allowed: npt.NDArray[np.bool_] | None) -> Float32Array:
        """Dense: the mean of the members' scores; rows on which all are silent get the most frequent class."""
        total = np.zeros((rows.n_rows, len(self.class_counts_)), dtype=np.float32)
        most_frequent = self._most_frequent(allowed)
        if most_frequent < 0:
            return total
        for member in self._members:
            scores = member._score_all(member._view(rows))
            total += standardised(scores, allowed) if self._standardises() else scores
        total /= len(self._members)
        total[~total.any(axis=1), most_frequent] = np.finfo(np.float32).tiny
        return total

    def _standardises(self) -> bool:
        """Scores of different kinds of learners have different scales."""
        return len({type(member) for member in self._members}) > 1

    def _is_one_linear_model(self) -> bool:
        """Whether the mean of the scores is the score of the mean index."""
        return not self._standardises() and all(is_linear(member) for member in self._members)

    def _mean_member(self) -> RankingClassifier:
        mean = self._members[0]._with_index(self.index_)
        mean.n_jobs = self.n_jobs
        return mean

    def _contributions(self, rows: Rows, c: int) -> list[tuple[Any, float]]:
        """The mean of what the members say."""
        sums: dict[Any, float] = {}
        for member in self._members:
            for feature, value in member._contributions(member._view(rows), c):
                sums[feature] = sums.get(feature, 0.0) + value / len(self._members)
        return list(sums.items())

    def _renumber(self, new_ids: IdArray, classes: npt.NDArray[Any]) -> Self:
        for member in self._members:
            member._renumber(new_ids, classes)
        return super()._renumber(new_ids, classes)

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        self._mean = []

    def _pruned(self, **limits: Any) -> Self:
        twin = self._frozen_copy()
        twin._members, twin._mean = [member._pruned(**limits) for member in self._members], []
        return twin

    def _frozen_copy(self) -> Self:
        twin = super()._frozen_copy()
        twin._members = [member._frozen_copy() for member in self._members]
        return twin

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        from abound.learn.persist import part_arrays  # it knows all learners, this one too

        arrays: dict[str, npt.NDArray[Any]] = {}
        for j, member in enumerate(self._members):
            arrays |= prefixed(f"member/{j}/", part_arrays(member))
        return arrays

    def _fitted_values(self) -> dict[str, Any]:
        from abound.learn.persist import part_meta

        members = [part_meta(member) for member in self._members]
        return {"members": members, "changes": self.changes_, "history": self.history_}

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        from abound.learn.persist import part_from

        members = fitted.get("members")
        if not isinstance(members, list) or not members:
            raise stored.fault("meta", "a committee without members")
        self._members = [part_from(stored.section(f"member/{j}/"), meta, self) for j, meta in enumerate(members)]
        self._mean = []
        changes = fitted.get("changes")
        self.changes_ = changes if isinstance(changes, list) else []
        self.history_ = history_from(stored, fitted)

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        raise ValueError("a committee ranks by its members and not by one index")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learners = [learner for learner in self._learners() if isinstance(learner, RankingClassifier)]
        poor = any(get_tags(learner).classifier_tags.poor_score for learner in learners)
        tags.classifier_tags.poor_score = poor
        return tags

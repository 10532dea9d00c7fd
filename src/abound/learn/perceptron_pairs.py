"""Committees of perceptrons in sparse form: the second stage of the unweighted index."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.distribute import spans, workers
from abound.index.class_index import ClassIndex
from abound.learn import _retrieved_kernels as kernels
from abound.learn._edge_lists import EdgeLists, empty_lists, lists_from, make_room, more_lists, packed
from abound.rank._topk_kernels import no_votes
from abound.rank.topk import Ranking
from abound.store import Section
from abound.validation import Float64Array, IdArray, IntArray, Rows, frozen

EDGES_A_CALL = 10_000_000
"""Edges that one kernel call touches: a fraction of a second, so that Ctrl-C is heard."""


class Stage(NamedTuple):
    """What the kernel takes: the lists; classes by slot and back; scores by slot and member; room that is missing."""

    lists: EdgeLists
    slot: IdArray
    slot_classes: IdArray
    member_scores: Float64Array
    changed: npt.NDArray[np.bool_]
    wanted: IntArray


class PerceptronPairs:
    """Weights of ``n_members`` perceptrons for pairs of feature and class, by feature.

    Parameters
    ----------
    lists : EdgeLists
        Each class of a feature as often as there are members.
    n_members : int
        Members; 0 for none at all.
    """

    def __init__(self, lists: EdgeLists, n_members: int) -> None:
        self.lists = lists
        self.n_members = n_members

    @property
    def n_pairs(self) -> int:
        """Pairs of feature and class that have been updated."""
        return self.lists.n_edges // max(1, self.n_members)

    def stage(self, n_classes: int) -> Stage | None:
        """Return what the kernel takes.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        Stage or None
            None if there are no members.
        """
        if not self.n_members:
            return None
        return Stage(
            self.lists,
            np.full(n_classes, -1, dtype=np.int32),
            np.empty(n_classes, dtype=np.int32),
            np.zeros((n_classes, self.n_members)),
            np.zeros(n_classes, dtype=np.bool_),
            np.zeros(1, dtype=np.int64),
        )

    def make_room(self, stage: Stage) -> Stage:
        """See that the arena has the free places that the kernel asked for.

        Parameters
        ----------
        stage : Stage
            With the room that is missing.

        Returns
        -------
        Stage
            With the lists to go on with.
        """
        needed = int(stage.wanted[0])
        stage.wanted[0] = 0
        if self.lists.used[0] + needed > len(self.lists.classes):
            self.lists = make_room(self.lists, needed)
        return stage._replace(lists=self.lists)

    def grow(self, n_features: int) -> None:
        """Make room for more features.

        Parameters
        ----------
        n_features : int
            How many there are now.
        """
        self.lists = more_lists(self.lists, n_features)

    def remapped(self, new_ids: IdArray) -> PerceptronPairs:
        """Return the pairs with their classes renumbered; weights that become one add up.

        Parameters
        ----------
        new_ids : int32 array
            The new id of each class, -1 to drop it.

        Returns
        -------
        PerceptronPairs
            New ones.
        """
        if not self.n_members:
            return self
        indptr, classes, weights = self._packed()
        features = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        ids = new_ids[classes]
        kept = ids >= 0
        pairs, where = np.unique(np.stack((features[kept], ids[kept])), axis=1, return_inverse=True)
        sums = np.zeros((pairs.shape[1], self.n_members))
        np.add.at(sums, where.ravel(), weights[kept])
        counts = np.bincount(pairs[0], minlength=len(indptr) - 1)
        return _pairs(np.concatenate(([0], np.cumsum(counts))), pairs[1], sums)

    def mean(self, n_classes: int) -> ClassIndex:
        """Return the mean of the members as an index.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        ClassIndex
            What ranks.
        """
        indptr, classes, weights = self._packed()
        return ClassIndex.from_lists(indptr, classes, weights.mean(axis=1), n_classes=n_classes)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the pairs as arrays of a model file, none if there are no members."""
        if not self.n_members:
            return {}
        indptr, classes, weights = self._packed()
        return {"indptr": indptr, "classes": classes, "weights": weights}

    def _packed(self) -> tuple[IntArray, IdArray, Float64Array]:
        """Pairs by feature, and their weights, pairs × members."""
        indptr, classes, weights = packed(self.lists)
        return indptr // self.n_members, classes[:: self.n_members].copy(), weights.reshape(-1, self.n_members)


def no_pairs(n_features: int, n_members: int) -> PerceptronPairs:
    """Return perceptrons that have learned nothing.

    Parameters
    ----------
    n_features, n_members : int
        Features and members.

    Returns
    -------
    PerceptronPairs
        Without pairs.
    """
    return PerceptronPairs(empty_lists(n_features if n_members else 0), n_members)


def pairs_from(section: Section, n_features: int, n_classes: int) -> PerceptronPairs:
    """Read perceptrons from a model file, checked.

    Parameters
    ----------
    section : Section
        What `PerceptronPairs.to_arrays` gave.
    n_features, n_classes : int
        What features and classes may be.

    Returns
    -------
    PerceptronPairs
        Copies; none if the section is empty.
    """
    if not len(section):
        return no_pairs(n_features, 0)
    section.check_csr("indptr", "classes", n_classes)
    indptr, classes = section.require("indptr", np.int64, (n_features + 1,)), section["classes"]
    weights = section.require_numbers("weights", np.float64, (len(classes), None))
    if weights.shape[1] == 0:
        raise section.fault("weights", "a committee without members")
    return _pairs(indptr, classes, weights)


def rank_retrieved(
    edges: ClassIndex,
    ranking: ClassIndex,
    rows: Rows,
    k: int,
    allowed: npt.NDArray[np.bool_] | None,
    n_jobs: int | None,
) -> Ranking:
    """Retrieve classes by one index and rank them by another.

    Parameters
    ----------
    edges : ClassIndex
        A class is retrieved if an active feature has an edge to it here.
    ranking : ClassIndex
        Its score is that of its weights here, of any sign.
    rows : Rows
        Rows over the features of both.
    k : int
        Number of classes wanted.
    allowed : bool array, optional
        Which classes may be ranked.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.

    Returns
    -------
    Ranking
        Best first, ties by the lower id; -1 and -inf where fewer classes were retrieved.
    """
    n_classes = edges.n_classes
    ids = np.full((rows.n_rows, min(k, n_classes)), -1, dtype=np.int32)
    scores = np.full(ids.shape, -np.inf, dtype=np.float32)
    mask = frozen(np.empty(0) if allowed is None else allowed, np.bool_)

    def rank_span(span: tuple[int, int]) -> None:
        kernels.rank_retrieved(
            *(rows.indptr, rows.indices, rows.data, edges.indptr, edges.classes),
            *(ranking.indptr, ranking.classes, ranking.weights, mask, *span, no_votes(n_classes), ids, scores),
        )

    touched = int(rows.indptr[-1] - rows.indptr[0]) * (1 + ranking.n_edges // max(1, ranking.n_features))
    with workers(n_jobs) as pool:
        n_parts = max(4 * pool.n_workers, touched // EDGES_A_CALL + 1)
        for _ in pool.map(rank_span, spans(np.arange(rows.n_rows + 1), n_parts)):
            pass
    return Ranking(ids, scores)


def _pairs(indptr: npt.NDArray[Any], classes: npt.NDArray[Any], weights: Float64Array) -> PerceptronPairs:
    n_members = weights.shape[1]
    lists = lists_from(indptr * n_members, np.repeat(classes, n_members), weights.ravel())
    return PerceptronPairs(lists, n_members)

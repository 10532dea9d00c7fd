"""Classifiers that tell two groups of classes apart, and the code matrix that says which.

Row ``c`` of the matrix is the *word* of a class: +1, -1 or 0 for each classifier, if the class is in its positive
group, in its negative group, or in none. Each classifier is a squared-hinge SVM with balanced class weights, trained
on the rows of its two groups; sixteen are solved at a time. All of them together are a `ClassIndex` over classifiers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.distribute import Spare, Workers
from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn import _code_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn.index_parts import Arrays, bias_part, index_arrays, index_from, prefixed
from abound.learn.linear_rows import SolverRows
from abound.learn.linear_solver import Block, Costs, Edges, heavy_edges
from abound.learn.one_vs_rest import SWEEPS, Settings, join_edges
from abound.progress import track
from abound.rank.topk import silent_rows
from abound.store import Section
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, Rows, check_dense, frozen

Codes = npt.NDArray[np.int8]

Look = Callable[[Block, int, int], Any]
"""Is shown a solved block, the number of its first classifier and how many it has."""


@dataclass(frozen=True, slots=True)
class Dichotomizers:
    """Trained classifiers, and the words of the classes.

    A class has one word; a class that was made of several has theirs.
    """

    codes: Codes
    """Words × classifiers."""
    class_of: IdArray
    """The class of each word."""
    index: ClassIndex
    """Features × classifiers."""

    @property
    def n_classifiers(self) -> int:
        """Number of classifiers."""
        return int(self.codes.shape[1])

    def silent(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Tell for which rows no classifier has anything to say.

        Parameters
        ----------
        rows : Rows
            The rows.

        Returns
        -------
        bool array of shape (n,)
            True where no feature has a weight.
        """
        return silent_rows(self.index, rows)

    def prune(self, **limits: Any) -> Dichotomizers:
        """Return them without their light weights.

        Parameters
        ----------
        **limits : object
            See `ClassIndex.prune`.

        Returns
        -------
        Dichotomizers
            The same words.
        """
        return replace(self, index=self.index.prune(**limits))

    def remap_classes(self, new_ids: IdArray) -> Dichotomizers:
        """Return them for other class ids.

        Parameters
        ----------
        new_ids : int32 array
            The new id of each class, -1 to drop it. Classes that become one keep the words of all.

        Returns
        -------
        Dichotomizers
            The same classifiers.
        """
        kept = self.kept_words(new_ids)
        return Dichotomizers(
            frozen(self.codes[kept], np.int8), frozen(new_ids[self.class_of[kept]], np.int32), self.index
        )

    def kept_words(self, new_ids: IdArray) -> npt.NDArray[np.int64]:
        """Return the words whose class is not dropped.

        Parameters
        ----------
        new_ids : int32 array
            The new id of each class, -1 to drop it.

        Returns
        -------
        int64 array
            Their numbers.
        """
        return np.flatnonzero(new_ids[self.class_of] >= 0)

    def shares(self, n_classes: int) -> Float64Array:
        """Return what a classifier's output counts for each class: the mean of its words, of all classifiers.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        float64 array of shape (n_classes, n_classifiers)
            The linear part of any decoding.
        """
        sums = np.zeros((n_classes, self.n_classifiers))
        np.add.at(sums, self.class_of, self.codes)
        words = np.bincount(self.class_of, minlength=n_classes)[:, None]
        shares: Float64Array = sums / np.maximum(1, words * max(1, self.n_classifiers))
        return shares

    def linear_index(self, n_classes: int) -> ClassIndex:
        """Return the linear part of the decoding as an index of features × classes.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        ClassIndex
            The score of a class is the mean output of the classifiers, turned towards the class.
        """
        check_dense(self.index.n_features, n_classes, 8, "an index over classes is for small models only")
        return self.index.combine(self.shares(n_classes).T.astype(np.float32))

    def contributions(self, rows: Rows, c: int, n_classes: int) -> list[tuple[Any, float]]:
        """Tell what each feature of one row adds to the mean output of the classifiers, turned towards a class.

        Parameters
        ----------
        rows : Rows
            One row.
        c : int
            The class.
        n_classes : int
            Number of classes.

        Returns
        -------
        list of (feature, contribution)
            In the order of the row, without those that add nothing.
        """
        share = self.shares(n_classes)[c]
        parts: list[tuple[Any, float]] = []
        span = slice(rows.indptr[0], rows.indptr[-1])
        for f, value in zip(rows.indices[span].tolist(), rows.data[span].tolist(), strict=True):
            edges = slice(self.index.indptr[f], self.index.indptr[f + 1])
            weight = float(self.index.weights[edges] @ share[self.index.classes[edges]])
            if weight != 0:
                parts.append((f, value * weight))
        return parts + bias_part(0.0 if self.index.bias is None else float(share @ self.index.bias))

    def to_arrays(self) -> Arrays:
        """Take them apart, for a model file.

        Returns
        -------
        dict
            Named arrays.
        """
        return {"codes": self.codes, "class_of": self.class_of, **prefixed("index/", index_arrays(self.index))}


def dichotomizers_from(section: Section, n_features: int, n_classes: int) -> Dichotomizers:
    """Read them from a model file, checked so that kernels may follow their pointers.

    Parameters
    ----------
    section : Section
        What `Dichotomizers.to_arrays` gave.
    n_features, n_classes : int
        What features and classes may be.

    Returns
    -------
    Dichotomizers
        Shares the arrays.
    """
    codes = section.require("codes", np.int8, (None, None))
    class_of = section.require("class_of", np.int32, (len(codes),))
    if codes.min(initial=0) < -1 or codes.max(initial=0) > 1:
        raise section.fault("codes", "an entry is not -1, 0 or 1")
    if class_of.min(initial=0) < 0 or class_of.max(initial=0) >= n_classes:
        raise section.fault("class_of", f"a word of a class that is not among the {n_classes}")
    if not np.bincount(class_of, minlength=n_classes).all():
        raise section.fault("class_of", "a class without a word")
    return Dichotomizers(codes, class_of, index_from(section.section("index/"), n_features, codes.shape[1]))


@dataclass(frozen=True, slots=True)
class Problem:
    """What all blocks of classifiers have in common: it is sent to a worker once."""

    rows: SolverRows
    label_indptr: IntArray
    label_ids: IdArray
    codes: Codes
    cost: float
    settings: Settings
    nothing: Float32Array
    """The offset of their weights, 0."""
    look: Look | None
    spare: Spare[Block] = field(default_factory=Spare)


def solve_block(first: int, problem: Problem) -> tuple[Edges, Float32Array, Any, bool]:
    """Train up to sixteen classifiers.

    Parameters
    ----------
    first : int
        The first one.
    problem : Problem
        The rest.

    Returns
    -------
    tuple of Edges, float32 array, object, bool
        Their weights, biases, what ``look`` gave, and whether they reached the tolerance.
    """
    rows, settings = problem.rows, problem.settings
    block = problem.spare.take(Block, rows)
    n_lanes = min(LANES, problem.codes.shape[1] - first)
    block.clear()
    kernels.set_targets(problem.label_indptr, problem.label_ids, problem.codes, first, n_lanes, block.targets)
    costs = balanced_costs(block.targets, rows.weights, problem.cost)
    outcome = block.solve(costs, settings.loss, settings.tol, settings.max_sweeps, settings.seed + 7919 * first)
    edges = heavy_edges(rows.featured(block.weights), problem.nothing, n_lanes, settings.min_weight, first)
    biases = rows.biases(block.weights[:, :n_lanes])
    seen = None if problem.look is None else problem.look(block, first, n_lanes)
    problem.spare.give(block)
    return edges, biases, seen, outcome.converged


def train_dichotomizers(
    rows: SolverRows,
    labels: Labels,
    codes: Codes,
    cost: float,
    settings: Settings,
    n_features: int,
    pool: Workers,
    look: Look | None = None,
) -> tuple[Dichotomizers, list[Any], int]:
    """Train the classifiers of a code matrix.

    Parameters
    ----------
    rows : SolverRows
        The rows.
    labels : Labels
        Of the user's rows. A row with labels on both sides of a classifier is left out of its training.
    codes : int8 array of shape (n_classes, n_classifiers)
        +1, -1 or 0.
    cost : float
        C; both sides of a classifier have the same total weight.
    settings : Settings
        Loss, tolerance and pruning.
    n_features : int
        Features of the index.
    pool : Workers
        Who works; the result does not depend on it.
    look : callable, optional
        Is shown each block before its room is used again; other processes get a copy of it.

    Returns
    -------
    dichotomizers : Dichotomizers
        Trained.
    seen : list
        What ``look`` gave, in the order of the blocks.
    n_unfinished : int
        Blocks that did not reach the tolerance.
    """
    n_classifiers = codes.shape[1]
    nothing = frozen(np.zeros(len(rows.features)), np.float32)
    own = labels.take(rows.order)
    indptr, ids = frozen(own.indptr, np.int64), frozen(own.ids, np.int32)
    shared = pool.share(Problem(rows, indptr, ids, frozen(codes, np.int8), cost, settings, nothing, look))
    blocks, biases, seen, n_unfinished = [], [np.empty(0, np.float32)], [], 0
    firsts, effort = range(0, n_classifiers, LANES), SWEEPS * len(rows.indices)
    with track("train classifiers", n_classifiers) as progress:
        for edges, own_biases, shown, converged in pool.map(solve_block, firsts, shared, cost=effort):
            blocks.append(edges)
            biases.append(own_biases)
            seen.append(shown)
            n_unfinished += not converged
            progress.advance(LANES)
    index = join_edges(blocks, rows, nothing, np.concatenate(biases), n_features, n_classifiers)
    class_of = frozen(np.arange(labels.n_classes), np.int32)
    return Dichotomizers(frozen(codes, np.int8), class_of, index), seen, n_unfinished


def balanced_costs(targets: Codes, weights: Float32Array, cost: float) -> Costs:
    """Return what errors cost in each lane, so that both sides have the same total weight.

    Parameters
    ----------
    targets : int8 array of shape (n, 16)
        Sides of the rows.
    weights : float32 array of shape (n,)
        How much each row counts.
    cost : float
        C.

    Returns
    -------
    Costs
        C × half of the total weight / weight of the side; C where a side is empty.
    """
    # Not a matrix product: how that adds up depends on the number of its threads.
    exact = weights.astype(np.float64)[:, None]
    sides = [(exact * (targets > 0)).sum(axis=0), (exact * (targets < 0)).sum(axis=0)]
    total = sides[0] + sides[1]
    factors = [np.divide(total, 2 * side, out=np.ones(LANES), where=side > 0) for side in sides]
    return Costs(*((cost * factor).astype(np.float32) for factor in factors))

"""Train the classifier of each inner node among its children, and the sigmoids of their scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from abound.distribute import workers
from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn.base import RankingClassifier
from abound.learn.class_tree import ClassTree
from abound.learn.expert_training import Data
from abound.learn.row_views import take_rows
from abound.measure.platt import UNFITTED, Sigmoid, fit_platt
from abound.progress import track
from abound.rank.topk import score_all
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, frozen

HELD_FRACTION = 0.2
"""Part of a node's rows that a trial scores."""

SCORES_A_TRIAL = 2**24
"""Scores of held-out rows × children that a trial keeps at most; beyond it, fewer of the rows are scored."""


class NodeProblem(NamedTuple):
    """What a node has to tell apart: rows, and for each the children that it belongs below."""

    node: int
    rows: IntArray
    labels: Labels
    """Places among the node's children."""


class NodeEdges(NamedTuple):
    """A trained node: weights by feature and column, and the sigmoids of its children."""

    features: IdArray
    columns: IdArray
    weights: Float32Array
    children: IdArray
    biases: Float32Array
    """What is added to the score of each child."""
    sigmoids: list[Sigmoid]


@dataclass(frozen=True, eq=False, slots=True)
class Trained:
    """All nodes of a tree, trained.

    Column ``z`` of the index is node ``z`` among its siblings, column ``n_nodes + z`` is what the children of ``z``
    have in common. ``sigmoids`` has A and B of each node.
    """

    index: ClassIndex
    sigmoids: Float64Array


def node_problems(tree: ClassTree, labels: Labels) -> Iterator[NodeProblem]:
    """Find the rows below each node that has several children.

    Parameters
    ----------
    tree : ClassTree
        The tree.
    labels : Labels
        The labels of all rows.

    Yields
    ------
    NodeProblem
        The largest first; nodes without rows are left out.
    """
    lengths = np.diff(tree.paths.indptr)[labels.ids]
    starts = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(tree.paths.indptr[labels.ids] - starts, lengths)
    nodes = tree.paths.indices[places].astype(np.int64)
    of_label = np.repeat(np.arange(len(labels)), np.diff(labels.indptr))
    pairs = np.unique(np.repeat(of_label, lengths) * tree.n_nodes + nodes)
    rows, nodes = np.divmod(pairs, tree.n_nodes)
    parents = tree.parent[nodes]
    order = np.argsort(parents, kind="stable")
    rows, nodes = rows[order], nodes[order]
    bounds = np.concatenate(([0], np.cumsum(np.bincount(parents, minlength=tree.n_nodes))))
    n_children = np.diff(tree.children.indptr)
    sizes = np.where(n_children > 1, np.diff(bounds), 0)
    for node in np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)].tolist():
        span = slice(bounds[node], bounds[node + 1])
        own, counts = np.unique(rows[span], return_counts=True)
        ids = np.searchsorted(tree.children.of(node), nodes[span]).astype(np.int32)
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        kind = labels.kind if labels.kind == "single" else "lists"
        yield NodeProblem(node, own, Labels(indptr, ids, np.arange(n_children[node]), kind))


def train_nodes(
    data: Data,
    tree: ClassTree,
    learner: RankingClassifier,
    n_trials: int,
    generator: np.random.Generator,
    n_jobs: int | None,
) -> Trained:
    """Train all nodes.

    Parameters
    ----------
    data : Data
        All rows.
    tree : ClassTree
        The tree of their classes.
    learner : RankingClassifier
        What to train at each node; stays as it is.
    n_trials : int
        Trials whose held-out scores fit the sigmoids; 0 leaves them as they are without any.
    generator : numpy Generator
        Draws the trials.
    n_jobs : int or None
        Threads; the result does not depend on it.

    Returns
    -------
    Trained
        Weights and sigmoids of all nodes.
    """
    seeds = generator.integers(2**31, size=tree.n_nodes)
    problems = list(node_problems(tree, data.labels))
    sigmoids = np.tile(np.array(UNFITTED), (tree.n_nodes, 1))
    biases = np.zeros(2 * tree.n_nodes, np.float32)
    parts = []

    def train(problem: NodeProblem) -> NodeEdges:
        trials = np.random.Generator(np.random.Philox(int(seeds[problem.node])))
        return train_node(data, tree, problem, learner, n_trials, trials)

    with workers(n_jobs) as pool, track("train nodes", len(problems)) as progress:
        for part in pool.map(train, problems):
            parts.append(part)
            sigmoids[part.children], biases[part.children] = part.sigmoids, part.biases
            progress.advance()
    joined = [
        np.concatenate([empty, *(part[field] for part in parts)])
        for field, empty in enumerate((np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32)))
    ]
    width = learner._width_of_view(data.rows.n_features)
    index = ClassIndex.from_edges(*joined, n_features=width, n_classes=2 * tree.n_nodes)
    if biases.any():
        index = replace(index, bias=frozen(biases, np.float32))
    return Trained(index, frozen(sigmoids, np.float64))


def train_node(
    data: Data,
    tree: ClassTree,
    problem: NodeProblem,
    learner: RankingClassifier,
    n_trials: int,
    generator: np.random.Generator,
) -> NodeEdges:
    """Train one node, on its rows and those rows' features alone.

    Parameters
    ----------
    data, tree, learner, n_trials, generator : object
        See `train_nodes`; the generator is the node's own.
    problem : NodeProblem
        The node.

    Returns
    -------
    NodeEdges
        Over the features of the learner's view.
    """
    rows = take_rows(data.rows, problem.rows)
    children = tree.children.of(problem.node)
    features, indices = np.unique(rows.indices, return_inverse=True)
    if not len(features):
        nothing, biases = np.empty(0, np.int32), np.zeros(len(children), np.float32)
        return NodeEdges(nothing, nothing, np.empty(0, np.float32), children, biases, [UNFITTED] * len(children))
    local = Data(
        rows._replace(indices=frozen(indices, np.int32), n_features=len(features)),
        problem.labels,
        data.weights[problem.rows],
    )
    sigmoids = fit_sigmoids(local, learner, n_trials, generator)
    index = local.train(learner).index_
    seen = _features_seen(learner, features)
    biases = np.zeros(len(children), np.float32) if index.bias is None else index.bias
    shared = np.empty(0, np.int64) if index.offset is None else np.flatnonzero(index.offset)
    offset = np.empty(0, np.float32) if index.offset is None else index.offset[shared]
    common = np.full(len(shared), tree.n_nodes + problem.node, np.int32)
    return NodeEdges(
        np.concatenate((np.repeat(seen, index.degrees), seen[shared])),
        np.concatenate((children[index.classes], common)),
        np.concatenate((index.weights, offset)),
        children,
        biases,
        sigmoids,
    )


def fit_sigmoids(
    data: Data, learner: RankingClassifier, n_trials: int, generator: np.random.Generator
) -> list[Sigmoid]:
    """Fit a sigmoid for each class to the scores of rows held out of several trials, pooled.

    Parameters
    ----------
    data : Data
        The rows of a node.
    learner : RankingClassifier
        Trained on four fifths of them in each trial.
    n_trials : int
        Number of trials.
    generator : numpy Generator
        Draws the fifths.

    Returns
    -------
    list of Sigmoid
        One a class; `UNFITTED` for a class without held-out rows of its own.
    """
    n_rows, n_classes = data.rows.n_rows, data.labels.n_classes
    n_held = round(HELD_FRACTION * n_rows)
    if n_trials == 0 or n_held == 0:
        return [UNFITTED] * n_classes
    scores, truths, weights = [], [], []
    for _ in range(n_trials):
        order = generator.permutation(n_rows)
        fitted = data.take(np.sort(order[n_held:])).train(learner)
        held = data.take(np.sort(order[: min(n_held, max(1, SCORES_A_TRIAL // n_classes))]))
        scores.append(score_all(fitted.index_, learner._view(held.rows)))
        truth = np.zeros(scores[-1].shape, np.bool_)
        truth[np.repeat(np.arange(len(held.labels)), np.diff(held.labels.indptr)), held.labels.ids] = True
        truths.append(truth)
        weights.append(held.weights)
    pooled, true, counts = np.concatenate(scores), np.concatenate(truths), np.concatenate(weights)
    return [_rising_sigmoid(pooled[:, c], true[:, c], counts) for c in range(n_classes)]


def _rising_sigmoid(scores: Float32Array, true: npt.NDArray[np.bool_], weights: Float32Array) -> Sigmoid:
    sigmoid = fit_platt(scores, true, weights)
    # Scores that are worse than none: one probability for all, rather than one that falls with the score.
    return sigmoid if sigmoid.A <= 0 else fit_platt(np.zeros(len(scores)), true, weights)


def _features_seen(learner: RankingClassifier, features: IdArray) -> IdArray:
    """The features of the learner's view of all features behind those of its view of some: a fixed number for each."""
    times = learner._width_of_view(1)
    return (times * features[:, None].astype(np.int64) + np.arange(times)).ravel().astype(np.int32)

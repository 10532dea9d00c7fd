"""The tree as top-down ranking walks it, and the walk over blocks of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.distribute import spans, workers
from abound.index.class_index import ClassIndex
from abound.learn import _top_down_kernels as kernels
from abound.learn.class_tree import ClassTree
from abound.progress import track
from abound.rank.topk import Ranking
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, Rows, frozen

STEPS_A_CALL = 10_000_000
"""What one kernel call does: a fraction of a second, so that Ctrl-C is heard."""

STEPS_A_SEARCH = 16
"""About what it costs to find a feature of a row among those of a node."""

NODES_A_PLACE = 16
"""About how many nodes are opened for each class that is wanted."""


class Walk(NamedTuple):
    """A tree in the arrays that `walk_rows` takes, frozen."""

    child_indptr: IntArray
    children: IdArray
    class_of_node: IdArray
    preference: IdArray
    """Which node is opened first if two promise the same: the deeper one, then that with more rows, then the first."""
    own_leaf: IdArray
    """The leaf of the class that an inner node is itself, -1 if it is none."""
    slopes: Float64Array
    intercepts: Float64Array
    bias: Float32Array
    """What is added to the score of each column of the index; see `Trained`."""
    feature_indptr: IntArray
    """Node ``z`` has the features ``features[feature_indptr[z]:feature_indptr[z + 1]]``, sorted."""
    features: IdArray
    common: Float32Array
    """The weight of a feature for all children of the node."""
    edge_indptr: IntArray
    """What it weighs beyond that: children and weights, feature after feature."""
    edge_nodes: IdArray
    edge_weights: Float32Array


class Descent(NamedTuple):
    """How to descend: by probability or greedily, and the probability below which a path ends."""

    by_probability: bool
    least: float


def make_walk(tree: ClassTree, index: ClassIndex, sigmoids: Float64Array, class_counts: IntArray) -> Walk:
    """Prepare a tree.

    Parameters
    ----------
    tree : ClassTree
        The tree.
    index : ClassIndex
        The classifiers of all nodes; see `Trained`.
    sigmoids : float64 array of shape (n_nodes, 2)
        A and B of each node.
    class_counts : int64 array of shape (n_classes,)
        Training rows of each class.

    Returns
    -------
    Walk
        Its arrays.
    """
    n_nodes = tree.n_nodes
    rows = np.where(tree.class_of_node >= 0, class_counts[tree.class_of_node], 0)
    kernels.add_up(tree.parent, rows)
    preference = np.empty(n_nodes, np.int32)
    preference[np.lexsort((np.arange(n_nodes), -rows, -tree.level))] = np.arange(n_nodes)
    own_leaf = np.full(n_nodes, -1)
    if tree.taxonomy is not None:
        spawned = 1 + np.flatnonzero(tree.source[1:] == tree.source[tree.parent[1:]])
        own_leaf[tree.parent[spawned]] = spawned
    return Walk(
        frozen(tree.children.indptr, np.int64),
        frozen(tree.children.indices, np.int32),
        tree.class_of_node,
        frozen(preference, np.int32),
        frozen(own_leaf, np.int32),
        frozen(sigmoids[:, 0], np.float64),
        frozen(sigmoids[:, 1], np.float64),
        frozen(np.zeros(2 * n_nodes) if index.bias is None else index.bias, np.float32),
        *_by_node(tree, index),
    )


def _by_node(
    tree: ClassTree, index: ClassIndex
) -> tuple[IntArray, IdArray, Float32Array, IntArray, IdArray, Float32Array]:
    """The lists of an index, gathered by the node whose children they are about; in the order of `Walk`."""
    n_nodes, n_edges = tree.n_nodes, index.n_edges
    owner = np.where(index.classes < n_nodes, tree.parent[index.classes % n_nodes], index.classes - n_nodes)
    owner[owner < 0] = 0
    # To make rows of a matrix is a stable sort by counting: features stay in order.
    places = sp.coo_array((np.arange(n_edges), (owner, np.arange(n_edges))), shape=(n_nodes, n_edges)).tocsr()
    order = places.data
    of_feature = np.repeat(np.arange(index.n_features, dtype=np.int32), index.degrees)[order]
    is_first = np.append(True, (np.diff(of_feature) != 0) | (np.diff(owner[order]) != 0))[:n_edges]
    first_of_node = np.concatenate(([0], np.cumsum(is_first)))[places.indptr]
    entry = np.cumsum(is_first) - 1
    is_common = index.classes[order] >= n_nodes
    common = np.zeros(int(is_first.sum()), np.float32)
    common[entry[is_common]] = index.weights[order[is_common]]
    edges = order[~is_common]
    lengths = np.bincount(entry[~is_common], minlength=len(common))
    return (
        frozen(first_of_node, np.int64),
        frozen(of_feature[is_first], np.int32),
        frozen(common, np.float32),
        frozen(np.concatenate(([0], np.cumsum(lengths))), np.int64),
        frozen(index.classes[edges], np.int32),
        frozen(index.weights[edges], np.float32),
    )


def leading_nodes(tree: ClassTree, allowed: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
    """Tell which nodes lead to a class that may be ranked.

    Parameters
    ----------
    tree : ClassTree
        The tree.
    allowed : bool array of shape (n_classes,) or None
        The classes that may be ranked; None is all.

    Returns
    -------
    bool array of shape (n_nodes,)
        The root is among them unless no class is.
    """
    leaves = tree.class_of_node >= 0
    below = leaves.astype(np.int64) if allowed is None else (leaves & np.append(allowed, False)[tree.class_of_node]) + 0
    kernels.add_up(tree.parent, below)
    leads: npt.NDArray[np.bool_] = frozen(below > 0, np.bool_)
    return leads


def walk_topk(
    walk: Walk,
    alive: npt.NDArray[np.bool_],
    rows: Rows,
    k: int,
    n_classes: int,
    descent: Descent,
    n_jobs: int | None,
) -> Ranking:
    """Rank the classes of each row.

    Parameters
    ----------
    walk : Walk
        The tree with the classifiers of its nodes.
    alive : bool array of shape (n_nodes,)
        Where the walk may go; see `leading_nodes`.
    rows : Rows
        Rows over the features of the classifiers.
    k, n_classes : int
        Number of classes wanted, and how many there are.
    descent : Descent
        How to descend.
    n_jobs : int or None
        Threads; the result does not depend on it.

    Returns
    -------
    Ranking
        Best first.
    """
    ids = np.full((rows.n_rows, min(k, n_classes)), -1, np.int32)
    scores = np.full(ids.shape, -np.inf, np.float32)
    if not alive[0] or not rows.n_rows:
        return Ranking(ids, scores)
    n_nodes, spare = len(alive), list[tuple[npt.NDArray[Any], ...]]()

    def rank_span(span: tuple[int, int]) -> int:
        scratch = spare.pop() if spare else _scratch(n_nodes, n_classes)
        kernels.walk_rows(
            *(rows.indptr, rows.indices, rows.data),
            *(walk, alive, *descent, *span, *scratch, ids, scores),
        )
        spare.append(scratch)
        return span[1] - span[0]

    n_values = int(rows.indptr[-1] - rows.indptr[0])
    steps = n_values * STEPS_A_SEARCH * min(n_nodes, NODES_A_PLACE * k)
    with workers(n_jobs) as pool, track("rank", rows.n_rows) as progress:
        n_parts = max(4 * pool.n_workers, int(steps / STEPS_A_CALL) + 1)
        for done in pool.map(rank_span, spans(np.arange(rows.n_rows + 1), min(n_parts, rows.n_rows))):
            progress.advance(done)
    return Ranking(ids, scores)


def _scratch(n_nodes: int, n_classes: int) -> tuple[npt.NDArray[Any], ...]:
    """What `walk_rows` works in, in its order."""
    return (
        np.empty(n_nodes, np.float32),
        np.empty(n_nodes, np.int32),
        np.empty(n_nodes, np.float64),
        np.full(n_classes, -1, np.int64),
    )

"""What recursive regularization takes in memory, estimated before it begins."""

from __future__ import annotations

from typing import NamedTuple

from abound.learn._lanes import LANES
from abound.learn.disk_gather import COPIES, stays_on_disk
from abound.learn.disk_order import WINDOW_SHARE, rows_bytes
from abound.learn.light_weights import SAMPLED_CLASSES
from abound.learn.linear_disk import BYTES_AN_EDGE
from abound.learn.recursive_graph import ClassGraph
from abound.learn.recursive_inner import ENTRIES_A_TASK
from abound.learn.recursive_shape import ShortTree
from abound.learn.recursive_vectors import FEATURES_AN_ENTRY
from abound.validation import Rows


class Needs(NamedTuple):
    """An estimate."""

    rows_on_disk: bool
    """Whether the rows stay in their file."""
    spills: bool
    """Whether support vectors and solved classes go to temporary files."""
    parts: dict[str, int]
    """Bytes in memory, by what they are for."""


def tree_needs(
    rows: Rows, tree: ShortTree, n_labels: int, memory: int, n_workers: int, max_rounds: int, n_features: int
) -> Needs:
    """Estimate what training on a tree takes at most.

    Parameters
    ----------
    rows : Rows
        What it is trained on.
    tree : ShortTree
        The tree.
    n_labels : int
        Labels of all rows.
    memory : int
        The budget.
    n_workers : int
        Threads.
    max_rounds : int
        Rounds; each but the first has a move of the inner nodes to remember.
    n_features : int
        Features, with that of a bias.

    Returns
    -------
    Needs
        Vectors and edges are held in memory if all that there could be of them takes at most half of the budget.
    """
    n, n_classes, n_moves = rows.n_rows, len(tree.leaf_parent), max_rounds - 1
    in_line = 2 * n_workers + 1
    depth = int(tree.depth.max()) + 2
    parts = {
        "the duals of the rows": (110 * n_workers + 120) * n + 40 * n_labels,
        "the weights of blocks of classes": (4 * LANES * (3 * n_workers + 2) + 48 * n_workers) * n_features,
        "the weights of the nodes above them": 4 * n_workers * (depth * n_moves + 2) * n_features,
        "what nodes have of their parents": 8 * tree.n_inner * (n_moves + 1) * (n_moves + 2),
        "the medians of some classes": 4 * 4 * SAMPLED_CLASSES * n_features,
    }
    own = 4 * min(FEATURES_AN_ENTRY * n, n_features)
    vectors = 8 * 3 * n * n_classes + own * (n_moves + 2) * tree.n_inner
    edges = BYTES_AN_EDGE * n_features * n_classes
    on_disk = stays_on_disk(rows, memory)
    spills = on_disk or vectors + edges > memory // 2
    if spills:
        parts["what waits to be written"] = in_line * (8 * LANES * (n + n_features) + 12 * ENTRIES_A_TASK)
    else:
        parts |= {"support vectors, at most": vectors, "all weights, at most": edges}
    return Needs(on_disk, spills, parts | _rows_needs(rows, memory, n_workers, on_disk))


def graph_needs(rows: Rows, graph: ClassGraph, n_labels: int, memory: int, n_workers: int, n_features: int) -> Needs:
    """Estimate what training on a graph takes at most: every node keeps all its weights, in memory.

    Parameters
    ----------
    rows, n_labels, memory, n_workers, n_features : object
        See `tree_needs`.
    graph : ClassGraph
        The graph.

    Returns
    -------
    Needs
        Nothing goes to files.
    """
    n, n_classes = rows.n_rows, len(graph.node_of_class)
    parts = {
        "the duals of the rows": (88 * n_workers + 120) * n + 40 * n_labels,
        "the weights of all nodes": 4 * (graph.n_nodes + 2 * n_classes) * n_features,
        "the weights of blocks of classes": 4 * LANES * (6 * n_workers + 4) * n_features,
        "support vectors, at most": 8 * n * n_classes,
        "all weights, at most": BYTES_AN_EDGE * n_features * n_classes,
    }
    return Needs(False, False, parts | _rows_needs(rows, memory, n_workers, False))


def _rows_needs(rows: Rows, memory: int, n_workers: int, on_disk: bool) -> dict[str, int]:
    if not on_disk:
        return {"copies of the rows": COPIES * rows_bytes(rows)}
    return {"the rows under way": (10 * n_workers // 8 + 1) * (memory // WINDOW_SHARE)}

"""What is done with the weights of label trees beside walking: leaves as an index, reasons, pruning, model files."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.distribute import spans
from abound.index.class_index import ClassIndex
from abound.learn.index_parts import bias_part
from abound.rank import _fault_kernels as checks
from abound.rank import _node_kernels as kernels
from abound.rank._lane_sums import LANES
from abound.rank.tree_weights import EMPTY, Edges, TreeWeights
from abound.store import Section, check_indptr, check_numbers
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, Rows, check_number, frozen

NODES_OF_QUADRATURE = 48

_NO_BIASES: Float32Array = frozen(np.empty(0), np.float32)

ENTRIES_A_CALL = 20_000_000
"""Places and cells from a file that one kernel call checks: a fraction of a second."""


def leaf_index(trees: Sequence[TreeWeights], n_features: int, n_classes: int) -> ClassIndex:
    """Return the weights of the last branches, by class.

    Parameters
    ----------
    trees : sequence of TreeWeights
        The trees.
    n_features, n_classes : int
        The shape.

    Returns
    -------
    ClassIndex
        Mean over the trees; what all children of a node have in common is left out, but for their biases.
    """
    found: list[tuple[npt.NDArray[Any], ...]] = [(np.empty(0, np.int32),) * 2 + (np.empty(0, np.float32),)]
    for tree in trees:
        edges = tree.edges()
        nodes = np.repeat(np.arange(tree.n_nodes), np.diff(tree.table_indptr))[edges.entries]
        codes = tree.slots[tree.slot_indptr[nodes] + edges.places]
        at_leaf = np.flatnonzero((codes < 0) & (codes != EMPTY))
        weights = edges.weights[at_leaf] / np.float32(len(trees))
        found.append((tree.table[2 * edges.entries[at_leaf]], ~codes[at_leaf], weights))
    features, classes, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
    index = ClassIndex.from_edges(features, classes, weights, n_features=n_features, n_classes=n_classes)
    return replace(index, bias=_leaf_biases(trees, n_classes))


def _leaf_biases(trees: Sequence[TreeWeights], n_classes: int) -> Float32Array | None:
    """The biases of the last branches, by class; None if no tree has any."""
    if not any(len(tree.biases) for tree in trees):
        return None
    biases = np.zeros(n_classes)
    for tree in trees:
        if len(tree.biases):
            np.add.at(biases, tree.leaf_classes, tree.biases[tree.leaves])
    mean: Float32Array = frozen(biases / len(trees), np.float32)
    return mean


def paths_to(tree: TreeWeights, c: int) -> list[list[int]]:
    """Return the slots from the root down to each leaf of a class.

    Parameters
    ----------
    tree : TreeWeights
        The tree.
    c : int
        The class.

    Returns
    -------
    list of list of int
        One path a leaf.
    """
    inner = np.flatnonzero(tree.slots >= 0)
    above = np.full(tree.n_nodes, -1, dtype=np.int64)
    above[tree.slots[inner]] = inner
    paths = []
    for leaf in np.flatnonzero(tree.slots == ~c).tolist():
        path = [leaf]
        while (slot := int(above[_owner(tree, path[-1])])) >= 0:
            path.append(slot)
        paths.append(path[::-1])
    return paths


def path_contributions(trees: Sequence[TreeWeights], rows: Rows, c: int, link: int) -> list[tuple[Any, float]]:
    """Tell what each feature of one row adds to the chance of a class.

    The features grow together from nothing to what they are; each has its part of the way (integrated gradients). What
    a row without features would get is the bias's part; without a bias it is shared out by the squares of the values.

    Parameters
    ----------
    trees : sequence of TreeWeights
        The trees, whose chances are averaged.
    rows : Rows
        One row.
    c : int
        The class.
    link : int
        What scores stand for.

    Returns
    -------
    list of (feature, contribution)
        In the order of the row, without those that add nothing; the bias comes last, as the feature `BIAS`. They add up
        to the chance of the class.
    """
    span = slice(rows.indptr[0], rows.indptr[-1])
    features, values = rows.indices[span], rows.data[span].astype(np.float64)
    parts, total = np.zeros(len(values)), 0.0
    for tree in trees:
        for path in paths_to(tree, c):
            products = np.array([_weights_at(tree, slot, features) for slot in path]) * values
            biases = tree.biases[path].astype(np.float64) if len(tree.biases) else np.zeros(len(path))
            gained, chance = _along_the_way(products, biases, link)
            parts += gained / len(trees)
            total += chance / len(trees)
    squares, rest = values**2, total - float(parts.sum())
    has_bias = any(len(tree.biases) for tree in trees)
    if squares.any() and not has_bias:
        parts += rest * squares / squares.sum()
    own = [(f, part) for f, part in zip(features.tolist(), parts.tolist(), strict=True) if part]
    return own + bias_part(rest if has_bias else 0.0)


def _owner(tree: TreeWeights, slot: int) -> int:
    return int(np.searchsorted(tree.slot_indptr, slot, side="right")) - 1


def _weights_at(tree: TreeWeights, slot: int, features: IdArray) -> Float64Array:
    """The weight of each feature for the child in a slot."""
    node = _owner(tree, slot)
    weights = np.zeros(len(features))
    for j, feature in enumerate(features.tolist()):
        entry = kernels.find_entry(tree, node, feature)
        if entry >= 0:
            weights[j] = kernels.weight_of(tree, node, entry, slot - tree.slot_indptr[node])
    return weights


def _along_the_way(products: Float64Array, biases: Float64Array, link: int) -> tuple[Float64Array, float]:
    """What each column gains of the chance at ``biases + t·products`` as t goes from 0 to 1, and the chance at 1."""
    gains = products.sum(axis=1)
    scores = biases + gains
    # Where a score passes 1 the squared hinge bends; between such points the quadrature is as good as exact.
    passes = (biases < 1) != (scores < 1) if link == 0 else np.zeros(len(gains), dtype=np.bool_)
    bends = (1 - biases[passes]) / gains[passes]
    bounds = np.unique(np.concatenate(([0.0, 1.0], np.clip(bends, 0, 1))))
    nodes, shares = np.polynomial.legendre.leggauss(NODES_OF_QUADRATURE)
    widths = np.diff(bounds)[:, None]
    times = (bounds[:-1, None] + widths * (nodes + 1) / 2).ravel()
    steps = (widths * shares / 2).ravel()
    at = biases + np.outer(times, gains)
    if link == 0:
        logarithms, slopes = -(np.maximum(0, 1 - at) ** 2), 2 * np.maximum(0, 1 - at)
        last = -(np.maximum(0, 1 - scores) ** 2)
    else:
        logarithms, slopes, last = (
            -np.logaddexp(0, -at),
            1 / (1 + np.exp(np.minimum(at, 700))),
            -np.logaddexp(0, -scores),
        )
    chances = np.exp(logarithms.sum(axis=1))
    return ((steps * chances) @ slopes) @ products, float(np.exp(last.sum()))


def pruned_trees(
    trees: Sequence[TreeWeights],
    *,
    min_weight: float | None = None,
    max_edges: int | None = None,
    max_degree: int | None = None,
) -> list[TreeWeights]:
    """Return trees without their light weights.

    Parameters
    ----------
    trees : sequence of TreeWeights
        The trees.
    min_weight : float, optional
        Keep weights of at least this size.
    max_edges : int, optional
        Keep about so many weights in all trees together, the heaviest.
    max_degree : int, optional
        Keep at most so many weights of a feature at a node, the heaviest.

    Returns
    -------
    list of TreeWeights
        Of the same shape.
    """
    check_number("max_degree", max_degree, 0, whole=True, or_none=True)
    check_number("min_weight", min_weight, 0, or_none=True)
    check_number("max_edges", max_edges, 0, whole=True, or_none=True)
    least = min_weight or 0.0
    listed = [tree.edges() for tree in trees]
    if max_degree is not None:
        listed = [_with_degree(edges, max_degree) for edges in listed]
    if max_edges is not None:
        sizes = np.concatenate([np.abs(part) for edges in listed for part in (edges.weights, edges.offsets)])
        sizes = sizes[sizes > 0]
        if len(sizes) > max_edges:
            nth = len(sizes) - max_edges
            heaviest = np.partition(sizes, nth)[nth] if max_edges else np.inf
            least = max(least, float(heaviest))
    return [tree.with_edges(_heavy(edges, np.float32(least))) for tree, edges in zip(trees, listed, strict=True)]


def _with_degree(edges: Edges, most: int) -> Edges:
    """The heaviest weights of each entry alone."""
    by_size = np.lexsort((edges.places, -np.abs(edges.weights), edges.entries))
    sorted_entries = edges.entries[by_size]
    rank = np.arange(len(by_size)) - np.searchsorted(sorted_entries, sorted_entries)
    return _those(edges, np.sort(by_size[rank < most]))


def _heavy(edges: Edges, least: np.float32) -> Edges:
    """Weights and offsets of some size alone."""
    kept = _those(edges, np.flatnonzero(np.abs(edges.weights) >= least))
    offsets = np.where(np.abs(edges.offsets) >= least, edges.offsets, np.float32(0))
    return kept._replace(offsets=offsets)


def _those(edges: Edges, which: IntArray) -> Edges:
    return edges._replace(entries=edges.entries[which], places=edges.places[which], weights=edges.weights[which])


def tree_from(section: Section, n_features: int, n_classes: int, constant: Any = 0.0) -> TreeWeights:
    """Read a tree from a model file, checked so that kernels may follow its pointers.

    Parameters
    ----------
    section : Section
        The arrays of a `TreeWeights` by name.
    n_features, n_classes : int
        What features and classes may be.
    constant : object
        The learner's ``bias``: in files without biases a number was the value of one more feature, the last.

    Returns
    -------
    TreeWeights
        Shares the arrays.
    """
    slots = section.require("slots", np.int32)
    slot_indptr = _pointers(section, "slot_indptr", None, len(slots))
    n_nodes = len(slot_indptr) - 1
    if n_nodes < 1 or (slot_indptr % LANES).any() or (np.diff(slot_indptr) == 0).any():
        raise section.fault("slot_indptr", f"a node has no children or not a multiple of {LANES} slots")
    _check_slots(section, slots, slot_indptr, n_classes)
    table = section.require("table", np.int32)
    if len(table) % 2:
        raise section.fault("table", "it has half a place")
    table_indptr = _pointers(section, "table_indptr", n_nodes, len(table) // 2)
    cells = section.require("cells", np.int32)
    cell_indptr = _pointers(section, "cell_indptr", n_nodes, len(cells))
    has_biases = "biases" in section
    biases = section.require_numbers("biases", np.float32, (len(slots),)) if has_biases else _NO_BIASES
    tree = TreeWeights(slot_indptr, slots, table_indptr, table, cell_indptr, cells, biases)
    is_feature = not has_biases and isinstance(constant, float | int) and constant != 0
    _check_nodes(section, tree, n_features + int(is_feature))
    if is_feature:
        tree = tree.with_constant(n_features, float(constant))
        check_numbers(section.name_of("cells"), tree.biases)
    return tree


def _pointers(section: Section, name: str, n: int | None, end: int) -> IntArray:
    pointers = section.require(name, np.int64, (None if n is None else n + 1,))
    check_indptr(section.name_of(name), pointers, end)
    return pointers


def _check_nodes(section: Section, tree: TreeWeights, n_features: int) -> None:
    """Look at every place and every cell, some nodes at a time."""
    key, seen = np.uint64(secrets.randbits(64) | 1), np.full(2 * checks.LONGEST_RUN, -1, np.int32)
    cost = tree.table_indptr + tree.cell_indptr
    for begin, end in spans(cost, 1 + int(cost[-1]) // ENTRIES_A_CALL):
        fault, place = checks.faults(tree, n_features, begin, end, key, seen)
        match fault:
            case checks.BAD_TABLE:
                problem = f"it does not tell where a node keeps its features, of {n_features} (place {place})"
                raise section.fault("table", problem)
            case checks.CROWDED:
                problem = f"more than {checks.LONGEST_RUN} taken places are side by side: a look-up would take too long"
                raise section.fault("table", f"{problem} (place {place})")
            case checks.BAD_CELLS:
                raise section.fault("cells", f"they are not the weights of children that their node has (cell {place})")
            case checks.TOO_LARGE:
                check_numbers(section.name_of("cells"), tree.cells.view(np.float32)[place:][:1], first=int(place))


def _check_slots(section: Section, slots: IdArray, slot_indptr: IntArray, n_classes: int) -> None:
    n_nodes = len(slot_indptr) - 1
    owners = np.repeat(np.arange(n_nodes), np.diff(slot_indptr))
    is_node, is_leaf = slots >= 0, (slots < 0) & (slots != EMPTY)
    nodes = slots[is_node]
    if (nodes >= n_nodes).any() or (nodes <= owners[is_node]).any() or len(np.unique(nodes)) != len(nodes):
        raise section.fault("slots", "it is no tree whose parents come before their children")
    classes = ~slots[is_leaf]
    if (classes >= n_classes).any() or len(np.unique(classes)) != n_classes:
        raise section.fault("slots", f"it does not hold the {n_classes} classes of the model")

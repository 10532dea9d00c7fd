"""Which classes go together: trees of classes from their centroids, from confusions, or from a taxonomy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from abound.distribute import spans
from abound.learn import _label_tree_clustering as kernels
from abound.learn._lanes import LANES
from abound.learn.class_tree import ClassTree
from abound.learn.label_tree_centroids import VALUES_A_CALL, VALUES_ON_DISK, Vectors
from abound.learn.row_views import ENTRIES_A_ROW
from abound.rank.tree_weights import MOST_CHILDREN
from abound.scratch import is_mapped, let_go
from abound.validation import Float32Array, IdArray, IntArray, frozen

ROUNDS = 4
"""Most rounds of 2-means."""

SAMPLE, STARTS = 512, 2
"""In a larger cluster 2-means begins with so many classes, the best of some starts,"""

GROWTH, ROUNDS_AFTER = 4, 2
"""and goes on with so many times as many, again and again to all, some rounds each: what classes have in common shows
when there are several of a kind, and then few rounds with all are enough."""


class TreeShape(NamedTuple):
    """The nodes of a tree that have children, parents before their children, level by level.

    Node ``n`` has the children ``children[indptr[n]:indptr[n + 1]]``: a number is a node, ``~c`` the leaf of class c.
    """

    indptr: IntArray
    children: IdArray

    @property
    def n_nodes(self) -> int:
        """Number of nodes that have children."""
        return len(self.indptr) - 1

    @property
    def n_children(self) -> IntArray:
        """Number of children of each node."""
        return np.diff(self.indptr)

    def levels(self, n_classes: int) -> list[tuple[IdArray, IdArray]]:
        """Tell by which node of each level a class is, and by which of its children.

        Parameters
        ----------
        n_classes : int
            Number of classes, each with one leaf.

        Returns
        -------
        list of (int32 array, int32 array) of shape (n_classes,)
            From the lowest level to the root: the node above each class, -1 if it has none there, and the place of
            the class's branch among the node's children.
        """
        owner = np.repeat(np.arange(self.n_nodes, dtype=np.int32), self.n_children)
        place = (np.arange(len(self.children)) - np.repeat(self.indptr[:-1], self.n_children)).astype(np.int32)
        is_leaf = self.children < 0
        parent, parent_place = np.full(self.n_nodes, -1, np.int32), np.full(self.n_nodes, -1, np.int32)
        parent[self.children[~is_leaf]] = owner[~is_leaf]
        parent_place[self.children[~is_leaf]] = place[~is_leaf]
        node, at = np.full(n_classes, -1, np.int32), np.full(n_classes, -1, np.int32)
        node[~self.children[is_leaf]], at[~self.children[is_leaf]] = owner[is_leaf], place[is_leaf]
        depth = np.zeros(self.n_nodes, np.int64)
        for n in range(1, self.n_nodes):
            depth[n] = depth[parent[n]] + 1
        found = []
        for level in range(int(depth.max()), -1, -1):
            here = depth[node] == level
            found.append((np.where(here, node, -1).astype(np.int32), at.copy()))
            at[here] = parent_place[node[here]]
            node[here] = parent[node[here]]
        return found


def check_widths(shapes: list[TreeShape]) -> None:
    """Refuse nodes with more children than weights can be packed for.

    Parameters
    ----------
    shapes : list of TreeShape
        The trees.
    """
    widest = max(int(shape.n_children.max()) for shape in shapes)
    if widest > MOST_CHILDREN:
        raise ValueError(
            f"a node of the tree has {widest:,} children, more than {MOST_CHILDREN:,}: "
            "use a taxonomy with more levels, or tree='kmeans' with a smaller arity"
        )


def level_widths(n_classes: int, arity: int, max_leaf: int) -> list[int]:
    """Choose how many children the nodes of each level have.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    arity : int
        Most children of a node, a multiple of 16.
    max_leaf : int
        Most classes of a node whose children are classes.

    Returns
    -------
    list of int
        Children of the nodes of each level but the last, among whose nodes the classes are shared out evenly. Where
        more children, up to twice as many, save a level they have these: a level costs more than wider nodes. The last
        of several levels has as few as it takes, so that the nodes of classes are not small ones.
    """

    def levels(width: int) -> int:
        n = 0
        while n_classes > max_leaf * width**n:
            n += 1
        return n

    fewest = levels(2 * arity)
    width = next(width for width in range(arity, 2 * arity + 1, LANES) if levels(width) == fewest)
    widths = [width] * fewest
    if len(widths) > 1:
        n_parts = -(-n_classes // (max_leaf * width ** (len(widths) - 1)))
        widths[-1] = -(-n_parts // LANES) * LANES
    return widths


def cluster_tree(vectors: Vectors, widths: list[int], seed: int) -> TreeShape:
    """Split classes into balanced clusters, and these again.

    Parameters
    ----------
    vectors : Vectors
        One a class.
    widths : list of int
        Children of each node of a level, from the root down; those of the last level are classes.
    seed : int
        Of the classes that clusters start from.

    Returns
    -------
    TreeShape
        Nodes without classes are left out.
    """
    n_classes = len(vectors.indptr) - 1
    generator = np.random.Generator(np.random.Philox(seed))
    members = np.arange(n_classes, dtype=np.int32)
    scratch = (
        np.zeros((vectors.n_features, 2), dtype=np.float32),
        np.zeros(vectors.n_features, dtype=np.bool_),
        np.empty(vectors.n_features, dtype=np.int32),
        np.empty(n_classes, dtype=np.float32),
    )
    place = np.full(vectors.n_features, -1, dtype=np.int32)

    def refine(some: IdArray, begin: int, cut: int, end: int, few: IdArray, few_cut: int, n_rounds: int) -> float:
        """Run rounds of 2-means. Each sorts and reads the members twice; large clusters take a call a round."""
        cost = 2 * int(vectors.indptr[-1]) * (end - begin) // n_classes + 50 * (end - begin)
        rounds, gain = n_rounds if n_rounds * cost <= VALUES_A_CALL else 1, -np.inf
        for _ in range(0, n_rounds, rounds):
            least = gain + kernels.GAIN
            gain, goes_on = halve(vectors, some, begin, cut, end, few, few_cut, rounds, least, *scratch)
            if not goes_on:
                break
            few, few_cut = some[begin:end].copy(), cut - begin
        return gain

    def start(begin: int, size: int, share: float) -> tuple[IdArray, int]:
        """Halve some members of a large cluster from several starts, take the best, and go on with more and more."""
        most = SAMPLE
        while GROWTH * most < size:
            most *= GROWTH
        chosen, n = members[begin + generator.choice(size, most, replace=False)], SAMPLE
        cut = max(1, round(n * share))
        best, largest = chosen[:n], -np.inf
        for _ in range(STARTS):
            sample, few = chosen[:n].copy(), chosen[generator.choice(n, 2, replace=False)]
            gain = refine(sample, 0, cut, n, few, 1, ROUNDS)
            if gain > largest:
                best, largest = sample, gain
        while n < most:
            n *= GROWTH
            sample, few_cut, cut = chosen[:n].copy(), cut, max(1, round(n * share))
            refine(sample, 0, cut, n, best, few_cut, ROUNDS_AFTER)
            best = sample
        return best, cut

    def is_small(begin: int, end: int, n_parts: int) -> bool:
        """Whether one call splits a cluster to the end."""
        own = members[begin:end]
        values = 50 * (end - begin) + int((vectors.indptr[own + 1] - vectors.indptr[own]).sum())
        return end - begin <= SAMPLE and 2 * ROUNDS * n_parts.bit_length() * values <= VALUES_A_CALL

    def split(begin: int, end: int, n_parts: int, cuts: list[int]) -> None:
        if n_parts == 1 or end - begin <= 1:
            return
        size = end - begin
        if is_small(begin, end, n_parts):
            found = np.empty(n_parts, dtype=np.int64)
            given = members, begin, end, n_parts, ROUNDS, seed, vectors.enough
            n_found = kernels.split_cluster(*vectors[:3], *given, *scratch, place, found)
            let_go(vectors.indices, vectors.data)
            cuts += sorted(found[:n_found].tolist())
            return
        left, cut = n_parts // 2, int(kernels.cut_of(begin, end, n_parts))
        if size > SAMPLE:
            refine(members, begin, cut, end, *start(begin, size, left / n_parts), ROUNDS_AFTER)
        else:
            refine(members, begin, cut, end, members[list(kernels.pick_two(seed, begin, end))], 1, ROUNDS)
        split(begin, cut, left, cuts)
        cuts.append(cut)
        split(cut, end, n_parts - left, cuts)

    bounds = [np.array([0, n_classes])]
    for width in widths:
        cuts: list[int] = []
        for begin, end in pairwise(bounds[-1].tolist()):
            cuts.append(begin)
            split(begin, end, width, cuts)
        bounds.append(np.array([*cuts, n_classes]))
    return nested_tree(members, bounds)


def halve(
    vectors: Vectors,
    members: IdArray,
    begin: int,
    cut: int,
    end: int,
    few: IdArray,
    few_cut: int,
    n_rounds: int,
    least: float,
    sides: Float32Array,
    seen: Any,
    features: IdArray,
    scores: Float32Array,
) -> tuple[float, bool]:
    """Part members into two clusters; see `kernels.bisect`, which is followed step by step if the vectors are in files.

    Parameters
    ----------
    vectors : Vectors
        One a class.
    members, begin, cut, end, few, few_cut, n_rounds, least, sides, seen, features, scores : object
        As there.

    Returns
    -------
    gain : float
        The mean score.
    goes_on : bool
        Whether there may be more to gain.
    """
    arrays, clusters = vectors[:3], (sides, seen, features)
    if not is_mapped(vectors.data):
        where = members, begin, cut, end, few, few_cut, n_rounds, least
        gain, goes_on = kernels.bisect(*arrays, *where, vectors.enough, *clusters, scores)
        return gain, goes_on

    def parts(some: IdArray, first: int, last: int) -> Iterator[tuple[int, int]]:
        lengths = vectors.indptr[some[first:last] + 1] - vectors.indptr[some[first:last]]
        running = np.concatenate(([0], np.cumsum(lengths + ENTRIES_A_ROW)))
        for low, high in spans(running, 1 + int(running[-1]) // VALUES_ON_DISK):
            yield first + low, first + high
            let_go(vectors.indices, vectors.data)

    def add(some: IdArray, first: int, middle: int, last: int) -> int:
        n = 0
        for low, high in parts(some, first, last):
            n = kernels.add_sides(*arrays, some, low, middle, high, n, *clusters)
        return n

    n, gain = add(few, 0, few_cut, len(few)), least
    for number in range(n_rounds):
        kernels.weigh_sides(n, vectors.enough, sides, features)
        for low, high in parts(members, begin, end):
            kernels.measure_members(*arrays, members, low, high, sides, scores[low - begin :])
        kernels.clear_sides(n, *clusters)
        gain = kernels.part_members(members, begin, cut, end, scores)
        if gain <= least:
            return gain, False
        least = gain + kernels.GAIN
        if number + 1 < n_rounds:
            n = add(members, begin, cut, end)
    return gain, True


def nested_tree(members: IdArray, bounds: list[Any]) -> TreeShape:
    """Make a tree of spans of classes within spans of classes.

    Parameters
    ----------
    members : int32 array of shape (n_classes,)
        The classes in the order of the leaves.
    bounds : list of integer arrays
        Where the spans of each level begin, and the end; each level cuts the one before.

    Returns
    -------
    TreeShape
        The spans as nodes; below the last level are the classes.
    """
    levels = [*bounds, np.arange(len(members) + 1)]
    counts: list[Any] = []
    children: list[Any] = []
    first = 1
    for upper, lower in pairwise(levels):
        counts.append(np.diff(np.searchsorted(lower, upper)))
        children.append(np.arange(first, first + len(lower) - 1))
        first += len(lower) - 1
    children[-1] = ~members
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(counts))))
    return TreeShape(frozen(indptr, np.int64), frozen(np.concatenate(children), np.int32))


def taxonomy_tree(tree: ClassTree) -> TreeShape:
    """Take over the tree of a taxonomy; nodes with one child are left out.

    Parameters
    ----------
    tree : ClassTree
        The taxonomy, resolved against the classes.

    Returns
    -------
    TreeShape
        In the order of the levels.
    """
    links = tree.children

    def below(node: int) -> list[int]:
        """The children of a node that lead somewhere, each as deep as there is no choice."""
        found = []
        for child in links.of(node).tolist():
            while tree.class_of_node[child] < 0 and len(links.of(child)) == 1:
                child = int(links.of(child)[0])
            if tree.class_of_node[child] >= 0 or len(links.of(child)):
                found.append(child)
        return found

    queue, counts, children = [0], list[int](), list[int]()
    while len(counts) < len(queue):
        found = below(queue[len(counts)])
        if len(queue) == 1 and not counts and len(found) == 1 and tree.class_of_node[found[0]] < 0:
            queue[0] = found[0]
            continue
        counts.append(len(found))
        for child in found:
            c = int(tree.class_of_node[child])
            children.append(~c if c >= 0 else len(queue))
            queue += [child] if c < 0 else []
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return TreeShape(frozen(indptr, np.int64), frozen(children, np.int32))

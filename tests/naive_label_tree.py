"""Slow obvious twins of label trees: centroids, halves of clusters, nodes as dense matrices, walks over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from naive_linear import solve

LANES = 16
EMPTY = -(2**31)


def unit(vector: Any) -> Any:
    norm = np.sqrt(np.sum(np.float64(vector) ** 2))
    return vector / norm if norm > 0 else vector


def centroids(X: Any, weights: Any, labels: list[list[int]], n_classes: int) -> Any:
    """The direction of the weighted sum of each class's rows."""
    sums = np.zeros((n_classes, X.shape[1]))
    for x, weight, row in zip(X, weights, labels, strict=True):
        for c in row:
            sums[c] += weight * x
    return np.array([unit(vector) for vector in sums])


def nearness(vectors: Any, first: Any, second: Any, enough: float) -> Any:
    """How much nearer each vector is to the second sum than to the first, by features that count the less the more
    of them there is: cosines where there is never enough of a feature."""
    sums = np.abs(first) + np.abs(second)
    if enough == np.inf:
        return vectors @ (unit(second) - unit(first))
    size = (np.linalg.norm(first) + np.linalg.norm(second)) / 2
    return vectors @ (size * (unit(second) - unit(first)) / (enough + sums))


def pairs(labels: list[list[int]], paths: list[list[tuple[int, int]]], n_nodes: int) -> list[list[tuple[int, int]]]:
    """The rows of each node with the child that a label is below: paths are (node, place of the child) of a class."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(n_nodes)]
    for row, own in enumerate(labels):
        for c in own:
            for node, place in paths[c]:
                found[node].append((row, place))
    return found


def class_paths(indptr: Any, children: Any, n_classes: int) -> list[list[tuple[int, int]]]:
    """The way from the root to each class."""
    paths: list[list[tuple[int, int]]] = [[] for _ in range(n_classes)]

    def walk(node: int, way: list[tuple[int, int]]) -> None:
        for place, child in enumerate(children[indptr[node] : indptr[node + 1]].tolist()):
            if child < 0:
                paths[~child] = [*way, (node, place)]
            else:
                walk(child, [*way, (node, place)])

    walk(0, [])
    return paths


def solve_node(X: Any, weights: Any, found: list[tuple[int, int]], n_children: int, C: float, kind: str) -> Any:
    """The best weights of each child of a node against its siblings; children with the same rows have the same."""
    rows = sorted({row for row, _ in found})
    signs = np.full((len(rows), n_children), -1.0)
    for row, place in found:
        signs[rows.index(row), place] = 1
    problems, place = np.unique(signs, axis=1, return_inverse=True)
    solved = np.array([solve(X[rows], problem, C * weights[rows], kind) for problem in problems.T])
    return solved[place.ravel()]


def find_entry(tree: Any, node: int, feature: int) -> int:
    """Where a node keeps a feature, by looking at all that it keeps."""
    for entry in range(tree.table_indptr[node], tree.table_indptr[node + 1]):
        if tree.table[2 * entry] == feature:
            return entry
    return -1


def is_sound(tree: Any, n_features: int) -> bool:
    """Whether a walk that believes a file stays inside it, finds each feature once, and adds up fair numbers."""
    table, numbers = tree.table.reshape(-1, 2).tolist(), tree.cells.view(np.float32)
    for node in range(tree.n_nodes):
        base, end = tree.table_indptr[node : node + 2].tolist()
        first, behind = tree.cell_indptr[node : node + 2].tolist()
        slots = int(tree.slot_indptr[node + 1] - tree.slot_indptr[node])
        if all(table[t][0] >= 0 for t in range(base, end)):
            return False
        n_used = 0
        for t in range(base, end):
            feature, p = table[t][0], first + table[t][1]
            if feature < 0:
                continue
            # Found from its own place on, before a free one and before itself.
            look = base + (feature * 2654435769 % 2**32) * (end - base) // 2**32
            while look != t and table[look][0] >= 0 and table[look][0] != feature:
                look = look + 1 if look + 1 < end else base
            if look != t or feature >= n_features or p < first:
                return False
            head, heads, blocks = 0, [p], [-1]
            p += 1
            while head >= 0 and p < behind:
                head, p = int(tree.cells[p]), p + 1
                own = (head & 0xFFFF).bit_count()
                blocks.append(head >> 16 & 0x7FFF)
                if blocks[-1] * LANES >= slots or blocks[-1] <= blocks[-2]:
                    return False
                heads += range(p, p + own)
                p += own
            n_used += p - first - table[t][1]
            if head >= 0 or p > behind or not (np.abs(numbers[heads]) <= 1e15).all():
                return False
        # Features may share cells, but have no more together than there are: to look at all takes no longer.
        if n_used > behind - first:
            return False
    return True


def dense_node(tree: Any, node: int, n_features: int) -> Any:
    """The weights of a node as a matrix: slots × features."""
    first, last = tree.slot_indptr[node : node + 2].tolist()
    matrix = np.zeros((last - first, n_features))
    for entry in range(tree.table_indptr[node], tree.table_indptr[node + 1]):
        f = tree.table[2 * entry]
        if f >= 0:
            offset, own = entry_weights(tree, node, entry)
            matrix[:, f] += offset
            for place, weight in own.items():
                matrix[place, f] += weight
    return matrix


def entry_weights(tree: Any, node: int, entry: int) -> tuple[float, dict[int, float]]:
    """What all children share of an entry's feature, and the weights of those that have their own, cell by cell."""
    at = int(tree.cell_indptr[node] + tree.table[2 * entry + 1])
    numbers = tree.cells.view(np.float32)
    offset, own, head = float(numbers[at]), dict[int, float](), 0
    at += 1
    while head >= 0:
        head = int(tree.cells[at])
        block, bits = divmod(head & 0x7FFFFFFF, 2**LANES)
        places = [LANES * block + lane for lane in range(LANES) if bits & 2**lane]
        own |= dict(zip(places, numbers[at + 1 : at + 1 + len(places)].tolist(), strict=True))
        at += 1 + len(places)
    return offset, own


def link(s: Any, kind: str) -> Any:
    """The logarithm of the chance that a score stands for."""
    return -(np.maximum(0, 1 - s) ** 2) if kind == "squared_hinge" else -np.logaddexp(0, -s)


def scores_of(tree: Any, node: int, x: Any) -> Any:
    """The scores of a node's slots: each one's bias and the product of its weights with the row."""
    own = slice(*tree.slot_indptr[node : node + 2].tolist())
    biases = tree.biases[own].astype(np.float64) if len(tree.biases) else 0
    return dense_node(tree, node, len(x)) @ x + biases


def children_of(tree: Any, node: int, x: Any, kind: str) -> list[tuple[int, float]]:
    """The children of a node with the logarithms of their chances."""
    slots = tree.slots[tree.slot_indptr[node] : tree.slot_indptr[node + 1]].tolist()
    steps = link(scores_of(tree, node, x), kind)
    return [(child, float(step)) for child, step in zip(slots, steps, strict=True) if child != EMPTY]


def leaves(tree: Any, x: Any, kind: str) -> list[tuple[int, float]]:
    """Every leaf's class with the sum on its path."""
    found, waiting = [], [(0, 0.0)]
    while waiting:
        node, above = waiting.pop()
        for child, step in children_of(tree, node, x, kind):
            (found if child < 0 else waiting).append((~child if child < 0 else child, above + step))
    return found


def leads_to(tree: Any, node: int, allowed: Any) -> bool:
    """Whether some class below a node may be ranked."""
    slots = tree.slots[tree.slot_indptr[node] : tree.slot_indptr[node + 1]].tolist()
    return any(allowed[~s] if s < 0 else leads_to(tree, s, allowed) for s in slots if s != EMPTY)


def beam_leaves(tree: Any, x: Any, kind: str, beam: int, allowed: Any) -> list[tuple[int, float]]:
    """The leaves below the best nodes of each level."""
    level, found = [(0, 0.0)], []
    while level:
        below = []
        for node, above in level:
            for child, step in children_of(tree, node, x, kind):
                if child < 0 and allowed[~child]:
                    found.append((~child, above + step))
                elif child >= 0 and leads_to(tree, child, allowed):
                    below.append((child, above + step))
        level = best(below, beam)
    return found


def best(scored: list[tuple[int, float]], k: int) -> list[tuple[int, float]]:
    """The best first, ties by the lower number."""
    return sorted(scored, key=lambda item: (-item[1], item[0]))[:k]


def mean_chances(found: list[list[tuple[int, float]]], kept: int, n_classes: int) -> Any:
    """The mean over trees of what the best leaves of each give a class."""
    chances = np.zeros(n_classes)
    for tree in found:
        for c, score in best(tree, kept):
            chances[c] += np.exp(score) / len(found)
    return chances

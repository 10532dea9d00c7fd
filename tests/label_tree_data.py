"""Rows for label trees to learn, and small random trees: leaves at any depth, weights whose sums are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

from abound import Taxonomy
from abound.learn import label_tree_nodes as nodes
from abound.learn.label_tree_nodes import Kept
from abound.learn.label_tree_shape import TreeShape
from abound.learn.label_tree_training import lay_out_slots
from abound.rank import _node_kernels as kernels
from abound.rank._lane_sums import LANES
from abound.rank.tree_weights import Entries, NodeEntries, TreeWeights
from abound.scratch import Growing
from generate import make_rows

QUARTERS = (-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0)
"""Numbers whose sums and products are exact, so that ties are ties."""

X, NUMBERS = make_rows(0, n=400, n_features=80, n_classes=40)
Y = np.array([f"class {c:02d}" for c in NUMBERS])
CLASSES = np.unique(Y).tolist()
N = len(CLASSES)
TAXONOMY = Taxonomy.from_edges(
    [("all", f"group {i}") for i in range(3)]
    + [("all", "chain"), ("chain", "link"), ("link", CLASSES[-1])]
    + [(f"group {i % 3}", name) for i, name in enumerate(CLASSES[:-1])]
)
"""Three groups, and a class at the end of a chain."""

TREES = pytest.mark.parametrize(
    "tree", ["kmeans", "spectral", TAXONOMY, None], ids=["kmeans", "spectral", "own", "flat"]
)
SMALL = {"arity": 16, "max_leaf": 4, "min_weight": 0.0}
"""So many classes make a tree of two levels."""


def assert_same_trees(one: Any, other: Any) -> None:
    assert len(one.trees_) == len(other.trees_)
    for left, right in zip(one.trees_, other.trees_, strict=True):
        for name, a, b in zip(left._fields, left, right, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)


@st.composite
def shapes(draw: Any, max_nodes: int = 6, max_children: int = 40) -> tuple[TreeShape, int]:
    """A tree of any shape, its classes in any order; its leaves are at any depth."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_nodes = draw(st.integers(1, max_nodes))
    most = draw(st.integers(2, max_children))
    own: list[list[int]] = [[] for _ in range(n_nodes)]
    above = sorted(int(rng.integers(node)) for node in range(1, n_nodes))
    for node in range(1, n_nodes):
        own[min(above[node - 1], node - 1)].append(node)
    counts = [max(int(rng.integers(1, most)), 0 if below else 1) for below in own]
    classes = rng.permutation(sum(counts))
    children = []
    for node in range(n_nodes):
        mixed = own[node] + [~int(classes[sum(counts[:node]) + i]) for i in range(counts[node])]
        children.append(rng.permutation(mixed).tolist())
    indptr = np.concatenate(([0], np.cumsum([len(part) for part in children]))).astype(np.int64)
    return TreeShape(indptr, np.array([c for part in children for c in part], np.int32)), len(classes)


def joined(shape: TreeShape, parts: list[NodeEntries]) -> TreeWeights:
    """A tree of what its nodes know."""
    entries = Entries(Growing)
    for part in parts:
        entries.append(part)
    return entries.tree(*lay_out_slots(shape))


def tree_of(shape: TreeShape, matrices: list[Any], offsets: list[Any], biases: list[Any] | None = None) -> TreeWeights:
    """Lay out dense weights (children × features) beside what all children of a node share, and biases."""
    parts = []
    for matrix, offset, bias in zip(matrices, offsets, biases or [np.empty(0)] * len(matrices), strict=True):
        n_children, n_features = matrix.shape
        blocks = [
            (f, b)
            for b in range(-(-n_children // LANES))
            for f in range(n_features)
            if matrix[LANES * b : LANES * (b + 1), f].any()
        ]
        rows = np.zeros((len(blocks), LANES), np.float32)
        for q, (f, b) in enumerate(blocks):
            column = matrix[LANES * b : LANES * (b + 1), f]
            rows[q, : len(column)] = column
        pairs = np.array(blocks, np.int32).reshape(-1, 2)
        kept = Kept(pairs[:, 0].copy(), pairs[:, 1].copy(), rows)
        scratch = np.empty(n_features, np.int32), np.empty(n_features, np.int32)
        slots = np.zeros(-(-len(bias) // LANES) * LANES, np.float32)
        slots[: len(bias)] = bias
        out = nodes._make_written(1, n_features, len(blocks), slots, nodes.Desk(n_features))
        names = np.arange(n_features, dtype=np.int32)
        sizes = kernels.lay_out_node(names, n_features, offset, kept, len(blocks), *scratch, 0, 0, out)
        out.table_sizes[0], out.cell_counts[0] = sizes
        parts.append(nodes._written(out, 1, *sizes))
    return joined(shape, parts)


@st.composite
def trees(draw: Any, n_features: int = 6) -> tuple[TreeWeights, int]:
    """A tree with weights whose sums are exact; some features are unknown to some nodes, and some trees have biases."""
    shape, n_classes = draw(shapes())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    matrices = [
        rng.choice(QUARTERS, size=(n, n_features)).astype(np.float32) * (rng.random((1, n_features)) < 0.6)
        for n in shape.n_children.tolist()
    ]
    offsets = [
        (rng.choice(QUARTERS, size=n_features) * (rng.random(n_features) < 0.4)).astype(np.float32) for _ in matrices
    ]
    biases = [rng.choice(QUARTERS, size=n).astype(np.float32) for n in shape.n_children.tolist()]
    return tree_of(shape, matrices, offsets, biases if draw(st.booleans()) else None), n_classes


def rows_for(seed: int, n: int, n_features: int = 6) -> Any:
    rng = np.random.default_rng(seed)
    dense = rng.choice(QUARTERS, size=(n, n_features)) * (rng.random((n, n_features)) < 0.7)
    return sp.csr_array(dense.astype(np.float32))

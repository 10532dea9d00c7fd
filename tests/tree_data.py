"""Small random trees with rows whose classes share what their places in the tree share."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from abound import Taxonomy

NESTED = Taxonomy.from_parents(
    {"a": "r", "b": "r", "c": "r", "a1": "a", "a2": "a", "a3": "a", "b1": "b", "b11": "b1", "b12": "b1"}
)
CLASSES = ["a1", "a2", "a3", "b11", "b12", "c"]


def nested_rows(seed: int, n: int = 120, n_features: int = 8, noise: float = 0.7) -> tuple[Any, Any]:
    """Rows around a centre for each class, which is its parent's centre moved a little."""
    rng = np.random.default_rng(seed)
    centres: dict[Any, Any] = {"r": np.zeros(n_features)}
    for name in NESTED.names.tolist()[1:]:
        centres[name] = centres[NESTED.parent(name)] + rng.normal(size=n_features)
    y = rng.permutation(np.resize(CLASSES, n))
    X = np.array([centres[label] for label in y]) + noise * rng.normal(size=(n, n_features))
    return X.astype(np.float32), y


@st.composite
def small_problems(draw: Any, max_rows: int = 8, max_features: int = 3) -> tuple[Any, Any, Any]:
    """A taxonomy of any small shape, rows and their labels; inner nodes, unary nodes and empty rows are among them."""
    n_nodes = draw(st.integers(3, 8))
    parents = [-1, *(draw(st.integers(0, i - 1)) for i in range(1, n_nodes))]
    taxonomy = Taxonomy.from_parents((list(range(n_nodes)), parents))
    n = draw(st.integers(1, max_rows))
    y = draw(st.lists(st.integers(0, n_nodes - 1), min_size=n, max_size=n))
    width = draw(st.integers(1, max_features))
    value = st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0])
    X = draw(st.lists(st.lists(value, min_size=width, max_size=width), min_size=n, max_size=n))
    return taxonomy, sp.csr_array(np.array(X, dtype=np.float32)), np.array(y)

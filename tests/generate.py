"""Small random data for tests: sparse rows with classes that have words of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st


def make_rows(
    seed: int, n: int = 200, n_features: int = 60, n_classes: int = 12, noise: float = 0.3
) -> tuple[Any, Any]:
    """Rows of a few features, mostly of their class, l2-normalised; class frequencies fall as in Zipf's law."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, n_classes + 1)
    y = rng.choice(n_classes, size=n, p=share / share.sum())
    words = rng.integers(0, n_features, size=(n_classes, 6))
    dense = np.zeros((n, n_features), dtype=np.float32)
    for i in range(n):
        own = words[y[i], rng.integers(0, 6, size=4)]
        other = rng.integers(0, n_features, size=rng.binomial(8, noise))
        dense[i, np.concatenate((own, other))] = rng.random(4 + len(other)) + 0.1
    norms = np.sqrt((dense**2).sum(axis=1, keepdims=True))
    return sp.csr_array(dense / norms), y


@st.composite
def sparse_rows(
    draw: Any, max_rows: int = 25, max_features: int = 8, low: float = -1.0, high: float = 1.0, unit: bool = False
) -> Any:
    """A CSR matrix of any small shape: empty rows, no rows' features in common, values of both signs."""
    n, width = draw(st.integers(1, max_rows)), draw(st.integers(1, max_features))
    value = st.sampled_from([0.0, 0.0, 1.0, 0.5, 0.25, -0.5]) | st.floats(low, high, width=32)
    dense = np.array(
        draw(st.lists(st.lists(value, min_size=width, max_size=width), min_size=n, max_size=n)), dtype=np.float32
    )
    if low >= 0:
        dense = np.abs(dense)
    if unit:
        norms = np.sqrt((dense.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
        dense = np.divide(dense, norms, out=np.zeros_like(dense), where=norms > 1e-6)
    return sp.csr_array(dense.astype(np.float32))


@st.composite
def labels_for(draw: Any, n: int, n_classes: int = 5, multi: bool = False) -> list[list[int]]:
    """Labels of n rows: one each, or none to three."""
    one = st.integers(0, n_classes - 1)
    row = st.lists(one, max_size=3, unique=True) if multi else st.lists(one, min_size=1, max_size=1)
    drawn = draw(st.lists(row, min_size=n, max_size=n))
    return drawn if any(drawn) else [[0], *drawn[1:]]

"""Kernels of recursive regularization: the inner nodes of a tree in closed form, leaves around their parents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._lanes import LANES, dot_lanes


@kernel
def eliminate(
    parent: Any,
    stiffness: Any,
    held: Any,
    stretch: float,
    first: int,
    begin: int,
    end: int,
    sums: Any,
    inner: Any,
    moved: Any,
    lengths: Any,
) -> None:
    """Move all inner nodes to the minimum of ``Σ ½ ω_n ‖w_n − w_π‖²`` and beyond.

    Features ``begin`` to ``end`` of ``sums`` are those from ``first + begin`` on of ``inner``. On entry ``sums[n]`` is
    ``Σ ω_l (w_l − w_n)`` over the leaves right below n and ``held[n]`` their ``Σ ω_l``. One walk up the tree writes
    each node as ``a · parent + rest``, one walk down fills in the parents: eq. (4) of the paper then holds for all of
    them. Nodes go ``stretch`` times as far. ``moved[n]`` gains the square of the way, ``lengths[n]`` gains
    ``ω_n ‖w_n − w_π‖²``.
    """
    n_inner = len(parent)
    total, share = held.copy(), np.zeros(n_inner)
    for n in range(n_inner - 1, -1, -1):
        total[n] += stiffness[n]
        if n:
            share[n] = stiffness[n] / total[n]
            total[parent[n]] += stiffness[n] * (1 - share[n])
    for n in range(n_inner - 1, -1, -1):
        factor, own = np.float32(1 / total[n]), np.float32(held[n])
        for f in range(begin, end):
            sums[n, f] = factor * (sums[n, f] + own * inner[n, first + f])
        if n:
            weight = np.float32(stiffness[n])
            for f in range(begin, end):
                sums[parent[n], f] += weight * sums[n, f]
    for n in range(n_inner):
        if n:
            part = np.float32(share[n])
            for f in range(begin, end):
                sums[n, f] += part * sums[parent[n], f]
        change, length = 0.0, 0.0
        for f in range(begin, end):
            before = inner[n, first + f]
            now = before + np.float32(stretch) * (sums[n, f] - before)
            inner[n, first + f] = now
            above = inner[parent[n], first + f] if n else np.float32(0)
            change += np.float64(now - before) ** 2
            length += np.float64(now - above) ** 2
        moved[n] += change
        lengths[n] += stiffness[n] * length


@kernel
def add_leaf(
    indptr: Any, indices: Any, data: Any, rows: Any, coefficients: Any, weight: float, low: int, high: int, out: Any
) -> None:
    """Add ``weight · Σ_j coefficients[j] x_{rows[j]}`` to a vector, of features ``low`` to ``high`` only."""
    for j in range(len(rows)):
        i = rows[j]
        factor = np.float32(weight * coefficients[j])
        p, end = indptr[i], indptr[i + 1]
        last = end
        while p < last:
            middle = (p + last) >> 1
            if indices[middle] < low:
                p = middle + 1
            else:
                last = middle
        while p < end and indices[p] < high:
            out[indices[p] - low] += factor * data[p]
            p += 1


@kernel
def fill_lanes(inner: Any, parents: Any, origin: Any, weights: Any) -> None:
    """Start each lane at its parent's weights."""
    for f in range(inner.shape[1]):
        for lane in range(LANES):
            weight = inner[parents[lane], f]
            origin[f, lane] = weight
            weights[f, lane] = weight


@kernel
def lane_products(weights: Any, origin: Any, squares: Any, products: Any) -> None:
    """Write ``‖w − w₀‖²`` and ``(w − w₀)·w₀`` of each lane."""
    squares[:] = 0
    products[:] = 0
    for f in range(len(weights)):
        for lane in range(LANES):
            difference = np.float64(weights[f, lane] - origin[f, lane])
            squares[lane] += difference * difference
            products[lane] += difference * np.float64(origin[f, lane])


@kernel
def logistic_loss(
    indptr: Any,
    indices: Any,
    data: Any,
    row_weights: Any,
    targets: Any,
    positive: Any,
    negative: Any,
    begin: int,
    end: int,
    weights: Any,
    sums: Any,
) -> None:
    """Add up the logistic loss of each lane over rows ``begin`` to ``end``; sweeps know only a bound of it."""
    scores = np.empty(LANES, dtype=np.float32)
    for i in range(begin, end):
        dot_lanes(indices, data, indptr[i], indptr[i + 1], weights, scores)
        for lane in range(LANES):
            y = targets[i, lane]
            if y != 0:
                margin = np.float64(y * scores[lane])
                cost = row_weights[i] * (positive[lane] if y > 0 else negative[lane])
                sums[lane] += cost * (math.log1p(math.exp(-abs(margin))) + max(0.0, -margin))

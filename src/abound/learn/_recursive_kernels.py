"""Kernels of recursive regularization: inner nodes of a tree as sums of rows, leaves around their parents."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._lanes import LANES, add_lanes, dot_lanes, logistic_losses


@kernel
def next_shares(
    parent: Any,
    stiffness: Any,
    held: Any,
    total: Any,
    share: Any,
    stretch: float,
    swing: float,
    known: Any,
    pulls: Any,
    found: Any,
) -> None:
    """Write a move of all inner nodes by what each has of its parent's weights, now and after earlier moves.

    ``known[n, u(u + 1)/2 + v]`` is how much of its parent's weights after move v a node has after move u, and
    ``found[n, v]`` the same of the next move. With the leaves where they are, the minimum of ``Σ ½ ω_n ‖w_n − w_π‖²``
    makes each node ``share · parent + rest`` (one walk up the tree), and the rest holds ``pulls[n, v] / total[n]`` of
    the node's own weights after move v. The move goes from where the nodes are ``stretch`` times the way to the
    minimum, and ``swing`` times the way of the last move further.
    """
    n_moves = pulls.shape[1]
    last = n_moves * (n_moves - 1) // 2
    pulls[:] = 0
    for n in range(len(parent) - 1, -1, -1):
        pulls[n, n_moves - 1] += held[n]
        for u in range(n_moves):
            rest = 0.0
            for v in range(u, n_moves):
                rest += pulls[n, v] * known[n, v * (v + 1) // 2 + u]
            rest /= total[n]
            if n:
                pulls[parent[n], u] += stiffness[n] * rest
            found[n, u] = (1 - stretch + swing) * known[n, last + u] + stretch * rest
            if swing and u < n_moves - 1:
                found[n, u] -= swing * known[n, last - n_moves + 1 + u]
        found[n, n_moves - 1] -= (1 - stretch + swing) * share[n]
        if swing:
            found[n, n_moves - 2] += swing * share[n]
        found[n, n_moves] = share[n]


@kernel
def scatter(
    rows: Any, values: Any, begin: int, end: int, weight: float, seen: Any, touched: Any, count: int, sums: Any
) -> Any:
    """Add a sparse vector to a dense one and list the places that it is the first to touch; return their number."""
    for p in range(begin, end):
        i = rows[p]
        if not seen[i]:
            seen[i] = True
            touched[count] = i
            count += 1
        sums[i] += weight * values[p]
    return count


@kernel
def collect(touched: Any, stretch: float, seen: Any, rest: Any, own: Any, rows: Any, rests: Any, values: Any) -> Any:
    """Take ``rest`` and ``own + stretch · rest`` from the touched places and clear them; return how many are not 0."""
    kept = 0
    for i in touched:
        some, whole = np.float32(rest[i]), np.float32(own[i] + stretch * rest[i])
        rest[i] = 0
        own[i] = 0
        seen[i] = False
        if some != 0 or whole != 0:
            rows[kept] = i
            rests[kept] = some
            values[kept] = whole
            kept += 1
    return kept


@kernel
def mix(shares: Any, base: Any, above: Any, n_moves: int, out: Any) -> None:
    """Write ``shares[0] · base + Σ_v shares[v] · above[v − 1]`` over the moves v up to ``n_moves``."""
    for f in range(len(base)):
        out[f] = shares[0] * base[f]
    for v in range(n_moves):
        part = shares[v + 1]
        if part != 0:
            for f in range(len(base)):
                out[f] += part * above[v, f]


@kernel
def add_vector(indptr: Any, indices: Any, data: Any, rows: Any, values: Any, begin: int, end: int, out: Any) -> None:
    """Add ``Σ_j values[j] x_{rows[j]}`` over the places ``begin`` to ``end``; behind the rows come the features."""
    n_rows = len(indptr) - 1
    for j in range(begin, end):
        i, value = rows[j], np.float64(values[j])
        if i >= n_rows:
            out[i - n_rows] += value
        else:
            for p in range(indptr[i], indptr[i + 1]):
                out[indices[p]] += value * data[p]


@kernel
def add_two_vectors(
    indptr: Any, indices: Any, data: Any, rows: Any, one: Any, other: Any, begin: int, end: int, out: Any
) -> None:
    """Add two vectors that have the same rows, each to a column; see `add_vector`."""
    n_rows = len(indptr) - 1
    for j in range(begin, end):
        i, first, second = rows[j], np.float64(one[j]), np.float64(other[j])
        if i >= n_rows:
            out[i - n_rows, 0] += first
            out[i - n_rows, 1] += second
        else:
            for p in range(indptr[i], indptr[i + 1]):
                out[indices[p], 0] += first * data[p]
                out[indices[p], 1] += second * data[p]


@kernel
def squared_ways(now: Any, before: Any, above: Any) -> Any:
    """Return ``‖now − before‖²`` and ``‖now − above‖²``."""
    moved, length = 0.0, 0.0
    for f in range(len(now)):
        moved += np.float64(now[f] - before[f]) ** 2
        length += np.float64(now[f] - above[f]) ** 2
    return moved, length


@kernel
def fill_lanes(vectors: Any, which: Any, origin: Any, weights: Any) -> None:
    """Start each lane at one of some vectors."""
    for f in range(vectors.shape[1]):
        for lane in range(LANES):
            weight = vectors[which[lane], f]
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
def place_duals(rows: Any, coefficients: Any, lane: int, duals: Any, used: Any) -> None:
    """Put the duals of some rows back into a lane, and tell that these rows are used."""
    for j in range(len(rows)):
        duals[rows[j], lane] = abs(coefficients[j])
        used[rows[j]] = True


@kernel
def drop_light(
    indptr: Any, indices: Any, data: Any, targets: Any, least: Any, begin: int, end: int, duals: Any, weights: Any
) -> None:
    """Set the duals of rows ``begin`` to ``end`` that are below their lane's ``least`` to 0, and take them off."""
    steps = np.empty(LANES, dtype=np.float32)
    for i in range(begin, end):
        is_any = False
        for lane in range(LANES):
            light = np.float32(0)
            if duals[i, lane] < least[lane]:
                light = duals[i, lane]
                duals[i, lane] = 0
            is_any |= light != 0
            steps[lane] = -light * targets[i, lane]
        if is_any:
            add_lanes(indices, data, indptr[i], indptr[i + 1], steps, weights)


@kernel
def list_duals(duals: Any, targets: Any, places: Any, rows: Any, coefficients: Any) -> None:
    """List for each lane the rows whose duals are not 0, and these with the sign of the target.

    Those of a lane go to ``places[lane]`` and on; that is where they end, then. With no room they are only counted.
    """
    bits = duals.view(np.uint32)
    is_listed = len(rows) > 0
    for i in range(len(duals)):
        some = np.uint32(0)
        for lane in range(LANES):
            some |= bits[i, lane]
        if some == 0:
            continue
        for lane in range(LANES):
            if duals[i, lane] != 0:
                if is_listed:
                    rows[places[lane]] = i
                    coefficients[places[lane]] = duals[i, lane] * targets[i, lane]
                places[lane] += 1


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
    losses = np.empty(LANES, dtype=np.float32)
    for i in range(begin, end):
        dot_lanes(indices, data, indptr[i], indptr[i + 1], weights, losses)
        logistic_losses(losses, targets, i, row_weights[i], positive, negative)
        for lane in range(LANES):
            sums[lane] += losses[lane]

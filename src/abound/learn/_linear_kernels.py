"""Dual coordinate descent on sixteen binary problems at once: one row, one step in every lane.

Hsieh, Chang, Lin, Keerthi, Sundararajan: A Dual Coordinate Descent Method for Large-scale Linear SVM (ICML 2008). The
weights are ``w = w₀ + Σ α_i y_i x_i`` in every lane; a row's step solves for its ``α_i`` with the others fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._lanes import LANES, add_lanes, dot_lanes, step_hinge, step_logistic, step_squared_hinge

FLUSH = 256
"""Rows whose gaps and losses are summed in float32 before they join the float64 sums."""


@kernel
def sweep(
    indptr: Any,
    indices: Any,
    data: Any,
    norms: Any,
    row_weights: Any,
    targets: Any,
    positive: Any,
    negative: Any,
    loss: int,
    threshold: Any,
    hold: bool,
    active: Any,
    begin: int,
    end: int,
    kept: int,
    weights: Any,
    duals: Any,
    sums: Any,
) -> Any:
    """Take the steps of rows ``active[begin:end]``; rows that moved stay in ``active``, from ``kept`` on.

    A row whose share of the duality gap is at most ``threshold`` in every lane does not move. With ``hold`` none does;
    those that would are kept all the same. Returns the number of rows kept so far. ``sums`` gains the gap, the loss and
    ``Σ α y w·x`` of each lane, as the rows were met.
    """
    scores = np.empty(LANES, dtype=np.float32)
    steps = np.empty(LANES, dtype=np.float32)
    totals = np.zeros((3, LANES), dtype=np.float32)
    for t in range(begin, end):
        i = active[t]
        low, high = indptr[i], indptr[i + 1]
        dot_lanes(indices, data, low, high, weights, scores)
        norm, weight = norms[i], row_weights[i]
        if loss == 0:
            moves = step_squared_hinge(
                scores, targets, duals, i, norm, weight, positive, negative, threshold, hold, steps, totals
            )
        elif loss == 1:
            moves = step_hinge(
                scores, targets, duals, i, norm, weight, positive, negative, threshold, hold, steps, totals
            )
        else:
            moves = step_logistic(
                scores, targets, duals, i, norm, weight, positive, negative, threshold, hold, steps, totals
            )
        if moves and not hold:
            add_lanes(indices, data, low, high, steps, weights)
        if moves:
            active[kept] = i
            kept += 1
        if (t - begin) % FLUSH == FLUSH - 1:
            for number in range(3):
                for lane in range(LANES):
                    sums[number, lane] += totals[number, lane]
                    totals[number, lane] = 0
    for number in range(3):
        for lane in range(LANES):
            sums[number, lane] += totals[number, lane]
    return kept


@kernel
def shuffle(active: Any, n: int, seed: int) -> None:
    """Put the first n rows into a random order that depends on the seed alone."""
    state = np.uint64(seed)
    for t in range(n - 1, 0, -1):
        state += np.uint64(0x9E3779B97F4A7C15)
        z = state
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        r = np.int64((z >> np.uint64(32)) * np.uint64(t + 1) >> np.uint64(32))
        active[t], active[r] = active[r], active[t]


@kernel
def start_lanes(
    indptr: Any,
    indices: Any,
    data: Any,
    rows: Any,
    lanes: Any,
    common_weights: Any,
    common_duals: Any,
    targets: Any,
    weights: Any,
    duals: Any,
) -> None:
    """Start every lane at the problem without positive rows; then turn ``rows[j]`` positive in lane ``lanes[j]``."""
    for f in range(len(common_weights)):
        for lane in range(LANES):
            weights[f, lane] = common_weights[f]
    for i in range(len(common_duals)):
        for lane in range(LANES):
            duals[i, lane] = common_duals[i]
            targets[i, lane] = -1
    for j in range(len(rows)):
        i, lane = rows[j], lanes[j]
        if targets[i, lane] < 0:
            for p in range(indptr[i], indptr[i + 1]):
                weights[indices[p], lane] += duals[i, lane] * data[p]
            duals[i, lane] = 0
            targets[i, lane] = 1


@kernel
def add_rows(indptr: Any, indices: Any, data: Any, targets: Any, duals: Any, weights: Any) -> None:
    """Add ``Σ α_i y_i x_i`` to the weights of every lane."""
    steps = np.empty(LANES, dtype=np.float32)
    for i in range(len(indptr) - 1):
        for lane in range(LANES):
            steps[lane] = duals[i, lane] * targets[i, lane]
        add_lanes(indices, data, indptr[i], indptr[i + 1], steps, weights)


@kernel
def add_some_rows(indptr: Any, indices: Any, data: Any, rows: Any, targets: Any, duals: Any, weights: Any) -> None:
    """Add ``Σ α_i y_i x_i`` over some rows to the weights of every lane."""
    steps = np.empty(LANES, dtype=np.float32)
    for j in range(len(rows)):
        i = rows[j]
        for lane in range(LANES):
            steps[lane] = duals[i, lane] * targets[i, lane]
        add_lanes(indices, data, indptr[i], indptr[i + 1], steps, weights)


@kernel
def lane_squares(weights: Any, origin: Any, squares: Any) -> None:
    """Write ``‖w − w₀‖²`` of each lane."""
    squares[:] = 0
    for f in range(len(weights)):
        for lane in range(LANES):
            difference = np.float64(weights[f, lane] - origin[f, lane])
            squares[lane] += difference * difference


@kernel
def count_heavy(weights: Any, offset: Any, n_lanes: int, min_weight: float, counts: Any) -> Any:
    """Count, by feature, the lanes whose weight differs from the offset by at least ``min_weight`` and at all."""
    total = 0
    for f in range(len(weights)):
        n = 0
        for lane in range(n_lanes):
            difference = abs(weights[f, lane] - offset[f])
            n += difference >= min_weight and difference > 0
        counts[f] = n
        total += n
    return total


@kernel
def take_heavy(
    weights: Any, offset: Any, n_lanes: int, min_weight: float, first_class: int, classes: Any, values: Any
) -> None:
    """Write what `count_heavy` counted: the class and the difference from the offset, by feature."""
    n = 0
    for f in range(len(weights)):
        for lane in range(n_lanes):
            difference = weights[f, lane] - offset[f]
            if abs(difference) >= min_weight and difference != 0:
                classes[n] = first_class + lane
                values[n] = difference
                n += 1


@kernel
def place_edges(
    counts: Any, classes: Any, values: Any, features: Any, cursor: Any, all_classes: Any, all_weights: Any
) -> None:
    """Append a block's edges to the lists of their features; ``cursor`` is where each list goes on."""
    n = 0
    for f in range(len(counts)):
        place = cursor[features[f]]
        for _ in range(counts[f]):
            all_classes[place] = classes[n]
            all_weights[place] = values[n]
            place += 1
            n += 1
        cursor[features[f]] = place

"""Kernels of label trees: the problems of many nodes, or of one large node step by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.learn._lanes import LANES
from abound.learn._linear_kernels import sweep
from abound.rank._node_kernels import lay_out_node

SWEEPS, ACTIVE, AT, KEPT = range(4)
"""Places in the state of a block: sweeps made, rows still moving, how far the sweep is, rows that go on moving."""


@kernel
def count_pairs(indptr: Any, label_indptr: Any, label_ids: Any, node_of_class: Any, counts: Any, values: Any) -> None:
    """Count, for each node of a level, its rows (once for each label) and their non-zeros."""
    for row in range(len(label_indptr) - 1):
        for q in range(label_indptr[row], label_indptr[row + 1]):
            node = node_of_class[label_ids[q]]
            if node >= 0:
                counts[node] += 1
                values[node] += indptr[row + 1] - indptr[row]


@kernel
def list_pairs(
    label_indptr: Any, label_ids: Any, node_of_class: Any, place_of_class: Any, cursor: Any, rows: Any, places: Any
) -> None:
    """List, for each node of a level, its rows in their order, and the child that a label of the row is below."""
    for row in range(len(label_indptr) - 1):
        for q in range(label_indptr[row], label_indptr[row + 1]):
            c = label_ids[q]
            node = node_of_class[c]
            if node >= 0:
                rows[cursor[node]] = row
                places[cursor[node]] = place_of_class[c]
                cursor[node] += 1


@kernel
def number_rows(pair_rows: Any, begin: int, end: int, rows: Any, local: Any) -> Any:
    """List the rows of a node, each once, and the place of each pair's row among them; return how many there are."""
    n = 0
    for q in range(begin, end):
        if q == begin or pair_rows[q] != pair_rows[q - 1]:
            rows[n] = pair_rows[q]
            n += 1
        local[q - begin] = n - 1
    return n


@kernel
def list_features(indptr: Any, indices: Any, rows: Any, begin: int, end: int, n: int, place: Any, features: Any) -> Any:
    """Add the features of some rows to a list of n that has each once; return its length. ``place`` begins at -1."""
    for t in range(begin, end):
        for p in range(indptr[rows[t]], indptr[rows[t] + 1]):
            f = indices[p]
            if place[f] < 0:
                place[f] = 0
                features[n] = f
                n += 1
    return n


@kernel
def number_features(n: int, place: Any, features: Any) -> None:
    """Write the place of each feature."""
    for t in range(n):
        place[features[t]] = t


@kernel
def copy_rows(indptr: Any, indices: Any, data: Any, norms: Any, weights: Any, begin: int, end: int, room: Any) -> None:
    """Copy the rows of a node, with the numbers that its features have there."""
    k = room.indptr[begin] if begin else 0
    room.indptr[begin] = k
    for t in range(begin, end):
        row = room.rows[t]
        for p in range(indptr[row], indptr[row + 1]):
            room.indices[k] = room.place[indices[p]]
            room.data[k] = data[p]
            k += 1
        room.indptr[t + 1] = k
        room.norms[t] = norms[row]
        room.row_weights[t] = weights[row]


@kernel
def name_features(n: int, names: Any, room: Any) -> None:
    """Forget the places of a node's features and give these their final names; a constant one has none."""
    for f in range(n):
        feature = room.features[f]
        room.place[feature] = -1
        room.features[f] = names[feature - room.n_constant] if feature >= room.n_constant else -1


@kernel
def begin_at_zero(n_rows: int, n_features: int, room: Any) -> None:
    """Let the blocks of a node start at 0, from which their weights are counted."""
    room.origin[:n_features] = 0
    room.offsets[:n_features] = 0
    room.common_duals[:n_rows] = 0
    room.threshold[:] = 0


@kernel
def begin_background(n_rows: int, n_features: int, room: Any) -> None:
    """Pose the problem of a child without rows in the first lane: all rows are negative."""
    begin_at_zero(n_rows, n_features, room)
    begin_block(n_rows, n_features, room.local[:0], room.local[:0], 0, 1, room)


@kernel
def begin_at_background(n_rows: int, n_features: int, min_weight: float, room: Any) -> None:
    """Let the blocks of a node start at the solution of `begin_background`, from which their weights are counted."""
    take_background(n_features, min_weight, room)
    take_background_duals(0, n_rows, room)


@kernel
def take_background(n_features: int, min_weight: float, room: Any) -> None:
    """Let the weights start at the background's."""
    for f in range(n_features):
        weight = room.lanes[f, 0]
        room.origin[f] = weight
        # Whole biases leave the node, so that the constant feature's weight is no offset.
        is_kept = abs(weight) >= min_weight and f >= room.n_constant
        room.offsets[f] = weight if is_kept else np.float32(0)
    # Rows that a child without rows has left alone need not move before the child's own rows disturb them.
    room.threshold[:] = room.limit[0]


@kernel
def take_background_duals(begin: int, end: int, room: Any) -> None:
    """Let the duals of some rows start at the background's."""
    for t in range(begin, end):
        room.common_duals[t] = room.duals[t, 0]


@kernel
def begin_block(n_rows: int, n_features: int, local: Any, places: Any, block: int, n_lanes: int, room: Any) -> None:
    """Start a block of children where the node starts: a child's own rows are positive, the others negative.

    Lanes without a child have no problem.
    """
    begin_lanes(n_features, room)
    begin_rows(0, n_rows, n_lanes, room)
    begin_positives(local, places, 0, len(places), block, room)
    begin_sweeps(n_rows, room)


@kernel
def begin_lanes(n_features: int, room: Any) -> None:
    """Let the weights of a block start where the node starts."""
    for f in range(n_features):
        for lane in range(LANES):
            room.lanes[f, lane] = room.origin[f]


@kernel
def begin_rows(begin: int, end: int, n_lanes: int, room: Any) -> None:
    """Let some rows be negative in all lanes that have a child."""
    for t in range(begin, end):
        for lane in range(LANES):
            room.duals[t, lane] = room.common_duals[t]
            room.targets[t, lane] = -1 if lane < n_lanes else 0


@kernel
def begin_positives(local: Any, places: Any, begin: int, end: int, block: int, room: Any) -> None:
    """Let the rows of pairs ``begin`` to ``end`` be positive in the lanes of their children."""
    for q in range(begin, end):
        lane = places[q] - LANES * block
        t = local[q]
        if 0 <= lane < LANES and room.targets[t, lane] < 0:
            for p in range(room.indptr[t], room.indptr[t + 1]):
                room.lanes[room.indices[p], lane] += room.duals[t, lane] * room.data[p]
            room.duals[t, lane] = 0
            room.targets[t, lane] = 1


@kernel
def begin_sweeps(n_rows: int, room: Any) -> None:
    """Let all rows move."""
    for t in range(n_rows):
        room.active[t] = t
    room.state[SWEEPS] = room.state[AT] = room.state[KEPT] = 0
    room.state[ACTIVE] = n_rows
    room.sums[:] = 0
    room.limit[:] = room.threshold


@kernel
def take_sweeps(costs: Any, loss: int, tol: float, max_sweeps: int, n_rows: int, step: int, room: Any) -> Any:
    """Sweep over the rows that still move, ``step`` rows at most; return whether all is done.

    The first sweep takes all rows. From then on a row rests for good once its share of the duality gap is, in every
    lane, at most ``tol`` times the mean loss that rows had in the first sweep.
    """
    state = room.state
    while state[ACTIVE] > 0 and state[SWEEPS] < max_sweeps:
        if step <= 0:
            return False
        end = min(state[ACTIVE], state[AT] + step)
        step -= end - state[AT]
        state[KEPT] = sweep(
            *(room.indptr, room.indices, room.data, room.norms, room.row_weights),
            *(room.targets, costs, costs, loss, room.limit, False),
            *(room.active, state[AT], end, state[KEPT], room.lanes, room.duals, room.sums),
        )
        state[AT] = end
        if end == state[ACTIVE]:
            if state[SWEEPS] == 0:
                for lane in range(LANES):
                    room.limit[lane] = tol * room.sums[1, lane] / n_rows
            state[ACTIVE] = state[KEPT]
            state[SWEEPS] += 1
            state[AT] = state[KEPT] = 0
    return True


@kernel
def keep_heavy(n_features: int, block: int, n_lanes: int, min_weight: float, room: Any, n_kept: int, kept: Any) -> Any:
    """Append the features with a heavy weight in some lane; lighter ones become 0. Return the number kept so far.

    A constant feature is not among them: see `take_biases`.
    """
    for f in range(room.n_constant, n_features):
        offset = room.offsets[f]
        largest = np.float32(0)
        for lane in range(n_lanes):
            largest = max(largest, abs(room.lanes[f, lane] - offset))
        if largest >= min_weight and largest > 0:
            kept.features[n_kept] = f
            kept.blocks[n_kept] = block
            for lane in range(LANES):
                weight = room.lanes[f, lane] - offset if lane < n_lanes else np.float32(0)
                kept.weights[n_kept, lane] = weight if abs(weight) >= min_weight else np.float32(0)
            n_kept += 1
    return n_kept


@kernel
def take_biases(n_features: int, n_lanes: int, first: int, room: Any, biases: Any) -> None:
    """Write what the constant feature, the first of a node that has rows, adds to the scores of a block's children."""
    if room.n_constant and n_features:
        for lane in range(n_lanes):
            biases[first + lane] = room.bias * room.lanes[0, lane]


@kernel
def solve_nodes(
    indptr: Any,
    indices: Any,
    data: Any,
    norms: Any,
    row_weights: Any,
    feature_names: Any,
    pair_indptr: Any,
    pair_rows: Any,
    pair_places: Any,
    n_children: Any,
    begin: int,
    end: int,
    costs: Any,
    loss: int,
    tol: float,
    max_sweeps: int,
    min_weight: float,
    background_from: int,
    room: Any,
    kept: Any,
    out: Any,
) -> Any:
    """Solve the problems of nodes ``begin`` to ``end``; return the size of their tables and the number of cells."""
    table_size = n_cells = n_slots = 0
    for node in range(begin, end):
        low, high = pair_indptr[node], pair_indptr[node + 1]
        n_rows = number_rows(pair_rows, low, high, room.rows, room.local)
        n_features = list_features(indptr, indices, room.rows, 0, n_rows, 0, room.place, room.features)
        number_features(n_features, room.place, room.features)
        copy_rows(indptr, indices, data, norms, row_weights, 0, n_rows, room)
        name_features(n_features, feature_names, room)
        n_blocks = (n_children[node] + LANES - 1) // LANES
        if n_blocks < background_from:
            begin_at_zero(n_rows, n_features, room)
        else:
            begin_background(n_rows, n_features, room)
            take_sweeps(costs, loss, tol, max_sweeps, n_rows, 1 << 62, room)
            begin_at_background(n_rows, n_features, min_weight, room)
        n_kept = 0
        for block in range(n_blocks):
            n_lanes = min(LANES, n_children[node] - LANES * block)
            begin_block(n_rows, n_features, room.local, pair_places[low:high], block, n_lanes, room)
            take_sweeps(costs, loss, tol, max_sweeps, n_rows, 1 << 62, room)
            n_kept = keep_heavy(n_features, block, n_lanes, min_weight, room, n_kept, kept)
            take_biases(n_features, n_lanes, n_slots, room, out.biases)
            n_slots += LANES
        size, n_own = lay_out_node(
            *(room.features, n_features, room.offsets, kept, n_kept, room.counts, room.cursor),
            *(table_size, n_cells, out),
        )
        table_size += size
        n_cells += n_own
        out.table_sizes[node - begin], out.cell_counts[node - begin] = size, n_own
    return table_size, n_cells

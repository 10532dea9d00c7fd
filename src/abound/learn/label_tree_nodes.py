"""The problems of a label tree's nodes: one child against its siblings, sixteen children at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.learn import _label_tree_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn._linear_kernels import FLUSH
from abound.learn.linear_rows import SolverRows, lane_array
from abound.rank._node_kernels import MOST_CELLS, lay_out_node
from abound.rank.tree_weights import NodeEntries
from abound.scratch import let_go, scratch_array
from abound.validation import Float32Array, Float64Array, IdArray, IntArray

BACKGROUND_FROM = 2
"""Blocks of a node from which it pays to solve what they share first."""

ROWS_ON_DISK = 50
"""Rows from all over a file that are read before it is let go of: around each the system maps more of it."""

VALUES_A_CALL = 10_000_000
"""Non-zeros of a large node that one kernel call reads: a fraction of a second."""


class Settings(NamedTuple):
    """How the problems are solved and what is kept of them; see `LabelTreeClassifier`."""

    loss: int
    costs: Float32Array
    """C in every lane."""
    tol: float
    max_sweeps: int
    min_weight: float


class Pairs(NamedTuple):
    """The rows of each node, once for each label, and the child that the label is below."""

    indptr: IntArray
    rows: IdArray
    places: IdArray
    values: IntArray
    """Non-zeros of the rows of each node."""


class Room(NamedTuple):
    """What a node's problem is solved in."""

    rows: IdArray
    local: IdArray
    place: IdArray
    features: IdArray
    indptr: IntArray
    indices: IdArray
    data: Float32Array
    norms: Float32Array
    row_weights: Float32Array
    targets: npt.NDArray[np.int8]
    duals: Float32Array
    active: IdArray
    lanes: Float32Array
    common_duals: Float32Array
    origin: Float32Array
    offsets: Float32Array
    counts: IdArray
    cursor: IdArray
    threshold: Float32Array
    limit: Float32Array
    sums: Float64Array
    state: IntArray
    n_constant: int
    """1 if the first feature of every row is a constant one, of the value ``bias``; else 0."""
    bias: np.float32


class Kept(NamedTuple):
    """Weights that leave a node: place of the feature, block, sixteen numbers."""

    features: IdArray
    blocks: IdArray
    weights: Float32Array


class Desk:
    """What nodes are solved in, one after the other: memory that is used again need not be cleared by the system.

    Parameters
    ----------
    n_features : int
        Number of features.
    """

    def __init__(self, n_features: int) -> None:
        self.place = np.full(n_features, -1, dtype=np.int32)
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def array(self, name: str, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array of this name that has room for so many numbers; what it holds is of no meaning.

        Parameters
        ----------
        name : str
            What it is for.
        n : int
            Least length.
        dtype : dtype
            Type of its entries, always the same for a name.

        Returns
        -------
        array
            The one of the last call if it is long enough.
        """
        if name not in self._arrays or len(self._arrays[name]) < n:
            self._arrays[name] = np.empty(n, dtype)
        return self._arrays[name]

    def lanes(self, name: str, n: int, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
        """Return an array that has room for so many rows of sixteen, which begin at cache lines.

        Parameters
        ----------
        name, n, dtype : object
            As for `array`.

        Returns
        -------
        array
            The one of the last call if it is long enough.
        """
        if name not in self._arrays or len(self._arrays[name]) < n:
            self._arrays[name] = lane_array(n, dtype)
        return self._arrays[name]


class Written(NamedTuple):
    """Room for what some nodes know; see `NodeEntries`."""

    table_sizes: IntArray
    table: IdArray
    cell_counts: IntArray
    cells: IdArray
    biases: Float32Array


def solve_small_nodes(
    rows: SolverRows, pairs: Pairs, n_children: IntArray, begin: int, end: int, settings: Settings, desk: Desk
) -> NodeEntries:
    """Solve some consecutive nodes in one compiled call.

    Parameters
    ----------
    rows, pairs : SolverRows, Pairs
        The rows, and which node has which.
    n_children : int64 array
        Children of each node.
    begin, end : int
        The nodes.
    settings : Settings
        How.
    desk : Desk
        What to solve them in.

    Returns
    -------
    NodeEntries
        What they know, over the user's features.
    """
    n_blocks = -(-n_children[begin:end] // LANES)
    n_known = np.minimum(pairs.values[begin:end], rows.n_features)
    room = _make_room(rows, pairs, begin, end, desk)
    kept = _make_kept(int((n_known * n_blocks).max()), desk)
    biases = _make_biases(rows, int(n_blocks.sum()))
    out = _make_written(end - begin, int(n_known.sum()), int((n_known * n_blocks).sum()), biases, desk)
    sizes = kernels.solve_nodes(
        *(rows.indptr, rows.indices, rows.data, rows.norms, rows.weights, rows.features),
        *(pairs.indptr, pairs.rows, pairs.places, n_children, begin, end),
        *(settings.costs, settings.loss, settings.tol, settings.max_sweeps, settings.min_weight, BACKGROUND_FROM),
        *(room, kept, out),
    )
    return _written(out, end - begin, *sizes)


def solve_large_node(
    rows: SolverRows,
    pairs: Pairs,
    n_children: IntArray,
    node: int,
    settings: Settings,
    desk: Desk,
    on_disk: bool = False,
) -> NodeEntries:
    """Solve one node step by step, so that no call is long.

    Parameters
    ----------
    rows, pairs, n_children, settings, desk : object
        See `solve_small_nodes`; the result is the same.
    node : int
        The node.
    on_disk : bool
        Whether its rows, which are copied for it, go into temporary files.

    Returns
    -------
    NodeEntries
        What it knows.
    """
    low, high = pairs.indptr[node : node + 2].tolist()
    room = _make_room(rows, pairs, node, node + 1, desk, on_disk=on_disk)
    n_rows = int(kernels.number_rows(pairs.rows, low, high, room.rows, room.local))
    step = max(1, VALUES_A_CALL * n_rows // max(1, int(pairs.values[node])))
    at_once = max(1, step // 16) if on_disk else step
    spans = [(begin, min(begin + at_once, n_rows)) for begin in range(0, n_rows, at_once)]
    n_features = 0

    def forget() -> None:
        """Let what is in files leave memory."""
        let_go(rows.indices, rows.data, room.indices, room.data, room.duals, room.targets)

    def begin_block(local: IdArray, places: IdArray, block: int, n_lanes: int) -> None:
        kernels.begin_lanes(n_features, room)
        for span in spans:
            kernels.begin_rows(*span, n_lanes, room)
            kernels.begin_positives(local, places, *np.searchsorted(local, span).tolist(), block, room)
            forget()
        kernels.begin_sweeps(n_rows, room)

    def next_step() -> int:
        """How many rows to take next: on disk, those after the first sweep are far from one another."""
        sweeps, n_active, at = room.state[kernels.SWEEPS], int(room.state[kernels.ACTIVE]), int(room.state[kernels.AT])
        if not on_disk:
            return step
        if sweeps == 0:
            # Sums are rounded every so many rows, and where a call ends in memory: here at the same rows.
            return min(max(FLUSH, at_once - at_once % FLUSH), step - at % step, n_rows - at)
        reached = np.searchsorted(room.active[at:n_active], room.active[at] + at_once)
        return min(max(ROWS_ON_DISK, int(reached)), n_active - at)

    def solve() -> None:
        while not kernels.take_sweeps(*how, next_step(), room):
            forget()
        forget()

    for span in spans:
        known = n_features, room.place, room.features
        n_features = kernels.list_features(rows.indptr, rows.indices, room.rows, *span, *known)
        forget()
    kernels.number_features(n_features, room.place, room.features)
    for span in spans:
        kernels.copy_rows(rows.indptr, rows.indices, rows.data, rows.norms, rows.weights, *span, room)
        forget()
    kernels.name_features(n_features, rows.features, room)
    how = settings.costs, settings.loss, settings.tol, settings.max_sweeps, n_rows
    n_blocks = -(-int(n_children[node]) // LANES)
    kernels.begin_at_zero(n_rows, n_features, room)
    if n_blocks >= BACKGROUND_FROM:
        begin_block(room.local[:0], room.local[:0], 0, 1)
        solve()
        kernels.take_background(n_features, settings.min_weight, room)
        for span in spans:
            kernels.take_background_duals(*span, room)
            forget()
    kept, parts, biases = _make_kept(n_features, desk), [], _make_biases(rows, n_blocks)
    for block in range(n_blocks):
        n_lanes = min(LANES, int(n_children[node]) - LANES * block)
        begin_block(room.local[: high - low], pairs.places[low:high], block, n_lanes)
        solve()
        n_kept = kernels.keep_heavy(n_features, block, n_lanes, settings.min_weight, room, 0, kept)
        kernels.take_biases(n_features, n_lanes, LANES * block, room, biases)
        parts.append(Kept(kept.features[:n_kept].copy(), kept.blocks[:n_kept].copy(), kept.weights[:n_kept].copy()))
    kept = Kept(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.blocks for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )
    n_kept = len(kept.features)
    out = _make_written(1, n_features, n_kept, biases, desk)
    scratch = room.counts, room.cursor
    sizes = lay_out_node(room.features, n_features, room.offsets, kept, n_kept, *scratch, 0, 0, out)
    out.table_sizes[0], out.cell_counts[0] = sizes
    return _written(out, 1, *sizes)


def _make_room(rows: SolverRows, pairs: Pairs, begin: int, end: int, desk: Desk, *, on_disk: bool = False) -> Room:
    """Room for any one of some nodes; what grows with the entries of its rows may be on disk."""
    n_pairs, n_values = int(np.diff(pairs.indptr[begin : end + 1]).max()), int(pairs.values[begin:end].max())
    n_features = min(n_values, rows.n_features)

    def ids(name: str, n: int) -> IdArray:
        return desk.array(name, n, np.int32)

    def numbers(name: str, n: int) -> Float32Array:
        return desk.array(name, n, np.float32)

    def large(name: str, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return scratch_array(n, dtype) if on_disk else desk.array(name, n, dtype)

    def large_lanes(name: str, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return scratch_array((n, LANES), dtype) if on_disk else desk.lanes(name, n, dtype)

    return Room(
        rows=ids("rows", n_pairs),
        local=ids("local", n_pairs),
        place=desk.place,
        features=ids("features", n_features),
        indptr=desk.array("indptr", n_pairs + 1, np.int64),
        indices=large("indices", n_values, np.int32),
        data=large("data", n_values, np.float32),
        norms=numbers("norms", n_pairs),
        row_weights=numbers("row_weights", n_pairs),
        targets=large_lanes("targets", n_pairs, np.int8),
        duals=large_lanes("duals", n_pairs, np.float32),
        active=ids("active", n_pairs),
        lanes=desk.lanes("lanes", n_features),
        common_duals=numbers("common_duals", n_pairs),
        origin=numbers("origin", n_features),
        offsets=numbers("offsets", n_features),
        counts=ids("counts", n_features),
        cursor=ids("cursor", n_features),
        threshold=numbers("threshold", LANES),
        limit=numbers("limit", LANES),
        sums=np.zeros((3, LANES)),
        state=np.zeros(4, dtype=np.int64),
        n_constant=rows.n_constant,
        bias=np.float32(rows.bias),
    )


def _make_kept(n: int, desk: Desk) -> Kept:
    features, blocks = desk.array("kept_features", n, np.int32), desk.array("kept_blocks", n, np.int32)
    return Kept(features, blocks, desk.lanes("kept_weights", n))


def _make_biases(rows: SolverRows, n_blocks: int) -> Float32Array:
    """Room for the biases of children, blocks of them: none without a constant feature."""
    return np.zeros(LANES * n_blocks if rows.bias else 0, dtype=np.float32)


def _make_written(n_nodes: int, n_entries: int, n_rows: int, biases: Float32Array, desk: Desk) -> Written:
    return Written(
        desk.array("out_table_sizes", n_nodes, np.int64),
        desk.array("out_table", 2 * (2 * n_entries + n_nodes), np.int32),
        desk.array("out_cell_counts", n_nodes, np.int64),
        desk.array("out_cells", 2 * n_entries + (1 + LANES) * n_rows, np.int32),
        biases,
    )


def _written(out: Written, n_nodes: int, table_size: int, n_cells: int) -> NodeEntries:
    """A copy of what was written to the desk."""
    if int(out.cell_counts[:n_nodes].max()) > MOST_CELLS:
        raise ValueError("a node of the tree has more than 2³¹ weights: use a larger min_weight, or more levels")
    return NodeEntries(
        out.table_sizes[:n_nodes].copy(),
        out.table[: 2 * table_size].copy(),
        out.cell_counts[:n_nodes].copy(),
        out.cells[:n_cells].copy(),
        out.biases,
    )

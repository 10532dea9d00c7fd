"""One-vs-rest models of rows on disk: windows of rows for the solver, and solved blocks that wait in files.

The solver shuffles the rows that still move before each sweep. Rows on disk are in a random order already; they are
shuffled within windows, which are read one after another and leave memory again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from abound.distribute import spans
from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn import _linear_kernels as kernels
from abound.learn._lanes import LANES
from abound.learn.disk_gather import COPIES, stays_on_disk
from abound.learn.disk_order import WINDOW_SHARE, rows_bytes
from abound.learn.index_parts import joined_index
from abound.learn.linear_rows import SolverRows
from abound.learn.linear_solver import Edges
from abound.learn.row_views import ENTRIES_A_ROW, copy_entries
from abound.scratch import Spill, is_mapped, let_go, scratch_array
from abound.validation import Float32Array, Rows, frozen

EDGES_AT_ONCE = 2**20
"""Edges that are put in order at a time."""

EDGES_JOINED = 2**23
"""Edges of neighbouring features that are brought together at a time."""

BYTES_AN_EDGE = 24
"""What an edge takes in memory while blocks are joined."""


def edges_on_disk(edges: Edges) -> Edges:
    """Move what left a block into a temporary file.

    Parameters
    ----------
    edges : Edges
        In memory.

    Returns
    -------
    Edges
        The same, mapped.
    """
    # Each begins at a multiple of 8 bytes, so that numbers are where the processor wants them.
    arrays: list[Any] = list(edges)
    places = np.cumsum([0, *(-(-array.nbytes // 8) * 8 for array in arrays)]).tolist()
    room = scratch_array(places[-1], np.uint8)
    moved: list[Any] = [
        room[place : place + array.nbytes].view(array.dtype) for place, array in zip(places, arrays, strict=False)
    ]
    for array, copy in zip(arrays, moved, strict=True):
        copy[:] = array
    let_go(room)
    return Edges(*moved)


def join_edges_on_disk(blocks: Sequence[Edges], rows: SolverRows, offset: Float32Array, n_classes: int) -> ClassIndex:
    """Put the edges of all blocks into one index in a file.

    Parameters
    ----------
    blocks : sequence of Edges
        What left the solver, block by block.
    rows : SolverRows
        Whose features they are.
    offset : float32 array of shape (n_features,)
        What was subtracted from all classes, by the user's features.
    n_classes : int
        Number of classes.

    Returns
    -------
    ClassIndex
        That of `abound.learn.one_vs_rest.join_edges`.
    """
    lists = _lists_by_feature(blocks, len(rows.features), n_classes)
    place = np.zeros(len(offset), dtype=np.int64)
    place[rows.features] = np.arange(len(rows.features))
    degrees = np.zeros(len(offset), dtype=np.int64)
    degrees[rows.features] = np.diff(lists.indptr)
    indptr = np.concatenate(([0], np.cumsum(degrees)))
    has_offset = bool(offset.any())

    def parts() -> Iterator[ClassIndex]:
        # The user's features are in another order, so that lists come from all over the file.
        costs = indptr + ENTRIES_A_ROW * np.arange(len(indptr))
        for begin, end in spans(costs, 1 + int(costs[-1]) // EDGES_AT_ONCE) or [(0, len(offset))]:
            bounds = indptr[begin : end + 1] - indptr[begin]
            own = copy_entries(lists, place[begin:end], bounds)
            let_go(lists.indices, lists.data)
            part = offset[begin:end] if has_offset else None
            yield ClassIndex.from_lists(bounds, *own, n_classes=n_classes, offset=part)

    return joined_index(parts())


def _lists_by_feature(blocks: Sequence[Edges], n_features: int, n_classes: int) -> Rows:
    """The edges of all blocks by the solver's features, in a file; some features at a time are in memory."""
    degrees = np.zeros(n_features, dtype=np.int64)
    for edges in blocks:
        degrees += edges.counts
        let_go(edges.counts)
    indptr = np.concatenate(([0], np.cumsum(degrees)))
    classes, weights = Spill(np.int32), Spill(np.float32)
    reached = [0] * len(blocks)
    for begin, end in spans(indptr, 1 + int(indptr[-1]) // EDGES_JOINED):
        size = int(indptr[end] - indptr[begin])
        found = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.float32)
        cursor, places = indptr[begin:end] - indptr[begin], frozen(np.arange(end - begin), np.int32)
        for number, edges in enumerate(blocks):
            counts, first = edges.counts[begin:end], reached[number]
            last = reached[number] = first + int(counts.sum(dtype=np.int64))
            own = counts, edges.classes[first:last], edges.weights[first:last]
            kernels.place_edges(*own, places, cursor, *found)
            let_go(*own)
        classes.append(found[0])
        weights.append(found[1])
    return Rows(frozen(indptr, np.int64), classes.mapped(), weights.mapped(), n_classes)


def linear_needs(rows: Rows, labels: Labels, memory: int, n_workers: int) -> tuple[bool, dict[str, int]]:
    """Estimate what training a one-vs-rest model takes.

    Parameters
    ----------
    rows, labels : Rows, Labels
        What it is trained on.
    memory : int
        The budget.
    n_workers : int
        Threads.

    Returns
    -------
    on_disk : bool
        Whether rows and solved blocks are to be in files.
    needs : dict
        Bytes, by what they are for.
    """
    edges = BYTES_AN_EDGE * rows.n_features * labels.n_classes
    on_disk = stays_on_disk(rows, memory) or (is_mapped(rows.data) and edges > memory // 4)
    needs = {
        "the duals of the rows": (88 * n_workers + 120) * rows.n_rows + 40 * len(labels.ids),
        "the weights of a block of classes": 4 * LANES * (2 * n_workers + 2) * rows.n_features,
    }
    if on_disk:
        window = 10 * n_workers * (memory // WINDOW_SHARE // 8)
        return True, needs | {"the rows under way": window + memory // WINDOW_SHARE}
    return False, needs | {"copies of the rows": COPIES * rows_bytes(rows), "all weights, at most": edges}

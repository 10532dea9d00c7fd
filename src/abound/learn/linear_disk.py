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
from abound.scratch import is_mapped, let_go, scratch_array
from abound.validation import Float32Array, Rows

EDGES_AT_ONCE = 2**20
"""Edges that are put in order at a time."""

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
    degrees = np.zeros(len(offset), dtype=np.int64)
    for edges in blocks:
        degrees[rows.features] += edges.counts
        let_go(edges.counts)
    indptr = np.concatenate(([0], np.cumsum(degrees)))
    cursor = indptr[:-1].copy()
    classes, weights = scratch_array(int(indptr[-1]), np.int32), scratch_array(int(indptr[-1]), np.float32)
    for edges in blocks:
        kernels.place_edges(*edges, rows.features, cursor, classes, weights)
        let_go(*edges, classes, weights)
    has_offset = bool(offset.any())

    def parts() -> Iterator[ClassIndex]:
        for begin, end in spans(indptr, 1 + int(indptr[-1]) // EDGES_AT_ONCE) or [(0, len(offset))]:
            span = slice(indptr[begin], indptr[end])
            lists = indptr[begin : end + 1] - indptr[begin], classes[span], weights[span]
            own = offset[begin:end] if has_offset else None
            yield ClassIndex.from_lists(*lists, n_classes=n_classes, offset=own)
            let_go(classes[span], weights[span])

    return joined_index(parts())


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

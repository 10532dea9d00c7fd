"""The inner nodes of a recursively regularised tree, kept as sums of rows.

With the leaves where they are, the equations (4) of all inner nodes are solved by one walk up the tree. They make a
node ``share · parent + rest``, and the rest is made of the support vectors of the leaves below the node, and of its own
weights before. So after move u, ``w_n = y_n + Σ_{v ≤ u} shares[n, v] · w_π`` with the parent as it was after each
move v, and ``y_n`` is a sparse vector over rows, or over all features where that is not much longer. Weights are made
of it along the path from the root when somebody needs them: memory follows the support vectors, and not nodes ×
features. The vectors of earlier moves are needed too; there are as many moves as rounds, less one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from abound.distribute import Spare, Workers, spans
from abound.learn import _recursive_kernels as kernels
from abound.learn.linear_rows import SolverRows
from abound.learn.recursive_shape import ShortTree
from abound.learn.recursive_vectors import Pile, RowVectors, add_vector, shortened
from abound.validation import Float32Array, Float64Array, IdArray, IntArray, frozen

STRETCH = 1.9
"""How far inner nodes move towards their minimum. Below 2 the objective falls: the springs bound its curvature."""

SWING = 0.4
"""How much of the last move is made once more by the third, fifth, ... move. What takes many moves is then done in a
third of them: swinging cancels what the stretched moves leave of the rest. The objective may rise; see
`abound.learn.recursive_tree`."""

ENTRIES_A_TASK = 2**20
"""Entries of vectors that a thread adds up before it hands over what came out."""

NODES_A_TASK = 64
"""Inner nodes whose lengths a thread measures in one go: it makes the weights of those above the first one anew."""


class Step(NamedTuple):
    """Where a move has brought the inner nodes."""

    vectors: RowVectors
    """``y`` of each node."""
    shares: Float64Array
    """What each node has of its parent's weights at the start and after each move up to this one."""


class Inner(NamedTuple):
    """The inner nodes in a round."""

    base: Float32Array
    """Where all of them were before the first move."""
    steps: tuple[Any, ...]
    """Of each move: `Step`, or what opens it in another process."""
    moved: Float64Array
    """How far each has moved since the last round, squared."""


class Move(NamedTuple):
    """What a move of all inner nodes comes to."""

    vectors: RowVectors
    moved: Float64Array
    objective: float
    """``Σ ½ ω_n ‖w_n − w_π‖²`` over the inner nodes."""
    swing: float = 0.0


class Path:
    """The weights of the nodes between the root and an inner node; going to a node nearby keeps what both share.

    Parameters
    ----------
    rows : SolverRows
        What the nodes are made of.
    parent : int32 array
        The parent of each inner node.
    """

    def __init__(self, rows: SolverRows, parent: IdArray) -> None:
        self._rows, self._parent = rows, parent
        self._has_inner = np.zeros(len(parent), dtype=np.bool_)
        self._has_inner[parent[1:]] = True
        self._sums = np.empty(rows.n_features)
        self._nodes: list[tuple[int, int]] = []
        """From the root down, and the first move after which the weights are there."""
        self._rooms: list[Float32Array] = []
        self._inner: Inner | None = None
        self._steps: list[Step] = []

    def weights(self, node: int, inner: Inner) -> Float32Array:
        """Return the weights of an inner node.

        Parameters
        ----------
        node : int
            The node.
        inner : Inner
            The nodes as they are now.

        Returns
        -------
        float32 array of shape (n_features,)
            To be read before the next call.
        """
        return self.history(node, inner, 1)[0][-1] if inner.steps else inner.base

    def history(self, node: int, inner: Inner, n_moves: int) -> tuple[Float32Array, Float32Array]:
        """Return the weights of an inner node and of its parent after the last moves.

        Parameters
        ----------
        node : int
            The node.
        inner : Inner
            The nodes as they are now.
        n_moves : int
            How many of the moves, if there were as many.

        Returns
        -------
        tuple of two float32 arrays of shape (n_moves, n_features)
            To be read before the next call. The parent of the root is 0.
        """
        if self._inner is not inner:
            self._begin(inner)
        first = max(0, len(self._steps) - n_moves)
        # A node has shares of its parent after every move, but nobody asks for the early weights of the lowest ones.
        wanted = [(node, 0 if self._has_inner[node] else first)]
        while wanted[-1][0]:
            wanted.append((int(self._parent[wanted[-1][0]]), 0))
        wanted.reverse()
        same = 0
        while same < min(len(wanted), len(self._nodes)) and wanted[same] == self._nodes[same]:
            same += 1
        del self._nodes[same:]
        for n, begin in wanted[same:]:
            self._step_down(n, begin, inner)
        return self._rooms[len(wanted)][first:], self._rooms[len(wanted) - 1][first:]

    def _begin(self, inner: Inner) -> None:
        self._inner, self._nodes = inner, []
        self._steps = [step if isinstance(step, Step) else step.open() for step in inner.steps]
        self._rooms = [np.zeros((len(inner.steps), self._rows.n_features), dtype=np.float32)]

    def _step_down(self, node: int, begin: int, inner: Inner) -> None:
        self._nodes.append((node, begin))
        depth = len(self._nodes)
        if depth == len(self._rooms):
            self._rooms.append(np.empty_like(self._rooms[0]))
        for number, step in enumerate(self._steps[begin:], start=begin):
            kernels.mix(step.shares[node], inner.base, self._rooms[depth - 1], number + 1, self._sums)
            add_vector(self._rows, *step.vectors.of(node), self._sums)
            step.vectors.let_go(node, node + 1)
            self._rooms[depth][number] = self._sums


class _Room(NamedTuple):
    """Where a thread adds up sparse vectors."""

    seen: Any
    touched: Any
    rest: Float64Array
    own: Float64Array


def _make_room(n: int) -> _Room:
    return _Room(np.zeros(n, np.bool_), np.empty(n, np.int32), np.zeros(n), np.zeros(n))


class InnerNodes:
    """The state of the inner nodes.

    Parameters
    ----------
    tree : ShortTree
        The nodes.
    rows : SolverRows
        The rows.
    base : float32 array of shape (n_features,)
        Where all nodes start; 0 if the root is fixed there.
    paths : Spare of Path
        Room to make weights in.
    on_disk : bool
        Whether vectors go to temporary files.
    """

    def __init__(
        self, tree: ShortTree, rows: SolverRows, base: Float32Array, paths: Spare[Path], on_disk: bool
    ) -> None:
        self._tree, self._rows, self._on_disk = tree, rows, on_disk
        self._held = np.bincount(tree.leaf_parent, tree.leaf_stiffness, minlength=tree.n_inner)
        self._total, self._share = self._held + tree.stiffness, np.zeros(tree.n_inner)
        for n in range(tree.n_inner - 1, 0, -1):
            self._share[n] = tree.stiffness[n] / self._total[n]
            self._total[tree.parent[n]] += tree.stiffness[n] * (1 - self._share[n])
        order = np.argsort(tree.leaf_parent, kind="stable")
        self._leaf_stiffness = tree.leaf_stiffness[order]
        self._first = np.searchsorted(tree.leaf_parent[order], np.arange(tree.n_inner + 1))
        self._children: list[list[int]] = [[] for _ in range(tree.n_inner)]
        for n in range(1, tree.n_inner):
            self._children[tree.parent[n]].append(n)
        self._depth = tree.depth
        self._rooms: Spare[_Room] = Spare()
        self._features = frozen(rows.n_rows + np.arange(rows.n_features), np.int32)
        self._paths = paths
        self._known = np.ones((tree.n_inner, 1))
        self.inner = Inner(base, (), np.zeros(tree.n_inner))
        self.objective = 0.5 * float(np.square(base, dtype=np.float64).sum())

    @property
    def can_swing(self) -> bool:
        """Whether the next move is one of those that may swing."""
        return len(self.inner.steps) >= 2 and len(self.inner.steps) % 2 == 0

    def find_move(self, leaves: RowVectors, swing: float, pool: Workers) -> Move:
        """Find where the inner nodes go, the leaves being where they are.

        Parameters
        ----------
        leaves : RowVectors
            How the leaves differ from their parents, in the order of the parents.
        swing : float
            How much of the last move is made once more.
        pool : Workers
            Threads of this process; the result does not depend on them.

        Returns
        -------
        Move
            Not yet made.
        """
        pulls, shares = self._next_shares(swing)
        vectors = self._walk_up(leaves, pulls, swing, pool)
        moved, lengths = self._measure(self._after(Step(vectors, shares)), pool)
        finite = np.isfinite(self._tree.stiffness)
        return Move(vectors, moved, 0.5 * float((self._tree.stiffness[finite] * lengths[finite]).sum()), swing)

    def make(self, move: Move) -> None:
        """Make a move.

        Parameters
        ----------
        move : Move
            The one that was found last.
        """
        shares = self._next_shares(move.swing)[1]
        self.inner = self._after(Step(move.vectors, shares))._replace(moved=frozen(move.moved, np.float64))
        self._known = np.hstack((self._known, shares))
        self.objective = move.objective

    def position(self) -> tuple[Any, ...]:
        """Return where the nodes are, for `return_to`."""
        return self.inner, self._known, self.objective

    def return_to(self, position: tuple[Any, ...]) -> None:
        """Go back to where the nodes were.

        Parameters
        ----------
        position : tuple
            From `position`.
        """
        self.inner, self._known, self.objective = position

    def _after(self, step: Step) -> Inner:
        return self.inner._replace(steps=(*self.inner.steps, step))

    def _next_shares(self, swing: float) -> tuple[Float64Array, Float64Array]:
        tree, n_moves = self._tree, len(self.inner.steps) + 1
        pulls, found = np.empty((tree.n_inner, n_moves)), np.empty((tree.n_inner, n_moves + 1))
        kernels.next_shares(
            *(tree.parent, tree.stiffness, self._held, self._total, self._share, STRETCH, swing),
            *(self._known, pulls, found),
        )
        return pulls, frozen(found, np.float64)

    def _walk_up(self, leaves: RowVectors, pulls: Float64Array, swing: float, pool: Workers) -> RowVectors:
        """The next ``y`` of all nodes, the deepest first."""
        found, order = Pile(self._on_disk, self._features), []
        below, place = Pile(False).whole(), np.zeros(self._tree.n_inner, dtype=np.int64)
        for depth in range(int(self._depth.max()), -1, -1):
            nodes = np.flatnonzero(self._depth == depth)
            sizes = [self._size(n, leaves, below, place) for n in nodes.tolist()]
            parts = spans(np.concatenate(([0], np.cumsum(sizes))), 1 + sum(sizes) // ENTRIES_A_TASK)
            rests = Pile(self._on_disk, self._features)

            def gather(part: tuple[int, int], nodes: IntArray = nodes, below: RowVectors = below) -> Any:
                some = nodes[part[0] : part[1]].tolist()
                return [self._gather(n, leaves, below, place, pulls[n], swing) for n in some]

            for gathered in pool.map(gather, parts or [(0, len(nodes))]):
                for rows, rest, values in gathered:
                    rests.add(rows, rest)
                    found.add(rows, values)
            place[nodes] = np.arange(len(nodes))
            below = rests.whole()
            order.append(nodes)
        return found.whole(np.concatenate(order))

    def _size(self, n: int, leaves: RowVectors, below: RowVectors, place: IntArray) -> int:
        """Entries that are added up for a node, and one for the work that each takes."""
        first, last = self._first[n], self._first[n + 1]
        children = place[self._children[n]]
        own = sum(int(step.vectors.ends[n] - step.vectors.begins[n]) for step in self.inner.steps)
        return (
            int((leaves.ends[first:last] - leaves.begins[first:last]).sum())
            + int((below.ends[children] - below.begins[children]).sum())
            + (own + 1)
        )

    def _gather(
        self, n: int, leaves: RowVectors, below: RowVectors, place: IntArray, pulls: Float64Array, swing: float
    ) -> tuple[IdArray, Float32Array, Float32Array]:
        """What a node is beside its share of its parent: in the minimum, and after the move."""
        stiffness, total = self._tree.stiffness, self._total[n]
        room = self._rooms.take(_make_room, self._rows.n_rows + self._rows.n_features)
        count = 0

        def add(vectors: RowVectors, i: int, weight: float, sums: Float64Array) -> None:
            nonlocal count
            rows, values = vectors.of(i)
            count = kernels.scatter(rows, values, 0, len(rows), weight, room.seen, room.touched, count, sums)

        first, last = int(self._first[n]), int(self._first[n + 1])
        for leaf in range(first, last):
            add(leaves, leaf, self._leaf_stiffness[leaf] / total, room.rest)
        leaves.let_go(first, last)
        for child in self._children[n]:
            add(below, int(place[child]), stiffness[child] / total, room.rest)
            below.let_go(int(place[child]), int(place[child]) + 1)
        for number, step in enumerate(self.inner.steps, start=1):
            if pulls[number]:
                # The leaves hang on the last move: nothing of the earlier ones pulls at the lowest nodes.
                add(step.vectors, n, pulls[number] / total, room.rest)
            if number == len(self.inner.steps):
                add(step.vectors, n, 1 - STRETCH + swing, room.own)
            elif number == len(self.inner.steps) - 1 and swing:
                add(step.vectors, n, -swing, room.own)
            step.vectors.let_go(n, n + 1)
        rows, rests, values = np.empty(count, np.int32), np.empty(count, np.float32), np.empty(count, np.float32)
        touched = np.sort(room.touched[:count])
        kept = kernels.collect(touched, STRETCH, room.seen, room.rest, room.own, rows, rests, values)
        self._rooms.give(room)
        return shortened(self._rows, self._features, rows[:kept], rests[:kept], values[:kept])

    def _measure(self, inner: Inner, pool: Workers) -> tuple[Float64Array, Float64Array]:
        """How far the nodes have moved, squared, and how far they are from their parents."""

        def measure(first: int) -> Any:
            path = self._paths.take(Path, self._rows, self._tree.parent)
            found = []
            for n in range(first, min(first + NODES_A_TASK, self._tree.n_inner)):
                now, above = path.history(n, inner, 2)
                found.append(kernels.squared_ways(now[-1], now[-2] if len(now) > 1 else inner.base, above[-1]))
            self._paths.give(path)
            return found

        parts = pool.map(measure, range(0, self._tree.n_inner, NODES_A_TASK))
        ways = np.array([way for part in parts for way in part])
        return ways[:, 0].copy(), ways[:, 1].copy()

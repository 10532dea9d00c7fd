"""What all workers have in common, and how work is cut into parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeVar

Part = TypeVar("Part")
Ticket = TypeVar("Ticket")
Result = TypeVar("Result")

TASK_VALUES = 20_000_000
"""Non-zeros that a task sent to another process should read: about a tenth of a second, far more than sending costs."""

TASKS_A_WORKER = 4
"""Tasks are not made so large that a worker would have fewer than this: the last ones would be waited for."""


class Workers(Protocol):
    """What every adapter offers."""

    n_workers: int

    def share(self, value: Any) -> Any:
        """Make a value readable by all workers and return a handle to pass to `map`."""
        ...

    def map(
        self, function: Callable[..., Result], parts: Iterable[Any], *shared: Any, cost: int = 0
    ) -> Iterator[Result]:
        """Yield ``function(part, *values)`` for each part, in order; the values are those behind the handles.

        Other processes can only call functions that stand at the top of a module. ``cost`` is about how many non-zeros
        a part reads, all parts being alike.
        """
        ...

    def close(self) -> None:
        """Let go of whatever was started."""
        ...


def in_order(
    parts: Iterable[Part],
    n_workers: int,
    submit: Callable[[Part], Ticket],
    result: Callable[[Ticket], Result],
    cancel: Callable[[Ticket], object],
) -> Iterator[Result]:
    """Yield the results of parts in their order; at most two parts a worker are under way at a time.

    Parameters
    ----------
    parts : iterable
        The parts.
    n_workers : int
        Who works.
    submit : callable
        Begins a part and returns a ticket.
    result : callable
        Waits for the part of a ticket.
    cancel : callable
        Called with the tickets that are left when nobody wants more results.

    Yields
    ------
    object
        The result of a part.
    """
    waiting: deque[Ticket] = deque()
    try:
        for part in parts:
            waiting.append(submit(part))
            if len(waiting) > 2 * n_workers:
                yield result(waiting.popleft())
        while waiting:
            yield result(waiting.popleft())
    finally:
        for ticket in waiting:
            cancel(ticket)


def bundles(parts: Sequence[Any], cost: int, n_workers: int) -> list[Sequence[Any]]:
    """Put consecutive parts together until they are worth sending to another process.

    Parameters
    ----------
    parts : sequence
        The parts.
    cost : int
        Non-zeros that a part reads; 0 if it is large enough by itself.
    n_workers : int
        Who will work.

    Returns
    -------
    list of sequences
        The parts in their order.

    Examples
    --------
    >>> bundles(range(6), TASK_VALUES // 2, 1)
    [range(0, 1), range(1, 2), range(2, 3), range(3, 4), range(4, 5), range(5, 6)]
    >>> bundles(range(12), TASK_VALUES // 2, 1)[-1]
    range(10, 12)
    """
    worth = TASK_VALUES // cost if cost else 1
    size = max(1, min(worth, len(parts) // (TASKS_A_WORKER * n_workers)))
    return [parts[begin : begin + size] for begin in range(0, len(parts), size)]


def spans(weights: Any, n_parts: int) -> list[tuple[int, int]]:
    """Cut rows into consecutive spans of about equal weight.

    Parameters
    ----------
    weights : int64 array of shape (n + 1,)
        Running sums, such as ``indptr``.
    n_parts : int
        Number of spans wanted; empty ones are left out.

    Returns
    -------
    list of (begin, end)
        The spans, in order, covering all rows.

    Examples
    --------
    >>> import numpy as np
    >>> spans(np.array([0, 10, 11, 12, 20]), 2)
    [(0, 1), (1, 4)]
    """
    n = len(weights) - 1
    total = weights[-1] - weights[0]
    targets = [weights[0] + total * part / n_parts for part in range(1, n_parts)]
    cuts = [0, *(int(weights.searchsorted(target)) for target in targets), n]
    return [(a, b) for a, b in pairwise(cuts) if a < b]

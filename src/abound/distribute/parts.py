"""What all workers have in common, and how work is cut into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeVar

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

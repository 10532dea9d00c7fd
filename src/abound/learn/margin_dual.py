"""The solver behind the large-margin learners of a tree: block-coordinate Frank-Wolfe with a duality gap.

The problem is ``min Ω(w) + Σ_e bound_e max(0, max_j slack_j)``; see `_margin_kernels`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from abound.learn import _margin_kernels as kernels
from abound.learn.tree_learner import Examples, check_table
from abound.progress import track
from abound.validation import Float64Array, IdArray, IntArray

WORK_A_CALL = 50_000_000
"""Multiplications that one kernel call makes: a fraction of a second, so that Ctrl-C is heard."""

LOOK = 10
"""Sweeps after which the gap is measured, whatever the estimate says."""


class Candidates(NamedTuple):
    """What the examples of each class must not be mistaken for; class c has those from ``indptr[c]`` on."""

    indptr: IntArray
    left: IdArray
    right: IdArray
    scale: Float64Array
    cost: Float64Array


class Penalty(Protocol):
    """The penalty Ω, seen from the dual: what turns the base into weights."""

    metric: Float64Array
    """Symmetric, vertices × vertices: weights = base · metric."""

    def value(self, base: Float64Array, weights: Float64Array) -> float:
        """Return Ω of the weights."""
        ...

    def improve(self, base: Float64Array) -> None:
        """Change the metric so that the dual rises."""
        ...


class Quadratic:
    """``Ω = ½ tr(W metric⁻¹ Wᵀ)``, whose metric stays.

    Parameters
    ----------
    metric : float64 array of shape (n_vertices, n_vertices)
        Symmetric, positive semi-definite.
    """

    def __init__(self, metric: Float64Array) -> None:
        self.metric = metric

    def value(self, base: Float64Array, weights: Float64Array) -> float:
        """Return Ω of the weights that the base makes."""
        return 0.5 * float(np.vdot(base, weights))

    def improve(self, base: Float64Array) -> None:
        """Do nothing."""


class Solution(NamedTuple):
    """The weights, features × vertices, and what was measured on the way."""

    weights: Float64Array
    history: list[dict[str, float]]


class MarginDual:
    """A problem and its dual variables.

    Parameters
    ----------
    examples : Examples
        Rows and their classes.
    bounds : float64 array of shape (n_examples,)
        What a unit of each example's loss costs.
    true : int64 and int32 arrays
        For each row, the vertices that belong to its labels and so are never wrong.
    candidates : Candidates
        By class.
    penalty : Penalty
        Ω.
    """

    def __init__(
        self,
        examples: Examples,
        bounds: Float64Array,
        true: tuple[IntArray, IdArray],
        candidates: Candidates,
        penalty: Penalty,
    ) -> None:
        rows, n_vertices = examples.rows, len(penalty.metric)
        lengths = np.diff(candidates.indptr)
        widest = int(lengths.max(initial=0))
        check_table("the dual variables, examples × candidates,", len(examples.own), widest)
        check_table("the weights, features × vertices of the tree,", rows.n_features, n_vertices)
        self.candidates, self.penalty = candidates, penalty
        self.dual = np.zeros((len(examples.own), widest))
        self.base = np.zeros((rows.n_features, n_vertices))
        self.weights = np.zeros_like(self.base)
        self._rows, self._true = rows[:3], true
        self._examples = examples.row, examples.own, bounds
        self._costs = np.zeros((len(lengths), widest))
        self._costs[np.arange(widest) < lengths[:, None]] = candidates.cost
        self._scratch = *np.empty((3, n_vertices)), np.empty(widest)
        self._size = 1 + WORK_A_CALL // (1 + 4 * n_vertices * (1 + len(rows.data) // max(1, rows.n_rows)))

    def sweep(self, generator: np.random.Generator) -> float:
        """Improve all dual variables, in a random order.

        Parameters
        ----------
        generator : Generator
            Draws the order.

        Returns
        -------
        float
            The sum of the gaps that the examples had when their turn came: about the duality gap.
        """
        order = generator.permutation(len(self.dual))
        gap = 0.0
        for begin, end in self._chunks():
            gap += kernels.take_steps(
                *(*self._rows, *self._true, order[begin:end], *self._examples, self.candidates),
                *(self.penalty.metric, self._scratch, self.dual, self.weights),
            )
        return gap

    def refresh(self) -> None:
        """Make base and weights anew of the dual variables, and let the penalty adapt to them."""
        kernels.build_base(*self._rows, *self._examples[:2], self.candidates, self.dual, self.base)
        self.penalty.improve(self.base)
        np.matmul(self.base, self.penalty.metric, out=self.weights)

    def dual_objective(self) -> float:
        """Return a lower bound of the least objective; base and weights must be fresh."""
        gains = float(np.vdot(self.dual, self._costs[self._examples[1]]))
        return gains - 0.5 * float(np.vdot(self.base, self.weights))

    def objective(self) -> float:
        """Return the objective of the weights; base and weights must be fresh."""
        losses = [
            kernels.sum_losses(
                *(*self._rows, *self._true, begin, end, *self._examples, self.candidates, self.weights, self._scratch)
            )
            for begin, end in self._chunks()
        ]
        return self.penalty.value(self.base, self.weights) + float(sum(losses))

    def _chunks(self) -> Iterator[tuple[int, int]]:
        n_examples = len(self.dual)
        for begin in range(0, n_examples, self._size):
            yield begin, min(n_examples, begin + self._size)


def solve_dual(problem: MarginDual, *, max_sweeps: int, tol: float, generator: np.random.Generator) -> Solution:
    """Find the weights of least penalty and loss.

    Parameters
    ----------
    problem : MarginDual
        The problem.
    max_sweeps : int
        Most sweeps over the examples; a warning tells if they were not enough.
    tol : float
        Stop when the duality gap is below this part of the objective.
    generator : Generator
        Draws the order of each sweep.

    Returns
    -------
    Solution
        Its objective is at most ``tol`` above the least one, in parts of itself.
    """
    history: list[dict[str, float]] = []
    start = perf_counter()
    upper, lower = np.inf, 0.0
    with track("solve", max_sweeps) as progress:
        for sweep in range(1, max_sweeps + 1):
            gap = problem.sweep(generator)
            progress.advance()
            problem.refresh()
            lower = problem.dual_objective()
            if gap > 2 * tol * lower and sweep % LOOK and sweep < max_sweeps:
                continue
            upper = problem.objective()
            seconds = perf_counter() - start
            history.append({"sweep": sweep, "objective": upper, "dual": lower, "seconds": seconds})
            if upper - lower <= tol * upper:
                return Solution(problem.weights, history)
    warnings.warn(
        f"after {max_sweeps} sweeps the duality gap is {(upper - lower) / upper:.2%} of the objective, more than "
        f"tol={tol:g}: raise max_sweeps or tol, or lower C",
        ConvergenceWarning,
        stacklevel=3,
    )
    return Solution(problem.weights, history)

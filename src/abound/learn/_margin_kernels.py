"""Kernels of the large-margin learners of a tree: steps in the dual, one example and two of its candidates at a time.

Vertices, classes or nodes, have weight vectors. An example, a row x with one of its true classes, has candidates: one
of scale κ and cost L asks that ``κ (w_left − w_right)·x ≥ L``, and ``g = L − κ (w_left − w_right)·x`` is its slack. The
example's loss is the largest slack, or 0, times its ``bound``. In the dual each candidate has a variable
``a ≥ 0``, those of an example add up to at most its bound, and they make up the weights::

    base    = Σ a κ x ⊗ (e_left − e_right)          features × vertices
    weights = base · metric
    dual    = Σ a L − ½ Σ base ∘ weights

so ``g`` is also the slope of the dual in ``a``. Class c has the candidates from ``indptr[c]`` to ``indptr[c + 1]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel

STEPS = 50
"""Most steps on one example before the next."""


@kernel
def score_vertices(indptr: Any, indices: Any, data: Any, row: int, weights: Any, scores: Any) -> float:
    """Write ``w·x`` of every vertex for one row, and return ``‖x‖²``."""
    scores[:] = 0.0
    square = 0.0
    for i in range(indptr[row], indptr[row + 1]):
        value = np.float64(data[i])
        square += value * value
        f = indices[i]
        for v in range(len(scores)):
            scores[v] += value * weights[f, v]
    return square


@kernel
def find_slacks(candidates: Any, first: int, last: int, scores: Any, slacks: Any) -> None:
    """Write ``g`` of the candidates from first to last."""
    _, left, right, scale, cost = candidates
    for j in range(first, last):
        slacks[j - first] = cost[j] - scale[j] * (scores[left[j]] - scores[right[j]])


@kernel
def largest_slack(candidates: Any, first: int, last: int, true: Any, slacks: Any) -> Any:
    """Return the candidate of largest slack above 0 and its slack; -1 and 0 if there is none.

    A candidate whose right vertex is among ``true`` asks nothing: it belongs to another label of the row.
    """
    right = candidates[2]
    best, top = -1, 0.0
    for j in range(first, last):
        if slacks[j - first] > top:
            asks = True
            for v in true:
                asks &= v != right[j]
            if asks:
                best, top = j - first, slacks[j - first]
    return best, top


@kernel
def step_along(candidates: Any, to: int, away: int, metric: Any, shift: Any) -> float:
    """Write the metric times the change that a unit of dual weight makes, and return its curvature.

    The unit goes to one candidate from another; -1 stands for none. The change is ``κ (e_left − e_right)`` of the one
    less that of the other.
    """
    _, left, right, scale, _ = candidates
    shift[:] = 0.0
    curvature = 0.0
    for j, sign in ((to, 1.0), (away, -1.0)):
        if j >= 0:
            for v in range(len(shift)):
                shift[v] += sign * scale[j] * (metric[left[j], v] - metric[right[j], v])
    for j, sign in ((to, 1.0), (away, -1.0)):
        if j >= 0:
            curvature += sign * scale[j] * (shift[left[j]] - shift[right[j]])
    return curvature


@kernel
def take_steps(
    indptr: Any,
    indices: Any,
    data: Any,
    true_indptr: Any,
    true_vertices: Any,
    order: Any,
    rows: Any,
    owns: Any,
    bounds: Any,
    candidates: Any,
    metric: Any,
    scratch: Any,
    dual: Any,
    weights: Any,
) -> float:
    """Improve the dual variables of some examples, each till no pair of its candidates is worth a step.

    These are pairwise Frank-Wolfe steps of exact length: dual weight moves from the active candidate of smallest slack
    to the candidate of largest. Returns the sum of the duality gaps that the examples had when their turn came.
    """
    scores, shift, moved, slacks = scratch
    first_of = candidates[0]
    gaps = 0.0
    for e in order:
        row, bound = rows[e], bounds[e]
        first, last = first_of[owns[e]], first_of[owns[e] + 1]
        own = dual[e]
        true = true_vertices[true_indptr[row] : true_indptr[row + 1]]
        square = score_vertices(indptr, indices, data, row, weights, scores)
        rest = max(0.0, bound - own.sum())
        moved[:] = 0.0
        n_steps = 0
        while n_steps < STEPS:
            find_slacks(candidates, first, last, scores, slacks)
            best, top = largest_slack(candidates, first, last, true, slacks)
            worst, bottom = -2, np.inf
            if rest > 0.0:
                worst, bottom = -1, 0.0
            for j in range(last - first):
                if own[j] > 0.0 and slacks[j] < bottom:
                    worst, bottom = j, slacks[j]
            if n_steps == 0:
                gap = bound * top
                for j in range(last - first):
                    gap -= own[j] * slacks[j]
                gaps += gap
            if worst == -2 or worst == best or top - bottom <= 1e-12 * (abs(top) + abs(bottom)):
                break
            to = first + best if best >= 0 else -1
            away = first + worst if worst >= 0 else -1
            curvature = square * step_along(candidates, to, away, metric, shift)
            most = own[worst] if worst >= 0 else rest
            size = most
            if curvature * most > top - bottom:
                size = (top - bottom) / curvature
            if best >= 0:
                own[best] += size
            else:
                rest += size
            # What is left of all is exactly nothing.
            if worst >= 0:
                own[worst] = 0.0 if size == most else own[worst] - size
            else:
                rest = 0.0 if size == most else rest - size
            for v in range(len(scores)):
                scores[v] += size * square * shift[v]
                moved[v] += size * shift[v]
            n_steps += 1
        if n_steps > 0:
            for i in range(indptr[row], indptr[row + 1]):
                value = np.float64(data[i])
                f = indices[i]
                for v in range(len(moved)):
                    weights[f, v] += value * moved[v]
    return gaps


@kernel
def build_base(
    indptr: Any, indices: Any, data: Any, rows: Any, owns: Any, candidates: Any, dual: Any, base: Any
) -> None:
    """Write the base that the dual variables make."""
    first_of, left, right, scale, _ = candidates
    base[:] = 0.0
    for e in range(len(owns)):
        first = first_of[owns[e]]
        for j in range(first, first_of[owns[e] + 1]):
            change = dual[e, j - first] * scale[j]
            if change > 0.0:
                for i in range(indptr[rows[e]], indptr[rows[e] + 1]):
                    base[indices[i], left[j]] += change * data[i]
                    base[indices[i], right[j]] -= change * data[i]


@kernel
def sum_losses(
    indptr: Any,
    indices: Any,
    data: Any,
    true_indptr: Any,
    true_vertices: Any,
    begin: int,
    end: int,
    rows: Any,
    owns: Any,
    bounds: Any,
    candidates: Any,
    weights: Any,
    scratch: Any,
) -> float:
    """Return the sum of the losses of examples ``begin`` to ``end``."""
    scores, _, _, slacks = scratch
    first_of = candidates[0]
    loss = 0.0
    for e in range(begin, end):
        row = rows[e]
        first, last = first_of[owns[e]], first_of[owns[e] + 1]
        true = true_vertices[true_indptr[row] : true_indptr[row + 1]]
        score_vertices(indptr, indices, data, row, weights, scores)
        find_slacks(candidates, first, last, scores, slacks)
        loss += bounds[e] * largest_slack(candidates, first, last, true, slacks)[1]
    return loss

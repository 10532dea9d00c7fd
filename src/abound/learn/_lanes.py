"""Sixteen binary problems in the lanes of a vector register: the two loops that all solvers spend their time in.

Numba keeps an array of sixteen sums in memory and stores it after each addition. Written as vector instructions the
sums stay in a register, one cache line of weights serves sixteen problems, and two chains of additions hide each
other's latency.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 16
"""Binary problems in a block: a cache line of float32 weights."""

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_NUMBER = ir.IntType(64)


def _pointers(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """The data of the arrays among the arguments, numbers as they are."""
    return [
        context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _lanes_at(builder: Any, pointer: Any, row: Any) -> Any:
    place = builder.gep(pointer, [builder.mul(row, ir.Constant(_NUMBER, LANES))])
    return builder.bitcast(place, _VECTOR.as_pointer())


def _load(builder: Any, place: Any) -> Any:
    loaded = builder.load(place)
    loaded.align = 4
    return loaded


def _splat(builder: Any, value: Any) -> Any:
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), zeros)


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
    return builder.call(function, [a, b, c])


def _dot_lanes(_typing: Any, indices: Any, data: Any, low: Any, high: Any, weights: Any, sums: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        feature_at, value_at, begin, end, weight_at, sum_at = _pointers(context, builder, signature, arguments)
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        chains = [cgutils.alloca_once_value(builder, zero) for _ in range(2)]

        def add(place: Any, chain: Any) -> None:
            feature = builder.sext(builder.load(builder.gep(feature_at, [place])), _NUMBER)
            value = _splat(builder, builder.load(builder.gep(value_at, [place])))
            row = _load(builder, _lanes_at(builder, weight_at, feature))
            builder.store(_multiply_add(builder, value, row, builder.load(chain)), chain)

        count = builder.sub(end, begin)
        pairs = builder.ashr(count, ir.Constant(_NUMBER, 1))
        with cgutils.for_range(builder, pairs, intp=_NUMBER) as loop:
            place = builder.add(begin, builder.shl(loop.index, ir.Constant(_NUMBER, 1)))
            add(place, chains[0])
            add(builder.add(place, ir.Constant(_NUMBER, 1)), chains[1])
        odd = builder.trunc(count, ir.IntType(1))
        with builder.if_then(odd):
            add(builder.sub(end, ir.Constant(_NUMBER, 1)), chains[0])
        total = builder.fadd(builder.load(chains[0]), builder.load(chains[1]))
        stored = builder.store(total, builder.bitcast(sum_at, _VECTOR.as_pointer()))
        stored.align = 4
        return context.get_dummy_value()

    return types.void(indices, data, types.int64, types.int64, weights, sums), generate


def _add_lanes(_typing: Any, indices: Any, data: Any, low: Any, high: Any, step: Any, weights: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        feature_at, value_at, begin, end, step_at, weight_at = _pointers(context, builder, signature, arguments)
        steps = _load(builder, builder.bitcast(step_at, _VECTOR.as_pointer()))
        with cgutils.for_range(builder, builder.sub(end, begin), intp=_NUMBER) as loop:
            place = builder.add(begin, loop.index)
            feature = builder.sext(builder.load(builder.gep(feature_at, [place])), _NUMBER)
            value = _splat(builder, builder.load(builder.gep(value_at, [place])))
            row_at = _lanes_at(builder, weight_at, feature)
            stored = builder.store(_multiply_add(builder, value, steps, _load(builder, row_at)), row_at)
            stored.align = 4
        return context.get_dummy_value()

    return types.void(indices, data, types.int64, types.int64, step, weights), generate


def _signs(builder: Any, targets: Any, row: Any) -> Lanes:
    """The targets of a row: 1, -1 or 0."""
    place = builder.gep(targets, [builder.mul(row, ir.Constant(_NUMBER, LANES))])
    signs = builder.load(builder.bitcast(place, ir.VectorType(ir.IntType(8), LANES).as_pointer()))
    signs.align = 1
    return Lanes(builder, builder.sitofp(signs, _VECTOR))


class Lanes:
    """Sixteen numbers in a register, with the arithmetic that the update rules are written in."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value

    def _other(self, other: Any) -> Any:
        if isinstance(other, Lanes):
            return other.value
        return ir.Constant(_VECTOR, [float(other)] * LANES)

    def __add__(self, other: Any) -> Lanes:
        return Lanes(self.builder, self.builder.fadd(self.value, self._other(other)))

    def __sub__(self, other: Any) -> Lanes:
        return Lanes(self.builder, self.builder.fsub(self.value, self._other(other)))

    def __rtruediv__(self, other: Any) -> Lanes:
        return Lanes(self.builder, self.builder.fdiv(self._other(other), self.value))

    def __rsub__(self, other: Any) -> Lanes:
        return Lanes(self.builder, self.builder.fsub(self._other(other), self.value))

    def __mul__(self, other: Any) -> Lanes:
        return Lanes(self.builder, self.builder.fmul(self.value, self._other(other)))

    def __truediv__(self, other: Any) -> Lanes:
        return Lanes(self.builder, self.builder.fdiv(self.value, self._other(other)))

    __radd__, __rmul__ = __add__, __mul__

    def above(self, other: Any) -> Any:
        """Which lanes are larger."""
        return self.builder.fcmp_ordered(">", self.value, self._other(other))

    def at_least(self, other: Any) -> Lanes:
        """The larger of two numbers, lane by lane."""
        return self.where(self.above(other), other)

    def at_most(self, other: Any) -> Lanes:
        """The smaller of two numbers, lane by lane."""
        return self.where(self.builder.fcmp_ordered("<", self.value, self._other(other)), other)

    def where(self, mask: Any, other: Any) -> Lanes:
        """These numbers in the lanes of the mask, others elsewhere."""
        return Lanes(self.builder, self.builder.select(mask, self.value, self._other(other)))


def _exp(x: Lanes) -> Lanes:
    """exp(x) by the series of x/16, squared four times; what is beyond ±16 counts as ±16."""
    y = x.at_least(-16.0).at_most(16.0) * (1 / 16)
    exp = y * (1 / math.factorial(10)) + 1 / math.factorial(9)
    for n in range(8, -1, -1):
        exp = exp * y + 1 / math.factorial(n)
    for _ in range(4):
        exp = exp * exp
    return exp


def _sigmoid(x: Lanes) -> Lanes:
    """1/(1 + exp(−x))."""
    return 1 / (1 + _exp(0 - x))


def _softplus(x: Lanes) -> Lanes:
    """log(1 + exp(x)) = max(0, x) + log(1 + t) with t = exp(−|x|) up to 1, by the series of 2 artanh(t/(2 + t))."""
    t = _exp(x.at_most(0 - x))
    z = t / (2 + t)
    square = z * z
    series = square * (1 / 15) + 1 / 13
    for n in range(11, 0, -2):
        series = series * square + 1 / n
    return x.at_least(0.0) + 2 * z * series


def _squared_hinge(margin: Lanes, dual: Lanes, cost: Lanes, norm: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Solve for one dual variable: ``α ≥ 0``, ``D = 1/(2C)`` on the diagonal."""
    missing = 1 - margin
    slack = 0.5 / cost
    new = (dual + (missing - dual * slack) / (norm + slack)).at_least(0.0)
    short = missing.at_least(0.0)
    loss = cost * short * short
    return new, loss, loss - dual * missing + 0.5 * slack * dual * dual


def _hinge(margin: Lanes, dual: Lanes, cost: Lanes, norm: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Solve for one dual variable: ``0 ≤ α ≤ C``."""
    missing = 1 - margin
    new = (dual + missing / norm).at_least(0.0).at_most(cost)
    loss = cost * missing.at_least(0.0)
    return new, loss, loss - dual * missing


def _logistic(margin: Lanes, dual: Lanes, cost: Lanes, norm: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Solve for one dual variable by Newton's method on the margin ``z`` that the row will have.

    At the optimum ``α = C σ(−z)`` and ``z = m + ‖x‖² (α − α_old)``; from the point of its bracket next to 0, where the
    sigmoid bends, the method walks to ``z`` without overshooting. The loss is given by its lower bound ``C σ(−m)``,
    the gap ``C KL(α/C ‖ σ(−m))`` by its upper bound, the χ² distance: both without logarithms.
    """
    wrong = _sigmoid(0 - margin)
    gradient = cost * wrong - dual
    gap = gradient * gradient / (cost * wrong * (1 - wrong))
    reach = margin + norm * gradient
    z = (margin * 0).at_least(margin.at_most(reach)).at_most(margin.at_least(reach))
    for _ in range(3):
        chance = _sigmoid(0 - z)
        excess = z - margin - norm * (cost * chance - dual)
        z = z - excess / (1 + norm * cost * chance * (1 - chance))
    return cost * _sigmoid(0 - z), cost * wrong, gap


def _step(rule: Callable[[Lanes, Lanes, Lanes, Lanes], tuple[Lanes, Lanes, Lanes]]) -> Any:
    """Make the instruction that takes a row's step in all lanes by the given rule.

    Its arguments: ``sums, targets, duals, row, norm, weight, positive, negative, threshold, hold, steps, totals``. It
    returns whether the row's gap is above the threshold in any lane. If so, and unless ``hold``, the row's duals take
    their new values and ``steps`` gets ``y (α − α_old)``. ``totals`` gains gap, loss and ``α y w·x``.
    """

    def step(_typing: Any, *kinds: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            (sums, targets, duals, row, norm, weight, positive, negative, threshold, hold, steps, totals) = _pointers(
                context, builder, signature, arguments
            )

            def lanes(pointer: Any, number: int = 0) -> Lanes:
                place = _lanes_at(builder, pointer, ir.Constant(_NUMBER, number))
                return Lanes(builder, _load(builder, place))

            def store(value: Lanes, pointer: Any, number: Any) -> None:
                builder.store(value.value, _lanes_at(builder, pointer, number)).align = 4

            y = _signs(builder, targets, row)
            counts = y * y
            margin = y * lanes(sums)
            cost = lanes(positive).where(y.above(0.0), lanes(negative)) * Lanes(builder, _splat(builder, weight))
            dual = Lanes(builder, _load(builder, _lanes_at(builder, duals, row)))
            new, loss, gap = rule(margin, dual, cost, Lanes(builder, _splat(builder, norm)))
            new, loss, gap = new * counts, loss * counts, gap * counts
            for number, value in enumerate((gap, loss, dual * margin)):
                store(lanes(totals, number) + value, totals, ir.Constant(_NUMBER, number))
            far = builder.bitcast(gap.above(lanes(threshold)), ir.IntType(LANES))
            moves = builder.icmp_unsigned("!=", far, ir.Constant(ir.IntType(LANES), 0))
            with builder.if_then(builder.and_(moves, builder.icmp_unsigned("==", hold, ir.Constant(hold.type, 0)))):
                store(new, duals, row)
                store(y * (new - dual), steps, ir.Constant(_NUMBER, 0))
            return moves

        return types.boolean(*kinds), generate

    # Numba wants the arguments by name, so the instruction takes them one by one.
    def named(
        typing: Any,
        sums: Any,
        targets: Any,
        duals: Any,
        row: Any,
        norm: Any,
        weight: Any,
        positive: Any,
        negative: Any,
        threshold: Any,
        hold: Any,
        steps: Any,
        totals: Any,
    ) -> Any:
        return step(
            typing, sums, targets, duals, types.int64, types.float32, types.float32, positive, negative, threshold,
            types.boolean, steps, totals,
        )  # fmt: skip

    return intrinsic(named)


def _logistic_losses(_typing: Any, sums: Any, targets: Any, row: Any, weight: Any, positive: Any, negative: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sum_at, target_at, row, weight, positive_at, negative_at = _pointers(context, builder, signature, arguments)
        places = [builder.bitcast(at, _VECTOR.as_pointer()) for at in (sum_at, positive_at, negative_at)]
        sums, positive, negative = (Lanes(builder, _load(builder, place)) for place in places)
        y = _signs(builder, target_at, row)
        cost = positive.where(y.above(0.0), negative) * Lanes(builder, _splat(builder, weight))
        builder.store((y * y * cost * _softplus(0 - y * sums)).value, places[0]).align = 4
        return context.get_dummy_value()

    return types.void(sums, targets, types.int64, types.float32, positive, negative), generate


dot_lanes: Any = intrinsic(_dot_lanes)
"""``dot_lanes(indices, data, low, high, weights, sums)``: sums = Σ data[p] · weights[indices[p]], in every lane."""

add_lanes: Any = intrinsic(_add_lanes)
"""``add_lanes(indices, data, low, high, step, weights)``: weights[indices[p]] += data[p] · step, in every lane."""

logistic_losses: Any = intrinsic(_logistic_losses)
"""``logistic_losses(sums, targets, row, weight, positive, negative)``: from a row's scores to what they cost."""

step_squared_hinge: Any = _step(_squared_hinge)
step_hinge: Any = _step(_hinge)
step_logistic: Any = _step(_logistic)
"""Take a row's step in every lane; see `_step`."""

"""What walks down trees spend their time in: sixteen scores in a vector register, and memory asked for ahead of use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 16
"""Children of a node that are scored at once: a cache line of float32 weights."""

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_NUMBER = ir.IntType(64)


def _add_packed(_typing: Any, cells: Any, place: Any, lanes: Any, value: Any, sums: Any, block: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        cell_at, sum_at = (
            context.make_array(signature.args[number])(context, builder, arguments[number]).data for number in (0, 4)
        )
        # One bit a lane; numbers are read for those that are 1 alone, one behind the other.
        bits = builder.trunc(arguments[2], ir.IntType(LANES))
        mask = builder.bitcast(bits, _MASK)
        first = builder.bitcast(builder.gep(cell_at, [arguments[1]]), ir.FloatType().as_pointer())
        kind = ir.FunctionType(_VECTOR, [ir.FloatType().as_pointer(), _MASK, _VECTOR])
        expand = cgutils.get_or_insert_function(builder.module, kind, f"llvm.masked.expandload.v{LANES}f32")
        weights = builder.call(expand, [first, mask, ir.Constant(_VECTOR, [0.0] * LANES)])
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        one = builder.insert_element(undefined, arguments[3], ir.Constant(ir.IntType(32), 0))
        values = builder.shuffle_vector(one, undefined, zeros)
        multiply = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        multiply_add = cgutils.get_or_insert_function(builder.module, multiply, f"llvm.fmuladd.v{LANES}f32")
        place = builder.gep(sum_at, [builder.mul(arguments[5], ir.Constant(_NUMBER, LANES))])
        place = builder.bitcast(place, _VECTOR.as_pointer())
        before = builder.load(place)
        before.align = 4
        builder.store(builder.call(multiply_add, [values, weights, before]), place).align = 4
        count = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_NUMBER, [_NUMBER]), f"llvm.ctpop.i{_NUMBER.width}"
        )
        return builder.add(arguments[1], builder.call(count, [arguments[2]]))

    numbers = types.int64, types.int64, types.float32
    return types.int64(cells, *numbers, sums, types.int64), generate


add_packed: Any = intrinsic(_add_packed)
"""``add_packed(cells, place, lanes, value, sums, block)``: add ``value`` times the weights from cells[place] on, one
for each bit of ``lanes``, to these lanes of sums[block]; return the place behind them."""


def _start_sums(_typing: Any, numbers: Any, place: Any, sums: Any, block: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number_at, sum_at = (
            context.make_array(signature.args[number])(context, builder, arguments[number]).data for number in (0, 2)
        )
        loaded = builder.load(builder.bitcast(builder.gep(number_at, [arguments[1]]), _VECTOR.as_pointer()))
        loaded.align = 4
        block_at = builder.gep(sum_at, [builder.mul(arguments[3], ir.Constant(_NUMBER, LANES))])
        builder.store(loaded, builder.bitcast(block_at, _VECTOR.as_pointer())).align = 4
        return context.get_dummy_value()

    return types.void(numbers, types.int64, sums, types.int64), generate


start_sums: Any = intrinsic(_start_sums)
"""``start_sums(numbers, place, sums, block)``: sums[block] = the sixteen numbers from a place on."""


def _lanes_where(compare: Callable[..., Any], array: Any, place: Any, context: Any, builder: Any, kind: Any) -> Any:
    """One bit for each of sixteen numbers from a place on that a comparison holds for."""
    first = context.make_array(kind)(context, builder, array).data
    numbers = ir.VectorType(first.type.pointee, LANES)
    loaded = builder.load(builder.bitcast(builder.gep(first, [place]), numbers.as_pointer()))
    loaded.align = 4
    return builder.zext(builder.bitcast(compare(loaded, numbers), ir.IntType(LANES)), _NUMBER)


def _at_least(_typing: Any, sums: Any, block: Any, least: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def compare(loaded: Any, numbers: Any) -> Any:
            undefined = ir.Constant(numbers, ir.Undefined)
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            one = builder.insert_element(undefined, arguments[2], ir.Constant(ir.IntType(32), 0))
            return builder.fcmp_ordered(">=", loaded, builder.shuffle_vector(one, undefined, zeros))

        place = builder.mul(arguments[1], ir.Constant(_NUMBER, LANES))
        return _lanes_where(compare, arguments[0], place, context, builder, signature.args[0])

    return types.int64(sums, types.int64, types.float32), generate


at_least: Any = intrinsic(_at_least)
"""``at_least(sums, block, least)``: a bit for each lane of sums[block] that is not below ``least``."""


def _below_zero(_typing: Any, numbers: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def compare(loaded: Any, kind: Any) -> Any:
            return builder.icmp_signed("<", loaded, ir.Constant(kind, [0] * LANES))

        return _lanes_where(compare, arguments[0], arguments[1], context, builder, signature.args[0])

    return types.int64(numbers, types.int64), generate


below_zero: Any = intrinsic(_below_zero)
"""``below_zero(numbers, place)``: a bit for each of sixteen numbers from a place on that is below 0."""


def _lowest_bit(_typing: Any, bits: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


lowest_bit: Any = intrinsic(_lowest_bit)
"""``lowest_bit(bits)``: the number of the lowest bit that is 1; there is one."""


def _ask_for(_typing: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        step = LANES if signature.args[0].ndim == 2 else 1
        at = builder.gep(first, [builder.mul(arguments[1], ir.Constant(_NUMBER, step))])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(prefetch, [builder.bitcast(at, byte), *(ir.Constant(number, flag) for flag in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


ask_for: Any = intrinsic(_ask_for)
"""``ask_for(array, place)``: bring array[place], a number or a row of sixteen, into the cache; nothing waits for it."""

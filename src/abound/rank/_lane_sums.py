"""What walks down trees spend their time in: sixteen scores in a vector register, and memory asked for ahead of use."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

LANES = 16
"""Children of a node that are scored at once: a cache line of float32 weights."""

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_NUMBER = ir.IntType(64)


def _add_weights(_typing: Any, weights: Any, row: Any, value: Any, sums: Any, block: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        weight_at, sum_at = (
            context.make_array(signature.args[number])(context, builder, arguments[number]).data for number in (0, 3)
        )

        def lanes_at(pointer: Any, number: Any) -> Any:
            place = builder.gep(pointer, [builder.mul(number, ir.Constant(_NUMBER, LANES))])
            return builder.bitcast(place, _VECTOR.as_pointer())

        def load(place: Any) -> Any:
            loaded = builder.load(place)
            loaded.align = 4
            return loaded

        undefined = ir.Constant(_VECTOR, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        first = builder.insert_element(undefined, arguments[2], ir.Constant(ir.IntType(32), 0))
        values = builder.shuffle_vector(first, undefined, zeros)
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        multiply_add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
        place = lanes_at(sum_at, arguments[4])
        total = builder.call(multiply_add, [values, load(lanes_at(weight_at, arguments[1])), load(place)])
        builder.store(total, place).align = 4
        return context.get_dummy_value()

    return types.void(weights, types.int64, types.float32, sums, types.int64), generate


add_weights: Any = intrinsic(_add_weights)
"""``add_weights(weights, row, value, sums, block)``: sums[block] += value · weights[row], sixteen lanes each."""


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

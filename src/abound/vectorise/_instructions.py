"""Two processor instructions that Numba does not offer by itself."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic


def _address(context: Any, builder: Any, signature: Any, arguments: Any, bits: int) -> Any:
    """Point at an entry of an array, as at an integer of so many bits."""
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(bits).as_pointer())


def _prefetch(_typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature, arguments, 8)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        for_reading, keep, data_cache = (ir.Constant(number, n) for n in (0, 3, 1))
        builder.call(function, [address, for_reading, keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, index), generate


def _eight_bytes(_typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        loaded = builder.load(_address(context, builder, signature, arguments, 64))
        loaded.align = 1
        return builder.bswap(loaded)

    return types.uint64(array, index), generate


def _no_prefetch(_array: Any, _index: Any) -> None:
    """Stand in where kernels run as plain Python."""


def _eight_bytes_slowly(array: Any, index: Any) -> Any:
    """Stand in where kernels run as plain Python."""
    return np.uint64(int.from_bytes(array[index : index + 8].tobytes(), "big"))


prefetch: Any = _no_prefetch if numba.config.DISABLE_JIT else intrinsic(_prefetch)
"""``prefetch(array, index)``: bring an entry near before it is read; it changes no result."""

eight_bytes: Any = _eight_bytes_slowly if numba.config.DISABLE_JIT else intrinsic(_eight_bytes)
"""``eight_bytes(buffer, index)``: eight bytes as one number, the first one highest; the caller sees that they exist."""

"""`prefetch`: the LLVM prefetch instruction, for use in Numba loops.

Probes of a large hash table are bound by memory latency. Prefetching some rows ahead overlaps the
reads with the work on the rows before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable


def _prefetch_code(
    _typing: Any,  # noqa: ANN401 - what Numba hands to an intrinsic has no types of its own
    array: Any,  # noqa: ANN401
    _index: Any,  # noqa: ANN401
) -> tuple[Any, Callable[..., Any]]:
    def code(
        context: Any,  # noqa: ANN401
        builder: Any,  # noqa: ANN401
        signature: Any,  # noqa: ANN401
        arguments: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [pointer, int32, int32, int32])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], form)
        address = builder.bitcast(builder.gep(view.data, [arguments[1]]), pointer)
        builder.call(fetch, [address, int32(0), int32(3), int32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), code


prefetch: Any = intrinsic(_prefetch_code)
"""`prefetch(array, i)`: fetch element i of the flattened array into the cache."""

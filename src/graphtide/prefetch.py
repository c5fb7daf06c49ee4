"""prefetch: ask the processor to fetch an element of an array that will be read soon.

A large table is bound by the time of single reads from memory. Reads that are asked for some rows
ahead overlap with the work on the rows before.
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
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], form)
        place = builder.bitcast(builder.gep(view.data, [arguments[1]]), pointer)
        builder.call(fetch, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), code


prefetch: Any = intrinsic(_prefetch_code)
"""`prefetch(array, i)`: element i of the array's memory, counted across all its dimensions."""

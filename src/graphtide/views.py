"""Many arrays as one argument of a compiled loop: a block of their addresses and shapes.

Each array that is passed to a loop costs as much as a short loop takes. So whoever calls a loop
with the same arrays again and again lays them out as a block once, and the loop makes views of
them: `ints2(block, k)` is the array at place `k`. The block does not keep the arrays alive, and
who has one cannot be copied (`not_copied`): the block of a copy would be that of the original.
Without the compiler, a block is a tuple of the arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import numpy as np

from graphtide.jit import JIT

if TYPE_CHECKING:
    from collections.abc import Sequence

CELLS = 3
"""Cells of a block for each array: its address, and its shape."""

Block = Any
"""An array of int64 for compiled loops."""

UNKNOWN = -1
"""The room in a table of which there is no block, or one that may be of other arrays."""


def make_block(arrays: Sequence[np.ndarray[Any, Any]]) -> Block:
    """Lay arrays out; they are contiguous, and of one dimension or two.

    >>> block = make_block([np.zeros((2, 5), np.int32)])
    >>> block[1:].tolist() if JIT else list(block[0].shape)
    [2, 5]
    """
    if not JIT:
        return tuple(arrays)
    block = np.zeros(CELLS * len(arrays), np.int64)
    for k, array in enumerate(arrays):
        address = array.__array_interface__["data"][0]
        block[CELLS * k : CELLS * k + 1 + array.ndim] = address, *array.shape
    return block


def not_copied(holder: object, _: SupportsIndex) -> NoReturn:
    """As `__reduce_ex__` of a class: its objects are neither copied nor pickled."""
    raise TypeError(f"{holder.__class__.__name__} has addresses of its arrays, and is not copied")


def _viewer(name: str, dimensions: int) -> Any:  # noqa: ANN401 - Numba's intrinsics have no types
    """A function for compiled loops: a view of the array at a place of a block."""
    if not JIT:
        return lambda block, place: block[place]
    from numba import types  # noqa: PLC0415 - the twins run where Numba is not installed
    from numba.extending import intrinsic  # noqa: PLC0415

    element: Any = getattr(types, name)
    viewed: Any = types.Array(element, dimensions, "C")

    def view(_: Any, block: Any, place: Any) -> Any:  # noqa: ANN401 - types of Numba
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
            # Imported by whoever compiles: stored machine code does not need it.
            from numba.np import arrayobj  # noqa: PLC0415

            make_array: Any = arrayobj.make_array
            populate: Any = arrayobj.populate_array
            word = context.get_value_type(types.int64)
            cells = make_array(signature.args[0])(context, builder, args[0]).data
            at = context.cast(builder, args[1], signature.args[1], types.int64)
            first = builder.mul(at, word(CELLS))
            address, *shape = (
                builder.load(builder.gep(cells, [builder.add(first, word(k))]))
                for k in range(1 + dimensions)
            )
            size = context.get_abi_sizeof(context.get_data_type(element))
            strides = [word(size)]
            if dimensions > 1:
                strides.insert(0, builder.mul(shape[1], word(size)))
            array = make_array(viewed)(context, builder)
            data = builder.inttoptr(address, context.get_data_type(element).as_pointer())
            populate(
                array, data=data, shape=shape, strides=strides, itemsize=word(size), meminfo=None
            )
            return array._getvalue()  # noqa: SLF001 - as Numba's own functions do

        return viewed(block, place), generate

    return intrinsic(view)


ints1 = _viewer("int32", 1)
ints2 = _viewer("int32", 2)
longs1 = _viewer("int64", 1)
longs2 = _viewer("int64", 2)
floats1 = _viewer("float64", 1)
bytes1 = _viewer("uint8", 1)
tiny1 = _viewer("int8", 1)

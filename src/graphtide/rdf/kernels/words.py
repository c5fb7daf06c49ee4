"""Loops over bytes that go eight at a time: hash, comparison and copy.

What does not fill a word at the end is read together with bytes before it, which were read already.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphtide.jit import JIT, inlined

# ruff: noqa: ANN401 - what Numba hands to an intrinsic has no types of its own.

Bytes = NDArray[np.uint8]


def _load_plain(data: Bytes, at: int) -> np.uint64:
    return np.uint64(int.from_bytes(data[at : at + 8].tobytes(), sys.byteorder))


def _store_plain(data: Bytes, at: int, word: np.uint64) -> None:
    data[at : at + 8] = np.frombuffer(int(word).to_bytes(8, sys.byteorder), np.uint8)


def _accesses() -> tuple[Any, Any]:
    """Functions for loops: read eight bytes from an index on as one integer, and write them."""
    if not JIT:
        return _load_plain, _store_plain
    from llvmlite import ir  # noqa: PLC0415 - the twins run where Numba is not installed
    from numba import types  # noqa: PLC0415
    from numba.extending import intrinsic  # noqa: PLC0415

    def place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        first = builder.gep(view.data, [arguments[1]])
        return builder.bitcast(first, ir.IntType(64).as_pointer())

    def load(_typing: Any, array: Any, _index: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = place(context, builder, signature, arguments)
            return builder.load(word, align=1)  # aligned or not

        return types.uint64(array, types.int64), code

    def store(_typing: Any, array: Any, _index: Any, _word: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = place(context, builder, signature, arguments)
            builder.store(arguments[2], word, align=1)
            return context.get_dummy_value()

        return types.void(array, types.int64, types.uint64), code

    return intrinsic(load), intrinsic(store)


_load64, _store64 = _accesses()


@inlined
def hash_bytes(data: Bytes, at: int, end: int) -> Any:
    """Return 31 mixed bits of data[at:end]: shifted to the high half they stay positive."""
    prime = np.uint64(0xFF51AFD7ED558CCD)
    half = np.uint64(32)
    one = np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(end - at)
    two = np.uint64(0xC2B2AE3D27D4EB4F)
    if end - at >= 8:
        # Two words at a time, whose multiplications do not wait for each other.
        while at + 16 < end:
            one = (one ^ _load64(data, at)) * prime
            two = (two ^ _load64(data, at + 8)) * prime
            one ^= one >> half
            two ^= two >> half
            at += 16
        if at + 8 < end:
            two = (two ^ _load64(data, at)) * prime
            two ^= two >> half
        one = (one ^ _load64(data, end - 8)) * prime
    else:
        word = np.uint64(0)
        while at < end:
            word = (word << np.uint64(8)) | np.uint64(data[at])
            at += 1
        one = (one ^ word) * prime
    value = (one ^ (one >> np.uint64(29))) + two * np.uint64(0x165667B19E3779F9)
    value ^= value >> half
    value *= np.uint64(0xC4CEB9FE1A85EC53)
    return np.int64(value >> np.uint64(33))


@inlined
def equal_bytes(one: Bytes, at: int, other: Bytes, start: int, size: int) -> bool:
    """Whether so many bytes of two arrays are equal, from an index on."""
    index = 0
    if size >= 8:
        while index + 8 < size:
            if _load64(one, at + index) != _load64(other, start + index):
                return False
            index += 8
        index = size - 8
        return _load64(one, at + index) == _load64(other, start + index)  # type: ignore[no-any-return]
    while index < size and one[at + index] == other[start + index]:
        index += 1
    return index == size


@inlined
def copy_bytes(source: Bytes, at: int, target: Bytes, start: int, size: int) -> None:
    """Copy so many bytes from one array to another, from an index on."""
    index = 0
    if size >= 8:
        while index + 8 < size:
            _store64(target, start + index, _load64(source, at + index))
            index += 8
        index = size - 8
        _store64(target, start + index, _load64(source, at + index))
        return
    while index < size:
        target[start + index] = source[at + index]
        index += 1

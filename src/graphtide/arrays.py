"""Types of the arrays that compiled loops take: the element, and the number of dimensions.

The annotations of a compiled loop are its signature (`graphtide.jit`): `Ints2` is a contiguous
array of int32 with two dimensions. A `Read…` array may be read-only, and the loop never writes to
it. For a type checker, arrays of one element are the same, whatever their dimensions.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np

Int = int | np.signedinteger[Any]
"""An integer inside a compiled loop: Python's or NumPy's. As an argument it is an int64."""

Ints1 = np.ndarray[tuple[int, ...], np.dtype[np.int32]]
Ints2 = Ints1
Ints3 = Ints1
ReadInts1 = Ints1

Longs1 = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Longs2 = Longs1

Bytes1 = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
ReadBytes1 = Bytes1

Kinds1 = np.ndarray[tuple[int, ...], np.dtype[np.int8]]
Bools1 = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
Floats1 = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

Class = TypeVar("Class", bound=type)

BUNDLES: Final[dict[str, type]] = {}
"""The named tuples of arrays that loops take, by name."""


def bundle(tuple_class: Class) -> Class:
    """Declare a named tuple of arrays that loops take as one argument."""
    BUNDLES[tuple_class.__name__] = tuple_class
    return tuple_class

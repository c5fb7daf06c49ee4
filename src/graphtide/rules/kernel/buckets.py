"""Which bucket a key goes to: hashing for compiled loops, and without overflow in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.jit import JIT, inlined
from graphtide.kernel.rowtable import mix

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int

if JIT:

    @inlined
    def first_state(seed: Int) -> Any:  # noqa: ANN401 - a machine word
        """Where hashing a key begins."""
        return np.uint64(seed)

    @inlined
    def folded(state: Any, value: Int) -> Any:  # noqa: ANN401
        """The state after one more value."""
        return mix(state, value)

    @inlined
    def bucket_at(state: Any, buckets: Int) -> Int:  # noqa: ANN401
        """One of a number of buckets, a power of two."""
        return np.int64((state * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(33)) & (buckets - 1)

else:

    def first_state(seed: Int) -> Any:  # noqa: ANN401
        """Where hashing a key begins."""
        return int(seed)

    def folded(state: Any, value: Int) -> Any:  # noqa: ANN401
        """The state after one more value."""
        return (state * 31 + int(value)) & 0x7FFFFFFF

    def bucket_at(state: Any, buckets: Int) -> Int:  # noqa: ANN401
        """One of a number of buckets, a power of two."""
        return int(state & (buckets - 1))

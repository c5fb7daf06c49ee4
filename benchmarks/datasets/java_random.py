"""Random numbers as Java draws them, so that generated data equals the published data.

`java.util.Random` is a linear congruential generator of 48 bits; its documentation fixes the
algorithm. A generator here is one element of an array of states, so that loops can hold many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.datasets.triples import Longs

MULTIPLIER: Final = 0x5DEECE66D
MASK: Final = (1 << 48) - 1


def scrambled(seeds: Sequence[int]) -> Longs:
    """The initial states of generators with these seeds.

    >>> scrambled([0]).tolist() == [0x5DEECE66D]
    True
    """
    return np.array([(seed ^ MULTIPLIER) & MASK for seed in seeds], np.int64)


@njit(cache=True)
def next_bits(states: Longs, at: int) -> int:
    """The next 31 bits of a generator."""
    # The product may overflow 64 bits, but only above the 48 that are kept.
    state = (int(states[at]) * MULTIPLIER + 0xB) & MASK
    states[at] = state
    return state >> 17


@njit(cache=True)
def next_int(states: Longs, at: int, bound: int) -> int:
    """The next number in [0, bound)."""
    bits = next_bits(states, at)
    if bound & (bound - 1) == 0:
        return (bound * bits) >> 31
    value = bits % bound
    while (
        bits - value + bound > 1 << 31
    ):  # reject the last, incomplete range of values: it would be biased
        bits = next_bits(states, at)
        value = bits % bound
    return value


@njit(cache=True)
def draw_ints(states: Longs, bound: int, out: Longs) -> None:
    """Fill an array with numbers in [0, bound)."""
    for i in range(len(out)):
        out[i] = next_int(states, 0, bound)


@njit(cache=True)
def shuffle(states: Longs, items: Longs) -> None:
    """Permute an array as `java.util.Collections.shuffle` does."""
    for i in range(len(items), 1, -1):
        j = next_int(states, 0, i)
        last = items[i - 1]
        items[i - 1] = items[j]
        items[j] = last


class JavaRandom:
    """`java.util.Random`.

    >>> random = JavaRandom(19871053)
    >>> [random.next_int(1000) for _ in range(4)]
    [503, 775, 59, 807]
    """

    def __init__(self, seed: int) -> None:
        self._state = scrambled([seed])

    def next(self, bits: int) -> int:
        """The next 1 to 32 bits, as a signed Java int.

        >>> JavaRandom(0).next(32)
        -1155484576
        """
        state = (int(self._state[0]) * MULTIPLIER + 0xB) & MASK
        self._state[0] = state
        value = state >> (48 - bits)
        return value - (1 << 32) if value >= 1 << 31 else value

    def next_int(self, bound: int) -> int:
        """The next number in [0, bound).

        >>> JavaRandom(19871053).next_int(16)
        8
        """
        return int(self.next_ints(bound, 1)[0])

    def next_ints(self, bound: int, count: int) -> Longs:
        """The next `count` numbers in [0, bound).

        >>> JavaRandom(19871053).next_ints(9, 5).tolist()
        [6, 1, 6, 2, 5]
        """
        if not 0 < bound < 1 << 31:
            raise ValueError(f"invalid bound {bound}: it must be positive and below 2^31")
        out = np.empty(count, np.int64)
        draw_ints(self._state, bound, out)
        return out

    def shuffled(self, count: int) -> Longs:
        """The numbers 0 to `count - 1`, as `Collections.shuffle` orders a list of them.

        >>> sorted(JavaRandom(1).shuffled(5).tolist())
        [0, 1, 2, 3, 4]
        """
        items = np.arange(count, dtype=np.int64)
        shuffle(self._state, items)
        return items

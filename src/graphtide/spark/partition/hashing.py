"""Hashes that are the same in every process: of terms, and of Spark's own integer keys."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.jit import compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from graphtide.arrays import Longs1, ReadBytes1, ReadInts1
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term


@compiled
def hash_texts(offsets: ReadInts1, data: ReadBytes1, out: Longs1) -> None:
    """FNV-1a of each text, spread once more so that the low bits serve as well as the high ones."""
    for i in range(len(out)):
        state = np.uint64(0xCBF29CE484222325)
        for k in range(offsets[i], offsets[i + 1]):
            state = (state ^ np.uint64(data[k])) * np.uint64(0x100000001B3)
        state ^= state >> np.uint64(33)
        state *= np.uint64(0xFF51AFD7ED558CCD)
        out[i] = np.int64((state ^ (state >> np.uint64(33))) >> np.uint64(1))


def text_hashes(texts: pa.Array[Any]) -> NDArray[np.int64]:
    """A non-negative hash per text; null counts as the empty text.

    >>> import pyarrow as pa
    >>> a, b, again = text_hashes(pa.array(["<ex:a>", "<ex:b>", "<ex:a>"])).tolist()
    >>> a == again, a == b
    (True, False)
    """
    filled: Any = texts.fill_null("")
    _, offsets, data = filled.buffers()
    out = np.empty(len(filled), np.int64)
    if not len(out):
        return out
    bounds = np.frombuffer(offsets, np.int32)[filled.offset : filled.offset + len(filled) + 1]
    body = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    with np.errstate(
        over="ignore"
    ):  # without the compiler, numpy warns of the overflow that is meant
        hash_texts(bounds, body, out)
    return out


UNKNOWN = -1
"""Instead of a hash, which is never negative."""


class TermHashes:
    """The hash of each term of a dictionary by its id, made when it is first asked for.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> terms = TermDictionary()
    >>> hashes, ids = TermHashes(terms), terms.encode_column(["<ex:a>", "<ex:b>", "<ex:a>"])
    >>> (hashes.of(ids) == text_hashes(terms.decode_column(ids))).all()
    np.True_
    """

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._hashes = text_hashes(terms.decode_column([0]))

    def of(self, ids: NDArray[np.int32]) -> NDArray[np.int64]:
        """A hash per id, of the term's canonical text."""
        terms = self._terms
        if terms.generation:  # ids were freed, and may be those of other terms now
            return text_hashes(terms.decode_column(ids))
        if terms.top >= len(self._hashes):
            more = np.full(2 * terms.top - len(self._hashes) + 1, UNKNOWN, np.int64)
            self._hashes = np.concatenate([self._hashes, more])
        found = self._hashes[ids]
        missing = found == UNKNOWN
        if missing.any():
            asked = np.zeros(len(self._hashes), np.bool_)
            asked[ids[missing]] = True
            new = np.flatnonzero(asked)
            self._hashes[new] = text_hashes(terms.decode_column(new))
            found = self._hashes[ids]
        return np.asarray(found)

    def lookup(self, term: Term | str) -> int:
        """The id of a term; 0 if it is not known."""
        return self._terms.lookup(term)


def mixed_hashes(columns: Sequence[NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    """One non-negative hash for each of `count` rows of hashes.

    >>> a, b = np.array([7]), np.array([8])
    >>> mixed_hashes([a, b], 1) == mixed_hashes([b, a], 1), mixed_hashes([], 2).tolist()
    (array([False]), [0, 0])
    """
    state = np.zeros(count, np.uint64)
    for column in columns:
        state = (state ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        state ^= state >> np.uint64(29)
    return (state >> np.uint64(1)).astype(np.int64)


def spark_partition(key: int, partitions: int) -> int:
    """The partition in which Spark puts an integer key: by its Murmur3 hash with seed 42.

    >>> [spark_partition(key, 2) for key in range(4)]
    [1, 1, 0, 1]
    """
    mask = 0xFFFFFFFF

    def rotated(value: int, by: int) -> int:
        return ((value << by) | (value >> (32 - by))) & mask

    mixed = rotated((key & mask) * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    state = (rotated(42 ^ mixed, 13) * 5 + 0xE6546B64) & mask
    state ^= 4
    state = (state ^ (state >> 16)) * 0x85EBCA6B & mask
    state = (state ^ (state >> 13)) * 0xC2B2AE35 & mask
    state ^= state >> 16
    return (state - (1 << 32) if state >> 31 else state) % partitions


@cache
def partition_keys(partitions: int) -> tuple[int, ...]:
    """For each partition a key that Spark puts in a partition of its own.

    >>> [spark_partition(key, 4) for key in partition_keys(4)]
    [0, 1, 2, 3]
    """
    keys: dict[int, int] = {}
    key = 0
    while len(keys) < partitions:
        keys.setdefault(spark_partition(key, partitions), key)
        key += 1
    return tuple(keys[partition] for partition in range(partitions))

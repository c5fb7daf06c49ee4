"""What streams, windows and programs hold, for snapshots.

Each of them has `dump()`, which gives dictionaries and lists of what JSON can hold, and of arrays:
an array of 32 bits has ids of terms, one of 64 bits has numbers. `load()` takes the same. In a file
all arrays of ids are one column, and those of numbers another; the rest is JSON.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.durable.replay import ReplayTarget
    from graphtide.engine.runtime import Runtime
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.streams.registry import Streams

ARRAY: Final = "array of"
"""Marks the place of an array among JSON: where it begins in its column, and its shape."""


def obstacle(runtime: Runtime, streams: Streams) -> str | None:
    """What keeps a graph from having a snapshot now, in words; None if nothing is under way."""
    if not runtime.schedule.is_idle():
        return "an input is under way"
    return "closes of windows were interrupted" if streams.interrupted else None


def dump_all(graph: ReplayTarget, streams: Streams) -> dict[str, Any]:
    """What all streams, windows and programs hold."""
    programs = {program.name: program.dump() for program in graph.programs}
    return {"streams": streams.dump(), "programs": programs}


def load_all(graph: ReplayTarget, streams: Streams, held: Mapping[str, Any]) -> None:
    """Let streams, windows and programs go on with what they held, when they are registered."""
    streams.load(held["streams"])
    for program in graph.programs:
        program.load(held["programs"][program.name])


class HeldArrays:
    """The arrays of dumped state: ids of terms, and numbers."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Any]] = {"ids": [], "numbers": []}
        self._sizes = {"ids": 0, "numbers": 0}

    def taken_from(self, part: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return dumped state as JSON can hold it; its arrays are added to these."""
        if isinstance(part, np.ndarray):
            kind = "ids" if part.dtype == np.int32 else "numbers"
            place = {ARRAY: kind, "at": self._sizes[kind], "shape": part.shape}
            self._parts[kind].append(part.reshape(-1))
            self._sizes[kind] += part.size
            return place
        if isinstance(part, dict):
            return {key: self.taken_from(value) for key, value in part.items()}
        if isinstance(part, list | tuple):
            return [self.taken_from(each) for each in part]
        return part

    @property
    def ids(self) -> Ints:
        """All arrays of ids, one after the other."""
        return np.concatenate([np.empty(0, np.int32), *self._parts["ids"]])

    @property
    def numbers(self) -> Longs:
        """All arrays of numbers, one after the other."""
        return np.concatenate([np.empty(0, np.int64), *self._parts["numbers"]])


def with_arrays(part: Any, columns: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    """Return dumped state with its arrays, which are parts of columns."""
    if isinstance(part, dict) and ARRAY in part:
        begin, shape = part["at"], part["shape"]
        # A copy: a part that is retained must not hold the arrays of all others.
        return columns[part[ARRAY]][begin : begin + prod(shape)].reshape(shape).copy()
    if isinstance(part, dict):
        return {key: with_arrays(value, columns) for key, value in part.items()}
    if isinstance(part, list):
        return [with_arrays(each, columns) for each in part]
    return part

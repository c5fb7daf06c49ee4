"""Matches the triples of graph events with the pattern of an event type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphtide.jit import JIT, compiled, inlined
from graphtide.rules.kernel.layout import (
    DEPTH,
    LEFT,
    OUTPUT_FULL,
    POSITION,
    REACHED,
    ROOM,
    TIME,
    WRITTEN,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.arrays import Ints2, Longs1
    from graphtide.kernel.batch import Int, Ints, Longs


@compiled
def find_hits(
    pattern: Ints2,
    width: Int,
    triples: Ints2,
    begins: Longs1,
    work: Ints2,
    out: Ints2,
    state: Longs1,
) -> None:
    """From event `state[POSITION]` on, write the index and parameters of each match.

    `pattern` has triples of ids, or of -1 - v for a variable v; the first `width` variables are the
    parameters. Triples of event i are those from `begins[i]` on. The matches of one event
    are sorted and distinct. Stops before an event for which the output is too small, and anywhere
    to have the time checked: `state[ROOM]` says why, and a further call goes on.
    """
    for event in range(state[POSITION], len(begins) - 1):
        written = _hits_of(
            pattern, width, triples, begins[event], begins[event + 1], work, out, state, event,
        )  # fmt: skip
        state[POSITION] = event
        if written < 0:
            state[ROOM] = OUTPUT_FULL
            return
        if state[DEPTH] > 0:
            state[ROOM], state[REACHED] = TIME, written
            return
        state[WRITTEN] = written
    state[POSITION] = len(begins) - 1


@inlined
def _hits_of(
    pattern: Ints, width: Int, triples: Ints, begin: Int, end: Int, work: Ints, out: Ints,
    state: Longs, event: Int,
) -> Int:  # fmt: skip
    """Rows written so far, -1 if there is no room.

    `work` has the next triple by depth, then the depth + 1 that bound each variable. If no steps
    are left, `state[DEPTH]` has the depth, plus 1, where a further call goes on.
    """
    depths = len(pattern)
    first: Int = state[WRITTEN]
    written: Int = state[WRITTEN]
    depth: Int = state[DEPTH] - 1
    state[DEPTH] = 0
    if depth >= 0:
        written = state[REACHED]
    else:
        depth = np.int64(0)
        work[0, 0] = begin
        for v in range(work.shape[1]):
            work[1, v] = 0
    while depth >= 0:
        if state[LEFT] <= 0:
            state[DEPTH] = depth + 1
            return written
        state[LEFT] -= 1
        for v in range(work.shape[1]):
            if work[1, v] > depth:
                work[1, v] = 0
        at = work[0, depth]
        if at >= end:
            depth -= 1
            continue
        work[0, depth] = at + 1
        if not _fits(pattern, depth, triples, at, work):
            continue
        if depth + 1 < depths:
            depth += 1
            work[0, depth] = begin
            continue
        if written >= len(out):
            return -1
        for v in range(width):
            out[written, 1 + v] = work[2, v]
        out[written, 0] = event
        written = _put_in_order(out, first, written, width, state)
    return written


@inlined
def _fits(pattern: Ints, depth: Int, triples: Ints, at: Int, work: Ints) -> bool:
    """Whether a triple matches a pattern, given the variables bound so far; binds the others."""
    for k in range(3):
        wanted = pattern[depth, k]
        value = triples[at, k]
        if wanted >= 0:
            if wanted != value:
                return False
        elif work[1, -1 - wanted] == 0:
            work[1, -1 - wanted] = depth + 1
            work[2, -1 - wanted] = value
        elif work[2, -1 - wanted] != value:
            return False
    return True


@inlined
def _put_in_order(out: Ints, first: Int, written: Int, width: Int, state: Longs) -> Int:
    """Insert the last row into the sorted rows of its event; drop a duplicate."""
    place = written
    while place > first:
        state[LEFT] -= 1
        order = 0
        for v in range(1, 1 + width):
            if out[place - 1, v] != out[place, v]:
                order = 1 if out[place - 1, v] > out[place, v] else -1
                break
        if order == 0:  # without it, the rows that were moved are sorted again
            for row in range(place, written):
                for v in range(1 + width):
                    out[row, v] = out[row + 1, v]
            return written
        if order < 0:
            break
        for v in range(1 + width):
            out[place - 1, v], out[place, v] = out[place, v], out[place - 1, v]
        place -= 1
    return written + 1


def direct(loop: Callable[..., Any], *arguments: object) -> Callable[..., Any]:
    """The machine code of a compiled loop for the types of some arguments.

    A call of the loop itself dispatches on the type of each array, which for one event costs
    several times the work. Later arguments must have the same types and memory layouts.
    """
    if not JIT:
        return loop
    key = (loop, *map(_layout, arguments))
    chosen = _CHOSEN.get(key)
    if chosen is None:
        import numba  # noqa: PLC0415 - the twins run where Numba is not installed

        compiler: Any = loop
        chosen = _CHOSEN[key] = compiler.compile(tuple(map(numba.typeof, arguments)))
    return chosen


_CHOSEN: Final[dict[tuple[object, ...], Callable[..., Any]]] = {}
"""By loop and layouts. Numba takes a millisecond to find out the type of a rule's arrays."""


def _layout(argument: object) -> object:
    """All of an argument on which its type in Numba depends.

    >>> _layout(np.zeros((2, 3), np.int32)) == _layout(np.ones((1, 9), np.int32))
    True
    >>> _layout(np.zeros((2, 3), np.int32)) == _layout(np.zeros((2, 3), np.int32)[:, 1:])
    False
    """
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return argument.dtype, argument.ndim, order, flags.writeable, flags.aligned
    if isinstance(argument, tuple):
        return type(argument), *map(_layout, argument)
    return type(argument)

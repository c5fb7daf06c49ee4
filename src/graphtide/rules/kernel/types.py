"""Matches the triples of graph events with the pattern of an event type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphtide.jit import JIT, compiled, inlined
from graphtide.rules.kernel.layout import POSITION, WRITTEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.arrays import Ints2, Longs1
    from graphtide.kernel.batch import Int, Ints


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
    are sorted and distinct. Stops before an event for which the output may be too small.
    """
    for event in range(state[POSITION], len(begins) - 1):
        written = _hits_of(
            pattern, width, triples, begins[event], begins[event + 1], work, out,
            state[WRITTEN], event,
        )  # fmt: skip
        if written < 0:
            state[POSITION] = event
            return
        state[WRITTEN] = written
    state[POSITION] = len(begins) - 1


@inlined
def _hits_of(
    pattern: Ints, width: Int, triples: Ints, begin: Int, end: Int, work: Ints, out: Ints,
    written: Int, event: Int,
) -> Int:  # fmt: skip
    """`work` has the next triple by depth, then the depth + 1 that bound each variable."""
    depths = len(pattern)
    first = written
    depth = 0
    work[0, 0] = begin
    for v in range(work.shape[1]):
        work[1, v] = 0
    while depth >= 0:
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
        written = _put_in_order(out, first, written, width)
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
def _put_in_order(out: Ints, first: Int, written: Int, width: Int) -> Int:
    """Insert the last row into the sorted rows of its event; drop a duplicate."""
    place = written
    while place > first:
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

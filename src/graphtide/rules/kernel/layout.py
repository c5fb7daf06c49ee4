"""The arrays of a rule for its compiled loops.

The variables of a rule, its conditions EVENT and the indexes of their memories are numbered. An
index belongs to one condition.
"""

from __future__ import annotations

from math import floor, inf
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from graphtide.arrays import bundle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.arrays import Ints1, Ints2, Ints3, Longs1, Longs2
    from graphtide.kernel.batch import Ints

START, END, ORDER, SINCE = 0, 1, 2, 3
"""Columns of events: start, end, order of arrival, number of transactions before."""

END_OF_TIME: Final = -1
"""The order of what is no event, but the end of the time before it."""

EVENT, CONDITION, HIT_VALUES = 0, 1, 2
"""Columns of hits: index of the event, condition that it matches, values of all variables."""

FREE, LIVE, PEAK, NEWEST, JOURNALED = 0, 1, 2, 3, 4
"""Cells of `meta`: first free place (-1: none), places in use now and at most, time of the last,
and the length of the journal (-1: not journaling)."""

LINKS, ENDS, HEADS, TAILS, CELLS, WHEN = 0, 1, 2, 3, 4, 5
"""Which array of a memory an entry of its journal is about."""

POSITION, WRITTEN, ROOM = 0, 1, 2
"""The state of a loop when it stops: position, rows written, and what ran out."""

LEFT, HIT, REACHED, DEPTH = 3, 4, 5, 6
"""More of the state of a join: how many steps are left; where they ran out, the hit, plus 1, and
the rows written so far; and within this hit the depth of the join, plus 1."""

ENOUGH, MEMORY_FULL, JOURNAL_FULL, OUTPUT_FULL, TIME = 0, 1, 2, 3, 4
"""What ran out: nothing, places, entries of the journal, the output, steps until the time is
checked."""

WAITING, RETAINED = 5, 6
"""Other reasons to stop: a test reads values, of an event and a match that waits, or of a match and
an event that is retained."""

STEPS = 1 << 22
"""Steps of a loop before the time is checked: some tens of milliseconds."""

NOT_RETAINED: Final = -1
FOREVER: Final = 1 << 62
"""The retention of an event that is not retained, and of one that is never evicted."""

ATOM, ALL_OF, ANY_OF, NONE_OF, EXPRESSION = 0, 1, 2, 3, 4
"""Instructions of a test: a difference of two times within bounds, a connective, or an expression,
which reads values."""

UNKNOWN: Final = 1 << 16
"""The outcome of an expression in a loop; more than the number of operands of any connective."""


@bundle
class PlanArrays(NamedTuple):
    """The constant plan of a rule. Lists begin with their length."""

    steps: Ints2
    """By condition: the conditions that it is joined with, in order."""
    lookups: Ints2
    """By condition: the index used in each of these joins."""
    keys: Ints2
    """By index: the variables of its key."""
    indexes: Ints2
    """By condition: its indexes."""
    bound: Ints2
    """By condition: the variables that it binds."""
    ready: Ints3
    """By condition and number of joins: the range of `tests` that can be evaluated."""
    tests: Ints1
    parts: Ints2
    """By test: the range of its instructions in `code`."""
    code: Longs2
    """Instruction, two times (or the number of operands), and bounds of their difference."""
    retention: Longs1
    """By condition: for how many ticks its events are retained."""
    fact_key: Ints1
    """The variables that facts are looked up by."""
    fact_columns: Ints1
    """The variable of each column of a fact, those of the key first."""
    variables: int
    """The number of variables that events bind; facts bind the others."""


@bundle
class MemoryArrays(NamedTuple):
    """The retained events, oldest first in every list."""

    cells: Ints2
    when: Longs2
    links: Ints2
    """By place: the next of its condition (or free place), the next of its bucket by index."""
    heads: Ints2
    tails: Ints2
    """By index and bucket."""
    ends: Ints2
    """By condition: its first and its last place."""
    meta: Longs1
    journal: Longs2
    """Undo log: array, row, column, and the old value."""


@bundle
class PendingArrays(NamedTuple):
    """Matches that wait for a NO EVENT, by place."""

    rows: Ints2
    spans: Longs2
    """Rows and spans of matches."""
    ends: Longs2
    """Until when a match waits, and its own time."""
    links: Ints2
    """By NO EVENT: the next and the previous match of the bucket."""
    heads: Ints2
    """By NO EVENT and bucket of the values that it shares with matches."""
    alive: Ints1
    """Whether the match waits; 0 if it was removed."""
    heap: Longs2
    meta: Longs1
    journal: Longs1


@bundle
class FactArrays(NamedTuple):
    """The current facts, each with the number of the transaction since which it holds."""

    rows: Ints2
    number: Longs1
    links: Ints1
    heads: Ints1
    meta: Longs1


@bundle
class WorkArrays(NamedTuple):
    """Working arrays of a join: one partial match."""

    binding: Ints1
    at: Ints1
    span: Longs1
    who: Longs1
    stack: Ints1


def table(rows: Sequence[Sequence[int]]) -> Ints:
    """Rows, filled up with zeros to the same length; at least one column."""
    width = max(1, *map(len, rows)) if rows else 1
    filled = np.zeros((len(rows), width), np.int32)
    for at, row in enumerate(rows):
        filled[at, : len(row)] = row
    return filled


def lists(rows: Sequence[Sequence[int]]) -> Ints:
    """Rows that begin with their length.

    >>> lists([[7, 8], [9]]).tolist()
    [[2, 7, 8], [1, 9, 0]]
    """
    return table([[len(row), *row] for row in rows] or [[0]])


def whole_ticks(ticks: float | None) -> int:
    """A bound in ticks as a number; None stands for an event that is not retained."""
    if ticks is None:
        return NOT_RETAINED
    if ticks in (inf, -inf):
        return FOREVER if ticks > 0 else -FOREVER
    return floor(ticks)

"""The arrays of a rule, as its compiled loops take them.

Variables of a rule are numbered; so are its conditions (the events that have to happen) and the
indexes by which events are looked up. An index belongs to one condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs

START, END, ORDER, SINCE = 0, 1, 2, 3
"""Columns of events: when they begin and end, which number they have, what was before them."""

EVENT, CONDITION, HIT_VALUES = 0, 1, 2
"""Columns of hits: an event, the condition that it matches, and the values of all variables."""

FREE, LIVE, PEAK, NEWEST, JOURNALED = 0, 1, 2, 3, 4
"""Cells of `meta`: first free place (-1: none), places in use now and at most, time of the last,
and how many entries the journal has (-1: nothing is noted)."""

LINKS, ENDS, HEADS, TAILS, CELLS, WHEN = 0, 1, 2, 3, 4, 5
"""Which array of a memory an entry of its journal is about."""

POSITION, WRITTEN, ROOM = 0, 1, 2
"""What a loop tells when it stops: where, how many rows it wrote, and what ran out."""

ENOUGH, MEMORY_FULL, JOURNAL_FULL = 0, 1, 2
"""What ran out: the output (or nothing), places, entries of the journal."""

NOT_RETAINED: Final = -1
FOREVER: Final = 1 << 62
"""How long an event is kept, where it is not kept at all, and where it is kept for ever."""

ATOM, ALL_OF, ANY_OF, NONE_OF = 0, 1, 2, 3
"""Instructions of a test: a difference of two times within bounds, or how to combine the last."""


class PlanArrays(NamedTuple):
    """What does not change while a rule is at work. Lists begin with their length."""

    steps: Ints
    """By condition: those it is joined with, one after the other."""
    lookups: Ints
    """By condition: the index that each of them is looked up by."""
    keys: Ints
    """By index: the variables of its key."""
    indexes: Ints
    """By condition: its indexes."""
    bound: Ints
    """By condition: the variables that it binds."""
    ready: Ints
    """By condition and number of joins: from where to where `tests` lists what can be tested."""
    tests: Ints
    parts: Ints
    """By test: from where to where `code` has its instructions."""
    code: Longs
    """Instruction, two times (or how many results), and bounds of their difference."""
    retention: Longs
    """By condition: how many ticks its events are kept."""
    fact_key: Ints
    """The variables that facts are looked up by."""
    fact_columns: Ints
    """The variable of each column of a fact, those of the key first."""
    variables: int
    """How many variables events bind; the others are bound by facts."""


class MemoryArrays(NamedTuple):
    """The events that wait for partners, oldest first in every list."""

    cells: Ints
    when: Longs
    links: Ints
    """By place: the next of its condition (or free place), the next of its bucket by index."""
    heads: Ints
    tails: Ints
    """By index and bucket."""
    ends: Ints
    """By condition: its first and its last place."""
    meta: Longs
    journal: Longs
    """What was changed: which array, row, column, and what was there before."""


class FactArrays(NamedTuple):
    """The facts of now, each with the number of the transaction since which it holds."""

    rows: Ints
    number: Longs
    links: Ints
    heads: Ints
    meta: Longs


class WorkArrays(NamedTuple):
    """Room for one match while it is put together."""

    binding: Ints
    at: Ints
    span: Longs
    who: Longs
    stack: Ints

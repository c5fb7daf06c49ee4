"""A deterministic automaton over events, and its tokens, as arrays for compiled loops.

State 0 is the start. From each state at most one edge goes out for each type of event, and perhaps
timers. A token is an instance of the pattern; its line in `data` says where it is:

    state | order | started | deadline | blocked | partition | next, prev | older, newer
          | used | count | version | zones… | slots…

`blocked` has a bit for each edge of the state that the token can no longer take. Tokens of one
partition (a value of the key) and state are chained by age; `used` begins the chain of the events
that the token has used, the last one first. Timers wait in a heap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.kernel.rowtable import Table

CHRONICLE, IMMEDIATE, STRICT = 0, 1, 2
"""Contexts."""

TARGET, FINAL, SPARE, BIT, ENTERS, TIMER = 0, 1, 2, 3, 4, 5
"""Columns of `edges`: the state it leads to, whether that completes the pattern, whether it only
goes round a loop once more, its bit in `blocked`, the zones that begin with it, as bits, and the
timer that takes it, or -1."""

PLACE, SLOT, CONSTANT = 0, 1, 2
"""Columns of `ops`: which of the event's values has to be that of a slot (and is put into it if it
is empty), or, where the slot is -1, has to be a constant."""

ZONE, LENGTH_ = 0, 1
"""Columns of `guards`: the zone, and how long ago it may have begun at most. Of `leasts`: the zone,
how long ago it has to have begun at least, and what happens if it has not: edges that are blocked,
and whether the pattern is not complete. Of `orders`: a zone, a later one and the least time between
them, and the edges that are blocked if there was less."""

BLOCKS, UNENDS = 2, 3
ORDER_FIRST, ORDER_LATER, ORDER_LEAST, ORDER_BLOCKS = 0, 1, 2, 3

OPS_FROM, OPS_TO, STOPS = 0, 1, 2
"""Columns of `watches`: the ops of an event that must not come, and the edges that it blocks."""

TIMER_EDGE, TIMER_ZONE, TIMER_LENGTH = 0, 1, 2
"""Columns of `timers`: the edge that is taken when a zone began longer ago than a length."""

STATE, ORDER, STARTED, DEADLINE, BLOCKED, PARTITION = 0, 1, 2, 3, 4, 5
NEXT, PREV, OLDER, NEWER, USED, COUNT, VERSION, FIELDS = 6, 7, 8, 9, 10, 11, 12, 13
"""Columns of `data`, before zones and slots. Links are token + 1, 0 for none."""

SAVED = 4
"""Columns of a saved token before its zones and slots: order, started, state, blocked."""

NO_END = 1 << 62
"""The deadline of a token that may wait for ever."""

AT, NOW, NUMBER, WRITTEN, USED_WRITTEN = 0, 1, 2, 3, 4
FREE_TOKEN, FREE_LINK, HIGH_TOKEN, HIGH_LINK, LIVE_TOKENS = 5, 6, 7, 8, 9
OLDEST, NEWEST, NEXT_ORDER, WAITING, LONGEST, SWEEP_AT, MOST_LIVE = 10, 11, 12, 13, 14, 15, 16
MARKS = 17
"""Cells of `marks`: where the loop is in its batch, the time, how many events came, rows of output,
then free places, chains, numbers, the size of the heap, and the longest chain of used events."""

OUT_TIME, OUT_STARTED, OUT_AT, OUT_USED, OUT_VALUES = 0, 1, 2, 3, 4
"""Columns of the output: when a match ended and began, the event of the batch that ended it (or
came after that), where its used events end in `out_used`, and the values of the parameters."""


class KernelAutomaton(NamedTuple):
    """The tables of a pattern. `…_from` say where the lines of an entry begin in another table."""

    edge_of: Ints
    edges: Longs
    ops: Ints
    ops_from: Ints
    guards: Longs
    guards_from: Ints
    leasts: Longs
    leasts_from: Ints
    orders: Longs
    orders_from: Ints
    edges_out: Ints
    edges_out_from: Ints
    sources: Ints
    sources_from: Ints
    watches: Longs
    watches_from: Ints
    watched: Ints
    watched_from: Ints
    timers: Longs
    timers_from: Ints
    key: Ints
    key_slots: Ints
    shown: Ints
    zones: int
    slots: int
    context: int
    per_key: bool


class TokenArrays(NamedTuple):
    """The tokens of a pattern, and what they wait for."""

    data: Longs
    links: Longs
    chains: Ints
    heap: Longs
    keys: Table
    marks: Longs
    source: Ints

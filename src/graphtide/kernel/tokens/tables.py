"""A deterministic automaton over events, and its tokens, as arrays for compiled loops.

State 0 is the start. Each state has at most one outgoing edge for each type of event, and possibly
timers. A token is a partial match of the pattern; its line in `data` is:

    state | order | started | deadline | blocked | partition | next, prev | used, first used
          | count | version | last | next and previous exposed | zones… | slots…

`blocked` has a bit for each edge of the state that the token can no longer take. `last` is the time
of the last move. A token is *exposed* while it has an open edge to which no NOT applies: noise
blocks these edges. Exposed tokens are chained, where every event may be noise. Tokens of one
partition (a value of the key) and state are chained by age; `used` is the head of the chain of the
events that the token has used, the last one first, and `first used` its end. The partition of a
token that is not in use is -1. Timers are in a heap. A *zone* is a part of the
pattern with a time limit; the token stores when it entered each zone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from graphtide.arrays import bundle

if TYPE_CHECKING:
    from graphtide.arrays import Ints1, Ints2, Longs1, Longs2
    from graphtide.kernel.rowtable import Table

CHRONICLE, IMMEDIATE, STRICT = 0, 1, 2
"""Contexts."""

TARGET, FINAL, SPARE, BIT, ENTERS, TIMER = 0, 1, 2, 3, 4, 5
"""Columns of `edges`: the target state, whether that completes the pattern, whether the edge only
repeats a loop, its bit in `blocked`, the zones it enters, as bits, and its timer, or -1."""

VALUE_INDEX, SLOT, CONSTANT = 0, 1, 2
"""Columns of `ops`: which of the event's values must equal that of a slot (and is stored in it if
it is empty), or, where the slot is -1, must equal a constant."""

ZONE, DURATION = 0, 1
"""Columns of `guards`: a zone and its maximal duration. Of `leasts`: a zone and its minimal
duration, and what a shorter one causes: edges that are blocked, and whether the pattern is not
complete. Of `orders`: a zone, a later one, the least time between their starts, and the edges that
are blocked if there was less."""

BLOCKS, PREVENTS_END = 2, 3
ORDER_FIRST, ORDER_LATER, ORDER_LEAST, ORDER_BLOCKS = 0, 1, 2, 3

OPS_FROM, OPS_TO, STOPS = 0, 1, 2
"""Columns of `watches`: the ops of an event that must not occur, and the edges that it blocks."""

TIMER_EDGE, TIMER_ZONE, TIMER_LENGTH = 0, 1, 2
"""Columns of `timers`: the edge that is taken when a zone has lasted longer than a duration."""

STATE, ORDER, STARTED, DEADLINE, BLOCKED, PARTITION = 0, 1, 2, 3, 4, 5
NEXT, PREV, USED, FIRST_USED, COUNT, VERSION = 6, 7, 8, 9, 10, 11
LAST, NEXT_EXPOSED, PREV_EXPOSED, FIELDS = 12, 13, 14, 15
"""Columns of `data`, before zones and slots. Links are token + 1, 0 for none; the previous exposed
token of the first one is -1, and 0 if a token is not exposed."""

SAVED = 5
"""Columns of a saved token before its zones and slots: order, started, state, blocked, last."""

NEW_EVENT, NEW_KEY, NEW_OCCURRENCE, SAME_OCCURRENCE = 0, 1, 2, 3
"""What a row of the input begins: an event, a further occurrence of it with another key or with the
same, or nothing: then it is another type of the same occurrence."""

NO_END = 1 << 62
"""The deadline of a token without one."""

AT, NOW, NUMBER, WRITTEN, USED_WRITTEN = 0, 1, 2, 3, 4
FREE_TOKEN, FREE_LINK, HIGH_TOKEN, HIGH_LINK, LIVE_TOKENS = 5, 6, 7, 8, 9
NEWEST, NEXT_ORDER, HEAP_SIZE, MAX_USED, SWEEP_AT, PEAK_LIVE = 10, 11, 12, 13, 14, 15
EXPOSED, GROUP, CONSUMED = 16, 17, 18
REGISTERS = 19
"""Cells of `regs`: current row of the batch, time, number of the next event, rows of output; free
lists, peaks and counts of tokens and links, the token that was made last; the size of the heap, the
longest chain of used events, and the number of tokens at which to sweep; the first exposed token,
the first row of the current event (with PER, of its current key), and whether it was consumed."""

OUT_TIME, OUT_STARTED, OUT_AT, OUT_USED, OUT_VALUES = 0, 1, 2, 3, 4
"""Columns of the output: when a match ended and began, the event of the batch that completed it (or
followed its timer), the end of its used events in `out_used`, and the values of the parameters."""


@bundle
class KernelAutomaton(NamedTuple):
    """The tables of a pattern; `x_from` has the first line of each entry in table `x`."""

    edge_of: Ints2
    edges: Longs2
    ops: Ints2
    ops_from: Ints1
    guards: Longs2
    guards_from: Ints1
    leasts: Longs2
    leasts_from: Ints1
    orders: Longs2
    orders_from: Ints1
    edges_out: Ints1
    edges_out_from: Ints1
    sources: Ints1
    sources_from: Ints1
    watches: Longs2
    watches_from: Ints1
    watched: Ints1
    watched_from: Ints1
    noise_stops: Longs1
    """By state the edges, as bits, that noise blocks: those to which no NOT applies."""
    timers: Longs2
    timers_from: Ints1
    key: Ints2
    key_slots: Ints1
    shown: Ints1
    zones: int
    slots: int
    context: int
    per_key: bool


@bundle
class TokenArrays(NamedTuple):
    """The tokens of a pattern, their chains, and their timers."""

    data: Longs2
    links: Longs2
    chains: Ints2
    heap: Longs2
    keys: Table
    regs: Longs1
    source: Ints2

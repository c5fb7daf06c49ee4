"""A deterministic pattern as flat arrays, to be run by a compiled loop.

A token is a state, its slots (0: not bound), the entry time of each zone, the time of its last move
and a bit for each NOT of its state that was seen (`spoilt`). State 0 is no token.

**An event** of type e, with values v, at time t, for a token in state s (s = 0: may one begin?):

1. m = `move_of[s, e]`; if it is -1, the token cannot use the event.
2. If one of `nots.of(m)` is spoilt: it cannot.
3. Each (zone, least) of `held.of(m)`: last - entry[zone] >= least, or it cannot.
4. Each (zone, amount) of `latest.of(m)`: t <= entry[zone] + amount, or it cannot.
5. Each (inner, outer, amount) of `order.of(m)`: entry[inner] + amount <= entry[outer], or not.
6. `slots.of(m)` in their order, (kind, argument, number): see table_rows.py; or it cannot.

If it can, the move is *forward* unless `flags[m] & SPARE`. To make it: bind; entry[zone] = t for
`enters.of(m)`; last = t; spoilt = 0; state = `target[m]`. Then, if one (zone, least) of
`early.of(m)` has t - entry[zone] < least, the token is dropped: the event was used. Else if
`flags[m] & FINAL` and all (zone, least) of `ends.of(m)` have t - entry[zone] >= least, it is
complete. Else it waits.

**Not used**: each negation n of `state_nots.of(s)` with `not_type[n] == e` whose `not_slots.of(n)`
hold (they bind nothing) is spoilt. The *deadline* of a token is the greatest, over the moves of
`state_moves.of(s)` that 2, 3 and 5 do not close, of the least entry + amount of 4; for a timer, its
end. A token with no such move, or whose deadline is before the present time, is dropped.

**Time**: m = `timer_of[s]`, if not -1, fires when the time is greater than end = (last if
`timer_from_last[m]`, else entry[`timer_zone[m]`]) + `timer_length[m]`, if 2 to 5 allow it with
t = end. Before 4 the zones of `enters.of(m)` get the time of the last move, not t; the rest is as
above. If 4 does not allow it, the timer is no way on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.events.table_rows import Known, letter_rows, not_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from graphtide.events.automaton import Letter, Spans
    from graphtide.events.determine import Deterministic, Move

FINAL: Final = 1
SPARE: Final = 2


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of rows: those of i are `cells[first[i]:first[i + 1]]`."""

    first: NDArray[np.int64]
    cells: NDArray[np.int64]

    def of(self, i: int) -> list[tuple[int, ...]]:
        """The rows of i, for reading in Python.

        >>> ragged([[(1, 2)], []], 2).of(0)
        [(1, 2)]
        """
        return [tuple(row) for row in self.cells[self.first[i] : self.first[i + 1]].tolist()]


def ragged(groups: Sequence[Iterable[tuple[int, ...]]], width: int) -> Ragged:
    """Groups of rows of a width, as arrays.

    >>> ragged([[(1, 2)], [(3, 4), (5, 6)]], 2).first.tolist()
    [0, 1, 3]
    """
    rows = [list(group) for group in groups]
    first = np.cumsum(np.array([0, *map(len, rows)], np.int64))
    flat = [row for group in rows for row in group]
    return Ragged(first, np.array(flat, np.int64).reshape(len(flat), width))


@dataclass(frozen=True, slots=True)
class Tables:
    """The arrays; the module says how to read them. `key` are the slots of PER."""

    move_of: NDArray[np.int64]
    target: NDArray[np.int64]
    flags: NDArray[np.int64]
    slots: Ragged
    enters: Ragged
    held: Ragged
    latest: Ragged
    order: Ragged
    early: Ragged
    ends: Ragged
    nots: Ragged
    state_moves: Ragged
    state_nots: Ragged
    not_type: NDArray[np.int64]
    not_slots: Ragged
    timer_of: NDArray[np.int64]
    timer_zone: NDArray[np.int64]
    timer_length: NDArray[np.int64]
    timer_from_last: NDArray[np.int64]
    parameters: NDArray[np.int64]
    key: NDArray[np.int64]
    slot_count: int
    zone_count: int


def make_tables(form: Deterministic) -> Tables:
    """The arrays of a pattern that is deterministic; says why if it is not.

    >>> from graphtide.events.compile import compile_pattern
    >>> from graphtide.events.determine import determine
    >>> from graphtide.lang.event_algebra import Atom, Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> form = determine(compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1))
    >>> make_tables(form).move_of.tolist()
    [[0, -1], [-1, 1], [-1, -1]]
    """
    if form.why_not:
        raise GraphtideError(
            f"the pattern {form.automaton.name} is not deterministic: {'; '.join(form.why_not)}",
            hint="run it with Detector",
        )
    automaton, moves = form.automaton, [move for out in form.moves for move in out]
    number = {(move.source, move.letter): i for i, move in enumerate(moves)}
    known = Known(form)
    firsts = [move.members[0] for move in moves]
    timers = [automaton.positions[first.target].timer for first in firsts]
    return Tables(
        move_of=_move_of(form, number),
        target=_ints(move.target for move in moves),
        flags=_ints(FINAL * bool(move.final) + SPARE * move.spare for move in moves),
        slots=ragged([letter_rows(move, known) for move in moves], 3),
        enters=ragged([_entered(move) for move in moves], 1),
        held=ragged([first.held for first in firsts], 2),
        latest=ragged([first.bounds[0].latest for first in firsts], 2),
        order=ragged([first.bounds[0].order for first in firsts], 3),
        early=ragged([first.early for first in firsts], 2),
        ends=ragged([_ends(move) for move in moves], 2),
        nots=ragged([[(n,) for n in first.nots] for first in firsts], 1),
        state_moves=ragged([[(number[m.source, m.letter],) for m in out] for out in form.moves], 1),
        state_nots=ragged([_nots(out) for out in form.moves], 1),
        not_type=_ints(n.letter.type if n.letter else -1 for n in automaton.negations),
        not_slots=ragged([not_rows(n) for n in automaton.negations], 3),
        timer_of=_ints(number.get((s, None), -1) for s in range(len(form.states))),
        timer_zone=_ints(timer[0] if timer else -1 for timer in timers),
        timer_length=_ints(timer[1] if timer else -1 for timer in timers),
        timer_from_last=_ints(
            bool(timer and timer[0] in first.enters)
            for first, timer in zip(firsts, timers, strict=True)
        ),
        parameters=_ints(automaton.parameters),
        key=_ints(automaton.per),
        slot_count=len(automaton.variables),
        zone_count=len(automaton.zones),
    )


def _ints(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), np.int64)


def _move_of(
    form: Deterministic, number: dict[tuple[int, Letter | None], int]
) -> NDArray[np.int64]:
    made = np.full((len(form.states), len(form.automaton.types)), -1, np.int64)
    for out in form.moves:
        for move in out:
            if move.letter is not None:
                made[move.source, move.letter.type] = number[move.source, move.letter]
    return made


def _entered(move: Move) -> list[tuple[int]]:
    zones = dict.fromkeys(zone for member in move.members for zone in member.enters)
    return [(zone,) for zone in zones]


def _nots(moves: tuple[Move, ...]) -> list[tuple[int]]:
    return [(n,) for n in sorted({n for move in moves for n in move.members[0].nots})]


def _ends(move: Move) -> Spans:
    """What must have held at the end: nothing, if there is a way to be there that asks nothing."""
    return () if () in move.final or not move.final else move.final[0]

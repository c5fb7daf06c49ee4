"""The tables of a deterministic pattern, to be run by a compiled loop.

A token is a state, its slots (0: not bound), the entry time of each zone, the time of its last move
and a bit for each NOT of its state that was violated (`violated`), and whether there was noise
since the last move (`noisy`, in contexts other than CHRONICLE). State 0 is no token.

**An event** of type e, with values v, at time t, for a token in state s (s = 0: may one begin?):

1. m = `move_of[s, e]`; if it is -1, the token cannot use the event.
2. If one of `nots.of(m)` is violated, or there are none and the token is noisy: it cannot.
3. Each (zone, least) of `held.of(m)`: last - entry[zone] >= least, or it cannot.
4. Each (zone, amount) of `latest.of(m)`: t <= entry[zone] + amount, or it cannot.
5. Each (inner, outer, amount) of `order.of(m)`: entry[inner] + amount <= entry[outer], or not.
6. `slots.of(m)` in their order, (kind, argument, number): see below; or it cannot.

If it can, the move is *forward* unless `flags[m] & SPARE`. To make it: bind; entry[zone] = t for
`enters.of(m)`; last = t; violated = 0, noisy = false; state = `target[m]`. Then, if one (zone,
least) of `early.of(m)` has t - entry[zone] < least, the token is dropped: the event was used. Else
if `flags[m] & FINAL` and all (zone, least) of `ends.of(m)` have t - entry[zone] >= least, it is
complete. Else it waits.

**Not used**: each negation n of `state_nots.of(s)` with `not_type[n] == e` whose `not_slots.of(n)`
hold (they bind nothing) is violated. The *deadline* of a token is the greatest, over the moves of
`state_moves.of(s)` that 2, 3 and 5 do not close, of the least entry + amount of 4; for a timer, its
end. A token with no such move, or whose deadline is before the present time, is dropped.

**Time**: m = `timer_of[s]`, if not -1, fires when the time is greater than end = (last if
`timer_from_last[m]`, else entry[`timer_zone[m]`]) + `timer_length[m]`, if 2 to 5 allow it with
t = end. Before 4 the zones of `enters.of(m)` get the time of the last move, not t; the rest is as
above. If 4 does not allow it, the timer is no way on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.kernel.tokens.tables import KernelAutomaton
from graphtide.patterns.automaton import CONSTANT, SLOT, Automaton, Letter, Negation, Spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.patterns.determine import Deterministic, TokenMove


# --- The conditions of letters on arguments, as rows (kind, argument, number) of a table.
#
# Rows are evaluated in order. The meaning of `number` depends on the kind:
#
# - BIND: slot `number` gets the value; CHECK: it must have it; UNIFY: CHECK if not 0, else BIND;
# - EQUALS: the value must be the id `number`;
# - AS_SLOT: as CHECK, if the slot is not 0; SAME: the value must be that of the argument `number`.
#   Only in NOT, which binds nothing.

BIND: Final = 0
CHECK: Final = 1
UNIFY: Final = 2
EQUALS: Final = 3
AS_SLOT: Final = 4
SAME: Final = 5

Row = tuple[int, int, int]


class BoundSlots:
    """The slots that are bound in a state: `surely[s]` on all paths to it, `maybe[s]` on some."""

    def __init__(self, form: Deterministic) -> None:
        everything = frozenset(range(len(form.automaton.variables)))
        self.surely = [everything for _ in form.states]
        self.maybe = [frozenset[int]() for _ in form.states]
        self.surely[0] = frozenset()
        changed = True
        while changed:
            spread = [self._spread(move) for out in form.moves for move in out]
            changed = any(spread)

    def _spread(self, move: TokenMove) -> bool:
        bound = frozenset() if move.letter is None else _slots(move.letter)
        surely = self.surely[move.target] & (self.surely[move.source] | bound)
        maybe = self.maybe[move.target] | self.maybe[move.source] | bound
        changed = (surely, maybe) != (self.surely[move.target], self.maybe[move.target])
        self.surely[move.target], self.maybe[move.target] = surely, maybe
        return changed


def letter_rows(move: TokenMove, known: BoundSlots) -> list[Row]:
    """The rows of a move's letter."""
    rows: list[Row] = []
    if move.letter is None:
        return rows
    bound, maybe = set(known.surely[move.source]), known.maybe[move.source]
    for i, (kind, number) in enumerate(move.letter.arguments):
        if kind == CONSTANT:
            rows.append((EQUALS, i, number))
        elif kind == SLOT:
            unsure = UNIFY if number in maybe else BIND
            rows.append((CHECK if number in bound else unsure, i, number))
            bound.add(number)
    return rows


def not_rows(negation: Negation) -> list[Row]:
    """The rows of a NOT of one letter."""
    rows: list[Row] = []
    seen: dict[int, int] = {}
    for i, (kind, number) in enumerate(negation.letter.arguments if negation.letter else ()):
        if kind == CONSTANT:
            rows.append((EQUALS, i, number))
        elif kind == SLOT:
            rows += [(SAME, i, seen[number])] if number in seen else [(AS_SLOT, i, number)]
            seen.setdefault(number, i)
    return rows


def _slots(letter: Letter) -> frozenset[int]:
    return frozenset(number for kind, number in letter.arguments if kind == SLOT)


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
    """The arrays, as the module describes them. `key` are the slots of PER."""

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
    """The tables of a deterministic pattern; an error with the reasons if it is not.

    >>> from graphtide.patterns.compile import compile_pattern
    >>> from graphtide.patterns.determine import determine
    >>> from graphtide.lang.tide.ast import Atom, Follows, PatternDeclaration
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
    known = BoundSlots(form)
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


def _entered(move: TokenMove) -> list[tuple[int]]:
    zones = dict.fromkeys(zone for member in move.members for zone in member.enters)
    return [(zone,) for zone in zones]


def _nots(moves: tuple[TokenMove, ...]) -> list[tuple[int]]:
    return [(n,) for n in sorted({n for move in moves for n in move.members[0].nots})]


def _ends(move: TokenMove) -> Spans:
    """The bounds for accepting; none, if one way to accept has none."""
    return () if () in move.final or not move.final else move.final[0]


# --- The tables of the kernel.

MAX_BITS: Final = 60
"""Most edges of one state, and most zones of a pattern: they are bits of an integer."""

CONTEXTS: Final = ("CHRONICLE", "IMMEDIATE", "STRICT")

Rows = list[tuple[int, ...]]


def why_no_kernel(form: Deterministic) -> tuple[str, ...]:
    """Reasons why the kernel cannot run a pattern; empty if it can."""
    reasons = list(form.why_not)
    automaton = form.automaton
    if any(len(out) > MAX_BITS for out in form.moves) or len(automaton.zones) > MAX_BITS:
        reasons.append(f"more than {MAX_BITS} ways on from one state")
    if not set(automaton.per) <= set(key_of(automaton)[0]):
        reasons.append("what PER counts by stands at several places of one event")
    return tuple(dict.fromkeys(reasons))


def key_of(automaton: Automaton) -> tuple[tuple[int, ...], Ints]:
    """The slots that all events share, and their arguments by type.

    With PER and a context in which noise counts, these are the slots of PER alone.
    """
    letters = automaton.letters()
    shared = set.intersection(*({n for k, n in a.arguments if k == SLOT} for a in letters))
    if automaton.skip != "NO SKIP" or (automaton.per and automaton.noisy):
        shared &= set(automaton.per)
    found: dict[int, Ints] = {}
    for slot in sorted(shared):
        places = _places(letters, slot, len(automaton.types))
        if places is not None:
            found[slot] = places
    key = np.full((len(automaton.types), len(found)), -1, np.int32)
    for column, places in enumerate(found.values()):
        key[:, column] = places
    return tuple(found), key


def _places(letters: Sequence[Letter], slot: int, types: int) -> Ints | None:
    """The argument of a slot by type (-1: none); None if letters of one type disagree."""
    places: Ints = np.full(types, -1, np.int32)
    for type_ in {letter.type for letter in letters}:
        all_places = [
            {i for i, argument in enumerate(letter.arguments) if argument == (SLOT, slot)}
            for letter in letters
            if letter.type == type_
        ]
        common = set.intersection(*all_places)
        if not common:
            return None
        places[type_] = min(common)
    return places


def kernel_automaton(form: Deterministic, tables: Tables) -> KernelAutomaton:
    """The kernel's tables of a pattern."""
    return _KernelTables(form, tables).automaton()


class _KernelTables:
    """Builds the kernel's tables: moves are edges, each with a bit in its state."""

    def __init__(self, form: Deterministic, tables: Tables) -> None:
        self.form, self.tables = form, tables
        self.out = [[m for (m,) in tables.state_moves.of(s)] for s in range(len(form.states))]
        self.bit = {m: i for moves in self.out for i, m in enumerate(moves)}
        self.edges = range(len(tables.target))
        self.types = tables.move_of.shape[1]

    def automaton(self) -> KernelAutomaton:
        """The tables."""
        tables, automaton = self.tables, self.form.automaton
        slots, key = key_of(automaton)
        ops = [_op(row) for m in self.edges for row in tables.slots.of(m)]
        watches, not_ops = self._watches(len(ops))
        columns: dict[str, Any] = {}
        for name, groups, width in (
            ("leasts", [self._leasts(m) for m in self.edges], 4),
            ("orders", [self._orders(m) for m in self.edges], 4),
            ("watches", watches, 3),
            ("timers", self._timers(), 3),
        ):
            made = ragged(groups, width)
            columns |= {name: made.cells, f"{name}_from": made.first.astype(np.int32)}
        for name, lists in (
            ("edges_out", self.out),
            ("sources", [_rows_with(tables.move_of[:, t]) for t in range(self.types)]),
            ("watched", self._watched(watches)),
        ):
            made = ragged([[(each,) for each in group] for group in lists], 1)
            flat = made.cells[:, 0].astype(np.int32)
            columns |= {name: flat, f"{name}_from": made.first.astype(np.int32)}
        return KernelAutomaton(
            edge_of=tables.move_of.astype(np.int32),
            edges=self._edges(),
            ops=np.array(ops + not_ops, np.int32).reshape(-1, 3),
            ops_from=tables.slots.first.astype(np.int32),
            guards=tables.latest.cells,
            guards_from=tables.latest.first.astype(np.int32),
            noise_stops=self._noise_stops(),
            key=key,
            key_slots=np.array(slots, np.int32),
            shown=np.array(automaton.parameters, np.int32),
            zones=len(automaton.zones),
            slots=len(automaton.variables),
            context=CONTEXTS.index(automaton.context),
            per_key=bool(automaton.per),
            **columns,
        )

    def _edges(self) -> Longs:
        tables = self.tables
        timers = [m for moves in self.out for m in moves if tables.timer_length[m] >= 0]
        rows = []
        for m in self.edges:
            flags, target = int(tables.flags[m]), int(tables.target[m])
            enters = [zone for (zone,) in tables.enters.of(m)]
            # The zone of a timer that counts from the last event begins with that event.
            enters += [
                int(tables.timer_zone[later])
                for later in self.out[target]
                if tables.timer_from_last[later]
            ]
            if tables.timer_from_last[m]:
                enters.remove(int(tables.timer_zone[m]))
            mask = sum(1 << zone for zone in set(enters))
            final, spare = int(bool(flags & FINAL)), int(bool(flags & SPARE))
            timer = timers.index(m) if m in timers else -1
            rows.append((target, final, spare, self.bit[m], mask, timer))
        return np.array(rows, np.int64).reshape(-1, 6)

    def _leasts(self, m: int) -> Rows:
        """Lower bounds of zones when an edge arrives: for accepting, and for later edges."""
        tables = self.tables
        rows: Rows = [(zone, least, -1, 1) for zone, least in tables.early.of(m)]
        rows += [(zone, least, 0, 1) for zone, least in tables.ends.of(m)]
        for later in self.out[tables.target[m]]:
            held = tables.held.of(later)
            rows += [(zone, least, 1 << self.bit[later], 0) for zone, least in held]
        return rows

    def _orders(self, m: int) -> Rows:
        return [
            (inner, outer, amount, 1 << self.bit[later])
            for later in self.out[self.tables.target[m]]
            for inner, outer, amount in self.tables.order.of(later)
        ]

    def _watches(self, ops: int) -> tuple[list[Rows], Rows]:
        """For each state and type the NOTs that apply, and their ops."""
        groups: list[Rows] = [[] for _ in range(len(self.out) * self.types)]
        not_ops: Rows = []
        for state, moves in enumerate(self.out):
            for (number,) in self.tables.state_nots.of(state):
                letter = self.form.automaton.negations[number].letter
                if letter is None:
                    continue
                own = _letter_ops(letter)
                first = ops + len(not_ops)
                not_ops += own
                stops = [m for m in moves if (number,) in self.tables.nots.of(m)]
                mask = sum(1 << self.bit[m] for m in stops)
                place = state * self.types + letter.type
                groups[place].append((first, first + len(own), mask))
        return groups, not_ops

    def _noise_stops(self) -> Longs:
        plain = [[m for m in moves if not self.tables.nots.of(m)] for moves in self.out]
        return np.array([sum(1 << self.bit[m] for m in moves) for moves in plain], np.int64)

    def _watched(self, watches: list[Rows]) -> list[list[int]]:
        states = range(len(self.out))
        return [[s for s in states if watches[s * self.types + t]] for t in range(self.types)]

    def _timers(self) -> list[Rows]:
        tables = self.tables
        return [
            [(m, int(tables.timer_zone[m]), int(tables.timer_length[m]))
             for m in moves if tables.timer_length[m] >= 0]
            for moves in self.out
        ]  # fmt: skip


def _op(row: tuple[int, ...]) -> tuple[int, int, int]:
    kind, argument, number = row
    return (argument, -1, number) if kind == EQUALS else (argument, number, 0)


def _letter_ops(letter: Letter) -> Rows:
    return [
        (i, -1, number) if kind == CONSTANT else (i, number, 0)
        for i, (kind, number) in enumerate(letter.arguments)
        if kind in (CONSTANT, SLOT)
    ]


def _rows_with(column: Longs) -> list[int]:
    return [state for state, move in enumerate(column.tolist()) if move >= 0]

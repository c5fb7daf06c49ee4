"""From the tables of a deterministic pattern to those of the kernel, and when that can be done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphtide.events.automaton import CONSTANT, SLOT
from graphtide.events.table_rows import EQUALS
from graphtide.events.tables import FINAL, SPARE, ragged
from graphtide.kernel.token_tables import Automaton as KernelAutomaton

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.events.automaton import Automaton, Letter
    from graphtide.events.determine import Deterministic
    from graphtide.events.tables import Tables
    from graphtide.kernel.batch import Ints, Longs

MOST_BITS: Final = 60
"""Edges that may leave one state, and zones of a pattern: they are bits of a number."""

CONTEXTS: Final = ("CHRONICLE", "IMMEDIATE", "STRICT")

Rows = list[tuple[int, ...]]


def why_no_kernel(form: Deterministic) -> tuple[str, ...]:
    """What keeps a pattern from being run by the kernel; nothing, if it can be."""
    reasons = list(form.why_not)
    automaton = form.automaton
    if any(len(out) > MOST_BITS for out in form.moves) or len(automaton.zones) > MOST_BITS:
        reasons.append(f"more than {MOST_BITS} ways on from one state")
    if not set(automaton.per) <= set(key_of(automaton)[0]):
        reasons.append("what PER counts by stands at several places of one event")
    return tuple(dict.fromkeys(reasons))


def key_of(automaton: Automaton) -> tuple[tuple[int, ...], Ints]:
    """The slots that all events share, and where events of each type have them.

    With PER and a context that looks at noise, these are the slots of PER alone.
    """
    letters = automaton.letters()
    shared = set.intersection(*({n for k, n in a.arguments if k == SLOT} for a in letters))
    if automaton.per and automaton.context != "CHRONICLE":
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
    """Where events of each type have a slot (-1: nowhere); None if that is not always the same."""
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
    return _Made(form, tables).automaton()


class _Made:
    """The kernel's tables while they are made: moves are edges, with a bit in their state each."""

    def __init__(self, form: Deterministic, tables: Tables) -> None:
        self.form, self.tables = form, tables
        self.out = [[m for (m,) in tables.state_moves.of(s)] for s in range(len(form.states))]
        self.bit = {m: i for moves in self.out for i, m in enumerate(moves)}
        self.edges = range(len(tables.target))
        self.types = tables.move_of.shape[1]

    def automaton(self) -> KernelAutomaton:
        """All of them."""
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
            # A time that counts from an event begins when that event comes.
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
        """What has to have lasted when an edge arrives, for the pattern's end and what follows."""
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
        """For each state and type what must not come, and the ops of that."""
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

"""What letters ask of the arguments of an event, as rows (kind, argument, number) of a table.

Rows are worked off in order. What `number` is depends on the kind:

- BIND: slot `number` gets the value; CHECK: it must have it; UNIFY: CHECK if not 0, else BIND;
- EQUALS: the value must be the id `number`;
- AS_SLOT: as CHECK, if the slot is not 0; SAME: the value must be that of the argument `number`.
  Only in NOT, which binds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.events.automaton import CONSTANT, SLOT, Letter

if TYPE_CHECKING:
    from graphtide.events.automaton import Negation
    from graphtide.events.determine import Deterministic, Move

BIND: Final = 0
CHECK: Final = 1
UNIFY: Final = 2
EQUALS: Final = 3
AS_SLOT: Final = 4
SAME: Final = 5

Row = tuple[int, int, int]


class Known:
    """Which slots are bound in a state: `surely[s]` on every way to it, `maybe[s]` on some way."""

    def __init__(self, form: Deterministic) -> None:
        everything = frozenset(range(len(form.automaton.variables)))
        self.surely = [everything for _ in form.states]
        self.maybe = [frozenset[int]() for _ in form.states]
        self.surely[0] = frozenset()
        changed = True
        while changed:
            spread = [self._spread(move) for out in form.moves for move in out]
            changed = any(spread)

    def _spread(self, move: Move) -> bool:
        bound = frozenset() if move.letter is None else _slots(move.letter)
        surely = self.surely[move.target] & (self.surely[move.source] | bound)
        maybe = self.maybe[move.target] | self.maybe[move.source] | bound
        changed = (surely, maybe) != (self.surely[move.target], self.maybe[move.target])
        self.surely[move.target], self.maybe[move.target] = surely, maybe
        return changed


def letter_rows(move: Move, known: Known) -> list[Row]:
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
    """The rows of what a NOT of one event looks for."""
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

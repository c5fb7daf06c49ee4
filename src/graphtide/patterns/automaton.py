"""The automaton of a pattern: positions, transitions, and zones (parts with time bounds).

There is one *position* for each event of the pattern, after `{n}`, AND and ALL are expanded.
Position 0 is the start. A transition leads from one position to a possible next one; it waits for
the event of its target, and says which zones begin, go on and end with it, and which NOT applies
meanwhile. There is no trap state: a token that would be in one is dropped.

A transition from p to q is taken by an event at time t that matches the letter of q:

1. it is blocked if one of `nots` was seen since p, or if there are none and there was noise since p
   (in contexts that care about noise: it may come only where a NOT applies);
2. `held`: of each (zone, least), the time at p minus the zone's entry must be at least `least`;
3. `bounds`: one of them must allow t (see `Bound`), so that the end can still be reached;
4. the slots of the letter are bound or compared; zones in `enters` get t as their entry;
5. `early`: of each (zone, least), t minus the entry must be at least `least`; if not, the event is
   consumed and the token is dropped.

A position with a `timer` waits for no event but for the time entry + length of its zone; if its
transition enters that zone, the entry is the time at p.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression, Var
    from graphtide.lang.tide.ast import Context, Not, Skip
    from graphtide.patterns.gather import Evaluator
    from graphtide.patterns.tokens import Event

ANY: Final = 0
CONSTANT: Final = 1
SLOT: Final = 2
"""An argument of a letter: any value, a constant id, or the value of a slot (variable)."""

START: Final = 0

Argument = tuple[int, int]
"""(ANY, 0), (CONSTANT, id) or (SLOT, slot)."""

Spans = tuple[tuple[int, int], ...]
"""(zone, length) pairs."""


@dataclass(frozen=True, slots=True)
class Letter:
    """The condition of a transition on its event: the type, and each argument."""

    type: int
    arguments: tuple[Argument, ...]

    def match(self, event: Event, slots: tuple[int, ...]) -> tuple[int, ...] | None:
        """The slots after this letter has consumed an event; None if it does not match.

        >>> from graphtide.patterns.tokens import Event
        >>> Letter(0, ((SLOT, 0), (SLOT, 0))).match(Event(0, (7, 7), 1), (0,))
        (7,)
        >>> Letter(0, ((SLOT, 0), (CONSTANT, 3))).match(Event(0, (7, 4), 1), (0,)) is None
        True
        """
        if event.type != self.type:
            return None
        bound = list(slots)
        for (kind, number), value in zip(self.arguments, event.values, strict=True):
            if kind == CONSTANT and value != number:
                return None
            if kind == SLOT:
                if bound[number] not in {0, value}:
                    return None
                bound[number] = value
        return tuple(bound)


@dataclass(frozen=True, slots=True)
class Zone:
    """A part with WITHIN (`most`) or HOLDS FOR (`least`), in ticks."""

    number: int
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """The latest time of a transition from which the end can still be reached in time.

    That is entry + amount for each (zone, amount) of `latest`. The transition is blocked unless for
    each (inner, outer, amount) of `order` the inner entry + amount is at most the outer entry.
    """

    latest: Spans = ()
    order: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition between positions; see the module. `spare`: it only repeats a loop.

    `greedy` are the loops that it repeats: an event that can do so takes none of the transitions
    that leave the loop, of which it is among `past`.
    """

    source: int
    target: int
    spare: bool = False
    greedy: tuple[int, ...] = ()
    past: tuple[int, ...] = ()
    enters: tuple[int, ...] = ()
    crosses: tuple[int, ...] = ()
    leaves: tuple[int, ...] = ()
    held: Spans = ()
    early: Spans = ()
    bounds: tuple[Bound, ...] = (Bound(),)
    nots: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AutomatonPosition:
    """One event of the pattern, or one timer.

    `final` lists the ways to accept here: each a tuple of (zone, least) that must have held. An
    event has to meet the `condition`; it is retained under the number `gathers`, if that is given.
    """

    number: int
    letter: Letter | None
    timer: tuple[int, int] | None
    zones: tuple[int, ...]
    final: tuple[Spans, ...]
    name: str
    gathers: int | None = None
    condition: Expression | None = None

    @property
    def surely_final(self) -> bool:
        """Whether a token is always complete here."""
        return () in self.final


@dataclass(frozen=True, slots=True)
class Negation:
    """A NOT: one letter, or an automaton of its own over the same slots."""

    number: int
    node: Not
    letter: Letter | None
    automaton: Automaton


@dataclass(frozen=True, slots=True)
class Automaton:
    """A compiled pattern. `transitions[p]` leave position p; slot i holds `variables[i]`."""

    name: str
    positions: tuple[AutomatonPosition, ...]
    transitions: tuple[tuple[Transition, ...], ...]
    zones: tuple[Zone, ...]
    negations: tuple[Negation, ...]
    variables: tuple[Var, ...]
    parameters: tuple[int, ...]
    context: Context
    per: tuple[int, ...]
    types: tuple[str, ...] = field(default=())
    skip: Skip = "NO SKIP"
    computed: tuple[tuple[int, Expression], ...] = ()
    """Slots of parameters with the expressions of their values."""
    gathered: int = 0
    """How many names of events are retained."""
    evaluator: Evaluator | None = field(default=None, compare=False, repr=False)

    @property
    def noisy(self) -> bool:
        """Whether events that no instance consumes may drop instances."""
        return self.context in ("IMMEDIATE", "STRICT")

    @property
    def gathers(self) -> bool:
        """Whether events have conditions on others, or parameters are computed."""
        denied = any(n.automaton.gathers for n in self.negations)
        return denied or bool(self.computed) or any(p.condition for p in self.positions)

    def letters(self) -> list[Letter]:
        """All distinct letters, with those of NOT."""
        own = [p.letter for p in self.positions if p.letter is not None]
        inner = [l for n in self.negations for l in n.automaton.letters()]
        return list(dict.fromkeys(own + inner))

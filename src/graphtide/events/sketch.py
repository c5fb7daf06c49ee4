"""A pattern as a graph of states and free steps, before the free steps are taken out.

A *place* is what becomes a position. Between places lead edges that cost no event but carry
*marks*: a zone begins or ends, a NOT has been passed, a loop goes round. `links.py` follows them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from graphtide.errors import GraphtideError
from graphtide.lang.pattern_facts import MOST_POSITIONS

if TYPE_CHECKING:
    from graphtide.events.automaton import Letter, Zone


class Mark(NamedTuple):
    """What an edge passes. `plain` is open if no NOT is pending in the zone, `absent` if one is."""

    kind: Literal["enter", "leave", "not", "spare", "plain", "absent"]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Rest:
    """After a part more has to follow: for `amount` at least, and longer if it `moves`."""

    amount: int
    moves: bool


@dataclass(frozen=True, slots=True)
class Inside:
    """A part is a zone; `forced`: it ends by its timer and in no other way."""

    zone: Zone
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Beside:
    """A part of ALL; for each other part that is not over, the ways to go on: chain, new zones."""

    others: tuple[tuple[tuple[Chain, frozenset[int]], ...], ...]


Chain = tuple[Rest | Inside | Beside, ...]
"""What lies between a place and the end of the pattern, from the inside out."""


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the making: `before` and `after` are its states."""

    before: int
    after: int
    letter: Letter | None
    timer: tuple[int, int] | None
    zones: tuple[int, ...]
    chain: Chain
    name: str


@dataclass(slots=True)
class Sketch:
    """States, edges between them, and places."""

    places: list[Place] = field(default_factory=list)
    edges: dict[int, list[tuple[int, tuple[Mark, ...]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    states: int = 0

    def state(self) -> int:
        """A new state."""
        self.states += 1
        return self.states - 1

    def edge(self, source: int, target: int, *marks: Mark) -> None:
        """A free step."""
        self.edges[source].append((target, marks))

    def place(
        self,
        letter: Letter | None,
        chain: Chain,
        zones: tuple[int, ...],
        name: str,
        timer: tuple[int, int] | None = None,
    ) -> Place:
        """A new place."""
        if len(self.places) >= MOST_POSITIONS:
            raise GraphtideError(
                f"the pattern has more than {MOST_POSITIONS:,} positions",
                hint="{n} is n copies, AND and ALL are every order of their parts: use fewer",
            )
        made = Place(self.state(), self.state(), letter, timer, zones, chain, name)
        self.places.append(made)
        return made

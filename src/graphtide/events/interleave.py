"""ALL: the parts go on side by side. A position is a place of each part, and who moved last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.events.links import END, Link, all_links
from graphtide.events.sketch import Beside, Chain, Mark, Place

if TYPE_CHECKING:
    from graphtide.events.build import Builder, Ends
    from graphtide.events.sketch import Sketch
    from graphtide.lang.event_algebra import EventPattern

BEGIN = -1
"""A part that has not begun."""

State = tuple[int, ...]
"""Where each part is: a place of its sketch, or BEGIN."""


@dataclass(slots=True)
class Part:
    """One operand: its own sketch, and the links from its beginning and from each of its places."""

    sketch: Sketch
    links: dict[int, list[Link]]

    def ahead(self, at: int) -> list[Link]:
        """The links to places that may come next."""
        return [link for link in self.links[at] if link.target != END]

    def over(self, at: int) -> Link | None:
        """The link to the end, if the part may end here."""
        return next((link for link in self.links[at] if link.target == END), None)


def interleave(
    builder: Builder, parts: tuple[EventPattern, ...], chain: Chain, zones: tuple[int, ...]
) -> Ends:
    """Adds ALL to the builder's sketch."""
    operands = [_part(builder, node) for node in parts]
    sketch = builder.sketch
    start, end = sketch.state(), sketch.state()
    made: dict[tuple[State, int], Place] = {}
    todo: list[tuple[int, State]] = [(start, (BEGIN,) * len(parts))]
    while todo:
        source, state = todo.pop()
        closing = [part.over(at) for part, at in zip(operands, state, strict=True)]
        if all(link is not None for link in closing):
            left = [Mark("leave", z) for link in closing if link is not None for z in link.leaves]
            sketch.edge(source, end, *left)
        for i, part in enumerate(operands):
            for link in part.ahead(state[i]):
                after = (*state[:i], link.target, *state[i + 1 :])
                if (after, i) not in made:
                    made[after, i] = _placed(sketch, operands, after, i, chain, zones)
                    todo.append((made[after, i].after, after))
                sketch.edge(source, made[after, i].before, *_marks(link))
    return start, end


def _part(builder: Builder, node: EventPattern) -> Part:
    inner = builder.beside()
    start, end = inner.build(node)
    states = [start, *(place.after for place in inner.sketch.places)]
    found = all_links(inner.sketch, states, end)
    return Part(inner.sketch, dict(enumerate(found, start=BEGIN)))


def _marks(link: Link) -> list[Mark]:
    """Zones of a part: those it leaves, those it begins."""
    left = [Mark("leave", zone) for zone in link.leaves]
    return left + [Mark("enter", zone) for zone, _ in link.enters]


def _placed(
    sketch: Sketch, operands: list[Part], state: State, moved: int, chain: Chain, zones: State
) -> Place:
    place = operands[moved].sketch.places[state[moved]]
    others, active = [], list(zones)
    for i, (part, at) in enumerate(zip(operands, state, strict=True)):
        active += [] if at == BEGIN else part.sketch.places[at].zones
        if i != moved and part.over(at) is None:
            others.append(_ways_on(part, at))
    around = (*place.chain, Beside(tuple(others)), *chain)
    return sketch.place(place.letter, around, tuple(active), place.name)


def _ways_on(part: Part, at: int) -> tuple[tuple[Chain, frozenset[int]], ...]:
    """How a part that is not over may go on: the chain of its next place, and its new zones."""
    return tuple(
        (part.sketch.places[link.target].chain, frozenset(zone for zone, _ in link.enters))
        for link in part.ahead(at)
    )

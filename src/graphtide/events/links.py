"""Takes the free steps out of a sketch: which place may follow which, and what lies between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.events.sketch import Mark, Sketch

END = -1
"""The target of a link that ends the pattern."""


@dataclass(frozen=True, slots=True)
class Link:
    """The marks on a way from one place to another, summed up; `target` counts places.

    `enters` says of each zone how many NOTs had been passed before it.
    """

    target: int
    spare: bool = False
    enters: tuple[tuple[int, int], ...] = ()
    leaves: tuple[int, ...] = ()
    nots: tuple[int, ...] = ()


def all_links(sketch: Sketch, states: Sequence[int], end: int) -> list[list[Link]]:
    """The links from each of some states.

    >>> from graphtide.events.sketch import Sketch
    >>> sketch = Sketch()
    >>> end = sketch.state()
    >>> all_links(sketch, [end], end)
    [[Link(target=-1, spare=False, enters=(), leaves=(), nots=())]]
    """
    place_of = {place.before: i for i, place in enumerate(sketch.places)}
    return [_links(sketch, state, end, place_of) for state in states]


def _links(sketch: Sketch, state: int, end: int, place_of: dict[int, int]) -> list[Link]:
    """All links from a state to places, and to the end; a spare one only if there is no other."""
    found = dict.fromkeys(_ways(sketch, state, end, place_of))
    return [l for l in found if not (l.spare and replace(l, spare=False) in found)]


def _ways(sketch: Sketch, start: int, end: int, place_of: dict[int, int]) -> Iterator[Link]:
    """Walks on free steps; no way passes a state twice, none is walked twice with equal marks."""
    seen: set[tuple[int, Link]] = set()
    stack: list[tuple[int, Link, frozenset[int]]] = [(start, Link(END), frozenset())]
    while stack:
        state, link, passed = stack.pop()
        if (state, link) in seen or state in passed:
            continue
        seen.add((state, link))
        if state in place_of:
            yield replace(link, target=place_of[state])
            continue
        if state == end:
            yield link
        for target, marks in reversed(sketch.edges.get(state, [])):
            after = _marked(link, marks)
            if after is not None:
                stack.append((target, after, passed | {state}))


def _marked(link: Link, marks: tuple[Mark, ...]) -> Link | None:
    """A link that passes some more marks; None if one of them is closed to it."""
    for kind, number in marks:
        match kind:
            case "spare":
                link = replace(link, spare=True)
            case "not":
                link = replace(link, nots=(*link.nots, number))
            case "enter":
                link = replace(link, enters=(*link.enters, (number, len(link.nots))))
            case "leave":
                link = _left(link, number)
            case "plain" | "absent":
                pending = len(link.nots) > dict(link.enters).get(number, 0)
                if pending != (kind == "absent"):
                    return None
            case _:
                assert_never(kind)
    return link


def _left(link: Link, zone: int) -> Link:
    """A zone that ends; one in which nothing happened never began."""
    if zone in dict(link.enters):
        return replace(link, enters=tuple(e for e in link.enters if e[0] != zone))
    return replace(link, leaves=(*link.leaves, zone))

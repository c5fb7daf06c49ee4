"""From the nodes of a pattern to a sketch: `{n}` becomes copies, AND every order."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Var
from graphtide.errors import GraphtideError
from graphtide.events.automaton import ANY, CONSTANT, SLOT, Argument, Letter, Zone
from graphtide.events.interleave import interleave
from graphtide.events.measure import Measure, only_timer
from graphtide.events.sketch import Chain, Inside, Mark, Rest, Sketch
from graphtide.lang.event_algebra import (
    Atom,
    Both,
    Either,
    EventPattern,
    Follows,
    HoldsFor,
    Interleaved,
    Not,
    Repeat,
    Within,
)
from graphtide.lang.pattern_facts import has_event, last_absence
from graphtide.plan.wording import short

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.rdf.term import Term

Ends = tuple[int, int]
"""The first and the last state of a part."""


class Names:
    """What the parts of one pattern share: slots, zones, NOTs, and how things are called."""

    def __init__(
        self, types: Mapping[str, int], encode: Callable[[Term], int], tick_ms: int
    ) -> None:
        self.types = types
        self.encode = encode
        self.measure = Measure(tick_ms)
        self.slots: dict[Var, int] = {}

    def letter(self, atom: Atom) -> Letter:
        """What an atom asks of an event."""
        if atom.event not in self.types:
            raise GraphtideError(f"there is no event {atom.event}")
        return Letter(self.types[atom.event], tuple(map(self._argument, atom.arguments)))

    def slot(self, variable: Var) -> int:
        """The slot of a variable."""
        return self.slots.setdefault(variable, len(self.slots))

    def _argument(self, argument: Var | Term | None) -> Argument:
        if argument is None:
            return (ANY, 0)
        if isinstance(argument, Var):
            return (SLOT, self.slot(argument))
        return (CONSTANT, self.encode(argument))


class Builder:
    """Builds the sketch of one automaton; those of NOT are somebody else's."""

    def __init__(
        self, names: Names, zones: list[Zone] | None = None, nots: dict[Not, int] | None = None
    ) -> None:
        self.names = names
        self.measure = names.measure
        self.zones: list[Zone] = [] if zones is None else zones
        self.nots: dict[Not, int] = {} if nots is None else nots
        self.sketch = Sketch()

    def beside(self) -> Builder:
        """A builder of another sketch of the same automaton."""
        return Builder(self.names, self.zones, self.nots)

    def build(self, node: EventPattern, chain: Chain = (), zones: tuple[int, ...] = ()) -> Ends:
        """Adds a part to the sketch; `chain` and `zones` say what is around it.

        >>> builder = Builder(Names({"A": 0}, lambda term: 1, 1))
        >>> ends = builder.build(Repeat(Atom("A", ()), 3, 3))
        >>> len(builder.sketch.places)
        3
        """
        match node:
            case Atom():
                place = self.sketch.place(self.names.letter(node), chain, zones, atom_text(node))
                return place.before, place.after
            case Not():
                return self._joined(Mark("not", self.nots.setdefault(node, len(self.nots))))
            case Follows(parts):
                return self._follows(parts, chain, zones)
            case Either(parts):
                return self._either(parts, chain, zones)
            case Both():
                return self._both(flat(node), chain, zones)
            case Interleaved(parts):
                return interleave(self, parts, chain, zones)
            case Repeat():
                return self._repeat(node, chain, zones)
            case Within() | HoldsFor():
                return self._zone(node, chain, zones)
            case _:
                assert_never(node)

    def _joined(self, *marks: Mark) -> Ends:
        start, end = self.sketch.state(), self.sketch.state()
        self.sketch.edge(start, end, *marks)
        return start, end

    def _rest(self, *parts: EventPattern) -> Rest:
        shortest = sum(map(self.measure.shortest, parts))
        return Rest(shortest, any(map(has_event, parts)))

    def _follows(
        self, parts: tuple[EventPattern, ...], chain: Chain, zones: tuple[int, ...]
    ) -> Ends:
        start = end = self.sketch.state()
        for i, part in enumerate(parts, start=1):
            first, last = self.build(part, (self._rest(*parts[i:]), *chain), zones)
            self.sketch.edge(end, first)
            end = last
        return start, end

    def _either(
        self, parts: tuple[EventPattern, ...], chain: Chain, zones: tuple[int, ...]
    ) -> Ends:
        start, end = self.sketch.state(), self.sketch.state()
        for part in parts:
            first, last = self.build(part, chain, zones)
            self.sketch.edge(start, first)
            self.sketch.edge(last, end)
        return start, end

    def _both(self, parts: tuple[EventPattern, ...], chain: Chain, zones: tuple[int, ...]) -> Ends:
        """A hub for each set of parts that are over: orders that have done the same go on alike."""
        everything = frozenset(range(len(parts)))
        hubs = {frozenset[int](): self.sketch.state()}
        for done in hubs_in_order(len(parts)):
            for i in sorted(everything - done):
                after = done | {i}
                rest = self._rest(*(parts[j] for j in sorted(everything - after)))
                first, last = self.build(parts[i], (rest, *chain), zones)
                self.sketch.edge(hubs[done], first)
                self.sketch.edge(last, hubs.setdefault(after, self.sketch.state()))
        return hubs[frozenset()], hubs[everything]

    def _repeat(self, node: Repeat, chain: Chain, zones: tuple[int, ...]) -> Ends:
        """Copies; of those that may be left out each has a way round it, the last may go round."""
        part, least, most = node.part, node.least, node.most
        copies = max(least, 1) if most is None else most
        shortest = self.measure.shortest(part)
        start = end = self.sketch.state()
        for i in range(1, copies + 1):
            more = most is None or i < most
            rest = Rest(max(least - i, 0) * shortest, more and has_event(part))
            first, last = self.build(part, (rest, *chain), zones)
            after = self.sketch.state()
            self.sketch.edge(end, first)
            self.sketch.edge(last, after)
            if i > least:
                self.sketch.edge(end, after)
            if most is None and i == copies:
                self.sketch.edge(last, first, Mark("spare"))
            end = after
        return start, end

    def _zone(self, node: Within | HoldsFor, chain: Chain, zones: tuple[int, ...]) -> Ends:
        ticks = self.measure.ticks(node)
        number = len(self.zones)
        upper = isinstance(node, Within)
        zone = Zone(number, 0, ticks) if upper else Zone(number, ticks or 0)
        self.zones.append(zone)
        absent = upper and last_absence(node.part) is not None
        forced = upper and only_timer(node.part)
        inside = (*zones, number)
        first, last = self.build(node.part, (Inside(zone, forced), *chain), inside)
        start, end = self.sketch.state(), self.sketch.state()
        self.sketch.edge(start, first, Mark("enter", number))
        plain = (Mark("plain", number),) if upper else ()
        self.sketch.edge(last, end, *plain, Mark("leave", number))
        if absent and ticks is not None:
            timer = (number, ticks)
            place = self.sketch.place(None, (Inside(zone), *chain), inside, "time", timer)
            self.sketch.edge(last, place.before, Mark("absent", number))
            self.sketch.edge(place.after, end, Mark("leave", number))
        return start, end


def hubs_in_order(parts: int) -> list[frozenset[int]]:
    """All sets of parts but the whole one, smaller ones first.

    >>> [sorted(hub) for hub in hubs_in_order(2)]
    [[], [0], [1]]
    """
    sets = [frozenset(i for i in range(parts) if n >> i & 1) for n in range(2**parts - 1)]
    return sorted(sets, key=lambda hub: (len(hub), sorted(hub)))


def flat(node: Both) -> tuple[EventPattern, ...]:
    """The parts of an AND, those of ANDs in it as its own.

    >>> a = Atom("A", ())
    >>> len(flat(Both((a, Both((a, a))))))
    3
    """
    return tuple(
        p for part in node.parts for p in (flat(part) if isinstance(part, Both) else [part])
    )


def atom_text(atom: Atom) -> str:
    """An atom as a program writes it.

    >>> atom_text(Atom("A", (Var("x"), None)))
    'A(?x, _)'
    """
    arguments = ", ".join("_" if a is None else short(a) for a in atom.arguments)
    return f"{atom.event}({arguments})" if arguments else atom.event

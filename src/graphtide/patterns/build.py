"""From a pattern to its sketch: an automaton with free (epsilon) edges.

`{n}` becomes copies, AND and ALL every order of their parts. `all_links` eliminates free edges.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, assert_never

from graphtide.algebra.expressions import Var
from graphtide.errors import GraphtideError
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.pattern_facts import MAX_POSITIONS, has_event, last_absence
from graphtide.patterns.automaton import ANY, CONSTANT, SLOT, Argument, Letter, Zone
from graphtide.patterns.gather import condition_text
from graphtide.patterns.measure import Measure, only_timer
from graphtide.plan.describe import short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from graphtide.patterns.gather import EventNames
    from graphtide.rdf.terms import Term


# --- The sketch.
#
# A *place* becomes a position. Free edges between places consume no event, but carry *marks*: a
# zone begins or ends, a NOT applies, a loop is repeated.


class EdgeMark(NamedTuple):
    """A mark. `plain` is passable if no NOT is pending in the zone, `absent` if one is.

    `greedy` repeats a greedy loop, given by its number; `past` leaves it though it could go on.
    """

    kind: Literal["enter", "leave", "not", "spare", "greedy", "past", "plain", "absent"]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Rest:
    """At least `amount` ticks have to follow a part, and more may if `moves`."""

    amount: int
    moves: bool


@dataclass(frozen=True, slots=True)
class Inside:
    """A part is in a zone; `forced`: the zone ends by its timer only."""

    zone: Zone
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Beside:
    """A part of ALL; for each other part that is not complete, its continuations."""

    others: tuple[tuple[tuple[Chain, frozenset[int]], ...], ...]


Chain = tuple[Rest | Inside | Beside, ...]
"""The context of a place in the pattern, from the inside out."""


@dataclass(frozen=True, slots=True)
class SketchState:
    """A place: `before` and `after` are its states."""

    before: int
    after: int
    letter: Letter | None
    timer: tuple[int, int] | None
    zones: tuple[int, ...]
    chain: Chain
    name: str
    atom: tide.Atom | None = None


@dataclass(slots=True)
class Sketch:
    """States, free edges between them, and places."""

    places: list[SketchState] = field(default_factory=list)
    edges: dict[int, list[tuple[int, tuple[EdgeMark, ...]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    states: int = 0

    def state(self) -> int:
        """Add a state."""
        self.states += 1
        return self.states - 1

    def edge(self, source: int, target: int, *marks: EdgeMark) -> None:
        """Add a free edge."""
        self.edges[source].append((target, marks))

    def place(
        self,
        letter: Letter | None,
        chain: Chain,
        zones: tuple[int, ...],
        name: str,
        timer: tuple[int, int] | None = None,
        atom: tide.Atom | None = None,
    ) -> SketchState:
        """Add a place."""
        if len(self.places) >= MAX_POSITIONS:
            raise GraphtideError(
                f"the pattern has more than {MAX_POSITIONS:,} positions",
                hint="{n} is n copies, AND and ALL are every order of their parts: use fewer",
            )
        made = SketchState(self.state(), self.state(), letter, timer, zones, chain, name, atom)
        self.places.append(made)
        return made


# --- Elimination of free edges: which place may follow which, with the marks in between.

END = -1
"""The target of a link that ends the pattern."""


@dataclass(frozen=True, slots=True)
class SketchLink:
    """The marks of a path from one place to another; `target` is the index of a place.

    `enters` has for each zone the number of NOTs before it.
    """

    target: int
    spare: bool = False
    greedy: tuple[int, ...] = ()
    past: tuple[int, ...] = ()
    enters: tuple[tuple[int, int], ...] = ()
    leaves: tuple[int, ...] = ()
    nots: tuple[int, ...] = ()


def all_links(sketch: Sketch, states: Sequence[int], end: int) -> list[list[SketchLink]]:
    """The links from each of some states.

    >>> sketch = Sketch()
    >>> end = sketch.state()
    >>> all_links(sketch, [end], end)
    [[SketchLink(target=-1, spare=False, greedy=(), past=(), enters=(), leaves=(), nots=())]]
    """
    place_of = {place.before: i for i, place in enumerate(sketch.places)}
    return [_links(sketch, state, end, place_of) for state in states]


def _links(sketch: Sketch, state: int, end: int, place_of: dict[int, int]) -> list[SketchLink]:
    """All links from a state to places and to the end; a spare one only if there is no other."""
    found = dict.fromkeys(_ways(sketch, state, end, place_of))
    return [l for l in found if not (l.spare and replace(l, spare=False) in found)]


def _ways(sketch: Sketch, start: int, end: int, place_of: dict[int, int]) -> Iterator[SketchLink]:
    """Follow free edges; no path visits a state twice, none is followed twice with equal marks."""
    seen: set[tuple[int, SketchLink]] = set()
    stack: list[tuple[int, SketchLink, frozenset[int]]] = [(start, SketchLink(END), frozenset())]
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


def _marked(link: SketchLink, marks: tuple[EdgeMark, ...]) -> SketchLink | None:
    """A link with more marks; None if one of them is not passable."""
    for kind, number in marks:
        match kind:
            case "spare":
                link = replace(link, spare=True)
            case "greedy":
                link = replace(link, greedy=(*link.greedy, number))
            case "past":
                link = replace(link, past=(*link.past, number))
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


def _left(link: SketchLink, zone: int) -> SketchLink:
    """A zone ends; one without an event never began."""
    if zone in dict(link.enters):
        return replace(link, enters=tuple(e for e in link.enters if e[0] != zone))
    return replace(link, leaves=(*link.leaves, zone))


# --- ALL: the product of its parts. A place is a place of each part, and the part that moved last.

BEGIN = -1
"""The place of a part that has not begun."""

State = tuple[int, ...]
"""The place of each part in its sketch, or BEGIN."""


@dataclass(slots=True)
class InterleavedPart:
    """An operand: its own sketch, and the links from its beginning and from its places."""

    sketch: Sketch
    links: dict[int, list[SketchLink]]

    def ahead(self, at: int) -> list[SketchLink]:
        """The links to places that may come next."""
        return [link for link in self.links[at] if link.target != END]

    def over(self, at: int) -> SketchLink | None:
        """The link to the end, if the part may end here."""
        return next((link for link in self.links[at] if link.target == END), None)


def interleave(
    builder: Builder, parts: tuple[tide.EventPattern, ...], chain: Chain, zones: tuple[int, ...]
) -> Ends:
    """Add ALL to the builder's sketch."""
    operands = [_part(builder, node) for node in parts]
    sketch = builder.sketch
    start, end = sketch.state(), sketch.state()
    made: dict[tuple[State, int], SketchState] = {}
    todo: list[tuple[int, State]] = [(start, (BEGIN,) * len(parts))]
    while todo:
        source, state = todo.pop()
        closing = [part.over(at) for part, at in zip(operands, state, strict=True)]
        if all(link is not None for link in closing):
            left = [
                EdgeMark("leave", z) for link in closing if link is not None for z in link.leaves
            ]
            sketch.edge(source, end, *left)
        for i, part in enumerate(operands):
            for link in part.ahead(state[i]):
                after = (*state[:i], link.target, *state[i + 1 :])
                if (after, i) not in made:
                    made[after, i] = _placed(sketch, operands, after, i, chain, zones)
                    todo.append((made[after, i].after, after))
                sketch.edge(source, made[after, i].before, *_marks(link))
    return start, end


def _part(builder: Builder, node: tide.EventPattern) -> InterleavedPart:
    inner = builder.beside()
    start, end = inner.build(node)
    states = [start, *(place.after for place in inner.sketch.places)]
    found = all_links(inner.sketch, states, end)
    return InterleavedPart(inner.sketch, dict(enumerate(found, start=BEGIN)))


def _marks(link: SketchLink) -> list[EdgeMark]:
    """Zones of a part: those it leaves, those it begins."""
    left = [EdgeMark("leave", zone) for zone in link.leaves]
    return left + [EdgeMark("enter", zone) for zone, _ in link.enters]


def _placed(
    sketch: Sketch,
    operands: list[InterleavedPart],
    state: State,
    moved: int,
    chain: Chain,
    zones: State,
) -> SketchState:
    place = operands[moved].sketch.places[state[moved]]
    others, active = [], list(zones)
    for i, (part, at) in enumerate(zip(operands, state, strict=True)):
        active += [] if at == BEGIN else part.sketch.places[at].zones
        if i != moved and part.over(at) is None:
            others.append(_ways_on(part, at))
    around = (*place.chain, Beside(tuple(others)), *chain)
    return sketch.place(place.letter, around, tuple(active), place.name, atom=place.atom)


def _ways_on(part: InterleavedPart, at: int) -> tuple[tuple[Chain, frozenset[int]], ...]:
    """The continuations of a part: the chain of its next place, and its new zones."""
    return tuple(
        (part.sketch.places[link.target].chain, frozenset(zone for zone, _ in link.enters))
        for link in part.ahead(at)
    )


Ends = tuple[int, int]
"""The first and the last state of a part."""


class PositionNames:
    """Numbers of a pattern's event types, constants and variables (slots)."""

    def __init__(
        self,
        types: Mapping[str, int],
        encode: Callable[[Term], int],
        tick_ms: int,
        events: EventNames | None = None,
    ) -> None:
        self._events = events
        self._loops = 0
        self.types = types
        self.encode = encode
        self.measure = Measure(tick_ms)
        self.slots: dict[Var, int] = {}

    def letter(self, atom: tide.Atom) -> Letter:
        """The letter of an atom."""
        if atom.event not in self.types:
            raise GraphtideError(f"there is no event {atom.event}")
        return Letter(self.types[atom.event], tuple(map(self._argument, atom.arguments)))

    def gathers(self, atom: tide.Atom | None) -> int | None:
        """The number under which an event is retained, if conditions or parameters refer to it."""
        known = self._events is not None and atom is not None and bool(atom.alias)
        return self._events.number(atom.alias) if known else None  # type: ignore[union-attr]

    def greedy_marks(self) -> tuple[tuple[EdgeMark, ...], tuple[EdgeMark, ...]]:
        """The marks of one more greedy loop: to repeat it, and to leave it."""
        self._loops += 1
        return (EdgeMark("greedy", self._loops),), (EdgeMark("past", self._loops),)

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
    """Builds the sketch of one automaton; those of composite NOTs are built apart."""

    def __init__(
        self,
        names: PositionNames,
        zones: list[Zone] | None = None,
        nots: dict[tide.Not, int] | None = None,
    ) -> None:
        self.names = names
        self.measure = names.measure
        self.zones: list[Zone] = [] if zones is None else zones
        self.nots: dict[tide.Not, int] = {} if nots is None else nots
        self.sketch = Sketch()

    def beside(self) -> Builder:
        """A builder of another sketch of the same automaton."""
        return Builder(self.names, self.zones, self.nots)

    def build(
        self, node: tide.EventPattern, chain: Chain = (), zones: tuple[int, ...] = ()
    ) -> Ends:
        """Add a part to the sketch; `chain` and `zones` are its context.

        >>> builder = Builder(PositionNames({"A": 0}, lambda term: 1, 1))
        >>> ends = builder.build(tide.Repeat(tide.Atom("A", ()), 3, 3))
        >>> len(builder.sketch.places)
        3
        """
        match node:
            case tide.Atom():
                letter, text = self.names.letter(node), atom_text(node)
                place = self.sketch.place(letter, chain, zones, text, atom=node)
                return place.before, place.after
            case tide.Not():
                return self._joined(EdgeMark("not", self.nots.setdefault(node, len(self.nots))))
            case tide.Follows(parts):
                return self._follows(parts, chain, zones)
            case tide.Either(parts):
                return self._either(parts, chain, zones)
            case tide.Both():
                return self._both(flat(node), chain, zones)
            case tide.Interleaved(parts):
                return interleave(self, parts, chain, zones)
            case tide.Repeat():
                return self._repeat(node, chain, zones)
            case tide.Within() | tide.HoldsFor():
                return self._zone(node, chain, zones)
            case _:
                assert_never(node)

    def _joined(self, *marks: EdgeMark) -> Ends:
        start, end = self.sketch.state(), self.sketch.state()
        self.sketch.edge(start, end, *marks)
        return start, end

    def _rest(self, *parts: tide.EventPattern) -> Rest:
        shortest = sum(map(self.measure.shortest, parts))
        return Rest(shortest, any(map(has_event, parts)))

    def _follows(
        self, parts: tuple[tide.EventPattern, ...], chain: Chain, zones: tuple[int, ...]
    ) -> Ends:
        start = end = self.sketch.state()
        for i, part in enumerate(parts, start=1):
            first, last = self.build(part, (self._rest(*parts[i:]), *chain), zones)
            self.sketch.edge(end, first)
            end = last
        return start, end

    def _either(
        self, parts: tuple[tide.EventPattern, ...], chain: Chain, zones: tuple[int, ...]
    ) -> Ends:
        start, end = self.sketch.state(), self.sketch.state()
        for part in parts:
            first, last = self.build(part, chain, zones)
            self.sketch.edge(start, first)
            self.sketch.edge(last, end)
        return start, end

    def _both(
        self, parts: tuple[tide.EventPattern, ...], chain: Chain, zones: tuple[int, ...]
    ) -> Ends:
        """A state for each set of completed parts: orders of the same parts share it."""
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

    def _repeat(self, node: tide.Repeat, chain: Chain, zones: tuple[int, ...]) -> Ends:
        """Copies; an optional copy can be skipped, the last one of `{+}` and `{*}` is a loop."""
        part, least, most = node.part, node.least, node.most
        again, past = self.names.greedy_marks() if node.greedy else ((EdgeMark("spare"),), ())
        copies = max(least, 1) if most is None else most
        shortest = self.measure.shortest(part)
        start = end = self.sketch.state()
        for i in range(1, copies + 1):
            more = most is None or i < most
            rest = Rest(max(least - i, 0) * shortest, more and has_event(part))
            first, last = self.build(part, (rest, *chain), zones)
            after = self.sketch.state()
            loops = most is None and i == copies
            optional = i > max(least, 0 if node.greedy else 1)
            self.sketch.edge(end, first, *(again if optional else ()))
            self.sketch.edge(last, after, *(past if loops else ()))
            if i > least:
                self.sketch.edge(end, after, *past)
            if loops:
                self.sketch.edge(last, first, *again)
            end = after
        return start, end

    def _zone(
        self, node: tide.Within | tide.HoldsFor, chain: Chain, zones: tuple[int, ...]
    ) -> Ends:
        ticks = self.measure.ticks(node)
        number = len(self.zones)
        upper = isinstance(node, tide.Within)
        zone = Zone(number, 0, ticks) if upper else Zone(number, ticks or 0)
        self.zones.append(zone)
        absent = upper and last_absence(node.part) is not None
        forced = upper and only_timer(node.part)
        inside = (*zones, number)
        first, last = self.build(node.part, (Inside(zone, forced), *chain), inside)
        start, end = self.sketch.state(), self.sketch.state()
        self.sketch.edge(start, first, EdgeMark("enter", number))
        plain = (EdgeMark("plain", number),) if upper else ()
        self.sketch.edge(last, end, *plain, EdgeMark("leave", number))
        if absent and ticks is not None:
            timer = (number, ticks)
            place = self.sketch.place(None, (Inside(zone), *chain), inside, "time", timer)
            self.sketch.edge(last, place.before, EdgeMark("absent", number))
            self.sketch.edge(place.after, end, EdgeMark("leave", number))
        return start, end


def hubs_in_order(parts: int) -> list[frozenset[int]]:
    """All sets of parts but the whole one, smaller ones first.

    >>> [sorted(hub) for hub in hubs_in_order(2)]
    [[], [0], [1]]
    """
    sets = [frozenset(i for i in range(parts) if n >> i & 1) for n in range(2**parts - 1)]
    return sorted(sets, key=lambda hub: (len(hub), sorted(hub)))


def flat(node: tide.Both) -> tuple[tide.EventPattern, ...]:
    """The parts of an AND, those of ANDs in it as its own.

    >>> a = tide.Atom("A", ())
    >>> len(flat(tide.Both((a, tide.Both((a, a))))))
    3
    """
    return tuple(
        p for part in node.parts for p in (flat(part) if isinstance(part, tide.Both) else [part])
    )


def atom_text(atom: tide.Atom) -> str:
    """An atom as a program writes it.

    >>> atom_text(tide.Atom("A", (Var("x"), None)))
    'A(?x, _)'
    """
    arguments = ", ".join("_" if a is None else short(a) for a in atom.arguments)
    text = f"{atom.event}({arguments})" if arguments else atom.event
    text += f" AS {atom.alias}" if atom.alias not in ("", atom.event) else ""
    return f"{text} WHERE {condition_text(atom.condition)}" if atom.condition else text

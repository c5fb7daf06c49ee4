"""What the benchmark does with matches: select some, and repair violations or inject new ones.

A transformation is a function from a selected match, as texts of terms, to changes. It reads only
its match and the `TransformationContext`, which creates new vertices and has what was looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from benchmarks.datasets.train import RDF_TYPE, Scenario, length_literal, length_value, name, vertex
from benchmarks.harness import BenchmarkError

if TYPE_CHECKING:
    from benchmarks.datasets.java_random import JavaRandom
    from graphtide.kernel.batch import Ints

Triple = tuple[str, str, str]
Match = tuple[str, ...]

NEW_LENGTH: Final = 500

POSITIONS: Final = tuple(name(f"POSITION_{each}") for each in ("FAILURE", "STRAIGHT", "DIVERGING"))
"""An injection turns a switch to the next position."""

# ---- selecting matches ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatchSelection:
    """`fixed`: a number of matches; `proportional`: a percentage of them.

    >>> MatchSelection("proportional", 5).count(39)
    1
    """

    kind: Literal["fixed", "proportional"]
    constant: int

    def count(self, matches: int) -> int:
        """How many of `matches` matches to take."""
        wanted = self.constant if self.kind == "fixed" else matches * self.constant // 100
        return min(wanted, matches)

    def choose(self, rows: Ints, random: JavaRandom) -> Ints:
        """Shuffle all rows and take the first ones, as the public benchmark does."""
        chosen: Ints = rows[random.shuffled(len(rows))[: self.count(len(rows))]]
        return chosen

    def __str__(self) -> str:
        return f"{self.kind}:{self.constant}"


class WorkloadDefaults(NamedTuple):
    """What the benchmark's own workloads select, and in how many rounds."""

    selection: MatchSelection
    rounds: int


DEFAULTS: Final[dict[Scenario, WorkloadDefaults]] = {
    "batch": WorkloadDefaults(MatchSelection("fixed", 10), 0),
    "inject": WorkloadDefaults(MatchSelection("fixed", 10), 12),
    "repair": WorkloadDefaults(MatchSelection("proportional", 5), 8),
}


def parse_selection(text: str) -> MatchSelection:
    """Read `fixed:N` or `proportional:P`.

    >>> parse_selection("fixed:10")
    MatchSelection(kind='fixed', constant=10)
    """
    kind, _, number = text.partition(":")
    if number.isascii() and number.isdecimal():
        constant = int(number)
        if kind == "fixed" and constant > 0:
            return MatchSelection("fixed", constant)
        if kind == "proportional" and 0 < constant <= 100:
            return MatchSelection("proportional", constant)
    raise BenchmarkError(
        f"invalid selection {text!r}",
        hint="write fixed:10 for ten matches, or proportional:5 for five percent",
    )


# ---- transforming matches ------------------------------------------------------------------------


TripleChange = tuple[int, Triple]
"""An insert (+1) or delete (-1) of a triple. A plain tuple: to make it is part of what is timed."""


def _insert(s: str, p: str, o: str) -> TripleChange:
    return +1, (s, p if p == RDF_TYPE else name(p), o)


def _delete(s: str, p: str, o: str) -> TripleChange:
    return -1, (s, name(p), o)


@dataclass(slots=True)
class TransformationContext:
    """The number of the last vertex, and what has been looked up for the selected matches.

    `triples` are those of a segment, `sensors` those of a switch; `removed` are removed segments.
    """

    last_vertex: int
    triples: dict[str, list[Triple]] = field(default_factory=dict)
    sensors: dict[str, list[str]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    def new_vertex(self) -> str:
        """The IRI of a new vertex, with the next number."""
        self.last_vertex += 1
        return vertex(self.last_vertex)


Transformation = Callable[[Match, TransformationContext], Iterator[TripleChange]]


def repair_pos_length(match: Match, context: TransformationContext) -> Iterator[TripleChange]:
    """Make the length positive, unless another repair has removed the segment."""
    segment, length = match
    if segment not in context.removed:
        yield _delete(segment, "length", length)
        yield _insert(segment, "length", length_literal(1 - length_value(length)))


def repair_switch_monitored(match: Match, context: TransformationContext) -> Iterator[TripleChange]:
    """Add a new sensor to the switch."""
    sensor = context.new_vertex()
    yield _insert(sensor, RDF_TYPE, name("Sensor"))
    yield _insert(match[0], "monitoredBy", sensor)


def repair_route_sensor(match: Match, _: TransformationContext) -> Iterator[TripleChange]:
    """Let the route require the sensor."""
    yield _insert(match[0], "requires", match[1])


def repair_switch_set(match: Match, _: TransformationContext) -> Iterator[TripleChange]:
    """Turn the switch to the prescribed position."""
    switch, current, prescribed = match[-3:]
    yield _delete(switch, "currentPosition", current)
    yield _insert(switch, "currentPosition", prescribed)


def repair_semaphore_neighbor(match: Match, _: TransformationContext) -> Iterator[TripleChange]:
    """Make the semaphore the entry of the second route."""
    yield _insert(match[2], "entry", match[0])


def repair_connected_segments(
    match: Match, context: TransformationContext
) -> Iterator[TripleChange]:
    """Remove the second segment with all its triples, and connect its neighbours."""
    segment1, segment2, segment3 = match[1:4]
    for triple in context.triples[segment2]:
        yield -1, triple
    context.removed.add(segment2)
    yield _insert(segment1, "connectsTo", segment3)


def inject_pos_length(match: Match, context: TransformationContext) -> Iterator[TripleChange]:
    """Set the length to 0."""
    segment, length = match
    if segment not in context.removed:
        yield _delete(segment, "length", length)
        yield _insert(segment, "length", length_literal(0))


def inject_switch_monitored(match: Match, context: TransformationContext) -> Iterator[TripleChange]:
    """Remove all sensors of the switch."""
    for sensor in context.sensors.get(match[0], ()):
        yield _delete(match[0], "monitoredBy", sensor)


def inject_route_sensor(match: Match, _: TransformationContext) -> Iterator[TripleChange]:
    """Let the route no longer require the sensor."""
    yield _delete(match[0], "requires", match[1])


def inject_switch_set(match: Match, _: TransformationContext) -> Iterator[TripleChange]:
    """Turn the switch to the next position."""
    switch, current = match
    at = POSITIONS.index(current)
    yield _delete(switch, "currentPosition", current)
    yield _insert(switch, "currentPosition", POSITIONS[(at + 1) % len(POSITIONS)])


def inject_semaphore_neighbor(match: Match, _: TransformationContext) -> Iterator[TripleChange]:
    """Remove the entry of the route."""
    yield _delete(match[0], "entry", match[1])


def inject_connected_segments(
    match: Match, context: TransformationContext
) -> Iterator[TripleChange]:
    """Insert a new segment between two connected ones."""
    sensor, segment1, segment3 = match
    segment2 = context.new_vertex()
    yield _insert(segment2, RDF_TYPE, name("Segment"))
    yield _insert(segment2, RDF_TYPE, name("TrackElement"))
    yield _insert(segment2, "length", length_literal(NEW_LENGTH))
    yield _insert(segment1, "connectsTo", segment2)
    yield _insert(segment2, "connectsTo", segment3)
    yield _insert(segment2, "monitoredBy", sensor)
    yield _delete(segment1, "connectsTo", segment3)


TRANSFORMATIONS: Final[dict[tuple[Scenario, str], Transformation]] = {
    ("repair", "ConnectedSegments"): repair_connected_segments,
    ("repair", "PosLength"): repair_pos_length,
    ("repair", "RouteSensor"): repair_route_sensor,
    ("repair", "SemaphoreNeighbor"): repair_semaphore_neighbor,
    ("repair", "SwitchSet"): repair_switch_set,
    ("repair", "SwitchMonitored"): repair_switch_monitored,
    ("inject", "ConnectedSegments"): inject_connected_segments,
    ("inject", "PosLength"): inject_pos_length,
    ("inject", "RouteSensor"): inject_route_sensor,
    ("inject", "SemaphoreNeighbor"): inject_semaphore_neighbor,
    ("inject", "SwitchSet"): inject_switch_set,
    ("inject", "SwitchMonitored"): inject_switch_monitored,
}

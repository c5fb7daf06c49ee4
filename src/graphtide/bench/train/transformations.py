"""What the benchmark does to a match: repairs of violations, and injections of new ones.

A transformation is a function from chosen matches, as texts of terms, to changes. It looks at
nothing but its match and a `Yard`, which makes new vertices and knows what was looked up before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from graphtide.bench.train.vocabulary import RDF_TYPE, length_literal, length_value, name, vertex

if TYPE_CHECKING:
    from graphtide.bench.train.vocabulary import Scenario

Triple = tuple[str, str, str]
Change = tuple[int, Triple]
Match = tuple[str, ...]

NEW_LENGTH: Final = 500

TURNS: Final = ("POSITION_FAILURE", "POSITION_STRAIGHT", "POSITION_DIVERGING")


@dataclass(slots=True)
class Yard:
    """The number of the last vertex, and what has been looked up for the chosen matches."""

    last_vertex: int
    triples: dict[str, list[Triple]] = field(default_factory=dict)
    sensors: dict[str, list[str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def new_vertex(self) -> str:
        """The IRI of a new vertex: numbers go on from the highest one there was."""
        self.last_vertex += 1
        return vertex(self.last_vertex)


Transformation = Callable[[Match, Yard], Iterator[Change]]


def repair_pos_length(match: Match, yard: Yard) -> Iterator[Change]:
    """Make the length positive; a segment that another repair removed is left alone."""
    segment, length = match
    if segment not in yard.gone:
        mended = length_literal(1 - length_value(length))
        yield -1, (segment, name("length"), length)
        yield +1, (segment, name("length"), mended)


def repair_switch_monitored(match: Match, yard: Yard) -> Iterator[Change]:
    """Give the switch a new sensor."""
    sensor = yard.new_vertex()
    yield +1, (sensor, RDF_TYPE, name("Sensor"))
    yield +1, (match[0], name("monitoredBy"), sensor)


def repair_route_sensor(match: Match, _: Yard) -> Iterator[Change]:
    """Let the route require the sensor."""
    yield +1, (match[0], name("requires"), match[1])


def repair_switch_set(match: Match, _: Yard) -> Iterator[Change]:
    """Turn the switch as prescribed."""
    switch, current, prescribed = match[-3:]
    yield -1, (switch, name("currentPosition"), current)
    yield +1, (switch, name("currentPosition"), prescribed)


def repair_semaphore_neighbor(match: Match, _: Yard) -> Iterator[Change]:
    """Put the semaphore at the entry of the second route."""
    yield +1, (match[2], name("entry"), match[0])


def repair_connected_segments(match: Match, yard: Yard) -> Iterator[Change]:
    """Remove the second segment with all its triples, and connect its neighbours."""
    segment1, segment2, segment3 = match[1:4]
    for triple in yard.triples[segment2]:
        yield -1, triple
    yard.gone.add(segment2)
    yield +1, (segment1, name("connectsTo"), segment3)


def inject_pos_length(match: Match, yard: Yard) -> Iterator[Change]:
    """Make the length 0."""
    segment, length = match
    if segment not in yard.gone:
        yield -1, (segment, name("length"), length)
        yield +1, (segment, name("length"), length_literal(0))


def inject_switch_monitored(match: Match, yard: Yard) -> Iterator[Change]:
    """Take all its sensors from the switch."""
    for sensor in yard.sensors.get(match[0], ()):
        yield -1, (match[0], name("monitoredBy"), sensor)


def inject_route_sensor(match: Match, _: Yard) -> Iterator[Change]:
    """Let the route no longer require the sensor."""
    yield -1, (match[0], name("requires"), match[1])


def inject_switch_set(match: Match, _: Yard) -> Iterator[Change]:
    """Turn the switch on to the next position."""
    switch, current = match
    at = [name(turn) for turn in TURNS].index(current)
    yield -1, (switch, name("currentPosition"), current)
    yield +1, (switch, name("currentPosition"), name(TURNS[(at + 1) % len(TURNS)]))


def inject_semaphore_neighbor(match: Match, _: Yard) -> Iterator[Change]:
    """Take the semaphore from the entry of the route."""
    yield -1, (match[0], name("entry"), match[1])


def inject_connected_segments(match: Match, yard: Yard) -> Iterator[Change]:
    """Put a new segment between two connected ones."""
    sensor, segment1, segment3 = match
    segment2 = yard.new_vertex()
    yield +1, (segment2, RDF_TYPE, name("Segment"))
    yield +1, (segment2, RDF_TYPE, name("TrackElement"))
    yield +1, (segment2, name("length"), length_literal(NEW_LENGTH))
    yield +1, (segment1, name("connectsTo"), segment2)
    yield +1, (segment2, name("connectsTo"), segment3)
    yield +1, (segment2, name("monitoredBy"), sensor)
    yield -1, (segment1, name("connectsTo"), segment3)


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

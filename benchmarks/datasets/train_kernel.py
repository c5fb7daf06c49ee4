"""Term codes and the compiled loop that generates a railway model, route by route.

A term of a model is a code: constants, then lengths, then vertices. Each kind of error has a random
generator of its own, so that the structure of a model is the same in every scenario except for the
errors. Draws are made even where no error can occur, because later numbers depend on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from numba import njit

from benchmarks.datasets.java_random import next_int

if TYPE_CHECKING:
    from benchmarks.datasets.triples import Ints, Longs

NAMES: Final = (
    "Region", "Route", "Segment", "Semaphore", "Sensor", "Switch", "SwitchPosition",
    "TrackElement",
    "connectsTo", "elements", "entry", "exit", "follows", "monitoredBy", "requires", "semaphores",
    "sensors", "target",
    "active", "currentPosition", "length", "position", "signal",
    "SIGNAL_GO", "POSITION_FAILURE", "POSITION_STRAIGHT", "POSITION_DIVERGING",
)  # fmt: skip
"""Types, edges, attributes and values; the code of each is its index here."""

(
    REGION, ROUTE, SEGMENT, SEMAPHORE, SENSOR, SWITCH, SWITCH_POSITION,
    TRACK_ELEMENT,
    CONNECTS_TO, ELEMENTS, ENTRY, EXIT, FOLLOWS, MONITORED_BY, REQUIRES, SEMAPHORES,
    SENSORS, TARGET,
    ACTIVE, CURRENT_POSITION, LENGTH, POSITION, SIGNAL,
    SIGNAL_GO, POSITION_FAILURE, POSITION_STRAIGHT, POSITION_DIVERGING,
    TYPE, TRUE,
) = range(len(NAMES) + 2)  # fmt: skip

LEAST_LENGTH: Final = -998
MAX_LENGTH: Final = 1000

LENGTH_0: Final = len(NAMES) + 2 - LEAST_LENGTH
"""The code of a length is this plus the length."""

VERTEX_0: Final = LENGTH_0 + MAX_LENGTH + 1
"""The code of a vertex is this plus its number; vertices are numbered from 1."""

MAX_SWITCHES: Final = 20
MAX_SENSORS: Final = 10
SEGMENTS: Final = 5
MAX_ROWS: Final = 7100
"""Upper bound of a route's triples: 19 switches, 9 sensors each, 6 segments each."""

# Random generators: six kinds of error, missing links, and four for the structure.
(
    BAD_CONNECTED, BAD_LENGTH, BAD_REQUIRES, BAD_ENTRY, BAD_MONITORED, BAD_POSITION, BAD_LINK,
    LENGTHS, POSITIONS, SENSOR_COUNTS, SWITCH_COUNTS,
) = range(11)  # fmt: skip

# State carried from route to route: counts, and codes of vertices that are still needed.
(
    ROWS, VERTICES, ROUTES, FIRST_SEMAPHORE, LAST_SEMAPHORE, FIRST_ELEMENT, LAST_ELEMENT,
) = range(7)  # fmt: skip
CURSORS: Final = 7


@njit(cache=True)
def is_bad(states: Longs, rates: Longs, kind: int) -> bool:
    """Draw whether an error of this kind occurs here."""
    return bool(next_int(states, kind, 1000 if kind == BAD_LINK else 100) < rates[kind])


@njit(cache=True)
def put(out: Ints, cursors: Longs, s: int, p: int, o: int) -> None:
    """Write a triple."""
    row = cursors[ROWS]
    out[row, 0] = s
    out[row, 1] = p
    out[row, 2] = o
    cursors[ROWS] = row + 1


@njit(cache=True)
def put_vertex(out: Ints, cursors: Longs, kind: int) -> int:
    """Write the type of a new vertex; returns its code."""
    cursors[VERTICES] += 1
    code = VERTEX_0 + int(cursors[VERTICES])
    put(out, cursors, code, TYPE, kind)
    return code


@njit(cache=True)
def put_element(
    out: Ints, cursors: Longs, states: Longs, rates: Longs, kind: int, region: int, previous: int
) -> int:
    """Write a track element of a region, linked to the one before it on its route."""
    code = put_vertex(out, cursors, kind)
    put(out, cursors, code, TYPE, TRACK_ELEMENT)
    put(out, cursors, region, ELEMENTS, code)
    if previous == 0:
        if cursors[FIRST_ELEMENT] == 0:
            cursors[FIRST_ELEMENT] = code
        else:
            put(out, cursors, int(cursors[LAST_ELEMENT]), CONNECTS_TO, code)
    elif not is_bad(states, rates, BAD_LINK):
        put(out, cursors, previous, CONNECTS_TO, code)
    cursors[LAST_ELEMENT] = code
    return code


@njit(cache=True)
def put_semaphore(out: Ints, cursors: Longs) -> int:
    """Write a semaphore whose signal is GO."""
    code = put_vertex(out, cursors, SEMAPHORE)
    put(out, cursors, code, SIGNAL, SIGNAL_GO)
    return code


@njit(cache=True)
def put_segment(
    out: Ints, cursors: Longs, states: Longs, rates: Longs, region: int, sensor: int, previous: int
) -> int:
    """Write a segment that a sensor monitors."""
    bad = is_bad(states, rates, BAD_LENGTH)
    drawn = next_int(states, LENGTHS, MAX_LENGTH)
    code = put_element(out, cursors, states, rates, SEGMENT, region, previous)
    put(out, cursors, code, LENGTH, LENGTH_0 + (1 - drawn if bad else 1 + drawn))
    put(out, cursors, code, MONITORED_BY, sensor)
    return code


@njit(cache=True)
def put_sensor(
    out: Ints, cursors: Longs, states: Longs, rates: Longs, route: int, region: int, switch: int
) -> int:
    """Write a sensor of a switch, without its segments."""
    code = put_vertex(out, cursors, SENSOR)
    put(out, cursors, region, SENSORS, code)
    if not is_bad(states, rates, BAD_MONITORED):
        put(out, cursors, switch, MONITORED_BY, code)
        if not is_bad(states, rates, BAD_REQUIRES):
            put(out, cursors, route, REQUIRES, code)
    return code


@njit(cache=True)
def put_switches(
    out: Ints, cursors: Longs, states: Longs, rates: Longs, route: int, region: int, semaphore: int
) -> None:
    """Write the switches of a route, with their sensors, segments and positions."""
    previous = 0
    first = True
    for _ in range(1 + next_int(states, SWITCH_COUNTS, MAX_SWITCHES - 1)):
        position = next_int(states, POSITIONS, 3)
        switch = put_element(out, cursors, states, rates, SWITCH, region, previous)
        put(out, cursors, switch, CURRENT_POSITION, POSITION_FAILURE + position)
        previous = switch
        for _ in range(1 + next_int(states, SENSOR_COUNTS, MAX_SENSORS - 1)):
            sensor = put_sensor(out, cursors, states, rates, route, region, switch)
            for _ in range(SEGMENTS):
                previous = put_segment(out, cursors, states, rates, region, sensor, previous)
                if first:
                    put(out, cursors, previous, SEMAPHORES, semaphore)
                    first = False
            if is_bad(states, rates, BAD_CONNECTED):
                previous = put_segment(out, cursors, states, rates, region, sensor, previous)
        if is_bad(states, rates, BAD_POSITION):
            position = 2 - position
        prescribed = put_vertex(out, cursors, SWITCH_POSITION)
        put(out, cursors, prescribed, POSITION, POSITION_FAILURE + position)
        put(out, cursors, prescribed, TARGET, switch)
        put(out, cursors, route, FOLLOWS, prescribed)


@njit(cache=True)
def put_route(out: Ints, cursors: Longs, states: Longs, rates: Longs, routes: int) -> None:
    """Write a route with everything that belongs to it."""
    is_last = cursors[ROUTES] == routes - 1
    if cursors[ROUTES] == 0:
        cursors[FIRST_SEMAPHORE] = put_semaphore(out, cursors)
        cursors[LAST_SEMAPHORE] = cursors[FIRST_SEMAPHORE]
    entry = int(cursors[LAST_SEMAPHORE])
    leave = int(cursors[FIRST_SEMAPHORE]) if is_last else put_semaphore(out, cursors)
    cursors[LAST_SEMAPHORE] = leave
    bad = is_bad(states, rates, BAD_ENTRY)
    route = put_vertex(out, cursors, ROUTE)
    put(out, cursors, route, ACTIVE, TRUE)
    if not bad:
        put(out, cursors, route, ENTRY, entry)
    put(out, cursors, route, EXIT, leave)
    region = put_vertex(out, cursors, REGION)
    put_switches(out, cursors, states, rates, route, region, leave)
    if is_last:
        put(out, cursors, int(cursors[LAST_ELEMENT]), CONNECTS_TO, int(cursors[FIRST_ELEMENT]))
    cursors[ROUTES] += 1


@njit(cache=True)
def make_routes(states: Longs, rates: Longs, cursors: Longs, routes: int, out: Ints) -> int:
    """Write whole routes until the model is complete or the next may not fit; the rows written."""
    cursors[ROWS] = 0
    while cursors[ROUTES] < routes and cursors[ROWS] + MAX_ROWS <= len(out):
        put_route(out, cursors, states, rates, routes)
    return int(cursors[ROWS])

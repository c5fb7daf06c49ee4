"""The loop that makes a model: route by route, as triples of codes.

What belongs together is drawn from generators of its own, so that the structure of a model is the
same in every scenario but for the errors. Draws are always made, also where no error can come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.bench.java_random import next_int
from graphtide.bench.train.vocabulary import (
    ACTIVE,
    CONNECTS_TO,
    CURRENT_POSITION,
    ELEMENTS,
    ENTRY,
    EXIT,
    FOLLOWS,
    LENGTH,
    LENGTH_0,
    MONITORED_BY,
    POSITION,
    POSITION_FAILURE,
    REGION,
    REQUIRES,
    ROUTE,
    SEGMENT,
    SEMAPHORE,
    SEMAPHORES,
    SENSOR,
    SENSORS,
    SIGNAL,
    SIGNAL_GO,
    SWITCH,
    SWITCH_POSITION,
    TARGET,
    TRACK_ELEMENT,
    TRUE,
    TYPE,
    VERTEX_0,
)
from graphtide.jit import compiled, inlined

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints, Longs

MOST_SWITCHES: Final = 20
MOST_SENSORS: Final = 10
SEGMENTS: Final = 5
MOST_LENGTH: Final = 1000

MOST_ROWS: Final = 7100
"""No route has more triples: 19 switches, 9 sensors each, 6 segments each."""

# The generators: six kinds of error, links left out, and what the structure is drawn from.
(
    BAD_CONNECTED, BAD_LENGTH, BAD_REQUIRES, BAD_ENTRY, BAD_MONITORED, BAD_POSITION, BAD_LINK,
    LENGTHS, POSITIONS, SENSOR_COUNTS, SWITCH_COUNTS,
) = range(11)  # fmt: skip

# What goes on from route to route: counts, and the codes of vertices that are still needed.
(
    ROWS, VERTICES, ROUTES, FIRST_SEMAPHORE, LAST_SEMAPHORE, FIRST_ELEMENT, LAST_ELEMENT,
) = range(7)  # fmt: skip
MARKS: Final = 7


@inlined
def is_bad(states: Longs, rates: Longs, kind: int) -> bool:
    """Draw whether an error of this kind happens here."""
    return bool(next_int(states, kind, 1000 if kind == BAD_LINK else 100) < rates[kind])


@inlined
def put(out: Ints, marks: Longs, s: int, p: int, o: int) -> None:
    """Write a triple."""
    row = marks[ROWS]
    out[row, 0] = s
    out[row, 1] = p
    out[row, 2] = o
    marks[ROWS] = row + 1


@inlined
def put_vertex(out: Ints, marks: Longs, kind: int) -> int:
    """Write the next vertex; its code."""
    marks[VERTICES] += 1
    code = VERTEX_0 + int(marks[VERTICES])
    put(out, marks, code, TYPE, kind)
    return code


@inlined
def put_element(
    out: Ints, marks: Longs, states: Longs, rates: Longs, kind: int, region: int, previous: int
) -> int:
    """Write a track element of a region, linked to the one before it on its route."""
    code = put_vertex(out, marks, kind)
    put(out, marks, code, TYPE, TRACK_ELEMENT)
    put(out, marks, region, ELEMENTS, code)
    if previous == 0:
        if marks[FIRST_ELEMENT] == 0:
            marks[FIRST_ELEMENT] = code
        else:
            put(out, marks, int(marks[LAST_ELEMENT]), CONNECTS_TO, code)
    elif not is_bad(states, rates, BAD_LINK):
        put(out, marks, previous, CONNECTS_TO, code)
    marks[LAST_ELEMENT] = code
    return code


@inlined
def put_semaphore(out: Ints, marks: Longs) -> int:
    """Write a semaphore that says go."""
    code = put_vertex(out, marks, SEMAPHORE)
    put(out, marks, code, SIGNAL, SIGNAL_GO)
    return code


@inlined
def put_segment(
    out: Ints, marks: Longs, states: Longs, rates: Longs, region: int, sensor: int, previous: int
) -> int:
    """Write a segment that a sensor monitors."""
    bad = is_bad(states, rates, BAD_LENGTH)
    drawn = next_int(states, LENGTHS, MOST_LENGTH)
    code = put_element(out, marks, states, rates, SEGMENT, region, previous)
    put(out, marks, code, LENGTH, LENGTH_0 + (1 - drawn if bad else 1 + drawn))
    put(out, marks, code, MONITORED_BY, sensor)
    return code


@inlined
def put_sensor(
    out: Ints, marks: Longs, states: Longs, rates: Longs, route: int, region: int, switch: int
) -> int:
    """Write a sensor of a switch, without its segments."""
    code = put_vertex(out, marks, SENSOR)
    put(out, marks, region, SENSORS, code)
    if not is_bad(states, rates, BAD_MONITORED):
        put(out, marks, switch, MONITORED_BY, code)
        if not is_bad(states, rates, BAD_REQUIRES):
            put(out, marks, route, REQUIRES, code)
    return code


@inlined
def put_switches(
    out: Ints, marks: Longs, states: Longs, rates: Longs, route: int, region: int, semaphore: int
) -> None:
    """Write the switches of a route, with their sensors, segments and positions."""
    previous = 0
    first = True
    for _ in range(1 + next_int(states, SWITCH_COUNTS, MOST_SWITCHES - 1)):
        position = next_int(states, POSITIONS, 3)
        switch = put_element(out, marks, states, rates, SWITCH, region, previous)
        put(out, marks, switch, CURRENT_POSITION, POSITION_FAILURE + position)
        previous = switch
        for _ in range(1 + next_int(states, SENSOR_COUNTS, MOST_SENSORS - 1)):
            sensor = put_sensor(out, marks, states, rates, route, region, switch)
            for _ in range(SEGMENTS):
                previous = put_segment(out, marks, states, rates, region, sensor, previous)
                if first:
                    put(out, marks, previous, SEMAPHORES, semaphore)
                    first = False
            if is_bad(states, rates, BAD_CONNECTED):
                previous = put_segment(out, marks, states, rates, region, sensor, previous)
        if is_bad(states, rates, BAD_POSITION):
            position = 2 - position
        prescribed = put_vertex(out, marks, SWITCH_POSITION)
        put(out, marks, prescribed, POSITION, POSITION_FAILURE + position)
        put(out, marks, prescribed, TARGET, switch)
        put(out, marks, route, FOLLOWS, prescribed)


@inlined
def put_route(out: Ints, marks: Longs, states: Longs, rates: Longs, routes: int) -> None:
    """Write a route with everything that belongs to it."""
    is_last = marks[ROUTES] == routes - 1
    if marks[ROUTES] == 0:
        marks[FIRST_SEMAPHORE] = put_semaphore(out, marks)
        marks[LAST_SEMAPHORE] = marks[FIRST_SEMAPHORE]
    entry = int(marks[LAST_SEMAPHORE])
    leave = int(marks[FIRST_SEMAPHORE]) if is_last else put_semaphore(out, marks)
    marks[LAST_SEMAPHORE] = leave
    bad = is_bad(states, rates, BAD_ENTRY)
    route = put_vertex(out, marks, ROUTE)
    put(out, marks, route, ACTIVE, TRUE)
    if not bad:
        put(out, marks, route, ENTRY, entry)
    put(out, marks, route, EXIT, leave)
    region = put_vertex(out, marks, REGION)
    put_switches(out, marks, states, rates, route, region, leave)
    if is_last:
        put(out, marks, int(marks[LAST_ELEMENT]), CONNECTS_TO, int(marks[FIRST_ELEMENT]))
    marks[ROUTES] += 1


@compiled
def make_routes(states: Longs, rates: Longs, marks: Longs, routes: int, out: Ints) -> int:
    """Write whole routes until the model is complete or the next might not fit; rows written."""
    marks[ROWS] = 0
    while marks[ROUTES] < routes and marks[ROWS] + MOST_ROWS <= len(out):
        put_route(out, marks, states, rates, routes)
    return int(marks[ROWS])

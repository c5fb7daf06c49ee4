"""A small railway network and a stream of its changes, for the demo and the examples.

Routes, switches, sensors, semaphores and segments in the vocabulary of the Train Benchmark. The
network starts without faults; then faults occur and are repaired, one or two per transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from graphtide.rdf.changes import ChangeBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

VOCABULARY = "http://www.semanticweb.org/ontologies/2015/trainbenchmark#"

PREFIX = f"PREFIX : <{VOCABULARY}>\n"

QUERIES = {
    "RouteSensor": PREFIX
    + """SELECT ?route ?sensor ?swP ?sw WHERE {
  ?route a :Route ; :follows ?swP . ?swP a :SwitchPosition ; :target ?sw .
  ?sw a :Switch ; :monitoredBy ?sensor . ?sensor a :Sensor .
  FILTER NOT EXISTS { ?route :requires ?sensor } }""",
    "SwitchMonitored": PREFIX
    + """SELECT ?sw WHERE {
  ?sw a :Switch FILTER NOT EXISTS { ?sw :monitoredBy ?sensor . ?sensor a :Sensor } }""",
    "SwitchSet": PREFIX
    + """SELECT ?route ?sw ?position ?current WHERE {
  ?route :active true ; :entry ?semaphore ; :follows ?swP . ?semaphore :signal :SIGNAL_GO .
  ?swP :target ?sw ; :position ?position . ?sw :currentPosition ?current .
  FILTER (?position != ?current) }""",
    "PosLength": PREFIX
    + """SELECT ?segment ?length WHERE {
  ?segment a :Segment ; :length ?length FILTER (?length <= 0) }""",
}
"""Well-formedness queries of the benchmark: each row is a violation."""

PROGRAM = (
    PREFIX
    + "\n".join(f"QUERY {name} AS {text.removeprefix(PREFIX)}\n" for name, text in QUERIES.items())
    + """
EVENT Unmonitored(?sw) ON APPEAR OF SwitchMonitored(?sw)
EVENT Monitored(?sw) ON DISAPPEAR OF SwitchMonitored(?sw)

# A switch that nobody has monitored for twenty seconds.
PATTERN Neglected(?sw) AS Unmonitored(?sw) -> NOT Monitored(?sw) WITHIN 20s
RULE Report ON Neglected(?sw) THEN INSERT { ?sw :reported true }

GOAL Lengths NONE OF PosLength
FIX Measure ON PosLength(?segment, ?length)
  THEN DELETE { ?segment :length ?length } ; INSERT { ?segment :length 1 }
GOAL Positions NONE OF SwitchSet
FIX Turn ON SwitchSet(?sw, ?current, ?position)
  THEN DELETE { ?sw :currentPosition ?current } ; INSERT { ?sw :currentPosition ?position }
"""
)
"""The queries, with a pattern, a rule, goals and fixes about their rows."""

Triple = tuple[str, str, str]

_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_XSD = "http://www.w3.org/2001/XMLSchema#"


@dataclass(frozen=True, slots=True)
class Fault:
    """A possible fault: the correct triples, and the triples that replace them."""

    sound: tuple[Triple, ...]
    broken: tuple[Triple, ...] = ()


def name(local: str) -> str:
    """An IRI of the vocabulary, in N-Triples syntax.

    >>> name("Route")
    '<http://www.semanticweb.org/ontologies/2015/trainbenchmark#Route>'
    """
    return f"<{VOCABULARY}{local}>"


def change_stream(transactions: int, *, seed: int = 0, routes: int = 12) -> Iterator[ChangeBatch]:
    """The network in one transaction at time 0, then `transactions` transactions, one per second.

    >>> batches = list(change_stream(3, seed=7))
    >>> [batch.time[0].item() for batch in batches]
    [0, 1, 2, 3]
    """
    random = Random(seed)
    triples, sound = railway(routes, random)
    yield ChangeBatch.of([(0, 0, 1, *triple, None) for triple in triples])
    broken: list[Fault] = []
    for time in range(1, transactions + 1):
        rows: list[tuple[int, int, int, str, str, str, None]] = []
        chosen = set[Fault]()
        for _ in range(random.choice((1, 1, 2))):
            breaks = not broken or (len(broken) < 2 * routes and random.random() < 0.55)
            old, new = (sound, broken) if breaks else (broken, sound)
            fault = old.pop(random.randrange(len(old)))
            if fault in chosen:  # broken and repaired in one transaction: there would be no delta
                old.append(fault)
                continue
            chosen.add(fault)
            new.append(fault)
            removed, added = (fault.sound, fault.broken) if breaks else (fault.broken, fault.sound)
            rows += [(time, time, -1, *triple, None) for triple in removed]
            rows += [(time, time, +1, *triple, None) for triple in added]
        yield ChangeBatch.of(rows)


def railway(routes: int, random: Random) -> tuple[list[Triple], list[Fault]]:
    """A network of `routes` routes without faults, and every fault that can occur in it."""
    triples: list[Triple] = []
    faults: list[Fault] = []
    switches = sensors = 0
    for number in range(1, routes + 1):
        route, semaphore = name(f"route{number}"), name(f"semaphore{number}")
        triples += _thing(route, "Route", active=f'"true"^^<{_XSD}boolean>', entry=semaphore)
        triples += _thing(semaphore, "Semaphore", signal=name("SIGNAL_GO"))
        for _ in range(random.randint(2, 4)):
            switches += 1
            triples += _switch(switches, route, random, faults)
            for _ in range(random.randint(1, 2)):
                sensors += 1
                triples += _sensor(sensors, switches, route, random, faults)
    return triples, faults


def _thing(subject: str, kind: str, **values: str) -> list[Triple]:
    rest = [(subject, name(predicate), value) for predicate, value in values.items()]
    return [(subject, _TYPE, name(kind)), *rest]


def _switch(number: int, route: str, random: Random, faults: list[Fault]) -> list[Triple]:
    switch, position = name(f"switch{number}"), name(f"swP{number}")
    right, wrong = random.sample([name("POSITION_STRAIGHT"), name("POSITION_DIVERGING")], 2)
    set_right = (switch, name("currentPosition"), right)
    faults.append(Fault((set_right,), ((switch, name("currentPosition"), wrong),)))
    return [
        *_thing(switch, "Switch"),
        set_right,
        *_thing(position, "SwitchPosition", target=switch, position=right),
        (route, name("follows"), position),
    ]


def _sensor(
    number: int, at_switch: int, route: str, random: Random, faults: list[Fault]
) -> list[Triple]:
    sensor, switch = name(f"sensor{number}"), name(f"switch{at_switch}")
    segment = name(f"segment{number}")
    monitored, required = (switch, name("monitoredBy"), sensor), (route, name("requires"), sensor)
    length = (segment, name("length"), _int(random.randint(1, 1000)))
    no_length = (segment, name("length"), _int(-random.randint(0, 1000)))
    faults += [Fault((monitored,)), Fault((required,)), Fault((length,), (no_length,))]
    return [
        *_thing(sensor, "Sensor"),
        *_thing(segment, "Segment", monitoredBy=sensor),
        length,
        monitored,
        required,
    ]


def _int(value: int) -> str:
    return f'"{value}"^^<{_XSD}int>'

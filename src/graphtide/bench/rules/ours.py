"""Our ways to take in the events: from ids, from Arrow columns of texts, and call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide import LiveGraph
from graphtide.bench.memory import peak_rss_mb
from graphtide.bench.route_sensor.timing import timed
from graphtide.bench.rules.workload import checksum
from graphtide.rdf.changes import ChangeBatch
from graphtide.rules.program import RunningProgram, run

if TYPE_CHECKING:
    from graphtide.bench.rules.workload import Workload

PIECE = 20_000
"""Events that come at once."""

SPACE = "http://example.org/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

PROGRAM = """
PREFIX : <http://example.org/>
EVENT Alarm(?alarm, ?e) AS { ?alarm a :Alarm ; :eqpt ?e }
EVENT Confirmation(?c, ?alarm) AS { ?c a :Confirmation ; :alarm ?alarm }
RULE AlarmConfirmation
  WHEN FACT { ?e a :Equipment ; :state :ACTIVE }
       EVENT a = Alarm(?alarm, ?e)
       EVENT c = Confirmation(?conf, ?alarm) AFTER[1,5] a
  THEN INSERT { ?alarm :confirmedBy ?conf }
"""


def iri(name: str) -> str:
    """The text of an IRI.

    >>> iri("a")
    '<http://example.org/a>'
    """
    return f"<{SPACE}{name}>"


class Names:
    """The texts of all that happens: subjects, what they are about, classes and predicates."""

    def __init__(self, workload: Workload) -> None:
        many = workload.alarms
        confirmations = int(workload.subject.max()) + 1 - many
        self.subjects = [
            *(iri(f"alarm{n}") for n in range(many)),
            *(iri(f"conf{n}") for n in range(max(0, confirmations))),
        ]
        self.equipments = [iri(f"equipment{n}") for n in range(len(workload.active))]
        self.classes = (iri("Alarm"), iri("Confirmation"))
        self.predicates = (iri("eqpt"), iri("alarm"))


def started(workload: Workload, names: Names) -> tuple[LiveGraph, RunningProgram]:
    """A graph with the equipments, and the rule at work on it."""
    graph = LiveGraph()
    running = run(PROGRAM, graph)
    type_, state = graph.terms.encode(TYPE), graph.terms.encode(iri("state"))
    ids = graph.terms.encode_column(pa.array(names.equipments))
    states = [graph.terms.encode(iri(name)) for name in ("ONLINE", "ACTIVE")]
    objects = np.array(states, np.int32)[workload.active.astype(np.int64)]
    equipment = graph.terms.encode(iri("Equipment"))
    graph.apply_ids(
        np.concatenate([ids, ids]),
        np.repeat(np.array([type_, state], np.int32), len(ids)),
        np.concatenate([np.full(len(ids), equipment, np.int32), objects]),
        tx=np.zeros(2 * len(ids), np.int64),
    )
    return graph, running


def result(graph: LiveGraph, workload: Workload, seconds: float) -> dict[str, float]:
    """The figures, and what was found."""
    found = graph.query(f"SELECT ?a ?c {{ ?a {iri('confirmedBy')} ?c }}")
    at = len(SPACE) + 1
    alarms = [int(str(text)[at + 5 : -1]) for text in found["a"].to_pylist()]
    by = [int(str(text)[at + 4 : -1]) + workload.alarms for text in found["c"].to_pylist()]
    return {
        "events": len(workload),
        "events_per_s": round(len(workload) / seconds),
        "firings": len(alarms),
        "checksum": checksum(np.array(alarms, np.int64), np.array(by, np.int64)),
        "rss_mb": peak_rss_mb(),
    }


def from_ids(workload: Workload) -> dict[str, float]:
    """Rows of ids, as whoever keeps a dictionary has them."""
    names = Names(workload)
    graph, _ = started(workload, names)
    terms = graph.terms
    subjects = terms.encode_column(pa.array(names.subjects))
    equipments = terms.encode_column(pa.array(names.equipments))
    confirms = workload.confirms.astype(np.int64)
    objects = subjects[np.where(workload.confirms, workload.about, 0)]
    objects[~workload.confirms] = equipments[workload.about[~workload.confirms]]
    quads = np.zeros((2 * len(workload), 4), np.int32)
    quads[:, 0] = np.repeat(subjects[workload.subject], 2)
    quads[::2, 1] = terms.encode(TYPE)
    quads[::2, 2] = np.array([terms.encode(c) for c in names.classes])[confirms]
    quads[1::2, 1] = np.array([terms.encode(p) for p in names.predicates])[confirms]
    quads[1::2, 2] = objects
    times = np.repeat(workload.time, 2)
    events = np.repeat(np.arange(len(workload)), 2)
    stream = graph.stream(iri("events"))
    with timed() as watch:
        for begin in range(0, len(quads), 2 * PIECE):
            part = slice(begin, begin + 2 * PIECE)
            stream.push_ids(times[part], quads[part], events=events[part])
    return result(graph, workload, watch.seconds)


def from_texts(workload: Workload) -> dict[str, float]:
    """Columns of texts, as they come from Arrow, Parquet and the like."""
    names = Names(workload)
    graph, _ = started(workload, names)
    subject, about, confirms = workload.subject, workload.about, workload.confirms.astype(int)
    objects = [
        names.subjects[a] if c else names.equipments[a]
        for a, c in zip(about.tolist(), confirms.tolist(), strict=True)
    ]
    subjects = [names.subjects[n] for n in subject.tolist()]
    kinds = [names.classes[c] for c in confirms.tolist()]
    predicates = [names.predicates[c] for c in confirms.tolist()]
    batches = []
    for begin in range(0, len(workload), PIECE):
        part = slice(begin, begin + PIECE)
        size = len(subjects[part])
        batches.append(
            ChangeBatch(
                np.repeat(workload.time[part], 2),
                np.repeat(np.arange(begin, begin + size), 2),
                np.ones(2 * size, np.int8),
                pa.array([s for s in subjects[part] for _ in range(2)]),
                pa.array([x for p in predicates[part] for x in (TYPE, p)]),
                pa.array(
                    [x for pair in zip(kinds[part], objects[part], strict=True) for x in pair]
                ),
                pa.array([""] * (2 * size)),
            )
        )
    stream = graph.stream(iri("events"))
    with timed() as watch:
        for batch in batches:
            stream.feed(batch)
    return result(graph, workload, watch.seconds)


def from_calls(workload: Workload) -> dict[str, float]:
    """One call for each event."""
    names = Names(workload)
    graph, _ = started(workload, names)
    columns = (workload.subject, workload.about, workload.confirms)
    events = []
    for subject, about, confirms in zip(*(c.tolist() for c in columns), strict=True):
        other = names.subjects[about] if confirms else names.equipments[about]
        name = names.subjects[subject]
        events.append(
            [(name, TYPE, names.classes[confirms]), (name, names.predicates[confirms], other)]
        )
    with timed() as watch:
        for triples, time in zip(events, workload.time.tolist(), strict=True):
            graph.assert_event(triples, time=time)
    return result(graph, workload, watch.seconds)

"""AlarmConfirmation on Graphtide: events as ids, as Arrow columns of texts, and call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from benchmarks.harness import timed
from benchmarks.rules import AlarmWorkload, FiringFigures, checksum
from graphtide import LiveGraph
from graphtide.lang.tide.program import Program
from graphtide.rdf.changes import ChangeBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rules.program import RunningProgram

BATCH: Final = 20_000
"""Events per call."""

SPACE: Final = "http://example.org/"
TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

PROGRAM: Final = """
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


class EventTerms:
    """The texts of all terms of the events: subjects, equipments, classes and predicates."""

    def __init__(self, workload: AlarmWorkload) -> None:
        many = workload.alarms
        confirmations = int(workload.subject.max()) + 1 - many
        self.subjects = [
            *(iri(f"alarm{n}") for n in range(many)),
            *(iri(f"conf{n}") for n in range(max(0, confirmations))),
        ]
        self.equipments = [iri(f"equipment{n}") for n in range(len(workload.active))]
        self.classes = (iri("Alarm"), iri("Confirmation"))
        self.predicates = (iri("eqpt"), iri("alarm"))


def started(workload: AlarmWorkload, names: EventTerms) -> tuple[LiveGraph, RunningProgram]:
    """A graph with the equipments, on which the rule runs."""
    graph = LiveGraph()
    running = graph.run(Program.parse(PROGRAM))
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


def figures(graph: LiveGraph, workload: AlarmWorkload, seconds: float) -> FiringFigures:
    """The pairs that the rule has inserted."""
    found = graph.query(f"SELECT ?a ?c {{ ?a {iri('confirmedBy')} ?c }}")
    at = len(SPACE) + 1
    alarms = [int(str(text)[at + 5 : -1]) for text in found["a"].to_pylist()]
    by = [int(str(text)[at + 4 : -1]) + workload.alarms for text in found["c"].to_pylist()]
    total = checksum(np.array(alarms, np.int64), np.array(by, np.int64))
    return FiringFigures(seconds, len(alarms), total)


def from_ids(workload: AlarmWorkload) -> FiringFigures:
    """Apply rows of ids, for callers with a term dictionary."""
    names = EventTerms(workload)
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
        for begin in range(0, len(quads), 2 * BATCH):
            part = slice(begin, begin + 2 * BATCH)
            stream.push_ids(times[part], quads[part], events=events[part])
    return figures(graph, workload, watch.seconds)


def from_texts(workload: AlarmWorkload) -> FiringFigures:
    """Apply columns of texts, as in Arrow and Parquet files."""
    names = EventTerms(workload)
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
    for begin in range(0, len(workload), BATCH):
        part = slice(begin, begin + BATCH)
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
    return figures(graph, workload, watch.seconds)


def from_calls(workload: AlarmWorkload) -> FiringFigures:
    """Apply one event per call; a last look sees to it that all of them have been taken in."""
    names = EventTerms(workload)
    graph, running = started(workload, names)
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
            graph.publish(triples, time=time)
        _ = running.fired
    return figures(graph, workload, watch.seconds)


INPUTS: Final[dict[str, Callable[[AlarmWorkload], FiringFigures]]] = {
    "ids": from_ids,
    "texts": from_texts,
    "calls": from_calls,
}

"""The jobs of the table on Graphtide; each checks its answer where another way to it is near."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks import route_sensor, route_sensor_engine, sequence
from benchmarks.harness import BenchmarkError, peak_rss_mb, time_each, timed
from graphtide import LiveGraph
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from graphtide.engine.watch import Query
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rules.program import RunningProgram

Figures = dict[str, float]
Job = Callable[[int, int], tuple[Figures, float]]
"""Gives its figures by name, and processor time divided by elapsed time."""

SPACE: Final = "http://example.org/"
TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
BATCH: Final = 10_000
"""Events per call, where arrays of them are pushed."""

MATCHES: Final = "matches"
UPDATES: Final = 1_000
KEYS: Final = 1_000


def iri(name: str) -> str:
    """The text of an IRI.

    >>> iri("a")
    '<http://example.org/a>'
    """
    return f"<{SPACE}{name}>"


class Watch:
    """Seconds of a block, and which share of them it had a core."""

    seconds = busy = 0.0


@contextmanager
def measured() -> Iterator[Watch]:
    """Time a block, by the clock and by the processor."""
    watch = Watch()
    with timed() as elapsed:
        start = process_time()
        yield watch
        spent = process_time() - start
    watch.seconds, watch.busy = elapsed.seconds, round(spent / elapsed.seconds, 2)


def expect(found: int, expected: int, what: str) -> None:
    """Raise unless a job found what it should."""
    if found != expected:
        raise BenchmarkError(f"{what}: found {found}, expected {expected}")


def percentiles(actions: Iterable[Callable[[], object]]) -> Figures:
    """Microseconds of single updates."""
    spent = np.array(time_each(iter(actions))) * 1e6
    figures = {"median": np.median(spent), "mean": spent.mean(), "p99": np.percentile(spent, 99)}
    return {f"update, {name}": round(float(value), 2) for name, value in figures.items()}


# ---- standing queries ----------------------------------------------------------------------------


def one_transaction(size: int, seed: int) -> tuple[Figures, float]:
    """RouteSensor, all edges in one transaction."""
    workload = route_sensor.make_workload(max(size, route_sensor.MIN_EDGES), seed)
    watch, count = _loaded(workload, np.zeros(len(workload), np.int64))
    figures = {"load": round(len(workload) / watch.seconds), "peak memory": peak_rss_mb()}
    return {**figures, MATCHES: count}, watch.busy


def _loaded(workload: route_sensor.EdgeWorkload, tx: Longs) -> tuple[Watch, int]:
    """The time to load all edges as ids, and the number of answers."""
    graph = LiveGraph()
    query = graph.watch(route_sensor.QUERY)
    texts = route_sensor_engine.node_texts(workload)
    nodes = route_sensor_engine.encode_pieces(graph, texts)
    predicates = graph.terms.encode_column(route_sensor_engine.PREDICATES)
    s, p, o = nodes[workload.s], predicates[workload.relation], nodes[workload.o]
    with measured() as watch:
        graph.apply_ids(s, p, o, tx=tx)
        count = query.count()
    return watch, count


GROUPS: Final = f"""PREFIX : <{SPACE}>
SELECT ?k (COUNT(?v) AS ?n) (SUM(?v) AS ?sum) {{ ?r :key ?k . ?r :value ?v }} GROUP BY ?k"""


def groups(size: int, seed: int) -> tuple[Figures, float]:
    """GROUP BY with COUNT and SUM: a key for each hundred rows; then single values change."""
    rng, keys = np.random.default_rng(seed), max(1, size // 100)
    graph = LiveGraph()
    query = graph.watch(GROUPS)
    encode = graph.terms.encode_column
    subjects = route_sensor_engine.numbered_iris(f"{SPACE}r", size)
    rows = route_sensor_engine.encode_pieces(graph, subjects)
    key = encode([iri(f"k{n}") for n in range(keys)])[rng.integers(0, keys, size)]
    numbers = rng.integers(0, 1000, size)
    values = encode([f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in range(1000)])
    p, q = encode([iri("key"), iri("value")])
    tx = np.arange(size)
    with measured() as watch:
        graph.apply_ids(
            np.repeat(rows, 2),
            np.tile(np.array([p, q], np.int32), size),
            np.column_stack([key, values[numbers]]).reshape(-1),
            tx=np.repeat(tx, 2),
        )
        count = query.count()
    expect(count, len(np.unique(key)), "groups")

    def changes() -> Iterator[Callable[[], object]]:
        for row in rng.choice(size, min(UPDATES, size), replace=False).tolist():
            subject = iri(f"r{row}")

            def change(subject: str = subject, old: int = int(numbers[row])) -> object:
                with graph.transaction() as tx:
                    tx.delete(subject, iri("value"), old)
                    tx.insert(subject, iri("value"), old + 1)
                return len(query.delta())

            yield change

    figures = {"load": round(size / watch.seconds)}
    return {**figures, **percentiles(changes()), "peak memory": peak_rss_mb()}, watch.busy


def reach(size: int, seed: int) -> tuple[Figures, float]:
    """Nodes that can be reached from one source; then single edges are deleted and inserted."""
    rng, nodes = np.random.default_rng(seed), max(2, size // 2)
    graph = LiveGraph()
    query = graph.watch(f"SELECT ?x {{ {iri('n0')} {iri('to')}+ ?x }}")
    names = [iri(f"n{n}") for n in range(nodes)]
    ids = graph.terms.encode_column(names)
    edges = np.unique(rng.integers(0, nodes, (size, 2)), axis=0)
    to = np.full(len(edges), graph.terms.encode(iri("to")), np.int32)
    with measured() as watch:
        graph.apply_ids(ids[edges[:, 0]], to, ids[edges[:, 1]], tx=np.zeros(len(edges), np.int64))
        query.count()
    chosen = edges[rng.choice(len(edges), min(UPDATES // 2, len(edges)), replace=False)].tolist()

    def change(change: Callable[..., None], one: int, other: int) -> object:
        change(names[one], iri("to"), names[other])
        return len(query.delta())

    def changes() -> Iterator[Callable[[], object]]:
        for one, other in chosen:
            yield partial(change, graph.delete, one, other)
            yield partial(change, graph.insert, one, other)

    return {"load": round(watch.seconds, 3), **percentiles(changes())}, watch.busy


# ---- patterns ------------------------------------------------------------------------------------


def detector(size: int, seed: int) -> tuple[Figures, float]:
    """The sequence by the detector alone, in arrays."""
    events = sequence.make_events(size, KEYS, seed)
    with measured() as watch:
        found = sequence.detect(events)
    expect(len(found.matches), _matches(events), "matches")
    return {"events": round(size / watch.seconds)}, watch.busy


def _matches(events: sequence.SequenceEvents) -> int:
    return len(sequence.plain_matches(events, sequence.WITHIN_MS, KEYS))


def started(rules: str = "") -> tuple[LiveGraph, RunningProgram]:
    """A graph on which the sequence runs as a program, perhaps with rules."""
    graph = LiveGraph(tick_ms=1)
    text = f"{sequence.PROGRAM}EVENT Z(?k) AS {{ ?k a :Z }}\n{rules}"
    return graph, graph.run(Program.parse(text), functions={"note": lambda _: None})


def in_calls(size: int, seed: int) -> tuple[Figures, float]:
    """The sequence as a program, one call per event."""
    events = sequence.make_events(size, KEYS, seed)
    graph, program = started()
    types = [iri(name) for name in sequence.TYPES]
    columns = zip(events.keys.tolist(), events.types.tolist(), strict=True)
    listed = [[(iri(f"k{key}"), TYPE, types[type_])] for key, type_ in columns]
    with measured() as watch:
        for triples, time in zip(listed, events.times.tolist(), strict=True):
            graph.publish(triples, time=time)
        found = program.matched("Sequence")
    expect(found, _matches(events), "matches")
    return {"events": round(size / watch.seconds)}, watch.busy


def in_program(rules: str) -> Job:
    """The sequence as a program, with rules; arrays of events are pushed."""

    def job(size: int, seed: int) -> tuple[Figures, float]:
        events = sequence.make_events(size, KEYS, seed)
        graph, program = started(rules)
        encode = graph.terms.encode_column
        quads = np.zeros((size, 4), np.int32)
        quads[:, 0] = encode([iri(f"k{n}") for n in range(KEYS + 1)])[events.keys]
        quads[:, 1] = graph.terms.encode(TYPE)
        quads[:, 2] = encode([iri(name) for name in sequence.TYPES])[events.types]
        with measured() as watch:
            pushed(graph, events.times, quads)
            found = program.matched("Sequence")
        expect(found, _matches(events), "matches")
        return {"events": round(size / watch.seconds)}, watch.busy

    return job


def pushed(graph: LiveGraph, times: Longs, quads: Ints) -> None:
    """Push events of one triple each, in arrays."""
    stream = graph.stream(iri("events"))
    for begin in range(0, len(times), BATCH):
        part = slice(begin, begin + BATCH)
        stream.push_ids(times[part], quads[part], events=np.arange(len(times[part])))


ABSENCES: Final = {
    "NO EVENT": """RULE Open WHEN EVENT o = Opened(?d) NO EVENT c = Closed(?d) AFTER[0,30] o
        THEN INSERT { ?d :left :open }""",
    "absence": "PATTERN Open(?d) AS Opened(?d) -> NOT Closed(?d) WITHIN 30s",
}


def absent(kind: str) -> Job:
    """Doors that are opened, and nine in ten closed within 30 s."""

    def job(size: int, seed: int) -> tuple[Figures, float]:
        rng, graph = np.random.default_rng(seed), LiveGraph()
        text = f"""PREFIX : <{SPACE}>
            EVENT Opened(?d) AS {{ ?d a :Opened }} EVENT Closed(?d) AS {{ ?d a :Closed }}
            {ABSENCES[kind]}"""
        program = graph.run(Program.parse(text))
        doors = max(1, size // 2)
        opens = np.arange(doors) // 100
        closed = rng.random(doors) < 0.9
        delays = rng.integers(1, 30, doors)
        times = np.concatenate([opens, (opens + delays)[closed]])
        order = np.argsort(times, kind="stable")
        ids = graph.terms.encode_column([iri(f"d{n}") for n in range(doors)])
        types = graph.terms.encode_column([iri("Opened"), iri("Closed")])
        quads = np.zeros((len(times), 4), np.int32)
        quads[:, 0] = np.concatenate([ids, ids[closed]])
        quads[:, 1] = graph.terms.encode(TYPE)
        quads[:, 2] = np.repeat(types, [doors, int(closed.sum())])
        with measured() as watch:
            pushed(graph, times[order], quads[order])
            graph.advance(int(times.max()) + 40)
            found = program.fired if kind == "NO EVENT" else program.matched("Open")
        expect(found, int((~closed).sum()), "doors left open")
        return {"events": round(len(times) / watch.seconds)}, watch.busy

    return job


FEEDING: Final = f"""PREFIX : <{SPACE}>
EVENT Report(?k) AS {{ ?k a :Report }}
EVENT Doubt(?k) AS {{ ?k a :Doubt }}
QUERY Alarms AS SELECT ?k {{ ?k :state :alarm . ?k :watched :yes }}
EVENT Raised(?k) ON APPEAR OF Alarms(?k)
RULE First ON Report(?k) THEN EMIT :doubts {{ ?k a :Doubt }}
RULE Second WHEN FACT {{ ?k :watched :yes }} EVENT d = Doubt(?k) THEN INSERT {{ ?k :state :alarm }}
RULE Third ON Raised(?k) THEN DELETE {{ ?k :state :alarm }}"""
"""A report is doubted; a doubt about a key that is watched raises an alarm, which is cleared."""

REPORTED: Final = 0.1
"""The share of events that are reports; no rule reads the others."""


def feeding(size: int, seed: int) -> tuple[Figures, float]:
    """Rules that feed each other; arrays of events are pushed, and a tenth of them matters."""
    rng, graph = np.random.default_rng(seed), LiveGraph()
    program = graph.run(Program.parse(FEEDING))
    keys = graph.terms.encode_column([iri(f"k{n}") for n in range(KEYS)])
    watched = keys[::2]
    p, o = graph.terms.encode(iri("watched")), graph.terms.encode(iri("yes"))
    graph.apply_ids(watched, np.full(len(watched), p, np.int32), np.full(len(watched), o, np.int32))
    drawn = rng.integers(0, KEYS, size)
    reports = rng.random(size) < REPORTED
    quads = np.zeros((size, 4), np.int32)
    quads[:, 0], quads[:, 1] = keys[drawn], graph.terms.encode(TYPE)
    kinds = graph.terms.encode_column([iri("Other"), iri("Report")])
    quads[:, 2] = kinds[reports.astype(np.int64)]
    times = np.arange(size, dtype=np.int64)
    with measured() as watch:
        pushed(graph, times, quads)
        found = program.fired
    expected = int(reports.sum()) + 2 * int((drawn[reports] % 2 == 0).sum())
    expect(found, expected, "firings")
    return {"events": round(size / watch.seconds)}, watch.busy


WAITING: Final = f"""PREFIX : <{SPACE}>
EVENT Opened(?d) AS {{ ?d a :Opened }}
EVENT Closed(?d) AS {{ ?d a :Closed }}
QUERY Lost AS SELECT ?d {{ ?d :state :lost . ?d :floor ?f }}
EVENT Missed(?d) ON APPEAR OF Lost(?d)
PATTERN Visit(?d) AS Opened(?d) -> Closed(?d)
RULE Search ON Missed(?d) THEN INSERT {{ ?d :searched :yes }}"""


def waiting(size: int, seed: int) -> tuple[Figures, float]:
    """A token waits for each event; then single changes of the graph fire a rule each."""
    rng, graph = np.random.default_rng(seed), LiveGraph()
    program = graph.run(Program.parse(WAITING))
    names = route_sensor_engine.numbered_iris(f"{SPACE}d", size)
    ids = route_sensor_engine.encode_pieces(graph, names)
    quads = np.zeros((size, 4), np.int32)
    quads[:, 0], quads[:, 1] = ids, graph.terms.encode(TYPE)
    quads[:, 2] = graph.terms.encode(iri("Opened"))
    with measured() as watch:
        pushed(graph, np.arange(size, dtype=np.int64), quads)
        expect(program.fired, 0, "firings")
    doors = rng.choice(size, min(UPDATES, size), replace=False).tolist()

    def changes() -> Iterator[Callable[[], object]]:
        for door in doors:
            graph.insert(iri(f"d{door}"), iri("floor"), iri("ground"))
            yield partial(graph.insert, iri(f"d{door}"), iri("state"), iri("lost"))

    figures = {"events": round(size / watch.seconds), **percentiles(changes())}
    expect(program.fired, len(doors), "firings")
    figures["peak memory"] = peak_rss_mb()
    graph.publish([(iri(f"d{doors[0]}"), TYPE, iri("Closed"))], time=size)
    expect(program.matched("Visit"), 1, "visits")
    return figures, watch.busy


# ---- windows -------------------------------------------------------------------------------------

WINDOW: Final = """PREFIX : <http://example.org/>
REGISTER ISTREAM :out AS SELECT ?a ?c FROM NAMED WINDOW :w ON :s [ELEMENTS 500 STEP 1]
WHERE { WINDOW :w { ?a :p ?b . ?b :q ?c } }"""


def window(*, look: bool) -> Job:
    """A join in a window of the last 500 events, which are pushed one per call."""

    def job(size: int, seed: int) -> tuple[Figures, float]:
        rng, graph = np.random.default_rng(seed), LiveGraph()
        query = graph.watch(WINDOW)
        stream = graph.stream(iri("s"))
        drawn = rng.integers(0, (300, 2, 300), (size, 3)).tolist()
        listed = [[(iri(f"n{a}"), iri("pq"[p]), iri(f"n{b}"))] for a, p, b in drawn]
        with measured() as watch:
            for time, triples in enumerate(listed):
                stream.push(triples, time=time)
                if look:
                    query.last_result()
            reported = _last_time(query)
        expect(reported, max(0, size - 2), "time of the last report")
        return {"events": round(size / watch.seconds)}, watch.busy

    return job


def _last_time(query: Query) -> int:
    last = query.last_result()
    return 0 if last is None else last.time


# ---- start ---------------------------------------------------------------------------------------

START: Final = """
import graphtide
graph = graphtide.LiveGraph()
query = graph.watch("SELECT ?a ?c { ?a <ex:p> ?b . ?b <ex:q> ?c }")
graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
graph.insert("<ex:b>", "<ex:q>", "<ex:c>")
assert query.count() == 1
"""

STARTS: Final = 3


def start(_: int, __: int) -> tuple[Figures, float]:
    """From the start of Python to the first answer, when all code is compiled; the median."""
    spent, busy = [], []
    for _ in range(STARTS + 1):
        before, begin = _children(), perf_counter()
        subprocess.run([sys.executable, "-c", START], check=True)  # noqa: S603 - our own text
        spent.append(perf_counter() - begin)
        busy.append(_children() - before)
    elapsed, used = (float(np.median(each[1:])) for each in (spent, busy))
    figures = {"first answer": round(elapsed, 3), "processor time": round(used, 3)}
    return figures, round(used / elapsed, 2)


def _children() -> float:
    """Processor time of all processes that this one has waited for, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


JOBS: Final[dict[str, Job]] = {
    "RouteSensor, one transaction": one_transaction,
    "groups": groups,
    "reach": reach,
    "sequence, arrays": detector,
    "sequence, calls": in_calls,
    "sequence in a program": in_program(""),
    "sequence beside CALL": in_program("RULE R WHEN EVENT z = Z(?k) THEN CALL note(?k)"),
    "sequence with CALL": in_program("RULE R WHEN EVENT s = Sequence(?k) THEN CALL note(?k)"),
    "NO EVENT": absent("NO EVENT"),
    "absence": absent("absence"),
    "rules that feed each other": feeding,
    "waiting tokens": waiting,
    "window, calls": window(look=False),
    "window, each result read": window(look=True),
    "start": start,
}

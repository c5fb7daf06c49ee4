"""Windows of several streams beside a graph that changes: every result is that of the definition.

A result at `c` holds the events of its window that were not late when they came, and the graph as
of the changes before `c`. It is put out when the watermarks of all streams of its query have passed
`c`: an event raises that of its own stream, a change or a move of the clock those of all streams.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphtide import ChangeBatch, LiveGraph, Program

PREFIX = "PREFIX : <http://e/>\n"
STREAMS = ("s", "t", "u")
NODES = ("a", "b", "c")


def iri(name):
    return f"<http://e/{name}>"


@dataclass
class Windowed:
    """A query over the windows of some streams, each with its range and step."""

    windows: dict[str, tuple[int, int]]
    optional: bool

    @property
    def text(self):
        clauses = "\n".join(
            f"FROM NAMED WINDOW :w{name} ON :{name} [RANGE {length} STEP {step}]"
            for name, (length, step) in self.windows.items()
        )
        parts = [f"WINDOW :w{s} {{ ?x :shows ?{s} }}" for s in self.windows]
        parts = [f"OPTIONAL {{ {part} }}" for part in parts] if self.optional else parts
        wanted = " ".join(f"?{name}" for name in self.windows)
        return f"{PREFIX}SELECT ?x {wanted}\n{clauses}\nWHERE {{ ?x :in ?r . {' '.join(parts)} }}"

    def rows(self, close, events, quads):
        """The rows of the result at a time, by the definition."""
        rows = [(x,) for x in sorted(quads)]
        for name, (length, step) in self.windows.items():
            last = length + (close - length) // step * step  # it is as of its own last close
            seen = {e for e, time in events[name] if 0 <= last - length <= time < last}
            rows = [
                (*row, value)
                for row in rows
                for value in sorted(v for x, v in seen if x == row[0])
                or ([None] if self.optional else [])
            ]
        return Counter(rows)


@dataclass
class Oracle:
    """What is put out for some input, from the definitions alone."""

    queries: list[Windowed]
    lateness: dict[str, int]
    clock: int = 0
    watermarks: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STREAMS, -1e9))
    events: dict[str, list] = field(default_factory=lambda: {name: [] for name in STREAMS})
    changes: list[tuple[int, int, str]] = field(default_factory=list)
    late: Counter = field(default_factory=Counter)

    def push(self, stream, node, value, time):
        if time < self.watermarks[stream]:
            self.late[stream] += 1
        else:
            self.events[stream].append(((node, value), time))
        # a late event is still news of the time that it has
        self._rise(stream, time - self.lateness[stream])

    def change(self, diff, node, time):
        self.advance(time)
        self.changes.append((time, diff, node))

    def advance(self, time):
        for name in STREAMS:
            self._rise(name, time)
        self.clock = max(self.clock, time)

    def _rise(self, stream, to):
        self.watermarks[stream] = max(self.watermarks[stream], to)
        self.clock = max(self.clock, to)

    def results(self, query):
        """All results up to now: (time, rows). A window is reported from its first event on."""
        reached = min(self.watermarks[name] for name in query.windows)
        closes = set()
        for name, (length, step) in query.windows.items():
            if not self.events[name]:
                continue
            oldest = min(time for _, time in self.events[name])
            first = max(length, length + ((oldest - length) // step + 1) * step)
            closes |= set(range(first, int(reached) + 1, step))
        for close in sorted(closes):
            quads = set()
            for time, diff, node in self.changes:
                if time < close:
                    (quads.add if diff > 0 else quads.discard)(node)
            yield close, query.rows(close, self.events, quads)


def short(term):
    return None if term is None else str(term.value).removeprefix("http://e/")


def shown(query, handle):
    for result in handle.results():
        yield (
            result.time,
            Counter(tuple(short(row.get(v)) for v in ("x", *query.windows)) for row in result),
        )


WAYS = ("plain", "beside", "callback", "reevaluated", "clock")


def run(rng, way):
    queries = [
        Windowed(
            {s: rng.choice(((4, 2), (5, 5), (10, 10), (3, 1))) for s in rng.sample(STREAMS, n)},
            rng.random() < 0.5,
        )
        for n in (1, 1, rng.choice((1, 2)))
    ]
    lateness = {name: rng.choice((0, 0, 0, 3)) for name in STREAMS}
    graph, oracle = LiveGraph(), Oracle(queries, lateness)
    streams = {name: graph.stream(iri(name), lateness=lateness[name]) for name in STREAMS}
    handles = [graph.watch(q.text, reevaluate=way == "reevaluated") for q in queries]
    if way == "beside":
        text = "EVENT Other(?x) AS { ?x :other ?y } RULE R ON Other(?x) THEN INSERT { ?x :y :z }"
        graph.run(Program.parse(PREFIX + text))
    elif way == "callback":
        for handle in handles:
            handle.on_result(lambda _: None)
    elif way == "clock":
        graph.watch("SELECT ?x { ?x <http://e/due> ?t FILTER(?t < NOW()) }")
    for _ in range(rng.randint(3, 14)):
        node = rng.choice(NODES)
        match rng.randrange(8):
            case 0 | 1:
                time, diff = oracle.clock + rng.choice((0, 0, 1, 4)), rng.choice((1, 1, -1))
                oracle.change(diff, node, time)
                change(graph, rng, diff, node, None if time == graph.clock else time)
            case 2:
                oracle.advance(oracle.clock + rng.choice((0, 2, 7)))
                graph.advance(oracle.clock)
            case _:
                name, value = rng.choice(STREAMS), rng.choice("vw")
                time = max(0, oracle.clock + rng.choice((-3, -1, 0, 1, 2, 6)))
                oracle.push(name, node, value, time)
                streams[name].push([(iri(node), iri("shows"), iri(value))], time=time)
        assert graph.clock == oracle.clock
    for query, handle in zip(queries, handles, strict=True):
        assert list(shown(query, handle)) == list(oracle.results(query)), query.text
    assert {name: streams[name].late_count for name in STREAMS} == {
        name: oracle.late[name] for name in STREAMS
    }


def change(graph, rng, diff, node, time):
    triple = iri(node), iri("in"), iri("r")
    match rng.randrange(4):
        case 0:
            (graph.insert if diff > 0 else graph.delete)(*triple, time=time)
        case 1:
            with graph.transaction(time=time) as tx:
                (tx.insert if diff > 0 else tx.delete)(*triple)
        case 2:
            at = graph.clock if time is None else time
            graph.apply(ChangeBatch.of([(at, 0, diff, *triple, None)]))
        case _:
            word = "INSERT" if diff > 0 else "DELETE"
            graph.update(f"{word} DATA {{ {' '.join(triple)} }}", time=time)


@settings(deadline=None, max_examples=300)
@given(st.randoms(use_true_random=False), st.sampled_from(WAYS))
def test_every_result_is_that_of_the_definition(rng, way):
    run(rng, way)


@pytest.mark.parametrize("reevaluate", [False, True])
@pytest.mark.parametrize("how", range(4))
def test_a_result_does_not_know_changes_after_its_close(how, reevaluate):
    """The clock stands at 35, where an event of another stream has moved it."""
    graph = LiveGraph()
    fast, slow = Windowed({"s": (5, 5)}, optional=False), Windowed({"t": (10, 10)}, optional=True)
    graph.watch(fast.text)
    handle = graph.watch(slow.text, reevaluate=reevaluate)
    s, t = graph.stream(iri("s")), graph.stream(iri("t"))
    for stream, time in ((s, 25), (t, 26), (s, 35)):
        stream.push([(iri("a"), iri("shows"), iri("v"))], time=time)
    change(graph, type("", (), {"randrange": lambda _, __: how})(), 1, "d", 35)
    graph.advance(40)
    assert list(shown(slow, handle)) == [(30, Counter()), (40, Counter({("d", None): 1}))]


def test_events_move_the_clock():
    graph = LiveGraph()
    handle = graph.watch("SELECT ?x { ?x <http://e/due> ?t FILTER(?t < NOW()) }")
    due = '"1970-01-01T00:00:50Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    graph.insert(iri("a"), iri("due"), due)
    graph.stream(iri("s")).push([(iri("a"), iri("p"), iri("b"))], time=100)
    assert graph.clock == 100
    assert [(delta.time, len(delta)) for delta in handle.deltas()] == [(51, 1)]


def test_a_stream_that_waits_for_late_events_moves_the_clock_to_its_watermark():
    graph = LiveGraph()
    graph.stream(iri("s"), lateness=5).push([(iri("a"), iri("p"), iri("b"))], time=100)
    assert graph.clock == 95


def test_rules_see_an_event_when_the_clock_passes_it():
    """One stream waits for late events; another one moves the clock past the event that waits."""
    graph, seen = LiveGraph(), []
    text = "EVENT A(?x) AS { ?x :p ?y } RULE R ON A(?x) THEN CALL f(?x)"
    graph.run(
        Program.parse(PREFIX + text),
        functions={"f": lambda x: seen.append((graph.clock, short(x)))},
    )
    slow, fast = graph.stream(iri("slow"), lateness=10), graph.stream(iri("fast"))

    def push(stream, name, time):
        stream.push([(iri(name), iri("p"), iri("y"))], time=time)

    push(slow, "first", 28)
    push(fast, "second", 30)
    push(slow, "third", 25)
    assert seen == [(28, "first"), (30, "second")]
    graph.advance(50)
    assert seen == [(28, "first"), (30, "second")]
    assert (slow.late_count, slow.unpublished, slow.received) == (0, 1, 2)


def test_seeds():
    for seed in range(200):
        run(Random(seed), WAYS[seed % len(WAYS)])

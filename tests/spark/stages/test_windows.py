"""Windows on partitions: the rows and times of one process, whatever the cuts and faults.

Spark itself is in `test_windows_in_spark`; here are its stages without it.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from spark.stages.window_streams import (
    change,
    event,
    in_process,
    iri,
    net_once,
    on_partitions,
    output_of,
    random_rows,
    watermark,
    windowed,
)
from support.sampling import quick_sample

from graphtide import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark import explain
from graphtide.spark.job import JobSpec
from graphtide.spark.partition.windows import Clock
from graphtide.spark.state import cache
from graphtide.spark.state.messages import from_chunk
from oracles.partitions import PartitionRun

BODIES = {
    "one pattern": ("WINDOW :w { ?a :p ?b }", "*", None),
    "a join inside": ("WINDOW :w { ?a :p ?b . ?b :q ?c }", "*", None),
    "a join with the graph": ("WINDOW :w { ?a :p ?b } ?b :r ?c", "*", None),
    "rows that meet": ("WINDOW :w { ?a :p ?b } ?b :r ?c", "?a", None),
    "rows that are counted": ("WINDOW :w { ?a :p ?b } ?b :r ?c", "DISTINCT ?c", None),
    "optional": ("WINDOW :w { ?a :p ?b } OPTIONAL { ?b :r ?c }", "*", None),
    "not in the window": ("?a :r ?b FILTER NOT EXISTS { WINDOW :w { ?a :p ?b } }", "*", None),
    "two windows": ("WINDOW :w { ?a :p ?b } WINDOW :v { ?b :q ?c }", "*", "RANGE 7 STEP 7"),
    "union of windows": (
        "{ WINDOW :w { ?a :p ?b } } UNION { WINDOW :v { ?b :q ?a } }", "?a", "RANGE 6 STEP 2",
    ),
    "a path": ("WINDOW :w { ?a :p+ ?b }", "*", None),
    "groups": (
        "{ SELECT ?a (COUNT(*) AS ?n) { WINDOW :w { ?a :p ?b } } GROUP BY ?a }", "*", None,
    ),
    "one group": ("{ SELECT (COUNT(*) AS ?n) { WINDOW :w { ?a :p ?b } } }", "*", None),
    "event graphs": ("WINDOW :w { GRAPH ?g { ?a :p ?b } }", "*", None),
    "rows of no quad": ("VALUES ?x { 1 2 } OPTIONAL { WINDOW :w { ?a :p ?b } }", "*", None),
}  # fmt: skip
EXTENTS = ("RANGE 10 STEP 5", "RANGE 4 STEP 4", "RANGE 3 STEP 7", "RANGE 6 STEP 1")
ELEMENTS = ("ELEMENTS 4 STEP 2", "ELEMENTS 5 STEP 3", "ELEMENTS 2 STEP 5")


@pytest.mark.parametrize("shape", quick_sample(BODIES, 8))
def test_as_in_one_process(shape, monkeypatch):
    body, select, second = BODIES[shape]
    rng = Random(shape)
    for output in ("ISTREAM", "DSTREAM", "RSTREAM"):
        monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
        queries = {"q": windowed(output, body, select, rng.choice(EXTENTS), second)}
        if output == "DSTREAM":
            queries["other"] = windowed("ISTREAM", *BODIES["a join with the graph"][:2])
        check(queries, rng)


@pytest.mark.parametrize("extent", quick_sample(ELEMENTS, 3))
@pytest.mark.slow
def test_windows_of_elements(extent, monkeypatch):
    rng = Random(extent)
    for shape in ("a join inside", "rows that meet", "two windows", "event graphs"):
        monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5)))
        body, select, second = BODIES[shape]
        second = second and "ELEMENTS 3 STEP 2"
        output = rng.choice(("ISTREAM", "DSTREAM", "RSTREAM"))
        check({"q": windowed(output, body, select, extent, second)}, rng)


@pytest.mark.parametrize("alignment", quick_sample(["close", "w3c", "yabench"], 3))
@pytest.mark.slow
def test_other_alignments_and_origins(alignment):
    rng = Random(alignment)
    clock = Clock(window_origin=3, window_alignment=alignment)
    for shape in ("not in the window", "two windows", "rows of no quad"):
        body, select, second = BODIES[shape]
        check({"q": windowed("DSTREAM", body, select, EXTENTS[0], second)}, rng, clock)


def check(queries, rng, clock=None):
    clock = clock or Clock()
    rows, last = random_rows(rng, rng.choice((10, 25)), begin=rng.choice((0, 40)))
    end = last + rng.choice((0, 3, 30))
    expected = in_process(queries, rows, end, clock)
    for partitions in rng.sample((1, 2, 4), 2):
        found, run = on_partitions(queries, [*rows, watermark(end)], partitions, rng, clock)
        assert found == expected, (queries, partitions)
        assert run.rejected == []


def test_the_example_of_the_handbook():
    """By hand: at 10 the window [0, 10) holds both readings, at 15 the second, at 20 none."""
    text = windowed(
        "ISTREAM", "WINDOW :w { ?sensor :shows ?t } ?sensor :in ?room FILTER (?t > 30)", "?room ?t"
    )
    shows = iri("shows"), '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    rows = [
        change(0, 0, 1, "sensor1", "in", "kitchen"),
        (3, 1, 1, iri("sensor1"), shows[0], shows[1].format(31), None, "http://e/s"),
        (8, 2, 1, iri("sensor1"), shows[0], shows[1].format(22), None, "http://e/s"),
        watermark(20),
    ]
    for output, time, diff in (("ISTREAM", 10, 1), ("DSTREAM", 15, -1), ("RSTREAM", 10, 1)):
        query = {"q": text.replace("ISTREAM", output)}
        found, _ = on_partitions(query, rows, 2, Random(output))
        assert found == {("q", time, 0, (iri("kitchen"), shows[1].format(31))): diff}


def test_what_comes_and_goes_between_two_closes_is_not_told_of():
    """By hand: at the close at 5 the fact is gone; at 10 it has come back and stays."""
    rows = [
        event(1, 0, "a", "p", "b"),
        change(2, 1, 1, "b", "r", "c"),
        change(3, 2, -1, "b", "r", "c"),
        change(6, 3, 1, "b", "r", "c"),
        watermark(11),
    ]
    query = {"q": windowed("ISTREAM", "WINDOW :w { ?a :p ?b } ?b :r ?c", "?c", "RANGE 10 STEP 5")}
    for partitions in (1, 2, 4):
        found, _ = on_partitions(query, rows, partitions, Random(partitions))
        assert found == {("q", 10, 0, (iri("c"),)): 1}


def test_late_rows_are_set_aside_and_the_others_put_in_order():
    """In process, a batch of events is pushed at once; the same ones are late."""
    rng, lateness = Random(5), 4
    query = windowed("ISTREAM", "WINDOW :w { ?a :p ?b }", extent="RANGE 6 STEP 3")
    graph = LiveGraph()
    stream = graph.stream("<http://e/s>", lateness=lateness)
    reports = graph.watch(query, name="q")
    run = PartitionRun.of({"q": query}, 2, clock=Clock(lateness))
    out = []
    for number in range(30):
        times = [max(0, 2 * number + rng.randint(-9, 3)) for _ in range(4)]
        batch = [event(time, 0, f"n{number}", "p", rng.choice("abcd")) for time in times]
        out += run.batch([batch[:1], batch[1:]])
        quads = [[graph.terms.encode(term) for term in row[3:6]] + [0] for row in batch]
        stream.push_ids(np.array(times, np.int64), np.array(quads, np.int32))
    out += run.batch([[watermark(90)]])
    graph.advance(90)
    expected = output_of({"q": reports})
    assert net_once(out) == expected and len(expected) > 20
    late = sorted((time, " ".join(map(graph.terms.text, quad[:3]))) for time, quad in stream.late)
    assert stream.late_count == len(late) > 5
    found = sorted((time, text.removesuffix(" http://e/s")) for time, _, text, _ in run.rejected)
    assert found == late
    assert all(reason.startswith("too late: ") for *_, reason in run.rejected)


def test_rows_that_come_late_but_not_too_late_change_nothing():
    """Each row up to 5 ticks late, facts and their deletes too: as if all had come in order."""
    rng = Random(8)
    rows, last = random_rows(rng, 40)
    end = last + 20
    delays = {row[:2]: rng.randint(0, 5) for row in rows}
    late = sorted(rows, key=lambda row: (row[0] + delays[row[:2]], row[1]))
    queries = {
        "q": windowed("ISTREAM", *BODIES["a join with the graph"][:2]),
        "r": windowed("RSTREAM", *BODIES["one group"][:2]),
    }
    assert late != rows
    expected = in_process(queries, rows, end)
    for partitions in (1, 3):
        found, run = on_partitions(
            queries, [*late, watermark(end)], partitions, rng, Clock(lateness=5)
        )
        assert run.rejected == []
        assert found == expected


@pytest.mark.slow
def test_state_is_bounded_by_the_window(monkeypatch):
    """50 windows' worth of events leave about one in the state, however it is counted."""
    monkeypatch.setattr(cache, "SMALL_LOG", 20)
    per_tick, length = 4, 10
    one_window = per_tick * length
    queries = {
        "came": windowed("ISTREAM", "WINDOW :w { ?a :p ?b } ?b :r ?c", extent="RANGE 10 STEP 5"),
        "all": windowed("RSTREAM", *BODIES["one group"][:2]),
    }
    facts = [change(0, 0, 1, x, "r", "z") for x in "abcd"]
    run = PartitionRun.of(queries, 2)
    most_rows = most_bytes = first_bytes = 0
    for time in range(0, 50 * length, 2):
        rows = [
            event(at, 0, f"e{at}-{i}", "p", "abcd"[i])
            for at in (time, time + 1)
            for i in range(per_tick)
        ]
        run.batch([[*(facts if time == 0 else []), *rows]])
        logs = run.logs["match"]
        every = [entry for log in logs for entry in (*log.chunks.values(), *log.current.tail)]
        chunks = [entry.chunk for entry in every]
        held = [part for log in logs for part in (log.current.held, log.current.unreported) if part]
        most_rows = max(most_rows, sum(len(from_chunk(each)) for each in [*chunks, *held]))
        size = sum(map(len, [*chunks, *held]))
        most_bytes = max(most_bytes, size)
        if time == 5 * length:
            first_bytes = most_bytes
    # A log is compacted at twice what is left, and 20: each window is at most half as long again
    # when its oldest events leave; every partition also has the facts, and a row for each time.
    window = one_window * 3 // 2
    assert most_rows < 2 * (20 + 2 * (window + len(facts))) + 4 * per_tick
    assert most_bytes < 2 * first_bytes, "no growth after the first windows"


def test_deletes_and_impossible_times_are_set_aside():
    run = PartitionRun.of({"q": windowed("ISTREAM", "WINDOW :w { ?a :p ?b }")}, 2)
    gone = (3, 0, -1, iri("a"), iri("p"), iri("b"), None, "http://e/s")
    run.batch(
        [[gone, event(2**61 + 1, 0, "a", "p", "b"), event(1, 0, "a", "p", "c"), watermark(10)]]
    )
    reasons = sorted(reason.split(":")[0] for *_, reason in run.rejected)
    assert reasons == [
        "an event cannot be deleted",
        f"time is after {2**61}, which leaves windows no room",
    ]
    assert [row.values for row in run.batch([[watermark(11)]])] == []


def test_events_are_no_changes_of_the_graph():
    """Nor the other way round, and an event of another stream is neither."""
    plain = "PREFIX : <http://e/> SELECT ?a ?b { ?a :p ?b }"
    queries = {"plain": plain, "w": windowed("ISTREAM", "WINDOW :w { ?a :p ?b }")}
    rows = [
        event(1, 0, "a", "p", "b"),
        event(1, 0, "c", "p", "d", stream="other"),
        change(2, 0, 1, "e", "p", "f"),
        watermark(10),
    ]
    for partitions in (1, 2):
        found, _ = on_partitions(queries, rows, partitions, Random(partitions))
        assert found == {
            ("plain", 2, 0, (iri("e"), iri("f"))): 1,
            ("w", 10, 0, (iri("a"), iri("b"))): 1,
        }


def test_what_is_not_exact_is_refused():
    mixed = windowed("ISTREAM", *BODIES["two windows"][:2], "ELEMENTS 3", "RANGE 7 STEP 7")
    with pytest.raises(GraphtideError, match="both RANGE and ELEMENTS"):
        _ = JobSpec((("q", mixed),), 2).partition_queries
    with pytest.raises(GraphtideError, match="rsp4j report by when events come"):
        Clock(window_alignment="rsp4j")
    with pytest.raises(GraphtideError, match="negative"):
        Clock(lateness=-1)
    with pytest.raises(GraphtideError, match="a tick of 0 ms is too short"):
        Clock(tick_ms=0)
    with pytest.raises(GraphtideError, match="no whole number of ticks"):
        _ = JobSpec((("q", windowed("ISTREAM", *BODIES["one pattern"][:2], "RANGE PT1S")),), 2,
                 clock=Clock(tick_ms=600)).partition_queries  # fmt: skip


def test_a_checkpoint_goes_on_with_the_same_ticks_only():
    queries = (("q", windowed("ISTREAM", "WINDOW :w { ?a :p ?b }")),)
    prints = {JobSpec(queries, 2, clock=Clock(tick_ms=ms)).fingerprint for ms in (500, 1000)}
    assert len(prints) == 2
    assert JobSpec(queries, 2, clock=Clock(lateness=9)).fingerprint in prints
    plain = (("q", "SELECT ?a { ?a ?p ?b }"),)
    assert JobSpec(plain, 2, clock=Clock(tick_ms=500)).fingerprint == JobSpec(plain, 2).fingerprint


def test_explain():
    text = explain(windowed("ISTREAM", "WINDOW :w { ?a :p ?b } ?b :r ?c", "?a ?b"), 4)
    assert text.splitlines()[:6] == [
        "query: 4 of 4 partitions, ?b in 4 parts",
        "  window <http://e/w> on <http://e/s>: range 10 step 5",
        "  ISTREAM when a window closes",
        "  a quad is sent to 1.00 partitions on average",
        "  1 of 4 partitions  WINDOW <http://e/w> { ?a <http://e/p> ?b }  by ?b",
        "  1 of 4 partitions  ?b <http://e/r> ?c                          by ?b",
    ]
    text = explain(windowed("ISTREAM", "WINDOW :w { ?a :p ?b }", extent="ELEMENTS 3"), 4)
    assert "cannot be divided: an ELEMENTS window counts all events of its stream" in text


def test_a_program_may_have_windows():
    program = Program.parse("PREFIX : <http://e/>\nQUERY W AS " + windowed(
        "ISTREAM", "WINDOW :w { ?a :p ?b }").replace("PREFIX : <http://e/> ", ""))  # fmt: skip
    (query,) = JobSpec(tuple(program.texts.items()), 2).partition_queries
    assert query.windowed is not None and query.windowed.output == "ISTREAM"

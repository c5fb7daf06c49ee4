"""Rescaled in the middle of a stream: the output is that of a run that was never changed."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random

import pytest
from spark.stages import window_streams as windows
from spark.stages.program_runs import PREFIX, ProgramRun, fired, fired_on_partitions, watermark
from spark.stages.program_runs import in_process as program_in_process
from spark.stages.random_programs import EVENTS, PATTERNS, RULES, found_in, random_rows
from spark.stages.shapes import SHAPES, query, stream
from spark.stages.splits import END, assert_net, in_process, micro_batches
from support.sampling import quick_sample

from graphtide.errors import GraphtideError
from graphtide.spark.partition.windows import Clock
from graphtide.spark.state import cache
from oracles.partitions import PartitionRun, net_of


def rescaled(run, rng, tasks, layouts=(None,), hubs=None):
    """Now and then the same run on another number of partitions, and with a failed attempt."""
    if run.taken and rng.random() < 0.3:
        named = None if hubs is None else rng.sample(hubs, rng.randint(0, len(hubs)))
        partitions = rng.choice((1, 2, 3, 5, 8, run.job.partitions))
        run = run.rescaled(partitions, rng.choice(layouts), named)
        if rng.random() < 0.3:
            run.attempt(tasks)
    return run


def output_of(run, batches, rng, layouts=(None,), hubs=None):
    out = []
    for tasks in batches:
        run = rescaled(run, rng, tasks, layouts, hubs)
        out += run.batch(tasks)
    return out


@pytest.mark.parametrize("shape", quick_sample(SHAPES, 14))
def test_queries(shape, monkeypatch):
    rng = Random(shape)
    monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
    rows, queries = stream(rng.randrange(100), transactions=14), {shape: query(shape)}
    run = PartitionRun.of(queries, rng.choice((1, 2, 4)), layout=rng.choice((None, "rete")))
    batches = micro_batches([*rows, END], rng)
    hubs = [*(f"<http://e/n{n}>" for n in range(3)), "<http://e/g1>"]
    out = output_of(run, batches, rng, layouts=("grid", "rete", None), hubs=hubs)
    assert net_of(out) == in_process(queries, rows)
    assert_net(out)


@pytest.mark.slow
def test_all_queries_at_once():
    queries = {shape: query(shape) for shape in SHAPES}
    rows, rng = stream(4, transactions=12), Random(4)
    batches = micro_batches([*rows, END], rng)
    out = output_of(PartitionRun.of(queries, 3), batches, rng)
    assert net_of(out) == in_process(queries, rows)
    assert_net(out)


def test_hubs_and_shards():
    """What is held for a shard that is behind goes on, and so do values that are spread."""
    text = {"q": "SELECT ?a ?b ?c { ?a <ex:p> ?b . ?a <ex:q> ?c }"}
    rows = [
        (t, 0, 1, "<ex:hub>" if t % 2 else f"<ex:{t}>", f"<ex:{'pq'[n]}>", f"<ex:o{t % 7}>", None)
        for t in range(40)
        for n in (0, 1)
    ]
    expected = in_process(text, rows)
    run, out = PartitionRun.of(text, 2, hubs=["<ex:hub>"], clock=Clock(shards=2)), []
    for begin in range(0, 40, 5):
        ahead = [(*row, None, "a") for row in rows if begin <= row[0] < begin + 5 and row[0] % 3]
        behind = [
            (*row, None, "b") for row in rows if begin - 5 <= row[0] < begin and not row[0] % 3
        ]
        out += run.batch([ahead, behind])
        run = run.rescaled(1 + begin % 4)
    last = [(*row, None, "b") for row in rows if row[0] >= 35 and not row[0] % 3]
    out += run.batch([last, [(*END, None, "a")], [(*END, None, "b")]])
    assert net_of(out) == expected


BODIES = {
    "one pattern": ("WINDOW :w { ?a :p ?b }", "*", None),
    "a join with the graph": ("WINDOW :w { ?a :p ?b } ?b :r ?c", "*", None),
    "rows that meet": ("WINDOW :w { ?a :p ?b } ?b :r ?c", "?a", None),
    "rows that are counted": ("WINDOW :w { ?a :p ?b } ?b :r ?c", "DISTINCT ?c", None),
    "two windows": ("WINDOW :w { ?a :p ?b } WINDOW :v { ?b :q ?c }", "*", "RANGE 7 STEP 7"),
    "groups": (
        "{ SELECT ?a (COUNT(*) AS ?n) { WINDOW :w { ?a :p ?b } } GROUP BY ?a }", "*", None,
    ),
    "event graphs": ("WINDOW :w { GRAPH ?g { ?a :p ?b } }", "*", None),
    "rows of no quad": ("VALUES ?x { 1 2 } OPTIONAL { WINDOW :w { ?a :p ?b } }", "*", None),
}  # fmt: skip


@pytest.mark.parametrize("extent", ["RANGE 10 STEP 5", "RANGE 6 STEP 1", "ELEMENTS 5 STEP 3"])
@pytest.mark.parametrize("shape", quick_sample(BODIES, 3))
@pytest.mark.slow
def test_windows(shape, extent, monkeypatch):
    rng = Random(f"{shape} {extent}")
    monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
    body, select, second = BODIES[shape]
    if extent.startswith("ELEMENTS"):
        second = second and "ELEMENTS 2 STEP 2"
    queries = {
        output: windows.windowed(output, body, select, extent, second)
        for output in ("RSTREAM", "ISTREAM", "DSTREAM")
    }
    rows, last = windows.random_rows(rng, 40)
    end = last + 20
    run = PartitionRun.of(queries, rng.choice((1, 2, 4)))
    out = []
    for tasks in micro_batches([*rows, watermark(end)], rng):
        if "DISTINCT" in select:
            with suppress(GraphtideError):  # some changes cannot be counted by another stage
                run = rescaled(run, rng, tasks)
        else:
            run = rescaled(run, rng, tasks)
        out += run.batch(tasks)
    assert windows.net_once(out) == windows.in_process(queries, rows, end)


def run_program(text, rows, rng):
    running = ProgramRun(text, rng.choice((1, 2, 4)))
    for tasks in micro_batches(rows, rng):
        running.run = rescaled(running.run, rng, tasks)
        running.batch(tasks)
    return running


@pytest.mark.parametrize("shape", quick_sample(PATTERNS, 6))
@pytest.mark.slow
def test_patterns(shape, monkeypatch):
    rng = Random(shape)
    monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
    rows, last = random_rows(rng, 40)
    end = last + 20
    parameters = PATTERNS[shape][: PATTERNS[shape].index(")") + 1]
    text = (
        f"{PREFIX}{EVENTS}PATTERN P0{PATTERNS[shape]}\n"
        f"RULE R0 WHEN EVENT P0{parameters} THEN CALL f({parameters[1:-1].split(',')[0]})"
    )
    alone = program_in_process(text, rows, end)
    running = run_program(text, [*rows, watermark(end)], rng)
    assert Counter(running.events) == found_in(alone, 1)
    assert fired_on_partitions(running) == fired(alone)


@pytest.mark.parametrize(
    "rule",
    ["EVENT b = B(?x, ?z) DURING t", "NO EVENT s = Trip(?x, ?z) AFTER[1,6] t"],
)
@pytest.mark.slow
def test_complex_events_that_last(rule, monkeypatch):
    rng = Random(rule)
    monkeypatch.setattr(cache, "SMALL_LOG", 0)
    rows, last = random_rows(rng, 60)
    text = (
        f"{PREFIX}{EVENTS}PATTERN Trip(?x, ?y) AS (A(?x, ?y) -> B(?x, _)) WITHIN 9 INTERVAL\n"
        f"RULE R0 WHEN EVENT t = Trip(?x, ?y) {rule} THEN CALL f(?x)"
    )
    alone = program_in_process(text, rows, last + 20)
    running = run_program(text, [*rows, watermark(last + 20)], rng)
    assert fired_on_partitions(running) == fired(alone) and alone.firings()
    starts = Counter(tuple(begin for begin, _ in f.events.values()) for f in alone.firings())
    assert Counter(each[-1] for each in running.firings) == starts


@pytest.mark.parametrize("shape", quick_sample(RULES, 5))
@pytest.mark.slow
def test_rules(shape, monkeypatch):
    rng = Random(shape)
    monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
    rows, last = random_rows(rng, 40)
    end = last + 20
    text = f"{PREFIX}{EVENTS}RULE R0 {RULES[shape]} THEN CALL f(?x)\n"
    alone = program_in_process(text, rows, end)
    running = run_program(text, [*rows, watermark(end)], rng)
    assert fired_on_partitions(running) == fired(alone)
    assert running.rejected == []

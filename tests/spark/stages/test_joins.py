"""The Rete layout gives the deltas of the in-process engine, for any query, cut and failure."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from spark.stages.program_runs import PREFIX, fired, fired_on_partitions, watermark
from spark.stages.program_runs import in_process as program_in_process
from spark.stages.program_runs import on_partitions as programs_on_partitions
from spark.stages.random_programs import EVENTS, random_rows
from spark.stages.shapes import SHAPES, query, stream
from spark.stages.splits import END, assert_net, check_partitions, in_process, micro_batches
from spark.stages.window_streams import on_partitions as windows_on_partitions
from spark.stages.window_streams import windowed
from support.sampling import quick_sample

from graphtide.spark.partition.columns import read_quads
from graphtide.spark.partition.grids import route
from graphtide.spark.state import cache
from graphtide.spark.topology import stages_of
from oracles.generators import cases
from oracles.partitions import PartitionRun, change_rows, net_of

CHAIN = "PREFIX : <http://e/> SELECT ?a ?e { ?a :p ?b . ?b :q ?c . ?c :r ?d . ?d :p ?e }"

quietly = settings(
    max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
@pytest.mark.parametrize("shape", quick_sample(SHAPES, 14))
def test_shapes(shape):
    for partitions in (1, 3, 8):
        check_partitions(
            {shape: query(shape)}, stream(partitions), partitions, seed=partitions, layout="rete"
        )


@pytest.mark.parametrize("shape", ["chain", "optional, nested", "minus, both shared"])
def test_many_transactions_in_one_micro_batch(shape):
    for number in range(3):
        rows = stream(number, transactions=30)
        out = run_of({"q": query(shape)}, 4).batch([rows, [END]])
        assert net_of(out) == in_process({"q": query(shape)}, rows)
        assert_net(out)


@pytest.mark.slow
def test_all_shapes_at_once():
    queries = {shape: query(shape) for shape in SHAPES}
    assert sum(each.rete is not None for each in run_of(queries, 3).job.shown_queries) > 80
    check_partitions(queries, stream(9), 3, seed=5, layout="rete")


@pytest.mark.slow
@seed(1)
@quietly
@given(cases(streams=2), st.sampled_from((1, 2, 3, 4, 8)), st.integers(0, 10**6))
def test_random_queries(case, partitions, number):
    for rows in map(change_rows, case.streams):
        check_partitions({"q": case.query}, rows, partitions, number, layout="rete")


@pytest.mark.slow
@seed(2)
@quietly
@given(
    st.lists(cases(streams=1, twins=True), min_size=2, max_size=3),
    st.sampled_from((1, 2, 4)),
    st.integers(0, 10**6),
)
def test_layouts_side_by_side(drawn, partitions, number):
    """Queries of one job in both layouts, some of which share fragments."""
    queries = {f"q{i}": case.query for i, case in enumerate(drawn)}
    queries |= {f"again{i}": case.query for i, case in enumerate(drawn[:1])}
    layouts = {name: Random(number + i).choice(("grid", "rete")) for i, name in enumerate(queries)}
    check_partitions(queries, change_rows(drawn[0].streams[0]), partitions, number, layout=layouts)


@pytest.mark.slow
def test_beside_windows_patterns_and_rules():
    """The other stages have their output, and join stages have the deltas of the whole graph."""
    far = "SELECT ?x ?w { ?x :p ?y . ?y :q ?z . ?z :p ?w . ?w :q ?v } "
    window = windowed("ISTREAM", "WINDOW :w { ?a :a ?b } ?b :p ?c")
    rules = "RULE R WHEN FACT { ?x :p ?f } EVENT u = Up(?x) EVENT a = A(?x, ?y) AFTER[0,5] u "
    text = f"{PREFIX}QUERY Far AS {far}{EVENTS}{rules}THEN CALL f(?x)"
    both = text.replace("QUERY Far", f"QUERY W AS {window.removeprefix(PREFIX.strip())} QUERY Far")
    seen = 0
    for number in range(3):
        rng = Random(number)
        rows, last = random_rows(rng, 40)
        rows = [*rows, watermark(last + 20)]
        expected, _ = windows_on_partitions({"W": window}, rows, 2, rng)
        running = programs_on_partitions(both, rows, 2, rng, layout={"Far": "rete"})
        changes = [row[:7] for row in rows if row[7] is None and row[2]]
        deltas = [row for row in running.deltas if row.query == "Far"]
        assert net_of(deltas) == in_process({"Far": PREFIX + far}, changes)
        reports = [row for row in running.deltas if row.query == "W" and row.diff > 0]
        assert net_of(reports) == expected
        alone = program_in_process(text, rows[:-1], last + 20)
        assert fired_on_partitions(running) == fired(alone)
        seen += len(deltas) * len(reports) * len(running.firings)
    assert seen


def run_of(queries, partitions, **options):
    return PartitionRun.of(queries, partitions, layout="rete", **options)


FAILING = ("chain", "optional, nested", "minus, both shared", "union in optional", "count",
           "distinct, hidden", "top of a group", "path joined", "values")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shape", quick_sample(FAILING, 3))
@pytest.mark.parametrize("small_log", [3, 1000])
def test_retries_lost_workers_and_moved_partitions(shape, small_log, monkeypatch):
    """Attempts that fail after the caches have changed, on three workers that come and go."""
    monkeypatch.setattr(cache, "SMALL_LOG", small_log)
    queries = {"q": query(shape)}
    for number in range(2):
        rng, rows = Random(number), stream(number, transactions=25)
        run = run_of(queries, 4, workers=3, place=lambda _, rng=rng: rng.randrange(3))
        out = []
        for tasks in micro_batches([*rows, END], rng):
            if rng.random() < 0.3:
                run.attempt(tasks)
            if rng.random() < 0.3:
                run.lose(rng.randrange(3))
            out += run.batch(tasks)
        assert net_of(out) == in_process(queries, rows), (shape, number)
        assert_net(out)
        assert sum(worker.rebuilt + worker.caught_up for worker in run.workers)


def test_a_long_log_is_compacted_to_the_rows_of_the_inputs(monkeypatch):
    monkeypatch.setattr(cache, "SMALL_LOG", 10)
    run = run_of({"q": CHAIN}, 1)
    pair = [("<http://e/a>", "<http://e/p>", "<http://e/b>"),
            ("<http://e/b>", "<http://e/q>", "<http://e/c>")]  # fmt: skip
    for tx in range(60):
        run.batch([[(1, tx, 1 if tx % 2 == 0 else -1, *quad, None) for quad in pair]])
    (log,) = run.logs["join 1"]
    (engine,) = run.engines("join 1")
    assert log.head().oldest > 1
    assert engine.log_rows <= 10 + 2 * engine.live_rows + 2
    assert engine.live_rows <= 1


def test_what_no_stage_needs_is_not_sent_through_it():
    """A quad goes to one partition per pattern, and no partition without rows works."""
    run = run_of({"q": CHAIN}, 8)
    run.batch([[(1, 0, 1, "<http://e/a>", "<http://e/p>", "<http://e/b>", None)]])
    run.batch([[END]])
    grid = max(each.grid.replication for each in run.job.partition_queries)
    assert grid == 1
    assert not run.engines("join 1")


@pytest.mark.parametrize("tx", [-5, 0, 5])
def test_constant_rows_come_before_all_transactions(tx):
    text = "SELECT ?x ?b { VALUES ?x { <ex:a> <ex:z> } OPTIONAL { ?x <ex:p> ?b } }"
    rows = [(0, tx, 1, "<ex:a>", "<ex:p>", "<ex:b>", None)]
    for queries in ({"q": text}, {"q": "SELECT (COUNT(*) AS ?n) { ?a <ex:p> ?b . ?c <ex:p> ?d }"}):
        run = run_of(queries, 4)
        out = run.batch([[]])
        assert {(row.time, row.tx, row.diff) for row in out} == {(0, 0, 1)}
        out += run.batch([rows, [END]])
        assert net_of(out) == in_process(queries, rows)


def test_the_stages_and_their_order():
    names = [stage.name for stage in stages_of(run_of({"q": query("distinct, hidden")}, 2).job)]
    assert names == ["match", "join 1", "join 2"]
    hidden = {"q": query("hidden in a chain")}
    assert [stage.name for stage in stages_of(run_of(hidden, 2).job)] == [
        "match", "join 1", "consolidate",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "stages", "homes"),
    [
        ("{ :n1 :p+ ?b . ?b :q ?c }", ["match", "join 1"], 1),
        ("{ ?b (:p|^:q)* :n1 . ?b :q ?c . ?c :r ?d }", ["match", "join 1"], 1),
        ("{ :n1 :p+ ?b . :n2 :q* ?b . ?b :r ?c }", ["match", "join 1"], 2),
        ("{ ?a :p+ ?b . ?b :q ?c }", ["match", "join 1", "join 2", "join 3"], 0),
    ],
)
def test_paths_of_constants_are_followed_in_the_match(body, stages, homes):
    job = run_of({"q": f"PREFIX : <http://e/> SELECT * {body}"}, 8).job
    assert [stage.name for stage in stages_of(job)] == stages
    fragments = [each.grid for each in job.partition_queries[job.first_fragment :]]
    assert len({grid.home for grid in fragments if not grid.variables}) == homes


def test_the_edges_of_a_path_are_sent_to_one_partition():
    texts = {"q": "PREFIX : <http://e/> SELECT * { :n1 :p+ ?b . ?b :q ?c }"}
    edges = [(f"<http://e/{n}>", "<http://e/p>", f"<http://e/{n + 1}>", None) for n in range(50)]
    columns = [pa.array(column, pa.string()) for column in zip(*edges, strict=True)]
    quads, _ = read_quads(columns)
    runs = (PartitionRun.of(texts, 8), run_of(texts, 8))
    copies, once = (route(quads, run.job.routes[None])[1] for run in runs)
    assert (len(copies), len(once), len(set(once.tolist()))) == (8 * 50, 50, 1)


def test_a_query_that_one_stage_can_do_stays_there():
    job = run_of({"q": query("star")}, 2).job
    assert [stage.name for stage in stages_of(job)] == ["match"]
    assert job.fingerprint == PartitionRun.of({"q": query("star")}, 2).job.fingerprint


def test_layouts_have_different_fingerprints():
    texts = {"q": CHAIN}
    assert run_of(texts, 2).job.fingerprint != PartitionRun.of(texts, 2).job.fingerprint

"""Transactions across micro-batches, ends, lateness, order, and input that cannot be used."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spark.stages.splits import END, assert_net, in_process, micro_batches

from graphtide.errors import GraphtideError
from graphtide.spark.partition.windows import Clock
from graphtide.spark.state.frontier import START, Frontier
from oracles.generators import change_streams
from oracles.partitions import PartitionRun, change_rows, net_of

QUERY = {"q": "SELECT ?a ?c { ?a <ex:p> ?b . ?b <ex:q> ?c }"}
PAIR = (("<ex:a>", "<ex:p>", "<ex:b>"), ("<ex:b>", "<ex:q>", "<ex:c>"))


def change(time, tx, diff, triple, g=None):
    return (time, tx, diff, *triple, g)


def end(time, tx):
    return (time, tx, 0, None, None, None, None)


@pytest.fixture(params=[1, 2, 4])
def run(request):
    return PartitionRun.of(QUERY, request.param)


def row(time, tx, diff):
    return ("q", time, tx, diff, ("<ex:a>", "<ex:c>"))


def test_a_transaction_waits_for_a_later_one(run):
    assert run.batch([[change(5, 1, 1, PAIR[0])]]) == []
    assert run.batch([[change(5, 1, 1, PAIR[1])]]) == []
    assert run.batch([[change(5, 2, -1, PAIR[0])]]) == [row(5, 1, 1)]
    assert run.batch([[end(6, 0)]]) == [row(5, 2, -1)]


def test_a_transaction_waits_for_its_end(run):
    assert run.batch([[change(5, 1, 1, PAIR[0])], [change(5, 1, 1, PAIR[1])]]) == []
    assert run.batch([[end(5, 1)]]) == [row(5, 1, 1)]
    assert run.batch([[end(5, 1)], [end(5, 2)]]) == []


def test_what_comes_and_goes_in_one_transaction_is_nothing(run):
    run.batch([[change(5, 1, 1, PAIR[0]), change(5, 1, 1, PAIR[1])]])
    run.batch([[change(5, 1, -1, PAIR[1])]])
    assert run.batch([[END]]) == []


def test_held_changes_come_before_those_of_later_micro_batches(run):
    # Ten rows, then one: the order is that of arrival, not of places inside micro-batches.
    filler = [change(5, 1, 1, ("<ex:x>", "<ex:p>", f"<ex:y{i}>")) for i in range(9)]
    run.batch([[*filler, change(5, 1, 1, PAIR[0]), change(5, 1, 1, PAIR[1])]])
    run.batch([[change(5, 1, -1, PAIR[0])]])
    assert run.batch([[END]]) == []


@pytest.mark.parametrize("partitions", [1, 2, 4])
def test_with_lateness_an_end_still_is_one(partitions):
    """By hand: rows may be 10 ticks late, so that 5 is complete at 15; its end comes before."""
    run = PartitionRun.of(QUERY, partitions, clock=Clock(lateness=10))
    assert run.batch([[change(5, 1, 1, PAIR[0]), change(5, 1, 1, PAIR[1])]]) == []
    assert run.batch([[end(5, 1), change(14, 0, -1, PAIR[0])]]) == [row(5, 1, 1)]
    assert run.batch([[change(24, 0, 1, PAIR[0])]]) == []
    assert run.batch([[end(24, 0)]]) == [row(14, 0, -1), row(24, 0, 1)]
    run.batch([[change(23, 0, 1, PAIR[0])]])
    ((time, _, _, reason),) = run.rejected
    assert (time, reason) == (23, "too late: the stream was complete up to time 24, tx 0")


def test_changes_that_no_query_matches_still_end_transactions(run):
    run.batch([[change(5, 1, 1, PAIR[0]), change(5, 1, 1, PAIR[1])]])
    assert run.batch([[change(7, 0, 1, ("<ex:x>", "<ex:other>", "<ex:y>"))]]) == [row(5, 1, 1)]


LENIENT = Clock(late="reject")


def test_a_late_change_is_an_error_unless_late_ones_are_to_be_rejected(run):
    run.batch([[change(5, 1, 1, PAIR[0]), end(5, 1)]])
    message = "a change of time 4, tx 9 came after the stream was complete up to time 5, tx 1"
    with pytest.raises(GraphtideError, match=message) as error:
        run.batch([[change(4, 9, 1, PAIR[1])]])
    assert "column shard" in error.value.hint
    run.batch([[change(4, 9, 1, ("<ex:x>", "<ex:other>", "<ex:y>"))]])
    assert run.batch([[change(5, 2, 1, PAIR[1]), END]]) == [row(5, 2, 1)]
    assert run.rejected == []


@pytest.mark.parametrize("partitions", [1, 2, 4])
def test_late_changes_are_set_aside_once_and_change_nothing(partitions):
    run = PartitionRun.of(QUERY, partitions, clock=LENIENT)
    run.batch([[change(5, 1, 1, PAIR[0]), end(5, 1)]])
    out = run.batch(
        [[change(5, 1, 1, PAIR[1]), change(4, 9, 1, PAIR[1]), change(6, 0, 1, PAIR[1])]]
    )
    assert out == []
    reason = "too late: the stream was complete up to time 5, tx 1"
    text = "<ex:b> <ex:q> <ex:c>"
    assert sorted(run.rejected) == [(4, 9, text, reason), (5, 1, text, reason)]
    assert run.batch([[END]]) == [row(6, 0, 1)]
    assert len(run.rejected) == 2


def test_late_changes_that_are_copied_are_set_aside_once():
    triangle = {"q": "SELECT * { ?a <ex:p> ?b . ?b <ex:p> ?c . ?c <ex:p> ?a }"}
    run = PartitionRun.of(triangle, 8, clock=LENIENT)
    assert run.job.partition_queries[0].grid.replication > 1
    run.batch([[end(5, 1)]])
    late = [change(2, 0, 1, ("<ex:a>", "<ex:p>", f"<ex:{i}>")) for i in range(20)]
    run.batch([late])
    assert len(run.rejected) == len(set(run.rejected)) == 20


BROKEN = {
    "no time": ((None, 1, 1, *PAIR[0], None), "time is missing or no whole number"),
    "no tx": ((5, None, 1, *PAIR[0], None), "tx is missing or no whole number"),
    "no diff": ((5, 1, None, *PAIR[0], None), "diff is missing or no whole number"),
    "before 0": ((-1, 1, 1, *PAIR[0], None), "time is before 0"),
    "diff 2": ((5, 1, 2, *PAIR[0], None), "diff is neither +1 nor -1"),
    "diff -128": ((5, 1, -128, *PAIR[0], None), "diff is neither +1 nor -1"),
    "diff 257": ((5, 1, 257, *PAIR[0], None), "diff is neither +1 nor -1"),
    "no subject": ((5, 1, 1, None, *PAIR[0][1:], None), "column s: a subject is an IRI"),
    "no object": ((5, 1, 1, *PAIR[0][:2], None, None), "column o: an object is an IRI"),
    "empty object": ((5, 1, 1, *PAIR[0][:2], "", None), "column o: not an RDF term"),
    "not a term": ((5, 1, 1, "ex:a", *PAIR[0][1:], None), "column s: not an RDF term"),
    "open literal": ((5, 1, 1, *PAIR[0][:2], '"x', None), "column o: not an RDF term"),
    "literal subject": ((5, 1, 1, '"a"', *PAIR[0][1:], None), "column s: a subject is an IRI"),
    "blank predicate": ((5, 1, 1, "<ex:a>", "_:p", "<ex:b>", None), "column p: a predicate is"),
    "literal graph": ((5, 1, 1, *PAIR[0], '"g"'), "column g: a graph name is an IRI"),
    "broken graph": ((5, 1, 1, *PAIR[0], "<ex g>"), "column g: not an RDF term"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_rows_are_set_aside_with_a_reason_and_harm_no_others(run, kind):
    broken, reason = BROKEN[kind]
    out = run.batch([[broken, change(5, 1, 1, PAIR[0])], [change(5, 1, 1, PAIR[1]), END]])
    assert out == [row(5, 1, 1)]
    ((time, tx, text, why),) = run.rejected
    assert (time, tx) == broken[:2]
    assert text == " ".join(part for part in broken[3:] if part)
    assert why.startswith(reason)


def test_an_empty_graph_name_is_the_default_graph(run):
    out = run.batch([[change(5, 1, 1, PAIR[0], ""), change(5, 1, 1, PAIR[1]), END]])
    assert out == [row(5, 1, 1)]


def test_nothing_at_all(run):
    assert run.batch([]) == []
    assert run.batch([[]]) == []
    assert run.batch([[END]]) == []


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(change_streams(), st.sampled_from((1, 2, 4)), st.integers(0, 10**6))
def test_broken_and_late_rows_in_any_cut(stream, partitions, number):
    """The deltas are those of the good rows; each bad row is set aside once."""
    rng = Random(number)
    rows = change_rows(stream)
    queries = {"q": "SELECT ?a ?b ?c { ?a ?p ?b OPTIONAL { ?b ?p ?c } }"}
    bad = [(t, tx, d, "oops", f"<ex:{i}>", o, g) for i, (t, tx, d, _, _, o, g) in enumerate(rows)]
    bad = [row for row in bad if rng.random() < 0.3]
    mixed = sorted([*rows, *bad], key=lambda row: row[:2])
    run = PartitionRun.of(queries, partitions, clock=LENIENT)
    out = [line for tasks in micro_batches([*mixed, END], rng) for line in run.batch(tasks)]
    late = [
        (t, tx, 1, "<ex:late>", f"<ex:{i}>", "<ex:x>", None) for i, (t, tx, *_) in enumerate(rows)
    ]
    for tasks in micro_batches(late, rng):
        out += run.batch(tasks)
    assert net_of(out) == in_process(queries, rows)
    assert_net(out)
    texts = Counter(text for _, _, text, _ in run.rejected)
    assert texts == Counter(" ".join(p for p in row[3:] if p) for row in [*bad, *late])


def test_frontiers_are_ordered():
    assert START < Frontier(0, 0, 0) < Frontier(0, 0, 1) < Frontier(0, 1, 0) < Frontier(1, 0, 0)

"""The clock of a silent source: it goes on with processing time, and what it decides is durable."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from spark.stages import program_runs as programs
from spark.stages.window_streams import in_process, net_once, random_rows, windowed

from graphtide.errors import GraphtideError
from graphtide.spark.job import JobSpec
from graphtide.spark.partition.windows import Clock
from graphtide.spark.state.frontier import Frontier, Shards
from oracles.partitions import PartitionRun, net_of

QUERY = {"q": "SELECT ?a ?b { ?a <ex:p> ?b }"}
WINDOWED = {
    "came": windowed("ISTREAM", "WINDOW :w { ?a :p ?b } ?b :r ?c"),
    "all": windowed("RSTREAM", "WINDOW :w { ?a :p ?b }", "DISTINCT ?a"),
}
CLOCK = Clock(idle_seconds=10)


def insert(time, tx=0):
    return (time, tx, 1, f"<ex:{time}-{tx}>", "<ex:p>", "<ex:b>", None)


def test_the_last_transaction_ends_by_itself():
    run = PartitionRun.of(QUERY, 2, clock=CLOCK)
    assert [row.time for row in run.batch([[insert(7), insert(8)]], now=5000)] == [7]
    # Ten seconds later the clock is at 8: more changes of that time may come. Then it is at 9.
    assert run.batch([], now=15_999) == []
    assert [row.time for row in run.batch([], now=16_000)] == [8]
    assert run.batch([], now=60_000) == [] and run.time == 8 + 45


def test_what_comes_after_the_clock_has_gone_on():
    run = PartitionRun.of(QUERY, 2, clock=CLOCK)
    run.batch([[insert(8)]], now=0)
    run.batch([], now=15_000)  # at 13
    assert run.batch([[insert(12), insert(13), insert(14)]], now=16_000) == net(13)
    assert [(row.time, row.reason) for row in run.rejected] == [
        (12, f"too late: the stream was complete up to time 13, tx {-(2**63)}")
    ]
    assert run.batch([], now=25_999) == [] and run.batch([], now=27_000) == net(14)


def net(time):
    return PartitionRun.of(QUERY, 1).batch([[insert(time), insert(time + 1)]])


def test_input_after_a_long_pause_of_the_job_is_not_late():
    """A job that was down for an hour finds its input waiting: only silence lets the clock go."""
    run = PartitionRun.of(QUERY, 2, clock=CLOCK)
    run.batch([[insert(8)]], now=0)
    out = run.batch([[insert(9), insert(10)]], now=3_600_000)
    assert net_of(out) == net_of([*net(8), *net(9)])
    assert not run.rejected


def test_feedback_of_actions_is_no_input():
    shards = Shards({"": Frontier(7, 0, 0)}, 7, heard=1000)
    assert shards.joined([Shards()], now=9000).heard == 1000
    assert Shards.from_text(shards.to_text()) == shards
    assert Shards.from_text('[7, {"": [7, 0, 0]}]') == Shards(shards.seen, 7)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.slow
def test_windows_close_in_any_micro_batches_and_after_failures(partitions):
    rng = Random(partitions)
    rows, last = random_rows(rng, 60)
    expected = in_process(WINDOWED, rows, last + 17)
    assert len(expected) > 20
    run = PartitionRun.of(
        WINDOWED, partitions, workers=2, place=lambda _: rng.randrange(2), clock=CLOCK
    )
    out, now = [], 0
    cuts = sorted(rng.sample(range(len(rows)), 12))
    batches = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
    silent = sorted(rng.sample(range(1000, 27_000, 100), 9))
    times = [*(9000 * n for n in range(len(batches))), *(9000 * len(cuts) + t for t in silent)]
    times.append(9000 * len(cuts) + 27_999)  # at last + 17
    for number, now in enumerate(times):
        tasks = [batches[number]] if number < len(batches) else []
        if rng.random() < 0.3:  # the same micro-batch again has the same processing time
            run.attempt(tasks, now)
        if rng.random() < 0.2:
            run.lose(rng.randrange(2))
        out += run.batch(tasks, now)
    assert net_once(out) == expected and not run.rejected


PROGRAM = (
    programs.PREFIX
    + """
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
PATTERN Alone(?x) AS A(?x) -> NOT B(?x) WITHIN 4s
RULE Missing WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,5] a THEN CALL f(?x)
"""
)


def test_absences_fire():
    iri = programs.iri
    rows = [
        *programs.event(1, 0, (iri("x"), iri("a"), iri("y"))),
        *programs.event(3, 0, (iri("z"), iri("a"), iri("y"))),
        *programs.event(4, 0, (iri("x"), iri("b"), iri("y"))),
    ]
    alone = programs.in_process(PROGRAM, rows, 20)
    running = programs.ProgramRun(PROGRAM, 2, clock=CLOCK)
    running.batch([rows], now=0)
    assert not running.firings and not running.events
    running.batch([], now=26_000)  # at 20
    expected = programs.fired(alone)
    assert programs.fired_on_partitions(running) == expected and len(expected) == 1
    complex_events = Counter((each.time, str(each.values["x"])) for each in alone.matches("Alone"))
    assert Counter((time, *values) for _, time, values in running.events) == complex_events
    assert len(complex_events) == 1


def test_shards_that_were_never_seen_do_not_hold_back_for_ever():
    run = PartitionRun.of(QUERY, 1, clock=Clock(shards=2, idle_seconds=1))
    row = (*insert(3), None, "a")
    assert run.batch([[row]], now=0) == [] and net_of(run.batch([], now=5000)) == net_of(net(3))


def test_seconds_are_not_negative_and_no_part_of_the_fingerprint():
    with pytest.raises(GraphtideError, match="idle_seconds=-1"):
        Clock(idle_seconds=-1)
    queries = tuple(QUERY.items())
    assert JobSpec(queries, 2).fingerprint == JobSpec(queries, 2, clock=CLOCK).fingerprint

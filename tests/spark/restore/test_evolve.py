"""Queries, rules and patterns that are added, removed and changed in the middle of a stream."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from spark.stages.program_runs import PREFIX, ProgramRun, change, event, iri, watermark
from spark.stages.shapes import SHAPES, query, stream
from spark.stages.splits import END, in_process, micro_batches
from spark.stages.window_streams import windowed
from support.sampling import quick_sample

from graphtide import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark.job import JobSpec, pinned
from graphtide.spark.restore.kept import check_kept, ended, job_notes
from graphtide.spark.state import cache
from oracles.partitions import PartitionRun, net_of

EVERYTHING = "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"


def job_of(queries, partitions, layout=None):
    return JobSpec(tuple(queries.items()), partitions, layouts=pinned(layout, queries))


def sums(rows):
    """What deltas add up to, by query and values."""
    found = Counter()
    for row in rows:
        found[row.query, row.values] += row.diff
    return Counter({key: count for key, count in found.items() if count})


@pytest.mark.parametrize("shape", quick_sample(SHAPES, 14))
@pytest.mark.slow
def test_a_new_query_starts_with_its_whole_answer(shape, monkeypatch):
    rng = Random(f"new {shape}")
    monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
    rows = stream(rng.randrange(100), transactions=14)
    other = rng.choice(list(SHAPES))
    old = {"all": EVERYTHING, "other": query(other)}
    new = {shape: query(shape), "other": query(other)}
    run, out, answer = PartitionRun.of(old, rng.choice((1, 2, 4))), [], []
    batches = micro_batches([*rows, END], rng)
    change_at = rng.randrange(1, len(batches))
    for at, tasks in enumerate(batches):
        if at == change_at:
            run = run.continued(job_of(new, rng.choice((1, 3)), rng.choice((None, "rete"))))
            answer = [row for row in run.answers() if row.query == shape]
        out += run.batch(tasks)
    expected = in_process({**old, **new}, rows)
    known = Counter({key: n for key, n in expected.items() if key[0] == "other"})
    assert Counter({k: n for k, n in net_of(out).items() if k[0] == "other"}) == known
    # The whole answer and all deltas after it are the answer in the end.
    final = Counter()
    for (name, _, _, values), count in expected.items():
        if name == shape:
            final[name, values] += count
    after = [row for row in out if row.query == shape]
    assert sums([*answer, *after]) == Counter({k: n for k, n in final.items() if n})
    # And the deltas after it are those of a run from the start.
    assert net_of(after).items() <= expected.items()


def test_what_was_never_kept_is_refused():
    notes = job_notes(job_of({"q": "SELECT ?a { ?a <ex:p> ?b . ?b <ex:q> <ex:c> }"}, 2))
    check_kept(notes, job_of({"r": "SELECT * { ?x <ex:p> ?y OPTIONAL { ?y <ex:q> <ex:c> } }"}, 3))
    with pytest.raises(GraphtideError, match=r"r asks for \{ \?x <ex:r> \?y \}"):
        check_kept(notes, job_of({"r": "SELECT * { ?x <ex:r> ?y }"}, 2))
    with pytest.raises(GraphtideError, match=r"r asks for \{ \?x <ex:q> \?y \}"):
        check_kept(notes, job_of({"r": "SELECT * { ?x <ex:p> ?y . ?x <ex:q> ?y }"}, 2))
    with pytest.raises(GraphtideError, match=r"GRAPH \?g"):
        check_kept(notes, job_of({"r": "SELECT * { GRAPH ?g { ?x <ex:p> ?y } }"}, 2))


def test_a_window_that_was_not_there_is_refused_on_a_stream_that_was():
    old = {"w": windowed("RSTREAM", "WINDOW :w { ?a :p ?b }")}
    notes = job_notes(job_of(old, 2))
    check_kept(notes, job_of({"v": windowed("ISTREAM", "WINDOW :w { ?a :p ?b }")}, 2))
    longer = windowed("RSTREAM", "WINDOW :w { ?a :p ?b }", extent="RANGE 20 STEP 5")
    with pytest.raises(GraphtideError, match="a new window on http://e/s"):
        check_kept(notes, job_of({"w": longer}, 2))
    with pytest.raises(GraphtideError, match="new queries ask for were never kept"):
        check_kept(notes, job_of({"w": windowed("RSTREAM", "WINDOW :w { ?a :q ?b }")}, 2))


EVENTS = """
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
"""
PAIR = (
    "RULE Pair WHEN FACT { ?x :p ?f } EVENT a = A(?x) EVENT b = B(?x) AFTER[1,9] a THEN CALL f(?x)"
)
NONE = "RULE None WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,5] a THEN CALL f(?x)"
SEQUENCE = "PATTERN Seq(?x) AS A(?x) -> B(?x)"
TWICE = "PATTERN Twice(?x) AS A(?x){2}"


def program(*parts):
    return "\n".join([PREFIX, "QUERY Q AS SELECT ?x ?f { ?x :p ?f }", EVENTS, *parts])


def evolved(running, text, partitions):
    """A run of another program that goes on from a run."""
    new = ProgramRun(text, partitions)
    new.run = running.run.continued(new.run.job)
    return new


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
def test_rules_and_patterns_go_on_or_begin_empty(partitions):
    running = ProgramRun(program(SEQUENCE, NONE, PAIR), 2)
    x = iri("x")
    running.batch([[change(1, 0, 1, "x", "p", "y"), *event(2, 1, (x, iri("a"), x))]])
    running.batch([[(2, 1, 0, *[None] * 5)]])
    # Pair goes on with its event, None is gone, Twice and Late are new: they have not seen A.
    late = PAIR.replace("Pair", "Late")
    text = program("EVENT C(?x) AS { ?x :c ?y }", TWICE, late, PAIR, SEQUENCE)
    new = evolved(running, text, partitions)
    new.batch([[*event(4, 2, (x, iri("b"), x)), watermark(20)]])
    assert [(name, time) for name, time, *_ in new.firings] == [("Pair", 4)]
    assert new.events == [("Seq", 4, (x,))]
    assert new.deltas == []
    # Late has the facts of now, and events from now on.
    new.batch([[*event(21, 3, (x, iri("a"), x)), *event(22, 4, (x, iri("b"), x)), watermark(40)]])
    assert sorted((name, time) for name, time, *_ in new.firings[1:]) == [
        ("Late", 22),
        ("Pair", 22),
    ]


def test_a_rule_is_not_the_same_if_its_event_has_changed():
    running = ProgramRun(program(PAIR), 2)
    x = iri("x")
    running.batch([[change(1, 0, 1, "x", "p", "y"), *event(2, 1, (x, iri("a"), x))]])
    running.batch([[(2, 1, 0, *[None] * 5)]])
    other = program(PAIR).replace("EVENT A(?x) AS { ?x :a ?y }", "EVENT A(?x) AS { ?x :z ?y }")
    new = evolved(running, other, 2)
    new.batch([[*event(4, 2, (x, iri("b"), x)), watermark(20)]])
    assert new.firings == []


def test_programs_with_and_without_rules():
    """A stage that was not there before begins empty; one that is gone leaves nothing."""
    queries = program()
    running = PartitionRun.of(Program.parse(queries), 2)
    running.batch([[change(1, 0, 1, "x", "p", "y"), watermark(2)]])
    with_rules = ProgramRun(program(PAIR, SEQUENCE), 3)
    with_rules.run = running.continued(with_rules.run.job)
    x = iri("x")
    rows = [*event(3, 1, (x, iri("a"), x)), *event(4, 2, (x, iri("b"), x))]
    with_rules.batch([[*rows, watermark(9)]])
    assert [(name, time) for name, time, *_ in with_rules.firings] == [("Pair", 4)]
    assert with_rules.events == [("Seq", 4, (x,))]
    again = with_rules.run.continued(running.job)
    (row,) = again.batch([[change(10, 3, -1, "x", "p", "y"), watermark(12)]])
    assert (row.query, row.diff) == ("Q", -1)


GROUPED = program(PAIR.replace("RULE Pair", "RULE Pair IN g"), NONE)
STEPS = [
    ("x", "a", False), ("x", "b", True), ("y", "a", True), ("y", "b", False), ("x", "a", False),
    ("x", "b", False), ("z", "a", True), ("y", "a", False), ("z", "b", False), ("y", "b", True),
]  # fmt: skip
"""Name, kind of event, and whether the group is disabled when it comes."""


def test_groups_are_switched_off_and_on_as_in_process():
    graph = LiveGraph()
    alone = graph.run(Program.parse(GROUPED), functions={"f": lambda *_: None})
    running = ProgramRun(GROUPED, 2)
    facts = [change(1, at, 1, name, "p", "f") for at, name in enumerate("xyz")]
    with graph.transaction(time=1) as tx:
        for *_, s, p, o, _, _ in facts:
            tx.insert(s, p, o)
    running.batch([[*facts, watermark(1)]])
    fired = []
    for at, (name, kind, disabled) in enumerate(STEPS, 2):
        (alone.disable if disabled else alone.enable)("g")
        alone.assert_event([(iri(name), iri(kind), iri("o"))], time=at)
        now = Program.parse(GROUPED).without_groups(["g"] if disabled else [])
        running.run = running.run.continued(PartitionRun.of(now, at % 3 + 1).job)
        running.spec = running.run.job.program
        running.batch([[*event(at, at, (iri(name), iri(kind), iri("o"))), watermark(at)]])
        fired += running.firings
        running.firings = []
    expected = [(f.rule, f.time) for f in alone.firings()]
    assert sorted((rule, time) for rule, time, *_ in fired) == sorted(expected)
    assert [time for rule, time in expected if rule == "Pair"] == [7]


def test_patterns_and_rules_that_end_are_counted():
    notes = job_notes(PartitionRun.of(Program.parse(program(PAIR, NONE, SEQUENCE)), 2).job)

    def left(*parts):
        return ended(PartitionRun.of(Program.parse(program(*parts)), 3).job, notes)

    assert left(PAIR, NONE, SEQUENCE) == left(TWICE, SEQUENCE, NONE, PAIR) == 0
    assert left(NONE, SEQUENCE) == 1
    assert left(PAIR.replace("[1,9]", "[1,8]"), NONE) == 2
    assert left() == 3

"""What a program does depends neither on batches nor on the steps of the clock.

The expected values are computed by hand from the semantics in docs/rules.md and docs/patterns.md.
"""

from __future__ import annotations

from functools import partial

import pytest
from support.programs import run as run_program

from graphtide import GraphtideError, LiveGraph
from graphtide.errors import ActionError
from graphtide.rdf.changes import ChangeBatch

PREFIX = "PREFIX : <http://example.org/>\n"


def iri(name):
    return f"<http://example.org/{name}>"


def fired(program):
    return [f"{firing.rule}@{firing.time}" for firing in program.firings()]


def goes_on(*calls):
    """Make all calls, and raise the first error then."""
    errors = []
    for call in calls:
        try:
            call()
        except GraphtideError as error:
            errors.append(error)
    if errors:
        raise errors[0]


# --- batches of events ---


def push_each(graph, events):
    """As batches do, it raises the first error when everything is done."""
    push = graph.stream(iri("in")).push
    goes_on(*(partial(push, [tuple(map(iri, rest))], time=time) for time, *rest in events))


def rows_of(events):
    return [
        (time, tx, 1, iri(s), iri(p), iri(o), None) for tx, (time, s, p, o) in enumerate(events)
    ]


def feed(graph, events):
    graph.stream(iri("in")).feed(ChangeBatch.of(rows_of(events)))


def feed_arrow(graph, events):
    graph.stream(iri("in")).feed(ChangeBatch.of(rows_of(events)).to_arrow())


def apply_log(graph, events):
    rows = [(*row[:6], iri("in")) for row in rows_of(events)]
    graph.stream(iri("in"))
    graph.apply(ChangeBatch.of(rows))


GIVEN = [push_each, feed, feed_arrow, apply_log]
"""The same events, one at a time or as one batch."""

BY_FACTS = """
QUERY Q1 AS SELECT ?x { ?x :s1 :on }
QUERY Q2 AS SELECT ?x { ?x :s2 :on }
QUERY Q3 AS SELECT ?x { ?x :s3 :on }
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
RULE R0 ON A(?x) THEN INSERT { ?x :s1 :on }
RULE R1 ON APPEAR OF Q1 THEN INSERT { ?x :s2 :on }
RULE R2 ON APPEAR OF Q2 THEN INSERT { ?x :s3 :on }
RULE R3 ON APPEAR OF Q3 THEN INSERT { ?x :s4 :on }
RULE End WHEN FACT { ?x :s4 :on } EVENT b = B(?x) THEN INSERT { ?x :ended :yes }
"""

BY_EVENTS = """
EVENT A(?x) AS { ?x :a ?y }
EVENT E1(?x) AS { ?x :e1 ?y }
EVENT E2(?x) AS { ?x :e2 ?y }
EVENT E3(?x) AS { ?x :e3 ?y }
EVENT E4(?x) AS { ?x :e4 ?y }
EVENT B(?x) AS { ?x :b ?y }
RULE R0 ON A(?x) THEN EMIT :out { ?x :e1 :on }
RULE R1 ON E1(?x) THEN EMIT :out { ?x :e2 :on }
RULE R2 ON E2(?x) THEN EMIT :out { ?x :e3 :on }
RULE R3 ON E3(?x) THEN EMIT :out { ?x :e4 :on }
RULE End WHEN EVENT e = E4(?x) EVENT b = B(?x) AFTER[9,9] e THEN INSERT { ?x :ended :yes }
"""

CHAIN = [(1, "u", "a", "v"), (10, "u", "b", "v")]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("text", [BY_FACTS, BY_EVENTS], ids=["facts", "events"])
def test_a_chain_of_rules_ends_before_the_next_event(text, given):
    graph = LiveGraph()
    program = run_program(PREFIX + text, graph)
    given(graph, CHAIN)
    assert fired(program) == ["R0@1", "R1@1", "R2@1", "R3@1", "End@10"]
    assert (iri("u"), iri("ended"), iri("yes")) in graph


@pytest.mark.parametrize("given", GIVEN)
def test_a_chain_is_through_before_another_event_of_its_time(given):
    """Breadth first for one event; the next event of the same time sees all of it."""
    graph = LiveGraph()
    program = run_program(PREFIX + BY_FACTS, graph)
    given(graph, [(1, "u", "a", "v"), (1, "w", "a", "v"), (1, "u", "b", "v"), (1, "w", "b", "v")])
    chain = ["R0@1", "R1@1", "R2@1", "R3@1"]
    assert fired(program) == [*chain, *chain, "End@1", "End@1"]


@pytest.mark.parametrize("given", GIVEN)
def test_emitted_events_have_the_time_of_their_cause(given):
    """A window over the stream of the emitted events holds each at the time of its cause."""
    graph = LiveGraph()
    program = run_program(PREFIX + BY_EVENTS, graph)
    window = graph.watch(
        PREFIX + "REGISTER RSTREAM :o AS SELECT ?x FROM NAMED WINDOW :w ON :out "
        "[RANGE 1 STEP 1] WHERE { WINDOW :w { ?x :e4 ?y } }"
    )
    given(graph, [(31, "u", "a", "v"), (33, "w", "a", "v"), (36, "u", "b", "v")])
    graph.advance(40)
    chain = ["R0", "R1", "R2", "R3"]
    assert fired(program) == [f"{rule}@31" for rule in chain] + [f"{rule}@33" for rule in chain]
    found = [(r.time, str(row["x"])) for r in window.results() for row in r]
    assert found == [(32, iri("u")), (34, iri("w"))]


@pytest.mark.parametrize("given", GIVEN)
def test_events_emitted_in_a_batch_are_never_late(given):
    graph = LiveGraph()
    program = run_program(PREFIX + BY_EVENTS, graph)
    given(graph, [(31, "u", "a", "v"), (33, "w", "a", "v"), (36, "u", "b", "v")])
    assert program.fired == 8
    out = graph.stream(iri("out"))
    assert (out.received, out.late_count, out.unpublished) == (8, 0, 0)


def test_a_log_keeps_the_order_of_its_streams():
    """Events of two streams by turns, in one log: each is of its time, none is late."""
    graph = LiveGraph()
    program = run_program(
        PREFIX + "EVENT A(?x) AS { ?x :a ?y } EVENT B(?x) AS { ?x :b ?y }\n"
        "RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) AFTER[1,1] a THEN CALL f(?x)",
        graph,
        functions={"f": lambda _: None},
    )
    streams = [graph.stream(iri(name)) for name in ("z", "y")]
    rows = []
    for time in range(6):
        kind, stream = ("a", "z") if time % 2 == 0 else ("b", "y")
        rows.append((time, time, 1, iri("u"), iri(kind), iri("v"), iri(stream)))
    graph.apply(ChangeBatch.of(rows))
    assert fired(program) == ["R@1", "R@3", "R@5"]
    assert [(s.received, s.late_count, s.unpublished) for s in streams] == [(3, 0, 0), (3, 0, 0)]


@pytest.mark.parametrize("given", GIVEN)
def test_rules_emit_to_the_stream_that_is_fed(given):
    graph = LiveGraph()
    program = run_program(
        PREFIX + "EVENT A(?x) AS { ?x :a ?y } EVENT B(?x) AS { ?x :b ?y }\n"
        "RULE R ON A(?x) THEN EMIT :in { ?x :b :c } RULE S ON A(?x) THEN EMIT :in { ?x :b :d }\n"
        "RULE T ON B(?x) THEN INSERT { ?x :seen :b }",
        graph,
    )
    window = graph.watch(
        PREFIX + "REGISTER RSTREAM :o AS SELECT ?x ?y FROM NAMED WINDOW :w ON :in "
        "[RANGE 1 STEP 1] WHERE { WINDOW :w { ?x :b ?y } }"
    )
    given(graph, [(0, "u", "a", "v"), (1, "w", "a", "v"), (3, "z", "c", "v")])
    graph.advance(9)
    assert fired(program) == ["R@0", "S@0", "T@0", "T@0", "R@1", "S@1", "T@1", "T@1"]
    found = [(r.time, str(row["x"]), str(row["y"])) for r in window.results() for row in r]
    expected = [(1, "u", "c"), (1, "u", "d"), (2, "w", "c"), (2, "w", "d")]
    assert sorted(found) == [(time, iri(x), iri(y)) for time, x, y in expected]
    stream = graph.stream(iri("in"))
    assert (stream.received, stream.late_count, stream.unpublished) == (7, 0, 0)


ENDLESS = """
QUERY Lit AS SELECT ?x { ?x :is :lit }
QUERY Dark AS SELECT ?x { ?x :is :dark }
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
RULE Start ON A(?x) THEN INSERT { ?x :is :lit }
RULE Darken ON APPEAR OF Lit THEN DELETE { ?x :is :lit } ; INSERT { ?x :is :dark }
RULE Lighten ON APPEAR OF Dark THEN DELETE { ?x :is :dark } ; INSERT { ?x :is :lit }
RULE Other ON B(?x) THEN INSERT { ?x :seen :yes }
"""


@pytest.mark.parametrize("given", GIVEN)
def test_a_batch_does_not_hide_an_endless_cascade(given):
    """It is rolled back; the events before it and after it have happened."""
    graph = LiveGraph()
    program = run_program(PREFIX + ENDLESS, graph, max_firings=20)
    events = [(1, "u", "b", "v"), (2, "u", "a", "v"), (3, "w", "b", "v"), (4, "z", "b", "v")]
    with pytest.raises(GraphtideError, match="without end: Darken, Lighten"):
        given(graph, events)
    assert fired(program) == ["Other@1", "Other@3", "Other@4"]
    quads = sorted(" ".join(map(str, quad[:3])) for quad in graph.quads())
    assert quads == [f"{iri(name)} {iri('seen')} {iri('yes')}" for name in "uwz"]
    assert graph.clock == 4


STUCK = """
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
RULE Again WHEN EVENT e = A(?x) NO EVENT n = B(?x) BEFORE[0,1] e THEN EMIT :out { ?x :a :again }
RULE Other ON B(?x) THEN INSERT { ?x :seen :yes }
"""


@pytest.mark.parametrize("given", GIVEN)
def test_the_clock_gets_past_rules_that_cause_each_other_at_one_time(given):
    """Each firing causes the next match, whose absence ends with the same time: 20 may do so."""
    graph = LiveGraph()
    program = run_program(PREFIX + STUCK, graph, max_firings=20)
    with pytest.raises(GraphtideError, match="without end: Again, always at time 2"):
        given(graph, [(2, "u", "a", "v"), (5, "z", "b", "v")])
    assert fired(program) == ["Again@2"] * 21 + ["Other@5"]
    assert graph.clock == 5


@pytest.mark.parametrize("given", GIVEN)
def test_an_action_that_fails_stops_no_other(given):
    graph = LiveGraph()

    def fail(x):
        if str(x) == iri("bad"):
            raise ValueError("no")

    program = run_program(
        PREFIX + "EVENT A(?x) AS { ?x :a ?y }\n"
        "RULE R PRIORITY 1 WHEN EVENT a = A(?x) THEN CALL f(?x) ; INSERT { ?x :seen :r }\n"
        "RULE S ON A(?x) THEN INSERT { ?x :seen :s }",
        graph,
        functions={"f": fail},
    )
    with pytest.raises(ActionError, match="the rule R failed at 2"):
        given(graph, [(1, "u", "a", "v"), (2, "bad", "a", "v"), (5, "w", "a", "v")])
    assert fired(program) == ["R@1", "S@1", "R@2", "S@2", "R@5", "S@5"]
    found = sorted((str(s), str(o)) for s, _, o, _ in graph.quads())
    expected = [("bad", "s"), ("u", "r"), ("u", "s"), ("w", "r"), ("w", "s")]
    assert found == [(iri(s), iri(o)) for s, o in expected]
    assert graph.clock == 5


# --- steps of the clock ---


def tick_by_tick(graph, to):
    goes_on(*(partial(graph.advance, time) for time in range(graph.clock + 1, to + 1)))


def in_one_jump(graph, to):
    graph.advance(to)


def in_steps_of_seven(graph, to):
    goes_on(*(partial(graph.advance, time) for time in (*range(graph.clock + 7, to, 7), to)))


STEPS = [tick_by_tick, in_one_jump, in_steps_of_seven]

ALARMS = """
QUERY Waiting AS SELECT ?x { ?x :is :waiting }
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
EVENT Reset(?x) AS { ?x :reset ?y }
EVENT Waits(?x) ON APPEAR OF Waiting(?x)
EVENT Ends(?x) ON DISAPPEAR OF Waiting(?x)
PATTERN Left(?x) AS A(?x) -> NOT B(?x) WITHIN 10
PATTERN Long(?x) AS Waits(?x) -> NOT Ends(?x) WITHIN 20
RULE Mark  ON Left(?x) THEN INSERT { ?x :is :waiting }
RULE Quiet WHEN EVENT w = Waits(?x) NO EVENT r = Reset(?x) AFTER[0,5] w
           THEN INSERT { ?x :is :quiet }
RULE Loud  WHEN FACT { ?x :is :quiet } EVENT l = Long(?x) THEN DELETE { ?x :is :waiting }
RULE Again ON Ends(?x) THEN EMIT :out { ?x :a :x }
"""


@pytest.mark.parametrize("steps", STEPS)
def test_timers_and_what_they_cause_are_in_order_of_time(steps):
    """A at 3; Left at 13 inserts, so Waits at 13; none resets up to 18; Long at 13 + 20.

    That deletes, so Ends at 33, which emits the next A at 33: Left at 43, and so on.
    """
    graph = LiveGraph()
    program = run_program(PREFIX + ALARMS, graph)
    graph.publish([tuple(map(iri, "uav"))], time=3)
    steps(graph, 100)
    expected = []
    for start in (3, 33, 63):
        expected += [("Mark", start + 10), ("Quiet", start + 15)]
        expected += [("Loud", start + 30), ("Again", start + 30)]
    expected += [] if 93 + 10 > 100 else [("Mark", 103)]
    assert [(f.rule, f.time) for f in program.firings()] == expected
    assert [e.time for e in program.matches("Left")] == [13, 43, 73]
    assert [(e.start, e.time) for e in program.matches("Long")] == [(13, 33), (43, 63), (73, 93)]
    assert graph.clock == program.clock == 100


@pytest.mark.parametrize("steps", STEPS)
def test_absences_of_several_events_fire_in_order_of_their_ends(steps):
    """The first alarm is by the later name: order of time, not of values."""
    graph = LiveGraph()
    program = run_program(
        PREFIX + "EVENT A(?x) AS { ?x :a ?y } EVENT B(?x) AS { ?x :b ?y }\n"
        "RULE R WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,2] a THEN DELETE { ?x :q :c }",
        graph,
    )
    graph.publish([(iri("z"), iri("a"), iri("v"))], time=0)
    graph.publish([(iri("c"), iri("a"), iri("v"))], time=1)
    steps(graph, 20)
    found = [(f.time, str(f.values["x"])) for f in program.firings()]
    assert found == [(2, iri("z")), (3, iri("c"))]


@pytest.mark.parametrize("steps", STEPS)
def test_an_action_of_an_absence_prevents_a_later_one(steps):
    """What Quick emits at the end of its absence is in time to end the wait of Slow."""
    graph = LiveGraph()
    program = run_program(
        PREFIX + "EVENT A(?x) AS { ?x :a ?y } EVENT B(?x) AS { ?x :b ?y }\n"
        "EVENT C(?x) AS { ?x :c ?y }\n"
        "RULE Quick WHEN EVENT a = A(?x) NO EVENT c = C(?x) AFTER[0,3] a\n"
        "           THEN EMIT :s { ?x :b ?x }\n"
        "RULE Slow WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,9] a THEN INSERT { ?x :q :c }",
        graph,
    )
    graph.publish([tuple(map(iri, "uav"))], time=1)
    steps(graph, 50)
    assert fired(program) == ["Quick@4"]
    assert len(graph) == 0


@pytest.mark.parametrize("steps", STEPS)
def test_a_call_of_a_timer_sees_the_clock_of_its_firing(steps):
    graph = LiveGraph()
    clocks = []
    run_program(
        PREFIX + "EVENT A(?x) AS { ?x :a ?y } EVENT B(?x) AS { ?x :b ?y }\n"
        "PATTERN P(?x) AS A(?x) -> NOT B(?x) WITHIN 7\n"
        "RULE R WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,5] a THEN CALL f(?x)\n"
        "RULE S ON P(?x) THEN CALL f(?x)",
        graph,
        functions={"f": lambda _: clocks.append(graph.clock)},
    )
    graph.publish([tuple(map(iri, "uav"))], time=1)
    steps(graph, 30)
    assert clocks == [6, 8]


@pytest.mark.parametrize("steps", STEPS)
def test_a_timer_that_fails_on_the_way_stops_nothing_else(steps):
    """R fails at 6; S fires at 8, and the insert at 30 happens."""
    graph = LiveGraph()

    def fail(_):
        raise ValueError("no")

    program = run_program(
        PREFIX + "EVENT A(?x) AS { ?x :a ?y } EVENT B(?x) AS { ?x :b ?y }\n"
        "PATTERN P(?x) AS A(?x) -> NOT B(?x) WITHIN 7\n"
        "RULE R WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,5] a THEN CALL f(?x)\n"
        "RULE S ON P(?x) THEN INSERT { ?x :seen :s }",
        graph,
        functions={"f": fail},
    )
    graph.publish([tuple(map(iri, "uav"))], time=1)
    with pytest.raises(ActionError, match="the rule R failed at 6"):
        goes_on(lambda: steps(graph, 29), lambda: graph.insert(*map(iri, "xpy"), time=30))
    assert fired(program) == ["R@6", "S@8"]
    assert graph.clock == 30
    assert len(graph) == 2


def test_an_insert_wakes_a_timer_that_fails_and_happens():
    graph = LiveGraph()

    def fail(_):
        raise ValueError("no")

    run_program(
        PREFIX + "EVENT A(?x) AS { ?x :a ?y } EVENT B(?x) AS { ?x :b ?y }\n"
        "RULE R WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,5] a THEN CALL f(?x)",
        graph,
        functions={"f": fail},
    )
    graph.publish([tuple(map(iri, "uav"))], time=1)
    with pytest.raises(ActionError, match="the rule R failed at 6"):
        graph.insert(*map(iri, "xpy"), time=30)
    assert len(graph) == 1
    assert graph.clock == 30

"""PATTERN in programs: complex events from graph events, queries and states, and rules on them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patterns.random_patterns import declarations, short_declarations, streams
from rules.pattern_programs import RDF_TYPE, declared, event_ids, event_triples, iri, program_of
from support.programs import publish, run

from graphtide import LiveGraph
from graphtide.engine.events import make_events
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from oracles.event_oracle import EventOracle

PREFIX = "PREFIX : <http://example.org/>\n"
END = 1000


def event(kind, **values):
    triples = [(iri("e"), RDF_TYPE, iri(kind))]
    return triples + [(iri("e"), iri(name), value) for name, value in values.items()]


def started(text, graph=None, **functions):
    graph = LiveGraph(tick_ms=1000) if graph is None else graph
    return run(PREFIX + text, graph, functions=functions)


def found(running, pattern):
    """The complex events of a pattern: parameters' local names, start and time."""
    return [
        (*(term.value.rpartition("/")[2] for term in each.values.values()), each.start, each.time)
        for each in running.matches(pattern)
    ]


DOORS = """
EVENT Opened(?door) AS { ?x a :Opened ; :door ?door }
EVENT Closed(?door) AS { ?x a :Closed ; :door ?door }
"""


def test_a_sequence_of_graph_events() -> None:
    running = started(DOORS + "PATTERN Used(?d) AS Opened(?d) -> Closed(?d)")
    running.assert_event(event("Opened", door=iri("front")), time=1)
    running.assert_event(event("Closed", door=iri("back")), time=2)
    running.assert_event(event("Closed", door=iri("front")), time=5)
    assert found(running, "Used") == [("front", 1, 5)]


def test_absence_completes_when_time_has_passed_and_not_before() -> None:
    calls = []
    text = DOORS + "PATTERN Left(?d) AS Opened(?d) -> NOT Closed(?d) WITHIN 30s"
    running = started(text + "\nRULE Tell ON Left(?d) THEN CALL tell(?d)", tell=calls.append)
    running.assert_event(event("Opened", door=iri("front")), time=10)
    running.assert_event(event("Opened", door=iri("back")), time=20)
    running.assert_event(event("Closed", door=iri("back")), time=40)
    running.advance(40)
    assert found(running, "Left") == []
    running.advance(41)
    assert found(running, "Left") == [("front", 10, 40)]
    assert [str(term) for term in calls] == [iri("front")]
    assert [(f.rule, f.time) for f in running.firings()] == [("Tell", 40)]
    running.advance(200)
    assert len(calls) == 1  # back was closed 20 after it was opened


def test_rows_that_come_and_go_are_events() -> None:
    graph = LiveGraph(tick_ms=1000)
    running = started(
        """
        QUERY Broken AS SELECT ?r ?s { ?r :needs ?s FILTER NOT EXISTS { ?r :has ?s } }
        EVENT Lost(?r)   ON APPEAR OF Broken(?r)
        EVENT Mended(?r) ON DISAPPEAR OF Broken(?r)
        PATTERN Flapping(?r) AS (Lost(?r) -> Mended(?r)){2} WITHIN 10s
        """,
        graph,
    )
    for time, has in ((1, False), (2, True), (3, False), (20, True), (21, False), (22, True)):
        with graph.transaction(time=time) as change:
            change.insert(iri("r"), iri("needs"), iri("s"))
            (change.insert if has else change.delete)(iri("r"), iri("has"), iri("s"))
    # The first time took from 1 to 20, too long; the oldest instance that could still go on had
    # begun at 3, and 22 is too late for it as well.
    assert found(running, "Flapping") == []
    with graph.transaction(time=23) as change:
        change.delete(iri("r"), iri("has"), iri("s"))
    with graph.transaction(time=24) as change:
        change.insert(iri("r"), iri("has"), iri("s"))
    assert found(running, "Flapping") == [("r", 21, 24)]


def test_what_cancels_out_in_one_transaction_never_happened() -> None:
    graph = LiveGraph()
    running = started(
        """
        QUERY Hot AS SELECT ?r { ?r :is :hot }
        EVENT Heats(?r) ON APPEAR OF Hot(?r)
        PATTERN Twice(?r) AS Heats(?r) -> Heats(?r)
        """,
        graph,
    )
    with graph.transaction(time=1) as change:
        change.insert(iri("oven"), iri("is"), iri("hot"))
        change.delete(iri("oven"), iri("is"), iri("hot"))
    graph.insert(iri("oven"), iri("is"), iri("hot"))
    assert found(running, "Twice") == []


def test_an_appearance_has_happened_even_if_its_row_is_gone() -> None:
    graph = LiveGraph()
    running = started(
        """
        QUERY Hot AS SELECT ?r { ?r :is :hot }
        EVENT Heats(?r) ON APPEAR OF Hot(?r)
        EVENT Bell(?r) AS { ?x a :Bell ; :room ?r }
        PATTERN Rung(?r) AS Heats(?r) -> Bell(?r)
        """,
        graph,
    )
    graph.insert(iri("oven"), iri("is"), iri("hot"))
    graph.delete(iri("oven"), iri("is"), iri("hot"))
    running.assert_event(event("Bell", room=iri("oven")))
    assert [row[0] for row in found(running, "Rung")] == ["oven"]


def test_a_transformation_causes_further_complex_events_in_the_same_run() -> None:
    graph = LiveGraph()
    running = started(
        DOORS
        + """
        QUERY Used AS SELECT ?d { ?d :used true }
        EVENT Marked(?d) ON APPEAR OF Used(?d)
        PATTERN Use(?d) AS Opened(?d) -> Closed(?d)
        PATTERN Noted(?d) AS Closed(?d) -> Marked(?d)
        RULE Mark ON Use(?d) THEN INSERT { ?d :used true }
        RULE Note ON Noted(?d) THEN INSERT { ?d :noted true }
        """,
        graph,
    )
    running.assert_event(event("Opened", door=iri("front")), time=1)
    running.assert_event(event("Closed", door=iri("front")), time=2)
    assert found(running, "Noted") == [("front", 2, 2)]
    assert (iri("front"), iri("noted"), True) in graph
    assert [f.rule for f in running.firings()] == ["Mark", "Note"]


def test_complex_events_in_conditions_with_time_and_facts() -> None:
    graph = LiveGraph()
    graph.insert(iri("front"), iri("watched"), True)
    running = started(
        DOORS
        + """
        PATTERN Use(?d) AS Opened(?d) -> Closed(?d)
        EVENT Bell(?d) AS { ?x a :Bell ; :door ?d }
        RULE Guest WHEN FACT { ?d :watched true } EVENT b = Bell(?d) EVENT u = Use(?d) AFTER[1,5] b
          THEN INSERT { ?d :guest true }
        """,
        graph,
    )
    for door, bell, opened, closed in (("front", 10, 11, 12), ("back", 13, 14, 15)):
        running.assert_event(event("Bell", door=iri(door)), time=bell)
        running.assert_event(event("Opened", door=iri(door)), time=opened)
        running.assert_event(event("Closed", door=iri(door)), time=closed)
    assert [(f.rule, f.time) for f in running.firings()] == [("Guest", 12)]


def test_check_chooses_events_by_their_values() -> None:
    running = started(
        """
        EVENT Hot(?s, ?v) AS { ?x a :Reading ; :sensor ?s ; :value ?v } CHECK (?v > 30)
        PATTERN Twice(?s) AS Hot(?s, _) -> Hot(?s, _)
        """
    )
    for time, value in ((1, 31), (2, 30), (3, 5), (4, 45)):
        running.assert_event(event("Reading", sensor=iri("s"), value=value), time=time)
    assert found(running, "Twice") == [("s", 1, 4)]


def test_noise_of_a_declared_event_breaks_what_is_immediate() -> None:
    text = DOORS + "EVENT Bell() AS { ?x a :Bell }\n"
    for context, expected in (("CHRONICLE", 1), ("IMMEDIATE", 0), ("STRICT", 0)):
        running = started(text + f"PATTERN Use(?d) AS Opened(?d) -> Closed(?d) CONTEXT {context}")
        running.assert_event(event("Opened", door=iri("front")), time=1)
        running.assert_event(event("Bell"), time=2)
        running.assert_event(event("Other"), time=2)  # no declared event: nobody sees it
        running.assert_event(event("Closed", door=iri("front")), time=3)
        assert len(running.matches("Use")) == expected


@pytest.mark.slow
def test_an_endless_cascade_leaves_the_tokens_as_they_were() -> None:
    graph = LiveGraph()
    running = started(
        DOORS
        + """
        QUERY Use AS SELECT ?d { ?d :used true }
        EVENT Begun(?d)  ON APPEAR OF Use(?d)
        EVENT Ended(?d) ON DISAPPEAR OF Use(?d)
        PATTERN Loop(?d) AS Begun(?d) -> Ended(?d)
        PATTERN Open(?d) AS Opened(?d) -> Closed(?d)
        RULE Back  ON Begun(?d)  THEN DELETE { ?d :used true }
        RULE Forth ON Ended(?d) THEN INSERT { ?d :used true }
        """,
        graph,
    )
    running.assert_event(event("Opened", door=iri("front")), time=1)
    with pytest.raises(GraphtideError, match="without end: Back, Forth"):
        graph.insert(iri("front"), iri("used"), True)
    running.assert_event(event("Closed", door=iri("front")), time=2)
    assert found(running, "Open") == [("front", 1, 2)]


def test_an_unknown_pattern_is_named_with_the_nearest() -> None:
    running = started(DOORS + "PATTERN Used(?d) AS Opened(?d) -> Closed(?d)")
    with pytest.raises(GraphtideError, match="no pattern named Usd"):
        running.matches("Usd")


# --- batches, single events and the definitions agree ---


def test_a_program_parses_as_it_is_built_here() -> None:
    text = PREFIX + "EVENT a(?v0) AS { ?e a :a ; :p0 ?v0 }"
    (parsed,) = Program.parse(text).events
    assert parsed.source.patterns == program_of(None).events[0].source.patterns


@given(pattern=declarations(), stream=streams(), size=st.integers(1, 9))
@settings(max_examples=60)
def test_batches_give_what_the_definitions_say(pattern, stream, size) -> None:
    graph = LiveGraph(tick_ms=1)
    running = run(program_of(pattern), graph)
    for at in range(0, len(stream), size):
        part = stream[at : at + size]
        triples = [event_ids(graph, name, values) for name, values, _ in part]
        publish(running, make_events(triples, [time for *_, time in part]))
    running.advance(END)
    oracle = EventOracle(pattern)
    expected = [each for each_event in stream for each in oracle.step(*each_event)]
    expected += oracle.advance(END)
    wanted = [([f"v{v}" for v in each.values], each.time) for each in expected]
    got = [([*row[:-2]], row[-1]) for row in found(running, "p")]
    assert sorted(got) == sorted(wanted)
    assert [time for _, time in got] == [time for _, time in wanted]


def test_rows_of_a_window_that_come_and_go_are_events_too() -> None:
    """Hot in one window of 10 s, not in the next, hot again: by hand, closes at 10, 20, 30, 40."""
    graph = LiveGraph(tick_ms=1000)
    running = started(
        """
        QUERY Hot AS REGISTER ISTREAM :q AS SELECT ?s FROM NAMED WINDOW :w ON :readings
          [RANGE PT10S STEP PT10S] WHERE { WINDOW :w { ?s :value ?v FILTER (?v > 30) } }
        EVENT Heats(?s) ON APPEAR OF Hot(?s)
        EVENT Cools(?s) ON DISAPPEAR OF Hot(?s)
        PATTERN Relapse(?s) AS Heats(?s) -> Cools(?s) -> Heats(?s)
        """,
        graph,
    )
    readings = graph.stream("http://example.org/readings")
    for time, value in ((3, 35), (12, 20), (21, 40), (33, 41)):
        readings.push([(iri("s"), iri("value"), value)], time=time)
    graph.advance(41)
    assert [row[0] for row in found(running, "Relapse")] == ["s"]
    assert found(running, "Relapse")[0][1:] == (10, 30)


# --- events of several types, and declarations that nobody uses ---

PAYMENTS = """
EVENT Small(?x) AS { ?e a :Small ; :by ?x }
PATTERN Twice(?x) AS Small(?x){2} CONTEXT %s
"""


@pytest.mark.parametrize("context", ["CHRONICLE", "IMMEDIATE", "STRICT"])
def test_a_supertype_that_nobody_uses_changes_nothing(context) -> None:
    for unused in ("", "EVENT Pay(?x) AS { ?e a :Pay ; :by ?x }\n"):
        running = started(unused + PAYMENTS % context)
        for time in range(4):
            triples = [(iri("e"), RDF_TYPE, iri(kind)) for kind in ("Small", "Pay")]
            running.assert_event([*triples, (iri("e"), iri("by"), iri("me"))], time=time)
        assert found(running, "Twice") == [("me", 0, 1), ("me", 2, 3)]


@pytest.mark.parametrize("unused", ["", "EVENT Bell() AS { ?x a :Bell }\n"])
def test_every_graph_event_may_be_noise_declared_or_not(unused) -> None:
    for context, expected in (("CHRONICLE", 1), ("IMMEDIATE", 0), ("STRICT", 0)):
        text = DOORS + unused + "PATTERN Used(?d) AS Opened(?d) -> Closed(?d) CONTEXT " + context
        running = started(text)
        running.assert_event(event("Opened", door=iri("front")), time=1)
        running.assert_event(event("Bell"), time=2)
        running.assert_event(event("Closed", door=iri("front")), time=3)
        assert len(found(running, "Used")) == expected


def test_two_names_for_one_change_are_one_event() -> None:
    graph = LiveGraph()
    text = """
        QUERY Hot AS SELECT ?r { ?r :is :hot }
        EVENT Heats(?r) ON APPEAR OF Hot(?r)
        EVENT Warms(?r) ON APPEAR OF Hot(?r)
        EVENT Cools(?r) ON DISAPPEAR OF Hot(?r)
        PATTERN Alike(?r) AS Heats(?r) -> Warms(?r)
        PATTERN Flaps(?r) AS (Heats(?r) -> Cools(?r)){2} CONTEXT STRICT
        """
    running = started(text, graph)
    for time in range(1, 5):
        with graph.transaction(time=time) as change:
            for room in ("a", "b") if time < 3 else ("a",):
                (change.insert if time % 2 else change.delete)(iri(room), iri("is"), iri("hot"))
    assert found(running, "Alike") == [("a", 1, 3)]
    assert found(running, "Flaps") == []  # that of b is noise
    with graph.transaction(time=5) as change:
        change.insert(iri("a"), iri("is"), iri("hot"))
    with graph.transaction(time=6) as change:
        change.delete(iri("a"), iri("is"), iri("hot"))
    assert found(running, "Flaps") == [("a", 3, 6)]


UNUSED = {
    "super": declared("Super", "a ?type"),
    "sub": declared("Sub", "a :a ; :p0 ?v0 ; :p1 ?v1"),
    "same": declared("Same", "a :a ; :p0 ?v0"),
    "part": declared("Part", "a :b"),
    "any": declared("Any", "?p ?o"),
    "other": declared("Other", "a :other"),
}


@given(
    pattern=st.one_of(short_declarations(), declarations()),
    stream=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "ab", "ba", "ac", "z", "other"]),
            st.tuples(st.integers(1, 2), st.integers(1, 2)),
            st.integers(0, 2),
        ),
        min_size=3,
        max_size=8,
    ),
    before=st.lists(st.sampled_from([*UNUSED]), min_size=1, max_size=3, unique=True),
    after=st.lists(st.sampled_from([*UNUSED]), max_size=3, unique=True),
)
@settings(max_examples=60, deadline=None)
def test_declarations_that_nobody_uses_change_nothing(pattern, stream, before, after) -> None:
    after = [name for name in after if name not in before]
    programs = (
        program_of(pattern),
        program_of(
            pattern,
            before=[UNUSED[name] for name in before],
            after=[UNUSED[name] for name in after],
        ),
    )
    results = []
    for program in programs:
        running, time = run(program, LiveGraph(tick_ms=1)), 0
        for kinds, values, gap in stream:
            time += gap
            names = [kinds] if kinds == "other" else kinds
            triples = [t for name in names for t in event_triples(name, values)]
            running.assert_event(list(dict.fromkeys(triples)), time=time)
        running.advance(END)
        results.append(found(running, "p"))
    assert results[0] == results[1]

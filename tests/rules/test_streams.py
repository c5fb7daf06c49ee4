"""Events of a graph's streams reach its rules: pushed, from files, from Arrow, in order of time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.programs import firings, run

from graphtide import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.rdf.changes import ChangeBatch

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
PROGRAM = """
PREFIX : <http://example.org/>
EVENT Alarm(?alarm, ?e)        AS { ?alarm a :Alarm ; :eqpt ?e }
EVENT Confirmation(?c, ?alarm) AS { ?c a :Confirmation ; :alarm ?alarm }
RULE AlarmConfirmation
  WHEN FACT  { ?e :state :ACTIVE }
       EVENT a = Alarm(?alarm, ?e)
       EVENT c = Confirmation(?conf, ?alarm) AFTER[1,5] a
  THEN INSERT { ?alarm :confirmedBy ?conf }
"""


def iri(name):
    return f"<http://example.org/{name}>"


@pytest.fixture
def graph():
    graph = LiveGraph()
    run(PROGRAM, graph)
    graph.insert(iri("pump"), iri("state"), iri("ACTIVE"))
    return graph


def alarm(name, equipment="pump"):
    return [(iri(name), TYPE, iri("Alarm")), (iri(name), iri("eqpt"), iri(equipment))]


def confirmation(name, of):
    return [(iri(name), TYPE, iri("Confirmation")), (iri(name), iri("alarm"), iri(of))]


def fired(graph):
    return [(f.time, str(f.values["alarm"])) for f in firings(graph)]


def test_events_asserted_on_the_graph_and_why_a_rule_fired(graph):
    graph.publish(alarm("a1"), time=30)
    graph.publish(confirmation("c1", "a1"), time=33)
    (firing,) = firings(graph)
    assert firing.why() == (
        "AlarmConfirmation fired at 33\n"
        f"  a = Alarm({iri('a1')}, {iri('pump')}) at 30\n"
        f"  c = Confirmation({iri('c1')}, {iri('a1')}) at 33\n"
        f"  fact {iri('pump')} {iri('state')} {iri('ACTIVE')}"
    )
    assert graph.clock == 33
    assert (iri("a1"), iri("confirmedBy"), iri("c1")) in graph


def test_an_event_is_now_unless_it_says_when_and_never_past(graph):
    graph.advance(10)
    graph.publish(alarm("a1"))
    graph.advance(12)
    graph.publish(confirmation("c1", "a1"))
    assert fired(graph) == [(12, iri("a1"))]
    with pytest.raises(GraphtideError, match="time runs backwards: 11 is before"):
        graph.publish(alarm("a2"), time=11)


def test_a_graph_without_rules_forgets_events():
    graph = LiveGraph()
    graph.publish(alarm("a1"), time=4)
    assert (len(graph), graph.clock, firings(graph)) == (0, 4, [])


def test_events_pushed_into_any_stream_reach_the_rules(graph):
    graph.stream(iri("alarms")).push(alarm("a1"), time=10)
    graph.stream(iri("answers")).push(confirmation("c1", "a1"), time=12)
    assert fired(graph) == [(12, iri("a1"))]
    assert graph.clock == 12  # data move the clock


def test_two_events_at_one_time_are_two_events(graph):
    """The class in one event and the equipment in another make no alarm."""
    stream = graph.stream(iri("s"))
    stream.push(alarm("a1")[:1], time=10)
    stream.push(alarm("a1")[1:], time=10)
    stream.push(confirmation("c1", "a1"), time=12)
    assert fired(graph) == []


def test_the_clock_moves_by_events_by_changes_and_by_the_caller(graph):
    stream = graph.stream(iri("s"))
    stream.push(alarm("a1"), time=10)
    stream.push(alarm("a2"), time=11)
    graph.insert(iri("x"), iri("y"), 1, time=14)
    stream.push(confirmation("c1", "a1"), time=15)
    graph.advance(17)
    stream.push(confirmation("c2", "a2"), time=17)
    assert fired(graph) == [(15, iri("a1"))]


def test_events_within_the_lateness_are_put_in_order(graph):
    stream = graph.stream(iri("s"), lateness=5)
    stream.push(confirmation("c1", "a1"), time=12)
    stream.push(alarm("a1"), time=10)
    assert fired(graph) == []
    stream.push(alarm("a2"), time=17)
    assert fired(graph) == [(12, iri("a1"))]


def test_streams_that_wait_are_put_in_order_among_each_other(graph):
    answers = graph.stream(iri("answers"), lateness=5)
    answers.push(confirmation("c1", "a1"), time=12)
    alarms = graph.stream(iri("alarms"))
    alarms.push(alarm("a1"), time=10)
    alarms.push(alarm("a2"), time=14)  # all streams are at 14 now
    assert fired(graph) == [(12, iri("a1"))]


def test_late_events_are_counted(graph):
    alarms, answers = graph.stream(iri("alarms")), graph.stream(iri("answers"))
    answers.push(confirmation("c1", "a1"), time=12)
    alarms.push(alarm("a1"), time=10)  # not late for windows of its stream, but for the rules
    assert (alarms.late_count, alarms.unpublished) == (0, 2)
    graph.advance(20)  # raises the watermarks of all streams, also of those that come later
    new = graph.stream(iri("new"))
    new.push(alarm("a3"), time=19)
    assert (new.late_count, new.unpublished) == (2, 0)
    assert fired(graph) == []


def columns(events):
    """A change log in which each event is a transaction."""
    rows = [(time, n, *triple) for n, (time, triples) in enumerate(events) for triple in triples]
    time, tx, s, p, o = zip(*rows, strict=True)
    return ChangeBatch(
        np.array(time), np.array(tx), np.ones(len(rows), np.int8),
        pa.array(s), pa.array(p), pa.array(o), pa.array([""] * len(rows)),
    )  # fmt: skip


EVENTS = [
    (10, alarm("a1")),
    (10, alarm("a2")),
    (10, alarm("a3", "other")),
    (12, confirmation("c3", "a3")),
    (12, confirmation("c2", "a2")),
    (13, confirmation("c1", "a1")),
    (14, confirmation("c1b", "a1")),
]
EXPECTED = [(12, iri("a2")), (13, iri("a1")), (14, iri("a1"))]


def test_events_from_columns(graph):
    graph.stream(iri("s")).feed(columns(EVENTS))
    assert fired(graph) == EXPECTED
    assert len(graph) == 4


def test_events_from_an_arrow_table(graph):
    batch = columns(EVENTS)
    table = pa.table(
        {"time": batch.time, "tx": batch.tx, "diff": batch.diff, "s": batch.s, "p": batch.p,
         "o": batch.o},
    )  # fmt: skip
    graph.stream(iri("s")).feed(table)
    assert fired(graph) == EXPECTED


def test_events_from_a_file_with_a_graph_for_each(graph, tmp_path):
    at = "<http://www.w3.org/ns/prov#generatedAtTime>"
    lines = []
    for number, (time, triples) in enumerate(EVENTS):
        name = iri(f"event{number}")
        lines.append(f'{name} {at} "{time}"^^<http://www.w3.org/2001/XMLSchema#integer> .')
        lines += [f"{s} {p} {o} {name} ." for s, p, o in triples]
    path = tmp_path / "events.nq"
    path.write_text("\n".join(lines[::2] + lines[1::2]) + "\n")  # graphs are not in one piece
    graph.stream(iri("s")).feed(path)
    assert fired(graph) == EXPECTED


def test_the_time_of_a_graph_may_have_another_predicate(graph, tmp_path):
    path = tmp_path / "events.nq"
    path.write_text(
        f'{iri("e")} {iri("at")} "7"^^<{INTEGER}> .\n'
        f"{iri('a')} {iri('p')} {iri('b')} {iri('e')} .\n"
    )
    stream = graph.stream(iri("s"))
    stream.feed(path, timestamp=iri("at"))
    assert (stream.received, stream.watermark) == (1, 7)


def test_rows_of_ids_may_say_how_far_their_stream_is(graph):
    stream = graph.stream(iri("s"))
    row = [*map(graph.terms.encode, (iri("a"), iri("p"), iri("b"))), 0]
    stream.push_ids(np.array([3]), np.array([row], np.int32), newest=9)
    assert stream.watermark == 9


def test_rows_of_ids_are_events_by_number_or_by_time_and_graph(graph):
    encode = graph.terms.encode
    rows = [(*map(encode, triple), 0) for _, event in EVENTS for triple in event]
    times = np.repeat([time for time, _ in EVENTS], 2)
    numbers = np.repeat(np.arange(len(EVENTS)), 2)
    graph.stream(iri("s")).push_ids(times, np.array(rows, np.int32), events=numbers)
    assert fired(graph) == EXPECTED
    other = LiveGraph()
    run(PROGRAM, other)
    other.insert(iri("pump"), iri("state"), iri("ACTIVE"))
    graphs = [other.terms.encode(iri(f"g{n}")) for n in range(len(EVENTS))]
    encode = other.terms.encode
    rows = [
        (*map(encode, triple), g)
        for g, (_, event) in zip(graphs, EVENTS, strict=True)
        for triple in event
    ]
    other.stream(iri("s")).push_ids(times, np.array(rows, np.int32))
    assert fired(other) == EXPECTED


HOT = """
PREFIX : <http://example.org/>
QUERY Hot AS SELECT ?s FROM NAMED WINDOW :w ON STREAM :readings [RANGE 10 STEP 10]
  WHERE { WINDOW :w { ?s :shows ?t } FILTER (?t > 30) }
EVENT Reading(?s, ?t) AS { ?s :shows ?t }
RULE Note  ON APPEAR OF Hot(?s) THEN INSERT { ?s :is :hot }
RULE Again WHEN FACT { ?s :is :hot } EVENT Reading(?s, ?t) THEN CALL tell(?t)
"""


@pytest.mark.parametrize("batched", [False, True])
def test_windows_close_before_the_events_of_their_time(batched):
    """What a window reports at 10 is a fact for rules on events at 10, pushed one by one or not."""
    graph, calls = LiveGraph(), []
    run(HOT, graph, functions={"tell": lambda t: calls.append((graph.clock, int(t.value)))})
    readings = graph.stream(iri("readings"))
    events = [(3, 31), (4, 20), (10, 21), (12, 22), (23, 23), (31, 24)]
    if batched:
        s, shows = (graph.terms.encode(iri(name)) for name in ("s1", "shows"))
        values = graph.terms.encode_column([f'"{t}"^^<{INTEGER}>' for _, t in events])
        rows = np.array([(s, shows, value, 0) for value in values], np.int32)
        times = np.array([time for time, _ in events])
        readings.push_ids(times, rows, events=np.arange(len(rows)))
    else:
        for time, t in events:
            readings.push([(iri("s1"), iri("shows"), t)], time=time)
    assert calls == [(10, 21), (12, 22), (23, 23), (31, 24)]


def test_what_a_program_emits_it_hears_once_and_others_hear_it_too():
    graph = LiveGraph()
    text = (
        "PREFIX : <http://example.org/> EVENT Ping(?x) AS { ?x :ping ?y }\n"
        "EVENT Pong(?x) AS { ?x :pong ?y }\n"
    )
    one = run(
        text + "RULE Answer ON Ping(?x) THEN EMIT :s { ?x :pong 1 }\n"
        "RULE Heard ON Pong(?x) THEN INSERT { ?x :heard 1 }",
        graph,
    )
    two = run(text + "RULE Other ON Pong(?x) THEN INSERT { ?x :other 1 }", graph)
    graph.publish([(iri("x"), iri("ping"), 1)], time=3)
    assert [f.rule for f in one.firings()] == ["Answer", "Heard"]
    assert [f.rule for f in two.firings()] == ["Other"]
    assert [f.rule for f in firings(graph)] == ["Answer", "Heard", "Other"]


def test_a_program_that_was_stopped_hears_nothing():
    graph = LiveGraph()
    running = run(PROGRAM, graph)
    graph.insert(iri("pump"), iri("state"), iri("ACTIVE"))
    graph.publish(alarm("a1"), time=1)
    running.close()
    graph.publish(confirmation("c1", "a1"), time=3)
    assert fired(graph) == []


def test_what_a_close_emits_does_not_release_events_of_a_later_time():
    """The close at 4 comes before the events of 4, and raises the watermark of its stream."""
    graph, noted = LiveGraph(window_alignment="yabench"), []
    stream = graph.stream(iri("s"), lateness=1)
    run(
        """PREFIX : <http://example.org/>
        QUERY W AS REGISTER DSTREAM :out AS SELECT ?x ?y
            FROM NAMED WINDOW :w ON :s [RANGE 3 STEP 1] WHERE { WINDOW :w { ?x :shows ?y } }
        EVENT Left(?x) ON UPDATE OF W(?x)
        EVENT Seen(?x) AS { ?x :seen ?y }
        RULE Tell ON Left(?x) THEN EMIT :s { ?x :gone 1 }
        RULE Note ON Seen(?x) THEN CALL note(?x)""",
        graph,
        functions={"note": lambda x: noted.append(graph.clock)},
    )
    for time, predicate, value in [(0, "shows", 1), (-1, "shows", 2), (4, "seen", 3)]:
        stream.push([(iri("a"), iri(predicate), value)], time=time)
    graph.advance(3)
    assert noted == []
    graph.advance(4)
    assert noted == [4]


def test_what_the_end_of_a_time_causes_is_forbidden_by_events_of_that_time():
    """Again of x at 3 has Seen beside it, that at 6 has none up to 8; that of y has none."""
    graph = LiveGraph()
    running = run(
        """PREFIX : <http://example.org/>
        EVENT Seen(?x) AS { ?x :seen ?y }
        EVENT Again(?x) AS { ?x :again ?y }
        EVENT Never(?x) AS { ?x :never ?y }
        RULE Wait WHEN EVENT a = Seen(?x) NO EVENT b = Never(?x) AFTER[0,3] a
            THEN EMIT :s { ?x :again 1 }
        RULE Alone WHEN EVENT a = Again(?x) NO EVENT b = Seen(?x) AFTER[0,2] a
            THEN INSERT { ?x :alone 1 }""",
        graph,
    )
    for time, subject, predicate in [(0, "x", "seen"), (1, "y", "again"), (3, "x", "seen")]:
        graph.stream(iri("s")).push([(iri(subject), iri(predicate), time)], time=time)
    graph.advance(20)
    fired = [(f.rule, f.time, str(f.values["x"].value)[-1]) for f in running.firings()]
    expected = [("Wait", 3, "x"), ("Alone", 3, "y"), ("Wait", 6, "x"), ("Alone", 8, "x")]
    assert fired == expected

"""Programs at work: query events, reactions, agenda, cascades, errors."""

import pytest
from support.programs import run

from graphtide import LiveGraph
from graphtide.engine.events import make_events
from graphtide.errors import ActionError, GraphtideError

PREFIX = "PREFIX : <http://example.org/>\n"
DESIGN = """
PREFIX : <http://www.semanticweb.org/ontologies/2015/trainbenchmark#>

QUERY RouteSensor AS SELECT ?route ?sensor ?swP ?sw WHERE {
  ?route :follows ?swP . ?swP :target ?sw . ?sw :monitoredBy ?sensor .
  FILTER NOT EXISTS { ?route :requires ?sensor } }

EVENT Broken(?route, ?sensor)  ON APPEAR OF RouteSensor(?route, ?sensor)
EVENT Mended(?route, ?sensor)  ON DISAPPEAR OF RouteSensor(?route, ?sensor)
EVENT Alarm(?alarm, ?e)        AS { ?alarm a :Alarm ; :eqpt ?e }          # inside one graph event
EVENT Confirmation(?c, ?alarm) AS { ?c a :Confirmation ; :alarm ?alarm }
EVENT Activated(?e)            ON CHANGE OF ?e FROM { ?e :state :ONLINE } TO { ?e :state :ACTIVE }

RULE Mend ON APPEAR OF RouteSensor THEN INSERT { ?route :requires ?sensor }
RULE Tell PRIORITY 5 ON Broken(?route, ?s)
  THEN CALL notify(?route) ; EMIT :alerts { [] :about ?route }
RULE Note ON Mended(?route, ?sensor) THEN CALL note(?sensor)
RULE AlarmConfirmation
  WHEN FACT  { ?e a :Equipment ; :state :ACTIVE }
       EVENT a = Alarm(?alarm, ?e)
       EVENT c = Confirmation(?conf, ?alarm) AFTER[1,5] a
  THEN INSERT { [] a :ConfirmedAlarm ; :alarm ?alarm ; :by ?conf }
"""


def iri(name):
    return f"<http://example.org/{name}>"


def rules(running):
    return [firing.rule for firing in running.firings()]


@pytest.fixture
def graph():
    return LiveGraph()


def test_the_program_of_the_design_runs(graph):
    def train(name):
        return f"<http://www.semanticweb.org/ontologies/2015/trainbenchmark#{name}>"

    calls = []
    tell = {
        "notify": lambda route: calls.append(("notify", str(route))),
        "note": lambda sensor: calls.append(("note", str(sensor))),
    }
    running = run(DESIGN, graph, functions=tell)
    alerts = graph.watch(
        "PREFIX : <http://www.semanticweb.org/ontologies/2015/trainbenchmark#> "
        "REGISTER ISTREAM :x AS SELECT ?r FROM NAMED WINDOW :w ON :alerts [RANGE 10 STEP 10] "
        "WHERE { WINDOW :w { ?x :about ?r } }"
    )
    with graph.transaction(time=3) as tx:
        tx.insert(train("route1"), train("follows"), train("swP1"))
        tx.insert(train("swP1"), train("target"), train("sw1"))
        tx.insert(train("sw1"), train("monitoredBy"), train("sensor1"))
    assert rules(running) == ["Tell", "Mend", "Note"]
    assert calls == [("notify", train("route1")), ("note", train("sensor1"))]
    assert (train("route1"), train("requires"), train("sensor1")) in graph
    graph.advance(20)
    assert str(alerts.results()[0]) == f"at 10\n  r={train('route1')}"


def test_rows_that_come_and_go_in_one_transaction_are_no_events(graph):
    running = run(
        PREFIX + "QUERY Q AS SELECT ?x { ?x a :A } EVENT Came(?x) ON APPEAR OF Q(?x)\n"
        "EVENT Went(?x) ON DISAPPEAR OF Q(?x)\n"
        "RULE In ON Came(?x) THEN INSERT { ?x :seen true }\n"
        "RULE Out ON Went(?x) THEN DELETE { ?x :seen true }",
        graph,
    )
    type_ = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    with graph.transaction() as tx:
        tx.insert(iri("x"), type_, iri("A"))
        tx.delete(iri("x"), type_, iri("A"))
    assert rules(running) == []
    graph.update(f"INSERT DATA {{ {iri('x')} a {iri('A')} . {iri('y')} a {iri('A')} }}")
    assert rules(running) == ["In", "In"]
    assert len(graph) == 4
    graph.delete(iri("x"), type_, iri("A"))
    assert rules(running)[2:] == ["Out"]
    assert len(graph) == 2


def test_a_row_counts_once_for_the_parameters_of_an_event(graph):
    running = run(
        PREFIX + "QUERY Q AS SELECT ?x ?y { ?x :p ?y } EVENT Came(?x) ON APPEAR OF Q(?x)\n"
        "RULE In ON Came(?x) THEN INSERT { ?x :seen true }",
        graph,
    )
    graph.update(f"INSERT DATA {{ {iri('x')} {iri('p')} 1, 2 }}")
    assert rules(running) == ["In"]


@pytest.mark.parametrize(("start", "count"), [("latest", 0), ("earliest", 1)])
def test_what_is_there_already(graph, start, count):
    graph.insert(iri("x"), iri("p"), 1)
    text = PREFIX + "QUERY Q AS SELECT ?x { ?x :p ?y } RULE R ON APPEAR OF Q THEN CALL f(?x)"
    calls = []
    run(text, graph, functions={"f": calls.append}, start=start)
    assert len(calls) == count


def test_a_window_that_closes_is_a_change_of_its_query(graph):
    calls = []
    run(
        PREFIX + "QUERY Hot AS SELECT ?s ?t FROM NAMED WINDOW :w ON STREAM :readings"
        " [RANGE 10 STEP 10] WHERE { WINDOW :w { ?s :shows ?t } FILTER (?t > 30) }\n"
        "RULE Tell ON APPEAR OF Hot(?s) THEN CALL tell(?s)",
        graph,
        functions={"tell": lambda s: calls.append((graph.clock, str(s)))},
    )
    readings = graph.stream(iri("readings"))
    readings.push([(iri("s1"), iri("shows"), 31)], time=3)
    readings.push([(iri("s2"), iri("shows"), 30)], time=4)
    assert calls == []
    graph.advance(12)
    assert calls == [(10, iri("s1"))]


def test_one_transaction_fires_by_priority_declaration_and_rows(graph):
    calls = []
    run(
        PREFIX + "QUERY P AS SELECT ?x { ?x :p 1 } QUERY Q AS SELECT ?x { ?x :q 1 }\n"
        "RULE a ON APPEAR OF P THEN CALL f('a', ?x) RULE b ON APPEAR OF Q THEN CALL f('b', ?x)\n"
        "RULE c PRIORITY 1 ON APPEAR OF Q THEN CALL f('c', ?x)",
        graph,
        functions={"f": lambda rule, x: calls.append(rule.value + x.value[-1])},
    )
    graph.update(PREFIX.replace("\n", " ") + "INSERT DATA { :1 :q 1 ; :p 1 . :2 :p 1 ; :q 1 }")
    assert calls == ["c1", "c2", "a1", "a2", "b1", "b2"]


CYCLE = (
    PREFIX + "QUERY Q AS SELECT ?x { ?x :on true } EVENT Tick(?x) AS { ?x :tick ?y }\n"
    "RULE Once ON APPEAR OF Q THEN INSERT { ?x :begun true } ; EMIT :ticks { ?x :tick 1 }\n"
    "RULE Ping ON Tick(?x) THEN EMIT :pongs { ?x :pong 1 } ; INSERT { [] :of ?x }\n"
    "EVENT Pong(?x) AS { ?x :pong ?y }\n"
    "RULE Back ON Pong(?x) THEN EMIT :ticks { ?x :tick 2 }"
)


def test_rules_without_end_are_named_and_their_changes_taken_back(graph):
    graph.insert(iri("old"), iri("p"), 1)
    running = run(CYCLE, graph, max_firings=300)
    watch = graph.watch(f"SELECT ?n {{ ?n {iri('of')} ?x }}")
    with pytest.raises(
        GraphtideError, match="without end: Back, Ping; what their actions"
    ) as caught:
        graph.insert(iri("x"), iri("on"), True)
    assert "Once" not in str(caught.value)
    assert {str(quad[0]) for quad in graph.quads()} == {iri("old"), iri("x")}
    assert len(graph) == 2
    assert watch.count() == 0
    running.assert_event([(iri("y"), iri("z"), 1)])  # and it goes on


def test_many_rows_at_once_are_no_loop(graph):
    calls = []
    run(
        PREFIX + "QUERY Q AS SELECT ?x { :a :p ?x } RULE R ON APPEAR OF Q THEN CALL f(?x)",
        graph,
        functions={"f": calls.append},
        max_firings=10,
    )
    graph.update(f"INSERT DATA {{ {iri('a')} {iri('p')} {', '.join(map(str, range(50)))} }}")
    assert len(calls) == 50


FAILING = (
    PREFIX + "EVENT E(?x) AS { ?x :is ?y }\n"
    "RULE Bad ON E(?x) THEN INSERT { ?x :bad true } ; CALL f(?x)\n"
    "RULE Good ON E(?x) THEN INSERT { ?x :good true }"
)


def fail(_):
    raise ValueError("no")


def test_an_action_that_fails_stops_the_rest_and_is_told_with_rule_and_values(graph):
    running = run(FAILING, graph, functions={"f": fail})
    with pytest.raises(
        ActionError, match=r"the rule Bad failed at 4 with \?x=.*/e>: ValueError: no"
    ):
        running.assert_event([(iri("e"), iri("is"), 1)], time=4)
    assert len(graph) == 0


def test_an_action_that_fails_can_be_skipped(graph):
    running = run(FAILING, graph, functions={"f": fail}, on_error="skip")
    running.assert_event([(iri("e"), iri("is"), 1)], time=4)
    assert [p.message.split(" failed")[0] for p in running.problems] == ["the rule Bad"]
    assert [str(q[1]) for q in graph.quads()] == [iri("good")]


@pytest.mark.parametrize(("retries", "problems"), [(1, 1), (2, 0)])
def test_an_action_can_be_tried_again(graph, retries, problems):
    tries = []

    def third_time(x):
        tries.append(x)
        if len(tries) < 3:
            fail(x)

    running = run(FAILING, graph, functions={"f": third_time}, on_error="skip", retries=retries)
    running.assert_event([(iri("e"), iri("is"), 1)])
    assert len(tries) == retries + 1
    assert len(running.problems) == problems


def test_a_policy_that_is_none(graph):
    with pytest.raises(GraphtideError, match="is no policy"):
        run(FAILING, graph, functions={"f": fail}, on_error="hope")


def test_functions_are_looked_up_nowhere_else(graph):
    with pytest.raises(GraphtideError, match="the rule Bad calls f, which was not given") as caught:
        run(FAILING, graph, functions={"g": print})
    assert caught.value.hint.endswith("there is g")
    assert graph.queries == ()


def test_what_is_deleted_and_inserted_is_one_transaction(graph):
    run(
        PREFIX + "QUERY Q AS SELECT ?x { ?x :state :A } RULE R ON APPEAR OF Q"
        " THEN DELETE { ?x :state :A } ; INSERT { ?x :state :B . GRAPH :log { ?x :was :A } }",
        graph,
    )
    watch = graph.watch(f"SELECT (COUNT(*) AS ?n) {{ ?x {iri('state')} ?s }}")
    graph.insert(iri("x"), iri("state"), iri("A"))
    assert {tuple(map(str, q[1:])) for q in graph.quads()} == {
        (iri("state"), iri("B"), "None"),
        (iri("was"), iri("A"), iri("log")),
    }
    assert [row.row["n"].value for row in watch.rows() if row.diff > 0] == ["0", "1"]


def test_values_and_times_are_tested_together(graph):
    running = run(
        PREFIX + "EVENT T(?s, ?t) AS { ?s :shows ?t } RULE R\n"
        "WHEN EVENT a = T(?s, ?x) EVENT b = T(?s, ?y) AFTER[1,2] a OR (AFTER[3,9] a AND "
        "FILTER (?y > ?x + 10)) WHERE NOT FILTER (?y = 0) THEN INSERT { ?s :rises true }",
        graph,
    )
    for time, value in ((0, 20), (2, 21), (6, 0), (7, 32), (30, 99)):
        running.assert_event([(iri("s"), iri("shows"), value)], time=time)
    pairs = [(f.events["a"][1], f.events["b"][1]) for f in running.firings()]
    assert pairs == [(0, 2), (6, 7), (0, 7), (2, 7)], "at 7 by the values of ?x: 0, 20, 21"


def test_durations_are_in_the_ticks_of_the_graph():
    text = PREFIX + (
        "EVENT A(?x) AS { ?x :a 1 } EVENT B(?x) AS { ?x :b 1 }\n"
        "RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) AFTER[0, 1s] a THEN INSERT { ?x :c 1 }"
    )
    for tick_ms, fires in ((100, 1), (1000, 0)):
        running = run(text, LiveGraph(tick_ms=tick_ms))
        running.assert_event([(iri("x"), iri("a"), 1)], time=0)
        running.assert_event([(iri("x"), iri("b"), 1)], time=10)
        assert len(running.firings()) == fires
    with pytest.raises(GraphtideError, match="not a whole number of ticks of 300 ms"):
        run(text, LiveGraph(tick_ms=300))


def test_a_change_of_state_has_the_values_of_both_states(graph):
    calls = []
    run(
        PREFIX + "EVENT Moved(?x, ?a, ?b) ON CHANGE OF ?x FROM { ?x :in ?a } TO { ?x :in ?b }\n"
        "RULE R ON Moved(?x, ?a, ?b) THEN CALL f(?x, ?a, ?b)",
        graph,
        functions={"f": lambda *terms: calls.append("".join(t.value[-1] for t in terms))},
    )
    graph.insert(iri("x"), iri("in"), iri("1"))
    with graph.transaction() as tx:
        tx.delete(iri("x"), iri("in"), iri("1"))
        tx.insert(iri("x"), iri("in"), iri("2"))
    graph.delete(iri("x"), iri("in"), iri("2"))
    graph.insert(iri("x"), iri("in"), iri("3"))
    assert calls == ["x12"]


def test_why_a_rule_fired(graph):
    running = run(DESIGN, graph, functions={"notify": print, "note": print})
    name = "http://www.semanticweb.org/ontologies/2015/trainbenchmark#"
    type_ = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    graph.update(f"PREFIX : <{name}> INSERT DATA {{ :e a :Equipment ; :state :ACTIVE }}")
    alarm = [(f"<{name}a>", type_, f"<{name}Alarm>"), (f"<{name}a>", f"<{name}eqpt>", f"<{name}e>")]
    running.assert_event(alarm, time=10)
    yes = [(f"<{name}c>", type_, f"<{name}Confirmation>")]
    running.assert_event([*yes, (f"<{name}c>", f"<{name}alarm>", f"<{name}a>")], time=12)
    (firing,) = running.firings()
    assert firing.why().replace(name, "") == (
        "AlarmConfirmation fired at 12\n  a = Alarm(<a>, <e>) at 10\n"
        "  c = Confirmation(<c>, <a>) at 12\n"
        f"  fact <e> {type_} <Equipment>\n  fact <e> <state> <ACTIVE>"
    )


def test_a_program_can_be_stopped(graph):
    running = run(CYCLE, graph)
    running.close()
    graph.insert(iri("x"), iri("on"), True)
    assert graph.queries == ()
    assert len(graph) == 1


def test_facts_are_those_before_the_change_when_a_wait_is_over(graph):
    """What waited until 15 fires before the transaction at 20, which takes its fact away."""
    running = run(
        PREFIX + "EVENT A(?x) AS { ?x :a 1 } EVENT B(?x) AS { ?x :b 1 }\n"
        "RULE R WHEN FACT { ?x :on true } EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,5] a\n"
        "THEN INSERT { ?x :alone true }",
        graph,
    )
    graph.update(f"INSERT DATA {{ {iri('x')} {iri('on')} true }}")
    running.assert_event([(iri("x"), iri("a"), 1)], time=10)
    graph.update(f"DELETE DATA {{ {iri('x')} {iri('on')} true }}", time=20)
    assert rules(running) == ["R"]


RUNAWAY = (
    PREFIX
    + """
QUERY Lit AS SELECT ?x { ?x :on true }
EVENT Tick(?x, ?n) AS { ?x :tick ?n }
EVENT Ask(?x)      AS { ?x :ask ?n }
EVENT Off(?x)      ON DISAPPEAR OF Lit(?x)
RULE Again  WHEN FACT { ?x :loops true } EVENT t = Tick(?x, ?n)
            THEN DELETE { ?x :on true } ; EMIT :ticks { ?x :tick ?n } ; INSERT { ?x :seen ?n }
RULE Back   ON Off(?x) THEN INSERT { ?x :on true }
RULE Forget WHEN EVENT a = Ask(?x) EVENT t = Tick(?x, ?n) AFTER[0,9] a THEN RETRACT a
RULE Held   WHEN FACT { ?x :on true } EVENT a = Ask(?x) EVENT b = Ask(?x) AFTER[1,9] a
            THEN INSERT { ?x :held true }
RULE Quiet  WHEN FACT { ?x :on true } EVENT a = Ask(?x) NO EVENT Tick(?x, ?n) AFTER[0,9] a
            THEN INSERT { ?x :quiet true }
"""
)


def runaway(graph):
    """Ask at 1, a tick at 3 that would go round for ever."""
    running = run(RUNAWAY, graph, max_firings=50)
    windows = graph.watch(
        PREFIX.replace("\n", " ") + "REGISTER RSTREAM :out AS SELECT ?x FROM NAMED WINDOW :w ON"
        " STREAM :ticks [RANGE 5 STEP 5] WHERE { WINDOW :w { ?x :tick ?n } }"
    )
    graph.update(f"INSERT DATA {{ {iri('x')} {iri('on')} true ; {iri('loops')} true }}", time=0)
    return running, windows


def test_a_cascade_without_end_leaves_no_trace_in_the_rules(graph):
    """The ask of 1 was retracted and its fact deleted on the way round: it counts all the same."""
    running, windows = runaway(graph)
    before = sorted(map(str, graph.quads()))
    running.assert_event([(iri("x"), iri("ask"), 1)], time=1)
    kept = running.retained
    with pytest.raises(GraphtideError, match="without end: Again, Back"):
        running.assert_event([(iri("x"), iri("tick"), 1)], time=3)
    assert sorted(map(str, graph.quads())) == before
    # The tick has happened: Forget and Quiet keep it in this tick, and Quiet waits no more.
    assert running.retained == kept + 2 - 1
    assert rules(running) == []
    running.assert_event([(iri("x"), iri("ask"), 2)], time=4)
    assert rules(running) == ["Held"]
    graph.advance(20)
    assert rules(running) == ["Held", "Quiet"]  # of the ask at 4, not of that at 1
    assert [str(r) for r in windows.results() if len(r.rows)] == []


def test_what_watches_see_of_a_cascade_without_end(graph):
    """Each transaction of the rules as it came, then one that takes all of them back."""
    runaway(graph)
    watch = graph.watch(f"SELECT ?n {{ ?x {iri('seen')} ?n }}")
    with pytest.raises(GraphtideError, match="without end"):
        graph.publish([(iri("x"), iri("tick"), 1)], time=3)
    assert [row.diff for row in watch.rows()] == [1, -1]
    assert watch.count() == 0


def test_an_event_that_disappears_has_the_old_values(graph):
    calls = []
    run(
        PREFIX + "QUERY Is AS SELECT ?x ?v { ?x :in ?r . ?r :at ?v }\n"
        "RULE Left ON DISAPPEAR OF Is(?x, ?v) THEN CALL f(?x, ?v)",
        graph,
        functions={"f": lambda *terms: calls.append(" ".join(t.value[-2:] for t in terms))},
    )
    with graph.transaction() as tx:
        tx.insert(iri("x1"), iri("in"), iri("r1"))
        tx.insert(iri("r1"), iri("at"), iri("v1"))
    with graph.transaction() as tx:  # by another value in the same transaction
        tx.delete(iri("r1"), iri("at"), iri("v1"))
        tx.insert(iri("r1"), iri("at"), iri("v2"))
    graph.delete(iri("x1"), iri("in"), iri("r1"))
    assert calls == ["x1 v1", "x1 v2"]


def test_an_action_that_succeeds_when_tried_again_stops_nothing(graph):
    tries = []

    def second_time(x):
        tries.append(x)
        if len(tries) < 2:
            fail(x)

    running = run(FAILING, graph, functions={"f": second_time}, retries=1)
    running.assert_event([(iri("e"), iri("is"), 1)])
    assert (len(tries), len(graph), running.problems) == (2, 2, [])


@pytest.mark.parametrize("policy", [{}, {"on_error": "skip"}, {"retries": 2}])
@pytest.mark.parametrize("batched", [False, True])
def test_an_action_that_fails_among_many_events(graph, policy, batched):
    """With stop, events up to the one that failed have happened, and none after it."""
    running = run(
        FAILING, graph, functions={"f": lambda x: x.value.endswith("3") and fail(x)}, **policy
    )
    encode = graph.terms.encode
    events = [[(iri(f"e{n}"), iri("is"), f'"{n}"')] for n in range(6)]
    stops = policy.get("on_error") != "skip"

    def tell():
        if batched:
            ids = [[tuple(map(encode, t)) for t in triples] for triples in events]
            running._subscriber.take_events(make_events(ids, list(range(6))))
        else:
            for time, triples in enumerate(events):
                running.assert_event(triples, time=time)

    if stops:
        with pytest.raises(ActionError, match="the rule Bad failed at 3"):
            tell()
        changed = {(s.value[-2:], p.value.rpartition("/")[2]) for s, p, *_ in graph.quads()}
        assert changed == {(f"e{n}", word) for n in range(3) for word in ("good", "bad")}
        assert running.clock == 3
    else:
        tell()
        assert len(graph) == 11
        assert len(running.problems) == 1
    running.assert_event([(iri("e9"), iri("is"), 9)], time=9)
    assert rules(running)[-2:] == ["Bad", "Good"]


def test_what_must_not_happen_bounds_nothing_for_what_does(graph):
    """No n between them, as far as that can be said; but b may come at any time after a."""
    running = run(
        PREFIX
        + "EVENT A(?x) AS { ?x :a 1 } EVENT B(?x) AS { ?x :b 1 } EVENT N(?x) AS { ?x :n 1 }\n"
        "RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) AFTER[0,*] a\n"
        "            NO EVENT n = N(?x) AFTER[0,3] a AND BEFORE[1,5] b\n"
        "THEN INSERT { ?x :c 1 }",
        graph,
    )
    graph.publish([(iri("x"), iri("a"), 1)], time=0)
    graph.publish([(iri("y"), iri("a"), 1)], time=0)
    graph.publish([(iri("y"), iri("n"), 1)], time=2)
    graph.publish([(iri("y"), iri("b"), 1)], time=6)  # the n came 4 before it
    graph.publish([(iri("x"), iri("b"), 1)], time=100)
    assert [(str(f.values["x"]), f.time) for f in running.firings()] == [(iri("x"), 100)]


LASTING = [
    # this relation other, from and to of the other (told first if it ends first), of this
    ("DURING", (2, 10), (4, 6), True),
    ("DURING", (2, 10), (4, 12), False),
    ("OVERLAPS", (5, 10), (2, 7), True),
    ("OVERLAPPEDBY", (2, 7), (5, 10), True),
    ("MEETS", (7, 9), (4, 7), True),
    ("STARTS", (2, 9), (2, 5), True),
    ("FINISHES", (2, 9), (5, 9), True),
    ("FINISHES", (5, 9), (2, 9), False),
    ("COINCIDES", (2, 9), (2, 9), True),
]


@pytest.mark.parametrize(("relation", "other", "this", "fires"), LASTING)
def test_events_that_last(graph, relation, other, this, fires):
    running = run(
        PREFIX + "EVENT A(?x) AS { ?x :a 1 } EVENT B(?x) AS { ?x :b 1 }\n"
        f"RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) {relation} a THEN INSERT {{ ?x :c 1 }}",
        graph,
        max_event_duration=8,
    )
    ends = sorted([(other[1], "a", other), (this[1], "b", this)])
    for end, name, (begin, _) in ends:
        graph.publish([(iri("x"), iri(name), 1)], time=end, duration=end - begin)
    assert len(running.firings()) == fires
    with pytest.raises(GraphtideError, match="lasts for 9 ticks, but 8 is the most"):
        graph.publish([(iri("x"), iri("a"), 1)], duration=9)
    assert not fires or running.firings()[0].events == {"a": other, "b": this}

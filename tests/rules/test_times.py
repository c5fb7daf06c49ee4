"""Times and computed values in actions, events by start and end, rules over facts alone."""

from __future__ import annotations

import pytest

import graphtide as gt
from graphtide.errors import GraphtideError, ProgramError, QueryError
from graphtide.rules.explain import explain_rules

IRI = "<http://example.org/{}>".format
HEAD = """PREFIX : <http://example.org/>
EVENT A(?x) AS { ?e :a ?x }
EVENT B(?x) AS { ?e :b ?x }
"""
NUMBER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format


def event(kind, x="x"):
    return [(IRI("e"), IRI(kind), IRI(x))]


def errors(text):
    return [e.message.split("\n")[0] for e in gt.Program.check(HEAD + text).errors]


def test_times_in_templates_and_calls():
    told = []
    graph = gt.LiveGraph()
    graph.run(
        gt.Program.parse(
            HEAD
            + """RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) AFTER a
            THEN INSERT { ?x :from TIMEOF(a) ; :to timeof( b ) ; :text "TIMEOF(a)" }
               ; CALL tell(?x, STARTOF(), TIMEOF()) ; EMIT :out { :e :c TIMEOF(a) }
            EVENT C(?t) AS { ?e :c ?t }
            RULE S ON C(?t) THEN CALL tell(?t)"""
        ),
        functions={"tell": lambda *given: told.append([str(each) for each in given])},
    )
    graph.publish(event("a"), time=3)
    graph.publish(event("b"), time=8)
    for predicate, value in (("from", NUMBER(3)), ("to", NUMBER(8)), ("text", '"TIMEOF(a)"')):
        assert (IRI("x"), IRI(predicate), value) in graph
    assert told == [[IRI("x"), NUMBER(3), NUMBER(8)], [NUMBER(3)]]


def test_a_match_that_has_waited_has_the_time_until_which_it_did():
    told = []
    graph = gt.LiveGraph()
    graph.run(
        gt.Program.parse(
            HEAD
            + """RULE R WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,10] a
            THEN CALL tell(TIMEOF(a), TIMEOF())"""
        ),
        functions={"tell": lambda *given: told.append([int(each.value) for each in given])},
    )
    graph.publish(event("a"), time=5)
    graph.advance(to=40)
    assert told == [[5, 15]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RULE R ON A(?x) THEN CALL tell(TIMEOF(b))", "TIMEOF(b) has no value in this rule"),
        (
            """RULE R WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER a WHERE FILTER (TIMEOF() > 1)
            THEN CALL tell(?x)""",
            "TIMEOF() has no value in this rule",
        ),
        ("RULE R ON A(TIMEOF(a)) THEN CALL tell()", "TIMEOF(a) cannot be an argument of an event"),
        ("RULE R WHEN FACT { :a :b :c } THEN CALL t()", "the facts of the rule R have no variable"),
        ("RULE R WHEN NO EVENT A(?x) THEN CALL tell(?x)", "the rule R has no event"),
    ],
)
def test_what_is_refused(text, message):
    assert message in errors(text)


def test_a_rule_with_a_time_acts_event_by_event():
    program = gt.Program.parse(HEAD + "RULE R ON A(?x) THEN INSERT { ?x :at TIMEOF(A) }")
    assert "acts event by event: TIMEOF" in explain_rules(program)


def test_facts_alone_are_the_rows_of_a_query_that_appear():
    """The short form fires when the long one does."""
    short = "RULE R WHEN FACT { ?x :is ?y } FACT { ?y :in ?z } WHERE FILTER (?x != ?z) "
    long = """QUERY R AS SELECT * { ?x :is ?y . ?y :in ?z }
    RULE R ON APPEAR OF R(?x, ?y, ?z) """
    found = []
    for text in (short, long):
        graph = gt.LiveGraph()
        run = graph.run(gt.Program.parse(HEAD + text + "THEN INSERT { ?x :at ?z }"))
        for s, p, o in [("a", "is", "b"), ("b", "in", "c"), ("b", "in", "d"), ("d", "is", "b")]:
            graph.insert(IRI(s), IRI(p), IRI(o))
        graph.delete(IRI("a"), IRI("is"), IRI("b"))
        graph.insert(IRI("a"), IRI("is"), IRI("b"))
        found.append([{n: str(t) for n, t in f.values.items()} for f in run.firings()])
    assert found[0] == [row for row in found[1] if row["x"] != row["z"]]
    assert len(found[0]) == 5


def test_the_times_of_an_event():
    """Start and end, or one of them and the duration; a time alone is an instant."""
    seen = []
    graph = gt.LiveGraph()
    run = graph.run(
        gt.Program.parse(HEAD + "RULE R ON A(?x) THEN CALL tell(STARTOF(A), TIMEOF(A))"),
        functions={"tell": lambda *given: seen.append(tuple(int(g.value) for g in given))},
        max_event_duration=10,
    )
    for publish, first in ((graph.publish, 0), (run.assert_event, 100)):
        publish(event("a"), time=first + 10)
        publish(event("a"), start=first + 10, end=first + 15)
        publish(event("a"), start=first + 13, duration=4)
        publish(event("a"), end=first + 18, duration=3)
        publish(event("a"), time=first + 19, duration=2)
    expected = [(10, 10), (10, 15), (13, 17), (15, 18), (17, 19)]
    assert seen == expected + [(100 + s, 100 + e) for s, e in expected]


@pytest.mark.parametrize(
    "given",
    [
        {"time": 5, "start": 3},
        {"start": 5, "end": 3},
        {"start": 5, "end": 9, "duration": 3},
        {"end": 5, "duration": -1},
    ],
)
def test_times_that_contradict_each_other(given):
    run = gt.LiveGraph().run(gt.Program.parse(HEAD), max_event_duration=9)
    with pytest.raises(GraphtideError) as error:
        run.assert_event(event("a"), **given)
    assert error.value.hint


def test_a_filter_in_an_event_is_a_check():
    graph = gt.LiveGraph()
    run = graph.run(
        gt.Program.parse(
            HEAD
            + """EVENT V(?x, ?v) AS { ?x :v ?v FILTER (?v > 3) FILTER (?v != 7) } CHECK (?v < 9)
            RULE R ON V(?x, ?v) THEN INSERT { ?x :is ?v }"""
        )
    )
    for value in range(12):
        graph.publish([(IRI("x"), IRI("v"), value)], time=value)
    assert [int(f.values["v"].value) for f in run.firings()] == [4, 5, 6, 8]
    assert errors("EVENT V(?x) AS { ?x :v ?v FILTER (?v > 3) }") == [
        "?v is not a parameter of the event V"
    ]
    assert errors("EVENT V(?x) AS { ?x :v ?v FILTER NOT EXISTS { ?x :v 1 } }") == [
        "the pattern of an event can only contain triples and FILTER"
    ]


def test_values_computed_for_the_actions():
    told = []
    graph = gt.LiveGraph()
    graph.run(
        gt.Program.parse(
            HEAD
            + """EVENT V(?x, ?v) AS { ?x :v ?v }
            RULE R WHEN EVENT a = V(?x, ?v) EVENT b = V(?x, ?w) AFTER a
              BIND (?w - ?v AS ?d) BIND (?d / (TIMEOF(b) - TIMEOF(a)) AS ?rate)
            THEN INSERT { ?x :rate ?rate } ; EMIT :out { :e :c ?d } ; CALL tell(?d, ?rate)
            EVENT C(?d) AS { :e :c ?d }
            RULE S ON C(?d) THEN CALL tell(?d)"""
        ),
        functions={"tell": lambda *given: told.append([str(g.value) for g in given])},
    )
    graph.publish([(IRI("x"), IRI("v"), 3)], time=1)
    graph.publish([(IRI("x"), IRI("v"), 9)], time=4)
    assert [[float(n) for n in row] for row in told] == [[6, 2], [6]]
    assert len(graph) == 1


def test_what_bind_refuses():
    rule = "RULE R WHEN EVENT a = A(?x) BIND {} THEN CALL tell(?y)".format
    assert errors(rule("(?z + 1 AS ?y)")) == ["?z has no value in this rule"]
    assert errors(rule("(1 + 1 AS ?x)")) == ["?x has a value already"]
    assert errors(rule("(?x + 1)")) == ["invalid BIND"]
    assert errors("EVENT Bind(?x) AS { ?e :b ?x } RULE R ON Bind(?x) THEN CALL f(?x)") == []


IN_TEMPLATES = """EVENT V(?x, ?v) AS {{ ?x :v ?v }}
RULE R WHEN EVENT a = V(?x, ?v) EVENT b = V(?x, ?w) AFTER a {binds}
THEN INSERT {{ ?x :rate {rate} }} ; EMIT :out {{ :e :c {d} }} ; CALL tell(?d, ?rate)"""


def test_expressions_in_templates_are_binds():
    """Values of BIND are computed by hand above; templates are read in the order of the actions."""

    def rule(binds, rate="?rate", d="?d"):
        text = HEAD + IN_TEMPLATES.format(binds=binds, rate=rate, d=d)
        return gt.Program.parse(text).rules[0]

    apart = rule("BIND (?w - ?v AS ?d) BIND (?d / (TIMEOF(b) - TIMEOF(a)) AS ?rate)")
    divided = "?d / (TIMEOF(b) -\n TIMEOF(a))"
    assert rule("BIND (?w - ?v AS ?d)", rate=f"({divided} AS ?rate)") == apart
    within = rule("", rate="(?w - ?v AS ?d)", d=f"( {divided} as $rate )")
    assert within.computed == apart.computed


def test_values_in_templates():
    graph = gt.LiveGraph()
    graph.run(
        gt.Program.parse(
            HEAD
            + """EVENT V(?x, ?v) AS { ?x :v ?v }
            RULE R ON V(?x, ?v) THEN
              INSERT { ?x :twice (?v * 2 AS ?w) , (?w + 1 AS ?more) ; :list (1 ?v "1 AS ?n") ;
                       :text (CONCAT("(", STR(?v), " AS ?t)") AS ?t) ; :none (?v / 0 AS ?error) }"""
        )
    )
    graph.publish([(IRI("x"), IRI("v"), 4)], time=1)
    rows = graph.query(
        "SELECT ?p ?o { <http://example.org/x> ?p ?o FILTER (!isBLANK(?o)) }"
    ).to_pylist()
    assert {(row["p"].rsplit("/", 1)[1][:-1], str(row["o"]).split("^")[0]) for row in rows} == {
        ("twice", '"8"'), ("twice", '"9"'), ("text", '"(4 AS ?t)"'),
    }  # fmt: skip
    assert len(graph) == 3 + 1 + 3 * 2


def test_what_templates_refuse():
    rule = "RULE R ON A(?x) THEN INSERT {{ ?x :p\n {} }}".format
    assert errors(rule("(?z + 1 AS ?y)")) == ["?z has no value in this rule"]
    assert errors(rule("(1 + 1 AS ?x)")) == ["?x has a value already"]
    assert errors(rule("(?x + AS ?y)")) == ["expected an expression, found ')'"]
    with pytest.raises(QueryError) as caught:
        gt.Program.parse(HEAD + rule("(?x * 2)"))
    assert (caught.value.line, caught.value.column) == (HEAD.count("\n") + 2, 6)
    assert caught.value.hint == "give a computed value a name: (?a + 1 AS ?b)"


def test_an_unknown_event_has_a_hint_with_the_known_ones():
    text = "RULE R WHEN EVENT alarm = A(?x) WHERE FILTER (TIMEOF(alrm) > 1) THEN CALL f(STARTOF(b))"
    with pytest.raises(ProgramError) as caught:
        gt.Program.parse(HEAD + text)
    assert [each.hint for each in caught.value.errors] == ["did you mean alarm?", "there is alarm"]

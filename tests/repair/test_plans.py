"""Plans: what they say, how they are applied, and when they are refused."""

import gc

import pytest
from repair.worlds import iri

import graphtide as gt
from graphtide.errors import GraphtideError, QueryError
from graphtide.repair.model import Fix, Goal
from graphtide.repair.search import find_repairs

RAIL = """PREFIX : <http://example.org/>
QUERY RouteSensor AS SELECT ?route ?sensor WHERE {
  ?route :follows ?swP . ?swP :target ?sw . ?sw :monitoredBy ?sensor .
  FILTER NOT EXISTS { ?route :requires ?sensor } }
QUERY Required AS SELECT ?sensor { ?route :requires ?sensor }
GOAL Sound NONE OF RouteSensor
FIX Link ON RouteSensor THEN INSERT { ?route :requires ?sensor }
"""
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


@pytest.fixture
def rail():
    graph = gt.LiveGraph()
    for s, p, o in (
        ("route1", "follows", "swP1"),
        ("swP1", "target", "sw1"),
        ("sw1", "monitoredBy", "sensor1"),
        ("sw1", "monitoredBy", "sensor2"),
    ):
        graph.insert(iri(s), iri(p), iri(o))
    return graph


def test_a_plan_tells_what_it_does(rail):
    (plan,) = find_repairs(rail, RAIL)
    assert [str(step) for step in plan.steps] == [
        f"Link(route={iri('route1')}, sensor={iri('sensor1')})",
        f"Link(route={iri('route1')}, sensor={iri('sensor2')})",
    ]
    assert [str(change) for change in plan.changes] == [
        f"+ {iri('route1')} {iri('requires')} {iri('sensor1')}",
        f"+ {iri('route1')} {iri('requires')} {iri('sensor2')}",
    ]
    assert (plan.cost, plan.violations, plan.solves) == (2, {"Sound": 0}, True)
    assert [str(row) for row in plan.preview["RouteSensor"]] == [
        f"- route={iri('route1')} sensor={iri('sensor1')}",
        f"- route={iri('route1')} sensor={iri('sensor2')}",
    ]
    assert [str(row) for row in plan.preview["Required"]] == [
        f"+ sensor={iri('sensor1')}",
        f"+ sensor={iri('sensor2')}",
    ]


def test_a_plan_is_applied_as_one_transaction_that_everybody_sees(rail):
    watch = rail.watch("SELECT ?sensor { ?r <http://example.org/requires> ?sensor }")
    (plan,) = find_repairs(rail, RAIL)
    before = rail.transactions
    assert plan.apply(rail, time=9) == 2
    assert (rail.transactions, rail.clock) == (before + 1, 9)
    assert [str(row) for row in watch.delta()] == [str(row) for row in plan.preview["Required"]]


def test_a_plan_knows_its_graph(rail):
    (plan,) = find_repairs(rail, RAIL)
    assert plan.apply(time=9) == 2
    assert find_repairs(rail, RAIL)[0].steps == ()


def test_a_plan_without_its_graph_needs_another_one(rail):
    copy = gt.LiveGraph()
    for quad in rail.quads():
        copy.insert(*quad)
    (plan,) = find_repairs(copy, RAIL)
    del copy
    gc.collect()
    with pytest.raises(GraphtideError, match="the graph of this plan no longer exists"):
        plan.apply()
    assert plan.apply(rail) == 2


def test_a_plan_can_be_applied_to_a_strict_graph(rail):
    strict = gt.LiveGraph(strict=True)
    for quad in rail.quads():
        strict.insert(*quad)
    find_repairs(strict, RAIL)[0].apply(strict)
    assert len(strict) == 6


def test_nothing_to_mend(rail):
    find_repairs(rail, RAIL)[0].apply(rail)
    (plan,) = find_repairs(rail, RAIL)
    before = rail.transactions
    assert (plan.steps, plan.changes, plan.cost) == ((), (), 0)
    assert str(plan) == "nothing to do"
    assert plan.preview == {"RouteSensor": (), "Required": ()}
    assert plan.apply(rail) == 0
    assert rail.transactions == before


def test_a_plan_still_fits_after_changes_elsewhere(rail):
    (plan,) = find_repairs(rail, RAIL)
    rail.insert(iri("route2"), iri("follows"), iri("swP1"))  # new violations, but not of the plan
    assert plan.apply(rail) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("delete", "sw1", "monitoredBy", "sensor2"), "step 2, Link.*no longer has its row"),
        (("insert", "route1", "requires", "sensor1"), "step 1, Link.*no longer has its row"),
    ],
)
def test_a_plan_that_no_longer_fits_is_refused(rail, change, message):
    (plan,) = find_repairs(rail, RAIL)
    what, *triple = change
    getattr(rail, what)(*map(iri, triple))
    before = sorted(map(str, rail.quads()))
    with pytest.raises(GraphtideError, match=message) as caught:
        plan.apply(rail)
    assert "search again" in caught.value.hint
    assert sorted(map(str, rail.quads())) == before


TWO = """PREFIX : <http://example.org/>
QUERY Bad AS SELECT ?x { ?x :is :bad }
QUERY Worse AS SELECT ?x { ?x :was :bad ; :on :fire }
GOAL Good NONE OF Bad
GOAL Calm NONE OF Worse
FIX Mend ON Bad THEN DELETE { ?x :is :bad } ; INSERT { ?x :was :bad }
"""


def test_a_plan_whose_steps_change_otherwise_is_refused():
    graph = gt.LiveGraph()
    graph.insert(iri("a"), iri("is"), iri("bad"))
    (plan,) = find_repairs(graph, TWO)
    graph.insert(iri("a"), iri("was"), iri("bad"))
    with pytest.raises(GraphtideError, match=r"step 1, Mend.*no longer makes the same changes"):
        plan.apply(graph)


def test_a_plan_that_would_not_reach_its_goals_is_refused():
    graph = gt.LiveGraph()
    graph.insert(iri("a"), iri("is"), iri("bad"))
    (plan,) = find_repairs(graph, TWO)
    graph.insert(iri("a"), iri("on"), iri("fire"))
    with pytest.raises(GraphtideError, match="would leave violations of Calm: 1"):
        plan.apply(graph)


def test_new_nodes_are_the_same_ones_for_the_same_row():
    graph = gt.LiveGraph()
    for name in ("sw1", "sw2"):
        graph.insert(iri(name), TYPE, iri("Switch"))
    program = """PREFIX : <http://example.org/>
    QUERY SwitchMonitored AS SELECT ?sw {
      ?sw a :Switch FILTER NOT EXISTS { ?sw :monitoredBy ?s . ?s a :Sensor } }
    GOAL All NONE OF SwitchMonitored
    FIX New ON SwitchMonitored THEN INSERT { ?sw :monitoredBy _:s . _:s a :Sensor }"""
    found = find_repairs(graph, program, strategy="bfs")
    assert found.complete
    assert len(found) == 1  # whichever switch comes first
    sensors = {str(change.o) for change in found[0].changes if change.p.value.endswith("By")}
    assert len(sensors) == 2
    assert find_repairs(graph, program)[0].changes == found[0].changes


def test_what_is_inserted_and_deleted_again_is_no_change():
    graph = gt.LiveGraph()
    graph.insert(iri("a"), iri("p"), 1)
    program = """PREFIX : <http://example.org/>
    QUERY One AS SELECT ?a { ?a :p 1 }
    QUERY Two AS SELECT ?a { ?a :p 2 }
    GOAL Never AT MOST 0 OF All
    QUERY All AS SELECT ?a { ?a :p ?n }
    FIX Up ON One THEN DELETE { ?a :p 1 } ; INSERT { ?a :p 2 }
    FIX Down ON Two THEN DELETE { ?a :p 2 } ; INSERT { ?a :p 1 }"""
    found = find_repairs(graph, program)
    assert found == []
    assert (found.complete, found.states, found.duplicates) == (True, 2, 1)
    assert (found.closest.steps, found.closest.violations) == ((), {"Never": 1})


def test_goals_and_fixes_from_python(rail):
    prefix = "PREFIX : <http://example.org/> "
    missing = (
        prefix + "SELECT ?r ?s { ?r :follows/:target/:monitoredBy ?s MINUS { ?r :requires ?s } }"
    )
    goals = [Goal.of("Sound", missing), Goal.of("Lean", prefix + "SELECT * { ?r :requires ?s }",
                                                most=None, weight=0.5)]  # fmt: skip
    fixes = [
        Fix.of("Link", missing, insert="?r :requires ?s", cost=2),
        Fix.of("Drop", prefix + "SELECT ?sw ?s { ?sw :monitoredBy ?s }",
               delete="?sw :monitoredBy ?s", cost=2),
    ]  # fmt: skip
    found = find_repairs(rail, goals, fixes)
    assert found.complete
    assert [plan.cost for plan in found[:4]] == [4.0, 4.5, 4.5, 5.0]  # by hand: 2 + 2 + rows / 2
    assert {step.fix for step in found[0].steps} == {"Drop"}


def test_a_cost_function(rail):
    seen = []

    def cost(candidate):
        seen.append(candidate)
        return 10 * len(candidate.changes)

    (plan,) = find_repairs(rail, RAIL, cost=cost)[:1]
    assert plan.cost == 22
    assert {len(each.steps) for each in seen} == {0, 1, 2}
    assert {each.counts["Sound"] for each in seen} == {0, 1, 2}
    with pytest.raises(GraphtideError, match="the cost function returned nan"):
        find_repairs(rail, RAIL, cost=lambda _: float("nan"))


def test_limits(rail):
    found = find_repairs(rail, RAIL, max_steps=1)
    assert (found, found.complete) == ([], True)
    assert found.closest.violations == {"Sound": 1}
    found = find_repairs(rail, RAIL, max_states=2)
    assert (found, found.stopped) == ([], "max_states=2 reached")
    found = find_repairs(rail, RAIL, max_seconds=1e-9)
    assert (found, found.stopped, found.complete) == ([], "max_seconds=1e-09 reached", False)


def test_plans_enough():
    graph = gt.LiveGraph()
    graph.insert(iri("a"), iri("is"), iri("bad"))
    program = TWO + "FIX Forget ON Bad THEN DELETE { ?x :is :bad }"
    found = find_repairs(graph, program, max_plans=1)
    assert (len(found), found.stopped) == (1, "max_plans=1 reached")


@pytest.mark.parametrize(
    "strategy", ["bfs", "dfs", "best-first", "hill-climbing", "random-restarts"]
)
def test_every_strategy_mends_the_railway(rail, strategy):
    assert len(find_repairs(rail, RAIL, strategy=strategy)[0].steps) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "best"}, "strategy 'best' is unknown"),
        ({"max_steps": -1}, "max_steps=-1"),
        ({"max_states": 0}, "max_states=0"),
        ({"max_plans": 0}, "max_plans=0"),
        ({"max_seconds": 0}, "max_seconds=0"),
        ({"max_seconds": float("nan")}, "max_seconds=nan"),
    ],
)
def test_what_is_no_option(rail, options, message):
    with pytest.raises(GraphtideError, match=message):
        find_repairs(rail, RAIL, **options)


def test_what_cannot_be_explored(rail):
    query = "QUERY Q AS SELECT ?s { ?s ?p ?o }\n"
    with pytest.raises(GraphtideError, match="there is no goal"):
        find_repairs(rail, query + "FIX F ON Q THEN DELETE { ?s <ex:p> 1 }")
    with pytest.raises(GraphtideError, match="there is no fix"):
        find_repairs(rail, query + "GOAL G NONE OF Q")
    with pytest.raises(QueryError, match="no query named R"):
        find_repairs(rail, query + "GOAL G NONE OF R")
    with pytest.raises(GraphtideError, match="does not store all quads"):
        find_repairs(gt.LiveGraph(store="matched"), RAIL)
    text = "SELECT ?s { ?s ?p ?o }"
    with pytest.raises(GraphtideError, match=r"\?x has no value in the fix F"):
        Fix.of("F", text, delete="?s <ex:p> ?x")
    with pytest.raises(GraphtideError, match="changes nothing"):
        Fix.of("F", text)
    with pytest.raises(GraphtideError, match="invalid cost -1"):
        Fix.of("F", text, delete="?s <ex:p> 1", cost=-1)
    with pytest.raises(GraphtideError, match="ASK query"):
        Goal.of("G", "ASK { ?s ?p ?o }")
    with pytest.raises(GraphtideError, match="weight"):
        Goal.of("G", text, weight=0)
    twice = [Goal.of("G", text), Goal.of("G", text)]
    with pytest.raises(GraphtideError, match="more than one goal named G"):
        find_repairs(rail, twice, [Fix.of("F", text, delete="?s <ex:p> 1")])


def test_named_graphs_and_values_that_are_missing():
    graph = gt.LiveGraph()
    graph.insert(iri("a"), iri("p"), 1, iri("g"))
    graph.insert(iri("b"), iri("p"), 1, iri("h"))
    graph.insert(iri("b"), iri("note"), '"old"')
    program = """PREFIX : <http://example.org/>
    QUERY One AS SELECT ?s ?g ?note { GRAPH ?g { ?s :p 1 } OPTIONAL { ?s :note ?note } }
    GOAL NoOne NONE OF One
    FIX Move ON One THEN DELETE { GRAPH ?g { ?s :p 1 } . ?s :note ?note } ; INSERT { ?s :was ?g }"""
    (plan,) = find_repairs(graph, program, strategy="bfs")
    assert [str(change) for change in plan.changes] == [
        f"- {iri('a')} {iri('p')} {ONE} {iri('g')}",
        f'- {iri("b")} {iri("note")} "old"',
        f"- {iri('b')} {iri('p')} {ONE} {iri('h')}",
        f"+ {iri('a')} {iri('was')} {iri('g')}",
        f"+ {iri('b')} {iri('was')} {iri('h')}",
    ]
    assert [set(step.bindings) for step in plan.steps] == [{"s", "g"}, {"s", "g", "note"}]
    graph.insert(iri("c"), iri("p"), 2)  # so that it is tried once more before it is applied
    assert plan.apply(graph) == 5


ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_a_graph_whose_default_graph_is_the_union():
    graph = gt.LiveGraph(default_graph="union")
    graph.insert(iri("a"), iri("is"), iri("bad"), iri("g"))
    found = find_repairs(graph, TWO + "FIX Cut ON Bad THEN DELETE { GRAPH :g { ?x :is :bad } }")
    assert [step.fix for step in found[0].steps] == ["Cut"]


def test_a_callback_mends_what_it_is_told_of(rail):
    """Exploring and applying from inside: the plan takes effect after the transaction."""
    watch = rail.watch("SELECT ?a { ?a <http://example.org/follows> ?b }")
    watch.on_appear(lambda row: find_repairs(rail, RAIL)[0].apply(rail))
    rail.insert(iri("route2"), iri("follows"), iri("swP1"))
    assert find_repairs(rail, RAIL)[0].steps == ()
    assert (iri("route2"), iri("requires"), iri("sensor2")) in rail

"""The search space: a private copy of the graph, invisible to queries, with exact moves."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repair.oracle import PREFIX
from repair.worlds import graphs, hard, iri, live_graph, quads_of, quads_of_runtime, soft
from support.programs import find_repairs, run

import graphtide as gt
from graphtide.lang.sparql.parse import parse_query
from graphtide.repair.model import task_of
from graphtide.repair.space import SearchSpace
from graphtide.repair.state import net_changes

WINDOW = """PREFIX : <http://example.org/>
REGISTER RSTREAM :out AS SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE 10 STEP 5]
WHERE { WINDOW :w { ?a :q ?b } ?a :p ?c }"""


def picture(graph, watch, reports, running):
    """All that can be seen of a graph and of those who go along with it."""
    return {
        "quads": graph.quad_ids().tolist(),
        "stats": graph.stats(),
        "texts": graph.terms.decode_column(np.arange(1, len(graph.terms) + 1)).to_pylist(),
        "answer": watch.table(terms=True).to_pylist(),
        "history": [str(row) for row in watch.rows()],
        "delta": str(watch.delta()),
        "firings": [str(firing) for firing in running.firings()],
        "reports": list(reports),
        "clock": (graph.clock, graph.stats().transactions, running.clock, running.retained),
    }


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(graphs)
def test_nobody_notices(triples):
    graph = live_graph(triples)
    called = []
    watch = graph.watch(PREFIX + "SELECT ?a ?b { ?a :q ?b }")
    watch.on_appear(called.append)
    watch.on_disappear(called.append)
    running = run(
        PREFIX + "QUERY Q AS SELECT ?a { ?a :q ?b }\nRULE R ON APPEAR OF Q THEN CALL tell(?a)",
        graph,
        functions={"tell": called.append},
    )
    window = graph.watch(WINDOW)
    window.on_result(called.append)
    graph.stream(iri("s")).push([(iri("a"), iri("q"), iri("b"))], time=3)
    before = picture(graph, watch, called, running)
    for strategy in ("bfs", "dfs", "best-first", "hill-climbing", "random-restarts"):
        find_repairs(graph, soft().program, strategy=strategy, max_steps=2, max_states=100)
    assert picture(graph, watch, called, running) == before


@settings(deadline=None, max_examples=30)
@given(graphs, st.integers(0, 1000))
def test_the_way_back_is_exact(triples, seed):
    random, world = Random(seed), hard()
    graph = live_graph(triples)
    space = SearchSpace(graph._runtime, task_of(world.program))
    states, start = [space.start], quads_of(graph)
    options = space.options()
    for _ in range(12):
        state = random.choice(states)
        space.move_to(state)
        check_here(space, world, start, state)
        steps = [space.step(state, option) for option in space.options()]
        for step in filter(None, steps):
            counts = space.evaluate(step)
            check_here(space, world, start, state)
            space.move_to(step)
            assert space.counts() == counts
            space.move_to(state)
            states.append(step)
    space.move_to(space.start)
    assert quads_of_runtime(space.graph) == start
    assert space.options() == options


def check_here(space, world, start, state):
    """The private graph is the start with the state's net changes, and its answers are right."""
    here = quads_of_runtime(space.graph)
    assert len(here ^ start) == len(net_changes(state))
    goals = [world.goals[goal.name].query for goal in space.task.goals]
    assert space.counts() == tuple(len(world.rows(here, query)) for query in goals)
    rows = [len(world.rows(here, fix.query)) for fix in world.fixes.values()]
    assert len(space.options()) == sum(rows)


def test_a_copy_has_the_same_ids_and_named_graphs():
    from graphtide.repair.space import fork

    graph = gt.LiveGraph(default_graph="union", tick_ms=10)
    graph.insert(iri("a"), iri("p"), '"x"@en', iri("g"), time=5)
    graph.insert("_:b", iri("p"), 1.5)
    graph.delete("_:b", iri("p"), 1.5)  # its terms stay known
    copy = fork(graph._runtime)
    ids = graph.quad_ids()
    assert copy.quad_ids().tolist() == ids.tolist()
    assert [copy.terms.text(i) for i in ids.ravel()] == [graph.terms.text(i) for i in ids.ravel()]
    assert (copy.clock, copy.tick_ms, copy.default_graph) == (5, 10, "union")
    assert len(copy.queries.evaluate(parse_query("SELECT ?s { ?s ?p ?o }"))) == 1

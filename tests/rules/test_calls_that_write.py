"""CALL: a function may change the graph if it asks for it, by a keyword parameter `graph`."""

from __future__ import annotations

import pytest

import graphtide as gt

TEXT = """PREFIX : <http://e/>
EVENT A(?x) AS { ?x :a ?y }
RULE R ON A(?x) THEN CALL f(?x) ; INSERT { ?x :after :call }"""

QUAD = "<http://e/s>", "<http://e/p>", "<http://e/o>"


def commit(graph):
    with graph.transaction() as tx:
        tx.insert(*QUAD)


WRITES = {
    "insert": lambda graph: graph.insert(*QUAD),
    "insert later": lambda graph: graph.insert(*QUAD, time=9),
    "delete": lambda graph: graph.delete("<http://e/x>", "<http://e/is>", "<http://e/there>"),
    "transaction": commit,
    "update": lambda graph: graph.update("INSERT DATA { <http://e/s> <http://e/p> 1 }"),
    "apply": lambda graph: graph.apply_ids(*graph.terms.encode_column(list(QUAD)).reshape(3, 1)),
    "push": lambda graph: graph.stream("<http://e/in>").push([QUAD], time=9),
    "publish": lambda graph: graph.publish([QUAD]),
    "advance": lambda graph: graph.advance(9),
}


def started(function):
    graph = gt.LiveGraph()
    graph.insert("<http://e/x>", "<http://e/is>", "<http://e/there>")
    program = graph.run(gt.Program.parse(TEXT), functions={"f": function}, on_error="skip")
    return graph, program


def publish(graph):
    graph.publish([("<http://e/x>", "<http://e/a>", "<http://e/y>")], time=3)


@pytest.mark.parametrize("write", WRITES)
def test_a_function_that_has_not_asked_for_the_graph_cannot_change_it(write):
    graph, program = started(lambda _: WRITES[write](graph))
    before = set(graph.quads())
    publish(graph)
    (problem,) = program.problems
    assert "cannot change the graph unless it asks for it" in str(problem)
    assert set(graph.quads()) == before, "the other actions of the firing do not happen either"
    assert graph.clock == 3
    graph.insert(*QUAD, time=4)
    assert len(graph) == len(before) + 1


@pytest.mark.parametrize("write", ["insert", "delete", "transaction", "apply"])
def test_one_that_has_asked_changes_it_before_the_other_actions(write):
    seen = []

    def function(_, *, graph):
        WRITES[write](graph)
        seen.append(("<http://e/x>", "<http://e/after>", "<http://e/call>") in graph)

    graph, program = started(function)
    publish(graph)
    assert not program.problems
    assert seen == [False]
    assert len(graph) == (1 if write == "delete" else 3)


def test_a_callback_may_change_the_graph():
    graph, _ = started(lambda _: None)
    query = graph.watch("SELECT ?x { ?x <http://e/after> ?y }")
    query.on_delta(lambda _: graph.insert(*QUAD))
    publish(graph)
    assert len(graph) == 3

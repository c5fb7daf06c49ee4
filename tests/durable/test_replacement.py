"""A store records that a program was replaced, and that groups of rules were switched."""

import pytest

from graphtide import LiveGraph, Program

EX = "<http://example.org/{}>".format
TEXT = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?d {{ ?d :is :open }}
EVENT Knock(?d) AS {{ ?d :is :knocked }}
EVENT Ring(?d) AS {{ ?d :is :rung }}
RULE Kept WHEN EVENT k = Knock(?d) EVENT r = Ring(?d) AFTER[0,9] k THEN INSERT {{ ?d :kept true }}
RULE Changed WHEN EVENT k = Knock(?d) EVENT r = Ring(?d) AFTER[0,{n}] k
  THEN INSERT {{ ?d :changed true }}
RULE Off IN night WHEN EVENT k = Knock(?d) EVENT r = Ring(?d) AFTER[0,9] k
  THEN INSERT {{ ?d :off true }}
"""


def knock(graph, door, what, time):
    graph.publish([(EX(door), EX("is"), EX(what))], time=time)


def quads(graph):
    return sorted(tuple(map(str, quad)) for quad in graph.quads())


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_replacement_is_recorded(tmp_path, snapshot):
    with LiveGraph.open(tmp_path / "store") as graph:
        program = graph.run(Program.parse(TEXT.format(n=9)), name="doors")
        knock(graph, "a", "knocked", 1)
        program.replace(TEXT.format(n=8))
        program.disable("night")
        graph.watch("SELECT ?s { ?s ?p ?o }")
        knock(graph, "b", "knocked", 2)
        if snapshot:
            assert graph.checkpoint()
    with LiveGraph.open(tmp_path / "store") as graph:
        (program,) = graph.programs
        assert program.groups == {"night": False}
        assert program.program == Program.parse(TEXT.format(n=8))
        knock(graph, "a", "rung", 3)
        knock(graph, "b", "rung", 4)
        expected = [
            (EX("a"), EX("kept")),
            (EX("b"), EX("changed")),
            (EX("b"), EX("kept")),
        ]
        assert [quad[:2] for quad in quads(graph)] == expected
        program.enable("night")
        knock(graph, "c", "knocked", 5)
    with LiveGraph.open(tmp_path / "store") as graph:
        knock(graph, "c", "rung", 6)
        found = [quad[:2] for quad in quads(graph)]
        assert found[len(expected) :] == [(EX("c"), EX(p)) for p in ("changed", "kept", "off")]


def test_a_replacement_that_fails_is_not_recorded(tmp_path):
    with LiveGraph.open(tmp_path / "store") as graph:
        program = graph.run(Program.parse(TEXT.format(n=9)), name="doors")
        with pytest.raises(Exception, match="expected"):
            program.replace("QUERY")
        knock(graph, "a", "knocked", 1)
    with LiveGraph.open(tmp_path / "store") as graph:
        knock(graph, "a", "rung", 2)
        assert len(graph) == 3

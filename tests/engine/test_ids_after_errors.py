"""A call holds the ids of its terms while it takes in what an error has left: none is freed then.

A function that a rule calls raises, so a stream is left with events to pass on; the next call
passes them on in its middle. Everything that takes terms is called then, and the graph is compared
with what was given.
"""

from __future__ import annotations

import pytest

import graphtide as gt
from graphtide.engine import reclaim

PROGRAM = """PREFIX : <http://e/>
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
RULE R ON A(?x) THEN CALL fail(?x)
RULE Loop ON B(?x) THEN EMIT :s { [] :b 1 }
"""


def fail(_):
    raise ValueError


@pytest.fixture
def graph(monkeypatch):
    """A graph that frees terms at every safe point once it has a few, with a program."""
    monkeypatch.setattr(reclaim, "LEAST_GROWTH", 16)
    graph = gt.LiveGraph()
    graph._runtime.reclaimer.at = 16
    graph.run(gt.Program.parse(PROGRAM), functions={"fail": fail}, max_firings=20)
    return graph


def given(name, number):
    return f"<e:{name}{number}>", f"<e:p{name}>", f'"{name} {number}"'


def change(graph, how, quad):
    """Insert one quad in some way."""
    if how == "insert":
        graph.insert(*quad)
    elif how == "transaction":
        with graph.transaction() as tx:
            tx.insert(*quad)
    elif how == "update":
        graph.update("INSERT DATA {{ {} {} {} }}".format(*quad))
    elif how == "delete":
        graph.insert(*quad)
        graph.insert("<e:gone>", *quad[1:])
        graph.delete("<e:gone>", *quad[1:])


@pytest.mark.parametrize("cause", ["a", "b"], ids=["a call that raises", "an endless cascade"])
@pytest.mark.parametrize("how", ["insert", "transaction", "update", "delete"])
def test_what_is_stored_is_what_was_given(graph, how, cause):
    stream = graph.stream("<http://e/in>")
    expected = set()
    for number in range(300):
        with pytest.raises(gt.GraphtideError):
            stream.push(
                [(f"<http://e/x{number}>", f"<http://e/{cause}>", f"<http://e/y{number}>")],
                time=number,
            )
        quad = given(how, number)
        change(graph, how, quad)
        expected.add(quad)
    assert {tuple(map(str, quad[:3])) for quad in graph.quads()} == {
        (s, p, str(gt.Literal(o[1:-1]))) for s, p, o in expected
    }


@pytest.mark.parametrize("how", ["push", "push_many", "publish", "assert_event"])
def test_events_have_the_terms_that_were_given(graph, how):
    """The event after one whose function raised is seen as it was given."""
    seen = []
    program = graph.run(
        gt.Program.parse(
            "PREFIX : <http://e/>\nEVENT C(?x, ?y) AS { ?x :c ?y }\n"
            "RULE S ON C(?x, ?y) THEN CALL see(?x, ?y)"
        ),
        functions={"see": lambda x, y: seen.append((str(x), str(y)))},
        name="other",
    )
    failing, stream = graph.stream("<http://e/in>"), graph.stream("<http://e/other>")
    expected = []
    for number in range(200):
        with pytest.raises(gt.GraphtideError):
            failing.push(
                [(f"<http://e/x{number}>", "<http://e/a>", f"<http://e/y{number}>")], time=number
            )
        x, y = f"<http://e/c{number}>", f"<http://e/d{number}>"
        triple = (x, "<http://e/c>", y)
        if how == "push":
            stream.push([triple], time=number)
        elif how == "push_many":
            stream.push_many([([triple], number), ([triple], number)])
            expected.append((x, y))
        elif how == "publish":
            graph.publish([triple], time=number)
        else:
            program.assert_event([triple], time=number)
        expected.append((x, y))
        graph.advance(number)
    assert seen == expected

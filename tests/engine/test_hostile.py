"""Whatever a call is given, it works or says what is wrong, and the graph goes on."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from engine.hostile import CALLS, QUERY, VALUES, WINDOW, P

from graphtide import LiveGraph
from graphtide.errors import GraphtideError


def given_to(call, graph, value):
    """Make a call; a TypeError says which argument is wrong."""
    wrong = None
    try:
        call(graph, value)
    except GraphtideError:
        pass
    except TypeError as error:
        wrong = str(error)
    assert wrong is None or " must be " in wrong


def watched(graph):
    query, _ = graph.watch(QUERY, name="all"), graph.watch(WINDOW, name="window")
    graph.insert("<ex:s>", P, "<ex:zero>", time=3)
    return query


def check_goes_on(graph, query):
    """The next change is there, once, and answers are those of the quads."""
    before = query.count()
    graph.insert("<ex:after>", P, "<ex:after>")
    graph.delete("<ex:after>", P, "<ex:after>")
    graph.insert("<ex:after>", P, "<ex:after>")
    assert query.count() == before + 1
    table = query.table(terms=True)
    answer = Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
    quads = [tuple(map(str, quad)) for quad in graph.quads()]
    assert answer == Counter((s, o) for s, p, o, g in quads if p == P and g == "None")
    graph.delete("<ex:after>", P, "<ex:after>")


@pytest.mark.parametrize("name", CALLS)
def test_a_call_with_any_value_works_or_says_what_is_wrong(name):
    for value in VALUES:
        graph = LiveGraph()
        query = watched(graph)
        given_to(CALLS[name], graph, value)
        if name != "on_delta" or not callable(value):
            check_goes_on(graph, query)


LATE = 2**59
"""Times beyond leave no room for the times of calls that follow."""


@pytest.mark.parametrize("durability", ["batch", "transaction"])
@pytest.mark.parametrize("seed", range(3))
def test_a_durable_graph_is_the_same_after_hostile_calls(tmp_path, durability, seed):
    chosen = random.Random(seed)
    calls = [(name, value) for name in CALLS if name != "on_delta" for value in VALUES]
    graph = LiveGraph.open(tmp_path, durability=durability)
    query = watched(graph)
    for name, value in chosen.sample(calls, 300):
        if not (isinstance(value, int) and abs(value) > LATE and "time" in name + "advance"):
            given_to(CALLS[name], graph, value)
    check_goes_on(graph, query)
    quads, clock, many = set(map(str, graph.quads())), graph.clock, query.count()
    names = {each.name for each in graph.queries}
    graph.close()
    with LiveGraph.open(tmp_path) as again:
        assert set(map(str, again.quads())) == quads
        assert (again.clock, {each.name for each in again.queries}) == (clock, names)
        again_query = next(each for each in again.queries if each.name == "all")
        assert again_query.count() == many
        check_goes_on(again, again_query)

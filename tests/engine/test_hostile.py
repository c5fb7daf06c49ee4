"""Whatever a call is given, it works or says what is wrong, and the graph goes on."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from engine.hostile import (
    CALLS,
    FUNCTIONS,
    OPENING,
    OPTIONS,
    QUERY,
    STORE_CALLS,
    VALUES,
    WINDOW,
    P,
    made,
)

from graphtide import Limits, LiveGraph
from graphtide.errors import GraphtideError
from graphtide.functions import user
from graphtide.limits import NAMES


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
@pytest.mark.parametrize("seed", range(int(os.environ.get("GRAPHTIDE_SEEDS", "3"))))
def test_a_durable_graph_is_the_same_after_hostile_calls(tmp_path, durability, seed):
    chosen = random.Random(seed)
    every = CALLS | STORE_CALLS
    calls = [(name, value) for name in every if name != "on_delta" for value in VALUES]
    graph = LiveGraph.open(tmp_path, durability=durability)
    query = watched(graph)
    for name, value in chosen.sample(calls, 300):
        if not (isinstance(value, int) and abs(value) > LATE and "time" in name + "advance"):
            given_to(every[name], graph, value)
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


@pytest.mark.parametrize("name", STORE_CALLS)
def test_a_call_of_a_store_with_any_value_works_or_says_what_is_wrong(tmp_path, name):
    with LiveGraph.open(tmp_path) as graph:
        query = watched(graph)
        for value in VALUES:
            given_to(STORE_CALLS[name], graph, value)
        check_goes_on(graph, query)
        cursors = graph.store.store.journal.cursors()
    assert all(isinstance(text, str) and text for _, text in cursors)
    with LiveGraph.open(tmp_path) as again:
        check_goes_on(again, again.queries[0])


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_with_any_value_works_or_says_what_is_wrong(name):
    for value in VALUES:
        found = []
        given_to(lambda _, value: found.append(made(name, value)), None, value)  # noqa: B023
        if found:
            check_goes_on(found[0], watched(found[0]))


@pytest.mark.parametrize("name", OPENING)
def test_a_store_opens_after_options_that_were_refused(tmp_path, name):
    for number, value in enumerate(VALUES):
        folder, opened = tmp_path / str(number), []

        def opens(_, value, folder=folder, opened=opened):
            opened.append(LiveGraph.open(folder, **{name: value}))

        given_to(opens, None, value)
        if opened:
            check_goes_on(opened[0], watched(opened[0]))
            opened[0].close()
        with LiveGraph.open(folder) as graph:
            assert len(graph) == len(opened)


def test_a_place_that_is_no_path_is_refused(tmp_path):
    with LiveGraph.open(tmp_path) as graph:
        for value in VALUES:
            if not isinstance(value, str):
                given_to(lambda _, value: LiveGraph.open(value), None, value)
                given_to(lambda graph, value: graph.store.backup(value), graph, value)
        for value in ("\ud800", "\0"):
            given_to(lambda _, value: LiveGraph.open(tmp_path / value), None, value)
            given_to(lambda graph, value: graph.store.backup(tmp_path / value), graph, value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_with_any_value_works_or_says_what_is_wrong(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(user, "USER_FUNCTIONS", {})
    for value in VALUES:
        given_to(lambda _, value: FUNCTIONS[name](value), None, value)


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_with_any_value_works_or_says_what_is_wrong(name):
    for value in VALUES:
        found = []
        given_to(lambda _, value: found.append(Limits(**{name: value})), None, value)  # noqa: B023
        for limits in found:
            assert type(getattr(limits, name)) in (int, float, type(None))


def test_a_count_is_that_of_now():
    """The check of a strict graph looks up the quad, and so takes in what waits before it."""
    graph = LiveGraph(strict=True)
    query = graph.watch(QUERY)
    for _ in range(3):
        graph.insert("<ex:s>", P, "<ex:o>")
        assert query.count() == 1
        graph.delete("<ex:s>", P, "<ex:o>")
        graph.insert("<ex:s>", P, "<ex:o>")
        assert query.count() == 1
        graph.delete("<ex:s>", P, "<ex:o>")
        assert query.count() == 0

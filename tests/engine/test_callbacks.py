"""on_appear and on_disappear: per transaction, at the state of that transaction."""

from __future__ import annotations

import sys

import pytest
from engine.small_graph import (
    KNOWN,
    PATHS,
    answer,
    batch,
    commit,
    delete,
    insert,
    line,
    lines,
    local,
    quad,
    watch,
)

from graphtide import GraphtideError, LiveGraph
from graphtide.kernel import JIT


@pytest.fixture
def graph():
    return LiveGraph()


def listen(found) -> list[str]:
    """The calls of a query, in order: `appear b` or `disappear b`."""
    calls: list[str] = []
    found.on_appear(lambda row: calls.append(f"appear {line(row)[3:]}"))
    found.on_disappear(lambda row: calls.append(f"disappear {line(row)[3:]}"))
    return calls


def test_only_crossings_of_zero_are_heard(graph):
    calls = listen(watch(graph, KNOWN))
    insert(graph, "x knows b")
    insert(graph, "y knows b")
    delete(graph, "x knows b")
    assert calls == ["appear b"]
    delete(graph, "y knows b")
    assert calls == ["appear b", "disappear b"]


def test_callbacks_come_at_once_without_a_look(graph):
    calls = listen(watch(graph))
    insert(graph, "a knows b")
    assert calls == ["appear a b"]


def test_a_transaction_is_heard_net(graph):
    calls = listen(watch(graph, KNOWN))
    insert(graph, "x knows b")
    calls.clear()
    commit(graph, "- x knows b", "+ y knows b", "+ y knows c", "- y knows c", "+ x knows d")
    assert calls == ["appear d"]


def test_what_goes_is_heard_before_what_comes(graph):
    calls = listen(watch(graph, KNOWN))
    insert(graph, "x knows b")
    calls.clear()
    commit(graph, "+ x knows c", "- x knows b")
    assert calls == ["disappear b", "appear c"]


def test_a_row_carries_time_number_and_diff(graph):
    rows = []
    watch(graph, KNOWN).on_appear(rows.append)
    commit(graph, "+ x knows b", "+ y knows b", time=9)
    ((time, tx, diff),) = [(row.time, row.tx, row.diff) for row in rows]
    assert (time, tx, diff) == (9, 0, 2)


def test_a_batch_is_heard_transaction_by_transaction(graph):
    calls = listen(watch(graph, KNOWN))
    graph.apply(
        batch(
            (1, 0, "+ x knows b"),
            (2, 0, "- x knows b"),
            (3, 0, "+ x knows b"),
            (3, 0, "+ y knows b"),
            (4, 0, "- x knows b"),
        )
    )
    assert calls == ["appear b", "disappear b", "appear b"]


@pytest.mark.parametrize("way", ["singles", "one batch", "two batches"])
def test_a_callback_sees_the_state_of_its_transaction(graph, way):
    paths, known = watch(graph, PATHS), watch(graph, KNOWN)
    seen = []

    @known.on_appear
    def look(row):
        seen.append((local(row.row["b"]), len(graph), known.count(), paths.count(), graph.clock))
        assert row.time == graph.clock
        assert lines(known.delta()) == [f"+1 {local(row.row['b'])}"]

    rows = [(1, 0, "+ a knows b"), (2, 1, "+ b knows c"), (5, 2, "+ c knows d")]
    if way == "singles":
        for time, _, text in rows:
            insert(graph, text[2:], time=time)
    elif way == "one batch":
        graph.apply(batch(*rows))
    else:
        graph.apply([batch(*rows[:1]), batch(*rows[1:])])
    assert seen == [("b", 1, 1, 0, 1), ("c", 2, 2, 1, 2), ("d", 3, 3, 2, 5)]


def test_the_state_of_all_queries_is_up_to_date_when_one_calls_back(graph):
    first, second = watch(graph), watch(graph, KNOWN)
    counts = []
    first.on_appear(lambda row: counts.append((first.count(), second.count())))
    second.on_appear(lambda row: counts.append((first.count(), second.count())))
    insert(graph, "a knows b")
    assert counts == [(1, 1), (1, 1)]


def test_several_callbacks_run_in_the_order_they_came(graph):
    order = []
    knows = watch(graph)
    knows.on_appear(lambda row: order.append("first"))
    knows.on_appear(lambda row: order.append("second"))
    insert(graph, "a knows b")
    assert order == ["first", "second"]


def test_a_late_callback_hears_only_what_comes_later(graph):
    knows = watch(graph)
    insert(graph, "a knows b")
    calls = listen(knows)
    insert(graph, "b knows c")
    assert calls == ["appear b c"]


def test_after_unwatch_nothing_is_heard(graph):
    knows = watch(graph)
    calls = listen(knows)
    other = listen(watch(graph, KNOWN))
    knows.close()
    insert(graph, "a knows b")
    assert (calls, other) == ([], ["appear b"])


# --- callbacks that change the graph ---


def test_what_a_callback_changes_happens_after_its_transaction(graph):
    knows, likes = watch(graph), watch(graph, "SELECT * { ?a :likes ?b }")
    seen = []

    @knows.on_appear
    def like(row):
        graph.insert(row.row["b"], *quad("likes"), row.row["a"])
        seen.append(likes.count())

    insert(graph, "a knows b")
    assert seen == [0]
    assert answer(likes) == {"b a": 1}
    assert lines(likes.delta()) == ["+1 b a"]
    assert lines(knows.delta()) == []
    assert graph.stats().transactions == 2


CHAIN = 2 * sys.getrecursionlimit() if JIT else sys.getrecursionlimit()


def test_a_chain_of_reactions_needs_no_deep_stack(graph):
    ticks = watch(graph, "SELECT ?n { :clock :tick ?n }")

    @ticks.on_appear
    def tick(row):
        number = int(row.row["n"].value)
        if number < CHAIN:
            graph.insert(*quad("clock tick"), number + 1)

    graph.insert(*quad("clock tick"), 0)
    assert ticks.count() == CHAIN + 1


def test_reactions_run_one_transaction_at_a_time(graph):
    knows, likes = watch(graph), watch(graph, "SELECT ?b { ?a :likes ?b }")
    calls = listen(likes)
    sizes = []
    likes.on_appear(lambda row: sizes.append(len(graph)))

    @knows.on_appear
    def react(row):
        insert(graph, "x likes y")
        delete(graph, "x likes y")
        commit(graph, "+ x likes y", "+ x likes z")

    insert(graph, "a knows b")
    assert calls == ["appear y", "disappear y", "appear y", "appear z"]
    assert sizes == [2, 3, 3]


STREAM = [(t, t, f"{'-' if t % 3 == 2 else '+'} n{t - t % 3 // 2} knows n") for t in range(9)]


def react_and_record(way: str) -> list[tuple[int, str]]:
    graph = LiveGraph()
    known, marks = (
        watch(graph, "SELECT ?a { ?a :knows ?b }"),
        watch(graph, "SELECT ?a { ?a :mark ?t }"),
    )
    calls: list[tuple[int, str]] = []
    known.on_appear(lambda row: graph.insert(row.row["a"], *quad("mark"), row.time))
    known.on_disappear(lambda row: calls.append((graph.clock, f"{marks.count()} marks")))
    marks.on_appear(lambda row: calls.append((graph.clock, f"{local(row.row['a'])} {len(graph)}")))
    if way == "singles":
        for time, _, text in STREAM:
            (insert if text[0] == "+" else delete)(graph, text[2:], time=time)
    elif way == "one batch":
        graph.apply(batch(*STREAM))
    else:
        graph.apply(batch(row) for row in STREAM)
    return calls


@pytest.mark.parametrize("way", ["one batch", "many batches"])
def test_reactions_to_a_batch_are_those_to_single_changes(way):
    expected = react_and_record("singles")
    assert len(expected) == 9
    assert react_and_record(way) == expected


def test_reactions_to_a_batch_are_carried_out_before_apply_returns(graph):
    knows, likes = watch(graph), watch(graph, "SELECT * { ?a :likes ?b }")
    calls = listen(likes)
    knows.on_appear(lambda row: insert(graph, "x likes y"))
    graph.apply(batch((1, 0, "+ a knows b")))
    assert calls == ["appear x y"]


def test_a_batch_applied_by_a_callback_waits_like_other_reactions(graph):
    knows, likes = watch(graph), watch(graph, "SELECT * { ?a :likes ?b }")
    calls = listen(likes)

    @knows.on_appear
    def react(row):
        insert(graph, "first likes y")
        graph.apply(batch((3, 0, "+ second likes y"), (4, 0, "+ third likes y")))
        insert(graph, "fourth likes y")
        assert likes.count() == 0

    insert(graph, "a knows b")
    assert calls == ["appear first y", "appear second y", "appear third y", "appear fourth y"]
    assert [(row.time) for row in likes.rows()] == [0, 3, 4, 4]
    assert graph.clock == 4


def test_a_callback_that_advances_the_clock_past_the_batch_is_told_so(graph):
    knows = watch(graph)
    knows.on_appear(lambda row: graph.advance(to=100))
    with pytest.raises(GraphtideError, match="a transaction at 2 after one at 100"):
        graph.apply(batch((1, 0, "+ a knows b"), (2, 0, "+ b knows c")))
    assert (answer(knows), graph.clock) == ({"a b": 1}, 100)


def test_a_callback_can_watch_and_unwatch(graph):
    knows = watch(graph)
    late = []

    @knows.on_appear
    def start(row):
        if not late:
            late.append(watch(graph, KNOWN))
            knows.close()

    insert(graph, "a knows b", "b knows c")
    assert answer(late[0]) == {"b": 1, "c": 1}
    assert graph.queries == tuple(late)
    assert not graph._runtime.queries.with_callbacks


# --- callbacks that raise ---


class UserError(Exception):
    pass


@pytest.fixture
def failing(graph):
    """A query that calls back, and fails at rows about `bad`."""
    knows = watch(graph, KNOWN)
    calls: list[str] = []

    @knows.on_appear
    def hear(row):
        calls.append(local(row.row["b"]))
        if calls[-1] == "bad":
            raise UserError

    return knows, calls


def test_a_callback_that_raises_reaches_the_caller_and_the_change_stays(graph, failing):
    knows, calls = failing
    other = watch(graph, "SELECT ?a { ?a :knows ?b }")
    with pytest.raises(UserError):
        insert(graph, "a knows bad")
    assert (answer(knows), answer(other), len(graph)) == ({"bad": 1}, {"a": 1}, 1)
    insert(graph, "a knows c")
    assert calls == ["bad", "c"]
    assert lines(knows.delta()) == ["+1 c"]
    delete(graph, "a knows bad")
    assert lines(knows.delta()) == ["-1 bad"]


def test_a_batch_goes_on_after_a_transaction_whose_callback_raises(graph, failing):
    knows, calls = failing
    rows = [(1, 0, "+ a knows b"), (2, 1, "+ a knows bad"), (3, 2, "+ a knows c")]
    with pytest.raises(UserError):
        graph.apply(batch(*rows))
    assert answer(knows) == {"b": 1, "bad": 1, "c": 1}
    assert (graph.clock, graph.stats().transactions) == (3, 3)
    assert calls == ["b", "bad", "c"]
    assert [row.time for row in knows.rows()] == [1, 2, 3]


def test_reactions_that_wait_are_not_lost_when_a_callback_raises(graph, failing):
    knows, calls = failing
    likes = watch(graph, "SELECT * { ?a :likes ?b }")

    @likes.on_appear
    def react(row):
        insert(graph, "a knows b", "a knows bad", "a knows c")

    with pytest.raises(UserError):
        insert(graph, "x likes y")
    assert answer(knows) == {"b": 1, "bad": 1, "c": 1}
    assert calls == ["b", "bad", "c"]

"""Query handles: delta, rows, table, count, drain; and the Delta itself."""

from __future__ import annotations

import pytest
from engine.small_graph import (
    KNOWN,
    KNOWS,
    answer,
    batch,
    commit,
    delete,
    insert,
    iri,
    lines,
    local,
    watch,
)

from graphtide import Delta, DeltaRow, Literal, LiveGraph
from graphtide.kernel.batch import DIFF, TX
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES


@pytest.fixture
def graph():
    return LiveGraph()


# --- delta() ---


def test_delta_is_of_the_last_transaction_only(graph):
    knows = watch(graph)
    insert(graph, "a knows b")
    insert(graph, "b knows c")
    assert lines(knows.delta()) == ["+1 b c"]
    assert lines(knows.delta()) == ["+1 b c"]  # looking does not use it up


@pytest.mark.parametrize("looking", [True, False])
def test_delta_is_empty_when_the_last_transaction_did_not_matter(graph, looking):
    knows = watch(graph)
    insert(graph, "a knows b")
    if looking:
        assert len(knows.delta()) == 1
    insert(graph, "a likes b")
    assert list(knows.delta()) == []
    assert str(knows.delta()) == "(no change)"


def test_delta_of_a_batch_is_that_of_its_last_transaction(graph):
    knows = watch(graph)
    graph.apply(batch((1, 0, "+ a knows b"), (1, 1, "+ b knows c"), (1, 1, "+ c knows d")))
    assert lines(knows.delta()) == ["+1 b c", "+1 c d"]
    graph.apply(batch((2, 0, "+ d knows e"), (2, 1, "+ a likes b")))
    assert not knows.delta()


def test_delta_rows_carry_time_and_number(graph):
    knows = watch(graph)
    insert(graph, "x likes y", time=3)
    commit(graph, "+ a knows b", time=17)
    (row,) = knows.delta()
    assert (row.time, row.tx, row.diff) == (17, 1, 1)
    assert {name: str(term) for name, term in row.row.items()} == {"a": iri("a"), "b": iri("b")}


# --- changes() ---


def test_changes_are_all_deltas_oldest_first(graph):
    insert(graph, "a knows b", time=1)
    knows = watch(graph)
    insert(graph, "b knows c", time=2)
    delete(graph, "a knows b", time=3)
    found = [(row.time, lines([row])[0]) for row in knows.rows()]
    assert found == [(1, "+1 a b"), (2, "+1 b c"), (3, "-1 a b")]
    assert knows.evicted == 0


@pytest.mark.parametrize("looking", ["always", "at the end", "batch"])
def test_history_is_bounded_and_counts_what_it_forgot(graph, looking):
    knows = watch(graph, history=3)
    changes = [(time, 0, f"+ n{time} knows n") for time in range(10)]
    if looking == "batch":
        graph.apply(batch(*changes))
    else:
        for time, _, text in changes:
            insert(graph, text[2:], time=time)
            if looking == "always":
                knows.count()
    assert [row.time for row in knows.rows()] == [7, 8, 9]
    assert (knows.evicted, knows.count()) == (7, 10)


@pytest.mark.parametrize("looking", [True, False])
def test_history_forgets_whole_transactions(graph, looking):
    knows = watch(graph, history=4)
    for time, size in enumerate((2, 3, 2)):
        commit(graph, *(f"+ n{time}x{k} knows n" for k in range(size)), time=time)
        if looking:
            knows.count()
    assert [row.time for row in knows.rows()] == [2, 2]  # 3 + 2 rows would be too many
    assert knows.evicted == 5


@pytest.mark.parametrize("looking", [True, False])
def test_the_last_transaction_is_never_forgotten(graph, looking):
    knows = watch(graph, history=1)
    for time in range(2):
        commit(graph, *(f"+ n{time}x{k} knows n" for k in range(5)), time=time)
        if looking:
            knows.count()
    assert len(knows.delta()) == len(list(knows.rows())) == 5
    insert(graph, "a knows b")
    assert lines(knows.rows()) == ["+1 a b"]
    assert knows.evicted == 10


def test_the_first_answer_counts_as_history(graph):
    insert(graph, "a knows b", "b knows c")
    knows = watch(graph, history=1)
    assert len(knows.delta()) == 2
    insert(graph, "c knows d")
    assert lines(knows.rows()) == ["+1 c d"]
    assert knows.evicted == 2


def test_history_can_be_read_while_it_grows(graph):
    knows = watch(graph)
    insert(graph, "a knows b", "b knows c")
    seen = []
    for row in knows.rows():
        seen.append(lines([row])[0])
        insert(graph, f"{local(row.row['b'])} knows x")
    assert seen == ["+1 a b", "+1 b c"]
    assert knows.count() == 4


# --- table() and count() ---


def test_table_repeats_duplicates_and_shows_unbound_as_null(graph):
    liked = watch(graph, "SELECT ?b ?c { ?a :knows ?b OPTIONAL { ?b :likes ?c } }")
    insert(graph, "a knows b", "z knows b", "a knows d", "d likes e")
    table = liked.table(terms=True)
    assert table.column_names == ["b", "c"]
    rows = sorted(tuple(row.values()) for row in table.to_pylist() if row["c"] is None)
    assert rows == [(iri("b"), None), (iri("b"), None)]
    assert (table.num_rows, liked.count()) == (3, 3)
    assert answer(liked) == {"b -": 2, "d e": 1}


def test_a_row_passes_each_of_many_optionals_once(graph):
    """Each OPTIONAL has a union of a join and an antijoin: what cancels there would double."""
    many = 20
    parts = " ".join(f"OPTIONAL {{ ?b :p{i} ?c{i} }}" for i in range(many))
    query = watch(graph, f"SELECT * {{ ?a :knows ?b {parts} }}")
    insert(graph, *(f"b p{i} c" for i in range(many)))
    for change in (insert, delete):
        change(graph, "a knows b")
        assert len(query.delta()) == 1
    messages = graph._runtime.queries.plans.network.messages(query.node_ids)
    assert max(messages.values()) <= 2 + many  # two of the row, and of `b p0 c` and so on


def test_table_holds_n_triples_texts(graph):
    graph.insert("_:s", iri("knows"), '"tab\\t"@en')
    assert watch(graph).table(terms=True).to_pylist() == [{"a": "_:s", "b": '"tab\\t"@en'}]


def test_the_table_of_an_empty_answer_has_its_columns(graph):
    table = watch(graph).table(terms=True)
    assert (table.column_names, table.num_rows) == (["a", "b"], 0)


def test_count_counts_duplicates(graph):
    known = watch(graph, KNOWN)
    insert(graph, "a knows c", "b knows c")
    assert known.count() == 2
    assert "answer ?b, 2 rows now" in known.explain()


# --- drain() ---


def test_drain_takes_the_history_out_as_ids(graph):
    insert(graph, "z likes z", time=5)
    knows = watch(graph)
    insert(graph, "a knows b", time=7)
    commit(graph, "+ b knows c", "- a knows b", time=8)
    taken = knows.drain()
    found = [
        (*stamps.stamp(row[TX]), row[DIFF], row[COUNT_BEFORE])
        for net, stamps in taken
        for row in net.tolist()
    ]
    assert sorted(found) == [(7, 1, 1, 0), (8, 2, -1, 1), (8, 2, 1, 0)]
    first = taken[0][0][0, DELTA_VALUES:].tolist()
    assert [graph.terms.text(i) for i in first] == [iri("a"), iri("b")]
    assert knows.drain() == []
    assert list(knows.rows()) == []
    insert(graph, "c knows d")
    assert lines(knows.rows()) == ["+1 c d"]
    assert (knows.evicted, knows.count()) == (0, 2)


def test_draining_in_time_forgets_nothing(graph):
    knows = watch(graph, history=2)
    taken = 0
    for n in range(6):
        insert(graph, f"n{n} knows n")
        taken += sum(len(net) for net, _ in knows.drain())
    assert (taken, knows.evicted) == (6, 0)


# --- Delta ---


@pytest.fixture
def delta(graph) -> Delta:
    """b: 0 to 2, c: 2 to 1, d: 1 to 0."""
    known = watch(graph, KNOWN)
    commit(graph, "+ x knows c", "+ y knows c", "+ x knows d")
    commit(graph, "+ x knows b", "+ y knows b", "- y knows c", "- x knows d")
    return known.delta()


def test_a_delta_is_a_sequence(delta):
    rows = list(delta)
    assert lines(rows) == ["+2 b", "-1 c", "-1 d"]
    assert len(delta) == 3
    assert [delta[i] for i in range(3)] == rows
    assert delta[-1] == rows[2]
    assert rows[1] in delta
    assert delta.index(rows[1]) == 1
    assert list(reversed(delta)) == rows[::-1]
    with pytest.raises(IndexError):
        delta[3]


def test_a_slice_of_a_delta_is_a_delta(delta):
    rows = list(delta)
    assert isinstance(delta[1:], Delta)
    assert list(delta[1:]) == rows[1:]
    assert list(delta[::-1]) == rows[::-1]
    assert lines(delta[:0]) == []
    assert len(delta[1:][:1]) == 1


def test_appeared_and_disappeared_are_the_crossings_of_zero(delta):
    assert lines(delta.appeared()) == ["+2 b"]
    assert lines(delta.disappeared()) == ["-1 d"]
    assert isinstance(delta.appeared(), Delta)


def test_a_delta_prints_one_line_per_row(delta):
    texts = sorted(str(delta).splitlines())
    assert texts == [f"+ 2× b={iri('b')}", f"- b={iri('c')}", f"- b={iri('d')}"]


def test_a_row_prints_its_bound_values():
    row = DeltaRow(time=1, tx=0, diff=-3, row={"x": Literal("a"), "y": None, "z": Literal("b")})
    assert str(row) == '- 3× x="a" z="b"'
    assert str(DeltaRow(1, 0, 1, {"x": None})) == "+"


def test_a_delta_outlives_later_changes(graph):
    knows = watch(graph, KNOWS)
    insert(graph, "a knows b")
    kept = knows.delta()
    for n in range(100):
        insert(graph, f"n{n} knows n")
    knows.close()
    assert lines(kept) == ["+1 a b"]

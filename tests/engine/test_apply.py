"""apply: batches, tables and files of changes."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from engine.small_graph import batch, commit, insert, iri, lines, quad, watch

from graphtide import ChangeBatch, GraphtideError, LiveGraph, write_changes
from graphtide.errors import DataError

ROWS = (
    (5, 0, "+ a knows b"),
    (5, 0, "+ b knows c"),
    (6, 1, "- a knows b"),
    (6, 2, "+ c knows d"),
)
DELTAS = [(5, 0, "+1 a b"), (5, 0, "+1 b c"), (6, 1, "-1 a b"), (6, 2, "+1 c d")]


@pytest.fixture
def graph():
    return LiveGraph()


def history(found) -> list[tuple[int, int, str]]:
    return [(row.time, row.tx, lines([row])[0]) for row in found.rows()]


def in_file(folder, name: str):
    path = folder / name
    write_changes(batch(*ROWS), path)
    return path


@pytest.mark.parametrize(
    "given",
    [
        batch(*ROWS),
        [batch(*ROWS)],
        [batch(*ROWS[:2]), batch(), batch(*ROWS[2:])],
        [batch(row) for row in ROWS],
        batch(*ROWS).to_arrow(),
    ],
    ids=["a batch", "a list", "several", "one each", "a table"],
)
def test_rows_that_share_time_and_number_are_one_transaction(graph, given):
    knows = watch(graph)
    graph.apply(given)
    assert sorted(history(knows)) == DELTAS
    assert lines(knows.delta()) == ["+1 c d"]
    assert (graph.clock, graph.stats().transactions) == (6, 3)


def test_an_iterator_of_batches_is_read_once(graph):
    knows = watch(graph)
    graph.apply(batch(row) for row in ROWS)
    assert sorted(history(knows)) == DELTAS


def test_a_transaction_that_straddles_batches_stays_one(graph):
    knows = watch(graph)
    parts = [
        batch((1, 0, "+ a knows b"), (1, 1, "+ b knows c")),
        batch((1, 1, "- b knows c")),
        batch((1, 1, "+ c knows d"), (1, 2, "+ d knows e")),
    ]
    graph.apply(parts)
    assert history(knows) == [(1, 0, "+1 a b"), (1, 1, "+1 c d"), (1, 2, "+1 d e")]
    assert graph.stats().transactions == 3


def test_two_calls_are_two_transactions_even_with_one_stamp(graph):
    knows = watch(graph)
    graph.apply(batch((1, 0, "+ a knows b")))
    graph.apply(batch((1, 0, "+ b knows c")))
    assert graph.stats().transactions == 2
    assert lines(knows.delta()) == ["+1 b c"]


def test_batches_larger_than_a_piece_keep_their_transactions(graph, monkeypatch):
    monkeypatch.setattr("graphtide.engine.ingest.PIECE", 3)
    knows = watch(graph)
    sizes = [1, 2, 7, 1, 1, 1, 5, 3, 3]
    rows = [(tx, tx, f"+ n{tx}x{k} knows n") for tx, size in enumerate(sizes) for k in range(size)]
    graph.apply(batch(*rows))
    found = [row.tx for row in knows.rows()]
    assert [found.count(tx) for tx in range(len(sizes))] == sizes
    assert graph.stats().transactions == len(sizes)
    assert len(knows.delta()) == sizes[-1]


@pytest.mark.parametrize("name", ["log.rdfp", "log.parquet", "log.arrow", "log.arrows"])
@pytest.mark.parametrize("as_text", [True, False])
def test_a_file_of_changes(graph, tmp_path, name, as_text):
    knows = watch(graph)
    path = in_file(tmp_path, name)
    graph.apply(str(path) if as_text else path)
    assert sorted(history(knows)) == DELTAS


def test_a_parquet_file_in_small_row_groups(graph, tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(batch(*ROWS).to_arrow(), path, row_group_size=1)
    knows = watch(graph)
    graph.apply(path)
    assert sorted(history(knows)) == DELTAS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.ttl", "@prefix : <http://example.org/> . :a :knows :b . :b :knows :c ."),
        ("data.nt", "\n".join(f"{' '.join(quad(q))} ." for q in ("a knows b", "b knows c"))),
        ("data.nq", "\n".join(f"{' '.join(quad(q))} ." for q in ("a knows b", "b knows c"))),
    ],
)
def test_plain_rdf_is_one_transaction_at_the_current_time(graph, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    insert(graph, "z likes z", time=8)
    knows = watch(graph)
    graph.apply(tmp_path / name)
    assert sorted(history(knows)) == [(8, 1, "+1 a b"), (8, 1, "+1 b c")]
    assert lines(knows.delta()) == ["+1 a b", "+1 b c"]
    graph.apply(tmp_path / name, time=9)
    assert (graph.clock, graph.stats().redundant) == (9, 2)


def test_n_quads_keep_their_graphs(graph, tmp_path):
    (tmp_path / "data.nq").write_text(f"{' '.join(quad('a knows b g'))} .\n")
    graph.apply(tmp_path / "data.nq")
    assert quad("a knows b g") in graph


def test_with_a_time_everything_is_one_transaction_then(graph):
    knows = watch(graph)
    insert(graph, "x likes y", time=7)
    graph.apply([batch(*ROWS[:3]), batch(*ROWS[3:])], time=9)
    assert sorted(history(knows)) == [(9, 1, "+1 b c"), (9, 1, "+1 c d")]
    assert graph.stats().transactions == 2


def test_numbers_go_on_after_those_of_the_data(graph):
    knows = watch(graph)
    graph.apply(batch((1, 5, "+ a knows b"), (1, 3, "+ b knows c")))
    insert(graph, "c knows d")
    assert [row.tx for row in knows.rows()] == [5, 3, 6]


# --- errors in the middle ---

GOOD = "TX .\nA {} {} {} .\nTC .\n"


def patch(*quads: str) -> str:
    return "".join(GOOD.format(*quad(text)) for text in quads)


@pytest.mark.parametrize("broken", ["A nonsense\n", "A {} {} .\n", "TX .\n", "TC .\n"])
def test_a_broken_patch_keeps_the_transactions_before_it(graph, tmp_path, broken):
    path = tmp_path / "log.rdfp"
    begun = "TX .\nA {} {} {} .\n".format(*quad("c knows d")) if broken != "TC .\n" else ""
    path.write_text(patch("a knows b", "b knows c") + begun + broken.format(*quad("a knows")))
    with pytest.raises(DataError) as caught:
        graph.apply(path)
    assert caught.value.source == str(path)
    assert {quad("a knows b"), quad("b knows c")} == {
        tuple(str(term) for term in found[:3]) for found in graph.quads()
    }
    assert graph.stats().transactions == 2


def test_a_patch_whose_transactions_go_backwards_keeps_those_before(graph, tmp_path):
    path = tmp_path / "log.rdfp"
    path.write_text(
        "H time 5 .\n" + patch("a knows b", "b knows c") + "H time 3 .\nH tx 0 .\n" + patch("x y z")
    )
    with pytest.raises(DataError, match="does not come after"):
        graph.apply(path)
    assert (len(graph), graph.clock) == (2, 5)


def test_a_patch_that_ends_inside_a_transaction_keeps_those_before(graph, tmp_path):
    path = tmp_path / "log.rdfp"
    path.write_text(patch("a knows b") + "TX .\nA {} {} {} .\n".format(*quad("b knows c")))
    with pytest.raises(DataError, match="never committed"):
        graph.apply(path)
    assert len(graph) == 1


def test_broken_plain_rdf_applies_nothing(graph, tmp_path):
    path = tmp_path / "data.nt"
    path.write_text(f"{' '.join(quad('a knows b'))} .\nnonsense\n")
    with pytest.raises(DataError, match=r"data\.nt:2:"):
        graph.apply(path)
    assert (len(graph), graph.stats().transactions) == (0, 0)


def not_a_term(time: int, tx: int) -> tuple[int, int, int, str, str, str, None]:
    return (time, tx, 1, iri("x"), iri("knows"), "<no iri>", None)


def rows_of(*rows) -> ChangeBatch:
    return ChangeBatch.of(
        row if len(row) > 3 else (row[0], row[1], 1, *quad(row[2]), None) for row in rows
    )


@pytest.mark.parametrize(
    "batches",
    [
        [[(1, 0, "a knows b"), (1, 1, "b knows c"), (1, 2, "c knows d"), not_a_term(1, 2)]],
        [[(1, 0, "a knows b")], [(1, 1, "b knows c")], [(1, 2, "c knows d"), not_a_term(1, 2)]],
        [[(1, 0, "a knows b"), (1, 1, "b knows c")], [not_a_term(1, 2), (1, 3, "c knows d")]],
        [[(1, 0, "a knows b")], [(1, 1, "b knows c"), (1, 2, "c knows d")], [not_a_term(1, 2)]],
        [[(1, 0, "a knows b"), (1, 1, "b knows c"), not_a_term(1, 2), not_a_term(1, 3)]],
    ],
    ids=["in one", "split", "begins a batch", "straddles", "two"],
)
def test_a_text_that_is_no_term_keeps_earlier_transactions_only(graph, batches):
    with pytest.raises(DataError, match="not an RDF term: '<no iri>'"):
        graph.apply([rows_of(*rows) for rows in batches])
    assert (len(graph), graph.stats().transactions) == (2, 2)
    assert quad("b knows c") in graph


def test_a_source_that_fails_keeps_what_is_surely_whole(graph):
    def source():
        yield batch((1, 0, "+ a knows b"), (1, 1, "+ b knows c"))
        raise OSError("the cable was pulled")

    with pytest.raises(OSError, match="cable"):
        graph.apply(source())
    # Transaction 1 might have gone on in the next batch.
    assert (len(graph), graph.stats().transactions) == (1, 1)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (rows_of((1, 0, "a knows b"), (2, 0, "b knows c"), not_a_term(2, 1)), "not an RDF term"),
        (rows_of((1, 0, "a knows b"), (3, 0, "b knows c"), (2, 0, "c knows d")), "backwards"),
    ],
)
def test_one_batch_is_applied_whole_or_not_at_all(graph, broken, message, monkeypatch):
    monkeypatch.setattr("graphtide.engine.ingest.PIECE", 1)
    with pytest.raises(GraphtideError, match=message):
        graph.apply(broken)
    assert (len(graph), graph.clock, graph.stats().transactions) == (0, 0, 0)


@pytest.mark.parametrize("sizes", [(4,), (1, 3), (2, 2), (3, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("strict", [False, True])
def test_of_several_batches_those_before_a_refused_transaction_are_applied(sizes, strict):
    graph = LiveGraph(strict=strict)
    third = (3, 2, "b knows c") if strict else (1, 2, "c knows d")
    rows = [(1, 0, "a knows b"), (2, 1, "b knows c"), third, (3, 3, "d knows e")]
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    with pytest.raises(GraphtideError, match="present" if strict else "backwards"):
        graph.apply(rows_of(*rows[at : at + n]) for at, n in zip(starts, sizes, strict=True))
    assert (len(graph), graph.clock, graph.stats().transactions) == (2, 2, 2)


def test_a_graph_goes_on_after_an_error(graph):
    knows = watch(graph)
    with pytest.raises(DataError):
        graph.apply([rows_of((1, 0, "a knows b"), not_a_term(1, 1))])
    commit(graph, "+ b knows c", time=2)
    assert history(knows) == [(1, 0, "+1 a b"), (2, 1, "+1 b c")]


def test_a_file_that_is_not_there_is_named(graph, tmp_path):
    with pytest.raises(GraphtideError, match=r"nowhere\.ttl"):
        graph.apply(tmp_path / "nowhere.ttl")

"""The past of a store: graphs as of then, changes from the journal, cursors, calls, retention."""

from __future__ import annotations

import time

import pytest

import graphtide as gt

KNOWS = "<ex:knows>"
PAIRS = "SELECT ?a ?c { ?a <ex:knows> ?b . ?b <ex:knows> ?c }"
CALLS = """
QUERY Known AS SELECT ?a { ?a <ex:knows> ?b }
RULE Tell ON APPEAR OF Known THEN CALL tell(?a) ; INSERT { ?a <ex:was> <ex:told> }
"""


def quads(graph):
    return sorted(" ".join(map(str, quad[:3])) for quad in graph.quads())


def step(graph, number):
    """One of a row of transactions, each at a time of its own."""
    with graph.transaction(time=10 * number) as tx:
        tx.insert(f"<ex:{number}>", KNOWS, f"<ex:{number + 1}>")
        if number % 3 == 2:
            tx.delete(f"<ex:{number - 2}>", KNOWS, f"<ex:{number - 1}>")


def history(count):
    """The graph in memory after each step: quads and answer."""
    graph, found = gt.LiveGraph(), []
    query = graph.watch(PAIRS)
    for number in range(count):
        step(graph, number)
        found.append((quads(graph), sorted(map(str, query.table(terms=True).to_pylist()))))
    return found


@pytest.fixture
def store(tmp_path):
    """Twelve steps, with a restart and a snapshot in between."""
    wanted = history(12)
    with gt.LiveGraph.open(tmp_path / "store") as graph:
        graph.watch(PAIRS, name="pairs")
        for number in range(5):
            step(graph, number)
    with gt.LiveGraph.open(tmp_path / "store") as graph:
        for number in range(5, 12):
            step(graph, number)
            if number == 8:
                graph.checkpoint()
        graph.flush()
        yield graph, wanted


def test_a_graph_as_of_a_time(store):
    graph, wanted = store
    now = quads(graph)
    for number, (there, answer) in enumerate(wanted):
        for when in (10 * number, 10 * number + 9):
            if when <= graph.clock:
                past = graph.at(time=when)
                assert quads(past) == there
                assert past.clock == when
                (query,) = past.queries
                assert sorted(map(str, query.table(terms=True).to_pylist())) == answer
                assert past.query(PAIRS).num_rows == len(answer)
    assert quads(graph) == now
    with pytest.raises(gt.GraphtideError, match="of the past"):
        past.insert("<ex:a>", KNOWS, "<ex:b>")
    with pytest.raises(gt.GraphtideError, match="the future"):
        graph.at(time=1000)
    with pytest.raises(gt.GraphtideError, match="either a time"):
        graph.at()


def test_a_graph_as_of_a_transaction(store):
    graph, wanted = store
    assert quads(graph.at(tx=0)) == []
    for number, (there, _) in enumerate(wanted):
        assert quads(graph.at(tx=number + 1)) == there
    for delta in graph.queries[0].deltas():
        assert quads(graph.at(tx=delta.seq + 1)) == wanted[delta.seq][0]


def test_a_batch_is_cut_where_it_has_to_be(tmp_path):
    rows = [(n // 2, n, 1, f"<ex:{n}>", KNOWS, "<ex:x>", None) for n in range(10)]
    with gt.LiveGraph.open(tmp_path) as graph:
        graph.apply(gt.ChangeBatch.of(rows))
        assert [len(graph.at(tx=n)) for n in range(11)] == list(range(11))
        assert [len(graph.at(time=n)) for n in range(5)] == [2, 4, 6, 8, 10]


def test_changes_come_from_the_journal(store):
    graph, _ = store
    memory = gt.LiveGraph()
    query = memory.watch(PAIRS)
    for number in range(12):
        step(memory, number)
    wanted = [(delta.time, str(delta)) for delta in query.deltas()]
    (durable,) = graph.queries
    assert len(list(durable.deltas())) < len(wanted)
    for start, end in ((0, 110), (30, 70), (45, 46), (100, 500)):
        found = [(delta.time, str(delta)) for delta in durable.changes(start, end)]
        assert found == [(when, text) for when, text in wanted if start <= when <= end]
    assert [(d.time, str(d)) for d in query.changes(30, 70)] == [
        (when, text) for when, text in wanted if 30 <= when <= 70
    ]


def test_a_cursor_goes_on_where_it_was_acknowledged(tmp_path):
    memory = gt.LiveGraph()
    query = memory.watch(PAIRS)
    seen, number = [], 0
    for turn in range(4):
        with gt.LiveGraph.open(tmp_path, durability="transaction") as graph:
            if not turn:
                graph.watch(PAIRS, name="pairs", history=3)
            cursor = graph.queries[0].cursor("mailer")
            for _ in range(4):
                step(graph, number)
                step(memory, number)
                number += 1
            found = [(delta.seq, str(delta)) for delta in cursor]
            again = [(delta.seq, str(delta)) for delta in graph.queries[0].cursor("mailer")]
            assert again == found
            if turn != 1:  # what is not acknowledged comes again
                seen += found
                cursor.ack()
                assert list(cursor) == []
            elif found:
                seen.append(found[0])
                cursor.ack(found[0][0])
    assert seen == [(delta.seq, str(delta)) for delta in query.deltas()]


def test_a_new_cursor_begins_with_the_first_answer(tmp_path):
    with gt.LiveGraph.open(tmp_path) as graph:
        step(graph, 0)
        step(graph, 1)
        query = graph.watch(PAIRS, name="pairs")
        first = [str(delta) for delta in query.cursor("late")]
        assert first == [str(query.delta())]
    with gt.LiveGraph.open(tmp_path) as graph:
        assert [str(delta) for delta in graph.queries[0].cursor("late")] == first


def test_cursors_need_a_store():
    query = gt.LiveGraph().watch(PAIRS)
    with pytest.raises(gt.GraphtideError, match="in memory only"):
        query.cursor("mailer")


def test_finished_calls_are_not_made_again(tmp_path):
    called = []

    def tell(who, firing_id):
        called.append((str(who), firing_id))

    graph = gt.LiveGraph.open(tmp_path, durability="transaction", functions={"tell": tell})
    graph.run(gt.Program.parse(CALLS), functions={"tell": tell})
    step(graph, 0)
    step(graph, 1)
    assert [who for who, _ in called] == ["<ex:0>", "<ex:1>"]
    assert len({firing for _, firing in called}) == 2
    before = quads(graph)
    graph.store.store.abandon()  # as a crash does: nothing is written any more
    with gt.LiveGraph.open(tmp_path, functions={"tell": tell}) as graph:
        assert quads(graph) == before
        assert len(called) == 2
        assert graph.programs[0].fired == 2
        step(graph, 2)
        assert len(called) == 3


def test_an_unfinished_call_is_made_again_with_its_id(tmp_path):
    called = []

    class Crash(BaseException):
        pass

    def crash(who, firing_id):
        called.append(firing_id)
        raise Crash

    graph = gt.LiveGraph.open(tmp_path, durability="transaction")
    graph.run(gt.Program.parse(CALLS), functions={"tell": crash})
    with pytest.raises(Crash):
        step(graph, 0)
    graph.store.store.abandon()
    ids = []
    functions = {"tell": lambda who, firing_id: ids.append(firing_id)}
    with gt.LiveGraph.open(tmp_path, functions=functions) as graph:
        assert ids == called
        assert ("<ex:0>", "<ex:was>", "<ex:told>") in graph


def test_a_call_that_failed_fails_again_in_a_replay(tmp_path):
    def tell(who):
        raise ValueError("no network")

    with gt.LiveGraph.open(tmp_path) as graph:
        program = gt.Program.parse(CALLS)
        graph.run(program, functions={"tell": tell}, on_error="skip", name="mail")
        step(graph, 0)
        assert ("<ex:0>", "<ex:was>", "<ex:told>") not in graph
        now = quads(graph)
    for path in tmp_path.glob("snapshot-*"):
        path.unlink()
    with gt.LiveGraph.open(tmp_path, functions={"tell": lambda who: None}) as graph:
        assert quads(graph) == now
        assert len(graph.programs[0].problems) == 1
        assert graph.programs[0].name == "mail"
    with pytest.raises(gt.GraphtideError, match="calls tell, which was not given"):
        gt.LiveGraph.open(tmp_path)


def test_what_is_older_than_retained_is_folded_into_a_snapshot(tmp_path):
    with gt.LiveGraph.open(tmp_path, retain="0.2s") as graph:
        graph.watch(PAIRS, name="pairs")
        for number in range(6):
            step(graph, number)
            if number in (2, 4):
                assert graph.checkpoint()
                time.sleep(0.3)
        assert graph.checkpoint()
        wanted = history(6)
        assert quads(graph) == wanted[5][0]
        assert quads(graph.at(time=40)) == wanted[4][0]
        with pytest.raises(gt.GraphtideError, match="dropped by `retain`"):
            graph.at(time=10)
    with gt.LiveGraph.open(tmp_path) as graph:
        assert quads(graph) == wanted[5][0]


def test_a_cursor_holds_back_what_is_dropped(tmp_path):
    with gt.LiveGraph.open(tmp_path, retain="0s") as graph:
        query = graph.watch(PAIRS, name="pairs")
        cursor = query.cursor("slow")
        for number in range(6):
            step(graph, number)
            graph.checkpoint()
        wanted = [str(delta) for delta in query.deltas()]
    with gt.LiveGraph.open(tmp_path, retain="0s") as graph:
        cursor = graph.queries[0].cursor("slow")
        assert [str(delta) for delta in cursor] == wanted
        cursor.ack()
        graph.insert("<ex:x>", KNOWS, "<ex:y>")
        graph.checkpoint()
        assert graph.store.store.journal.first() > 1


def test_a_cursor_of_a_closed_query_holds_nothing_back(tmp_path):
    with gt.LiveGraph.open(tmp_path, retain="0s") as graph:
        query = graph.watch(PAIRS, name="pairs")
        query.cursor("slow")
        for number in range(3):
            step(graph, number)
        graph.checkpoint()
        journal = graph.store.store.journal
        assert journal.cursors()
        assert journal.first() == 1
        query.close()
        graph.checkpoint()
        assert not journal.cursors()
        assert journal.first() > 1


def test_rows_of_old_transactions_can_be_explained(tmp_path):
    """What an explanation says right after a transaction, it says later, too, from the journal."""
    lonely = "SELECT ?a { ?a <ex:knows> ?b FILTER NOT EXISTS { ?b <ex:knows> ?c } }"
    memory = gt.LiveGraph()
    watched = [memory.watch(PAIRS, name="pairs"), memory.watch(lonely, name="lonely")]
    wanted = []
    with gt.LiveGraph.open(tmp_path) as graph:
        queries = [graph.watch(PAIRS, name="pairs"), graph.watch(lonely, name="lonely")]
        for number in range(6):
            step(graph, number)
            step(memory, number)
            wanted += [str(row.why()) for query in watched for row in query.delta()]
            if number == 2:
                graph.checkpoint()
        rows = [row for query in queries for delta in query.deltas() for row in delta]
        assert sorted(str(row.why()) for row in rows) == sorted(wanted)
        read = [row for query in queries for delta in query.cursor("x") for row in delta]
        assert sorted(str(row.why()) for row in read) == sorted(wanted)
    assert any("because of" in text for text in wanted)
    with gt.LiveGraph.open(tmp_path) as graph:
        read = [row for query in graph.queries for delta in query.changes(0, 99) for row in delta]
        assert sorted(str(row.why()) for row in read) == sorted(wanted)


def test_rows_of_earlier_closes_are_explained_as_of_then(tmp_path):
    """DSTREAM puts out what left with a close; as of that close, `why` knows of it."""
    text = """
    REGISTER DSTREAM <ex:out> AS
    SELECT ?x FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE PT10S STEP PT10S]
    WHERE { WINDOW <ex:w> { ?x <ex:at> ?y } }
    """
    with gt.LiveGraph.open(tmp_path) as graph:
        query = graph.watch(text, name="left")
        for number, name in enumerate("abc"):
            triple = (f"<ex:{name}>", "<ex:at>", "<ex:here>")
            graph.stream("<ex:s>").push([triple], time=10 * number + 5)
        graph.advance(60)
        found = {}
        for result in query.results():
            (then,) = graph.at(time=result.time).queries
            for row in result:
                found[str(row["x"])] = str(then.why(row))
                assert f"left left at {result.time}" in found[str(row["x"])]
        assert sorted(found) == ["<ex:a>", "<ex:b>", "<ex:c>"]
        assert all(f":ex:{name} :ex:at :ex:here" in found[f"<ex:{name}>"] for name in "abc")
        with pytest.raises(gt.GraphtideError, match="is not in the answer"):
            query.why({"x": "<ex:a>"})


@pytest.mark.parametrize("restarts", [False, True])
def test_a_cursor_has_the_answer_on_an_empty_store(tmp_path, restarts):
    """An aggregate has a row before there is a quad: its delta is the first, with the seq -1."""
    text = "SELECT (COUNT(*) AS ?n) { ?a <ex:knows> ?b }"
    graph = gt.LiveGraph.open(tmp_path)
    query = graph.watch(text, name="count")
    cursor = query.cursor("mailer")
    graph.insert("<ex:a>", KNOWS, "<ex:b>")
    if restarts:
        graph.close()
        graph = gt.LiveGraph.open(tmp_path)
        cursor = graph.queries[0].cursor("mailer")

    def seen():
        found = graph.queries[0].cursor("mailer")
        return [(d.seq, sorted((row.diff, row.row["n"].value) for row in d)) for d in found]

    wanted = [(-1, [(1, "0")]), (0, [(-1, "0"), (1, "1")])]
    assert seen() == wanted
    cursor.ack(-1)
    assert seen() == wanted[1:]
    cursor.ack(0)
    assert seen() == []
    graph.close()

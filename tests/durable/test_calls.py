"""Functions of CALL that change a durable graph: what they did is taken, they are not called again.

The reference is the same program with the same function over the same inputs in memory.
"""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing, suppress
from functools import partial

import pytest

import graphtide as gt
from graphtide.durable.tables import FORMAT
from graphtide.durable.verify import verify

PROGRAM = """
PREFIX : <ex:>
QUERY Known AS SELECT ?a ?b { ?a :knows ?b }
QUERY Told AS SELECT ?a ?b { ?a :told ?b . ?b :knows ?c }
EVENT Rang(?x) AS { ?x :rings :now }
EVENT Heard(?a) ON APPEAR OF Told(?a, ?b)
PATTERN Twice(?x) AS Rang(?x) -> Rang(?x)
RULE Tell ON APPEAR OF Known THEN CALL tell(?a, ?b) ; INSERT { ?a :met ?b }
RULE Gone ON DISAPPEAR OF Known THEN CALL tell(?a, ?b)
RULE Hear WHEN EVENT h = Heard(?a) THEN CALL hear(?a) ; INSERT { ?a :heard :it }
RULE Ring WHEN EVENT r = Rang(?x) THEN INSERT { ?x :rang :once }
RULE Again ON Twice(?x) THEN CALL hear(?x)
"""
TELL = """
QUERY Known AS SELECT ?a { ?a <ex:knows> ?b }
RULE Tell ON APPEAR OF Known THEN CALL tell(?a)
"""
STREAM = "<ex:calls>"
CALL = ("<ex:a>", "<ex:calls>", "<ex:you>")
WINDOW = """
SELECT ?x FROM NAMED WINDOW <ex:w> ON <ex:calls> [RANGE 20 STEP 10]
WHERE { WINDOW <ex:w> { ?x <ex:calls> <ex:you> } }
"""


class Caller:
    """The functions of the program: they insert, delete, push and publish, by what they are given.

    They also depend on how often they were called, so that a second call would do something else.
    `after` is called at the end of each.
    """

    def __init__(self, after=lambda: None):
        self.calls = []
        self._after = after

    @property
    def functions(self):
        return {"tell": self.tell, "hear": self.hear}

    def tell(self, a, b, *, graph, firing_id):
        count = len(self.calls) + 1
        graph.insert(a, "<ex:told>", b)
        kind = (int(str(b).strip("<>")[3:]) + count) % 5
        if kind == 0:
            with graph.transaction() as tx:
                tx.delete(b, "<ex:told>", a)
                tx.insert(b, "<ex:count>", count)
        elif kind == 1:
            graph.publish([(b, "<ex:rings>", "<ex:now>")])
        elif kind == 2:
            graph.stream(STREAM).push([(a, "<ex:calls>", "<ex:you>")], time=graph.clock)
        elif kind == 3:
            graph.insert(a, "<ex:last>", count)
        self._after()
        self.calls.append(firing_id)
        if kind == 3:
            raise ValueError(f"call {count} failed")

    def hear(self, x, *, graph, firing_id):
        graph.insert(x, "<ex:hears>", len(self.calls) + 1)
        self._after()
        self.calls.append(firing_id)


def set_up(graph, caller):
    graph.stream(STREAM)
    graph.watch(WINDOW, name="window")
    graph.run(
        gt.Program.parse(PROGRAM), functions=caller.functions, on_error="skip", retries=1, name="p"
    )


def inputs(chance, count):
    """Random inputs, as functions of a graph."""

    def change(time):
        quad = (f"<ex:{chance.randrange(4)}>", "<ex:knows>", f"<ex:{chance.randrange(4)}>")
        remove = chance.random() < 0.4
        return lambda g: (g.delete if remove else g.insert)(*quad, time=time)

    def several(time):
        parts = [change(None) for _ in range(3)]

        def apply(graph):
            graph.advance(time)
            with graph.transaction() as tx:
                for part in parts:
                    part(_Transaction(tx))

        return apply

    found, time = [], 0
    for _ in range(count):
        time += chance.choice([0, 0, 1, 7])
        x = chance.randrange(4)
        kinds = [change(time), change(time), several(time)]
        kinds.append(lambda g, t=time: g.advance(t))
        kinds.append(
            lambda g, t=time, x=x: g.publish([(f"<ex:{x}>", "<ex:rings>", "<ex:now>")], time=t)
        )
        found.append(chance.choice(kinds))
    return found


class _Transaction:
    """A transaction that takes changes with the arguments of a graph's."""

    def __init__(self, tx):
        self._tx = tx

    def insert(self, *quad, time):
        self._tx.insert(*quad)

    def delete(self, *quad, time):
        self._tx.delete(*quad)


def state_of(graph):
    program = next(each for each in graph.programs if each.name == "p")
    standing = [query for query in graph.queries if query.windows is None]
    return {
        "quads": sorted(map(str, graph.quads())),
        "clock": graph.clock,
        "transactions": graph.transactions,
        "answers": {q.name: sorted(map(str, q.table(terms=True).to_pylist())) for q in standing},
        "fired": program.fired,
        "matched": program.matched("Twice"),
    }  # fmt: skip


def in_memory(steps):
    """The state after each input, and the firings, of a graph that is never interrupted."""
    caller, graph = Caller(), gt.LiveGraph()
    set_up(graph, caller)
    found = []
    for step in steps:
        step(graph)
        found.append(state_of(graph))
    return found, caller, graph


def drop_snapshots(folder):
    """So that everything is replayed from the journal."""
    for path in folder.glob("snapshot-*"):
        path.unlink()


def never(*_, **__):
    raise AssertionError("it was called again")


@pytest.mark.parametrize("mode", ["transaction", "batch", "none"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.slow
def test_a_replay_takes_what_functions_did(tmp_path, mode, seed):
    steps = inputs(random.Random(seed), 25)
    wanted, reference, memory = in_memory(steps)
    assert reference.calls
    caller = Caller()
    with gt.LiveGraph.open(tmp_path, durability=mode) as graph:
        set_up(graph, caller)
        for step, expected in zip(steps, wanted, strict=True):
            step(graph)
            assert state_of(graph) == expected
        assert caller.calls == reference.calls
        results = [str(r) for r in graph.queries[0].results()]
        assert results == [str(r) for r in memory.queries[0].results()]
        for number in {w["transactions"] for w in wanted}:
            last = next(w for w in reversed(wanted) if w["transactions"] == number)
            past = graph.at(tx=number)
            assert sorted(map(str, past.quads())) == last["quads"]
    drop_snapshots(tmp_path)
    functions = {"tell": never, "hear": never}
    with gt.LiveGraph.open(tmp_path, functions=functions) as graph:
        assert state_of(graph) == wanted[-1]
        firings = [str(f) for f in graph.programs[0].firings()]
        assert firings == [str(f) for f in memory.programs[0].firings()]
        assert [str(r) for r in graph.queries[0].results()] == results


@pytest.mark.parametrize("seed", range(4))
def test_interrupted_anywhere_it_ends_as_if_it_had_not_been(tmp_path, seed):
    """Stopped between inputs, and inside functions, as by a crash; functions see one count."""
    chance = random.Random(100 + seed)
    steps = inputs(chance, 25)
    wanted, reference, _ = in_memory(steps)

    class Crash(BaseException):
        pass

    def crash():
        if chance.random() < 0.15:  # the changes are made, and nobody knows of them yet
            raise Crash

    caller = Caller(crash)
    open_store = partial(gt.LiveGraph.open, tmp_path, durability="transaction")
    graph = open_store(functions=caller.functions)
    set_up(graph, caller)
    crashes = 0
    for step, expected in zip(steps, wanted, strict=True):
        try:
            step(graph)
            crashed = chance.random() < 0.1
        except Crash:
            crashed = True
        while crashed:
            crashes += 1
            graph.store.store.abandon()  # as a crash does: nothing is written any more
            with suppress(Crash):
                graph = open_store(functions=caller.functions)
                crashed = False
        assert state_of(graph) == expected
    assert caller.calls == reference.calls
    assert crashes > 2
    graph.close()


@pytest.mark.parametrize("mode", ["transaction", "batch"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_a_reader_follows_what_functions_do(tmp_path, mode, seed):
    steps = inputs(random.Random(200 + seed), 20)
    wanted, _, _ = in_memory(steps)
    with gt.LiveGraph.open(tmp_path, durability=mode) as graph:
        readers, seen = [], []
        set_up(graph, Caller(lambda: seen.append(readers[0].follow())))
        graph.flush()
        with gt.LiveGraph.open(tmp_path, read_only=True) as reader:
            readers.append(reader)
            for step, expected in zip(steps, wanted, strict=True):
                step(graph)  # which lets the reader look while functions run
                graph.flush()
                end = time.monotonic() + 20
                while state_of(reader) != expected and time.monotonic() < end:
                    reader.follow()
                assert state_of(reader) == expected
        assert seen


def test_one_that_fails_after_a_change_has_made_it(tmp_path):
    def tell(who, *, graph):
        graph.insert(who, "<ex:was>", "<ex:called>")
        raise ValueError("no network")

    with gt.LiveGraph.open(tmp_path) as graph:
        graph.run(gt.Program.parse(TELL), functions={"tell": tell}, on_error="skip")
        graph.insert("<ex:a>", "<ex:knows>", "<ex:b>")
        now = sorted(map(str, graph.quads()))
        assert len(now) == 2
    drop_snapshots(tmp_path)
    with gt.LiveGraph.open(tmp_path, functions={"tell": never}) as graph:
        assert sorted(map(str, graph.quads())) == now
        assert len(graph.programs[0].problems) == 1


def test_what_a_function_registers_is_there_again(tmp_path):
    def tell(who, *, graph):
        graph.watch(f"SELECT ?b {{ {who} <ex:knows> ?b }}", name=f"of {who}")

    with gt.LiveGraph.open(tmp_path) as graph:
        graph.run(gt.Program.parse(TELL), functions={"tell": tell})
        graph.insert("<ex:a>", "<ex:knows>", "<ex:b>")
        graph.insert("<ex:b>", "<ex:knows>", "<ex:c>")
    for functions in ({"tell": never}, {"tell": never}):  # from the snapshot, from the journal
        with gt.LiveGraph.open(tmp_path, functions=functions) as graph:
            known = {query.name: query for query in graph.queries}
            assert [known[f"of <ex:{x}>"].count() for x in "ab"] == [1, 1]
        drop_snapshots(tmp_path)


def test_what_callbacks_write_is_input_of_a_durable_graph(tmp_path):
    """They run after rules and windows; a replay has no callbacks, and the same quads."""
    with gt.LiveGraph.open(tmp_path) as graph:
        program = graph.run(gt.Program.parse(TELL), functions={"tell": lambda _: None})
        window = graph.watch(WINDOW, name="calls")
        program.queries["Known"].on_delta(
            lambda _: graph.insert("<ex:x>", "<ex:was>", f'"{graph.clock} {len(graph)}"')
        )
        window.on_result(lambda each: graph.insert("<ex:w>", "<ex:closed>", each.time))
        window.on_result(lambda each: graph.stream(STREAM).push([CALL], time=graph.clock + 3))
        graph.insert("<ex:a>", "<ex:knows>", "<ex:b>", time=5)
        graph.stream(STREAM).push_many([([CALL], 6), ([CALL], 31)])
        graph.insert("<ex:b>", "<ex:knows>", "<ex:c>", time=52)
        now, results = sorted(map(str, graph.quads())), list(map(str, window.results()))
        assert len(now) == 8 and any("value=52 5" in quad for quad in now)
    with gt.LiveGraph.open(tmp_path, functions={"tell": never}) as graph:
        assert sorted(map(str, graph.quads())) == now
    drop_snapshots(tmp_path)
    with gt.LiveGraph.open(tmp_path, functions={"tell": never}) as graph:
        assert sorted(map(str, graph.quads())) == now
        (again,) = [query for query in graph.queries if query.name == "calls"]
        assert list(map(str, again.results())) == results


def test_a_store_of_an_earlier_format_is_refused(tmp_path):
    with gt.LiveGraph.open(tmp_path) as graph:
        graph.insert("<ex:a>", "<ex:knows>", "<ex:b>")
    with closing(sqlite3.connect(tmp_path / "journal.db")) as database, database:
        database.execute(f"UPDATE meta SET value = '{FORMAT - 1}' WHERE key = 'format'")
    for read_only in (False, True):
        with pytest.raises(gt.GraphtideError, match=f"an earlier version.*format {FORMAT - 1}"):
            gt.LiveGraph.open(tmp_path, read_only=read_only)


def test_damage_in_what_a_call_has_caused_is_found(tmp_path):
    def tell(who, *, graph):
        graph.insert(who, "<ex:was>", "<ex:called>")

    with gt.LiveGraph.open(tmp_path) as graph:
        graph.run(gt.Program.parse(TELL), functions={"tell": tell})
        graph.insert("<ex:a>", "<ex:knows>", "<ex:b>")
    drop_snapshots(tmp_path)
    assert not any(
        "a call of row" in problem for problem in verify(tmp_path, gt.LiveGraph).problems
    )
    with closing(sqlite3.connect(tmp_path / "journal.db")) as database, database:
        (caused,) = database.execute("SELECT caused FROM calls").fetchone()
        flipped = caused[:-3] + bytes([caused[-3] ^ 1]) + caused[-2:]
        database.execute("UPDATE calls SET caused = ?", (flipped,))
    with pytest.raises(gt.GraphtideError, match="checksum"):
        gt.LiveGraph.open(tmp_path, functions={"tell": never})
    report = verify(tmp_path, gt.LiveGraph)
    assert any("a call of row" in problem for problem in report.problems)
    assert report.good < report.rows

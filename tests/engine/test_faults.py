"""A fault anywhere inside a call: all of its changes have happened or none, and the next call goes on.

Each test fails at the first call of a function of the package, then at the second, and so on.
"""

from __future__ import annotations

from collections import Counter

import pytest
from engine.injection import InjectedFault, fault_at, places
from engine.small_graph import PREFIX, batch, commit, insert, line, quad
from pyoxigraph import Quad, Store

from graphtide import LiveGraph, Program

QUERIES = {
    "join": ("SELECT ?a ?c { ?a :knows ?b . ?b :knows ?c }", "search"),
    "memories": ("SELECT ?a ?c { ?a :knows ?b . ?b :likes ?c }", "rete"),
    "decomposed": ("SELECT ?a ?b { ?a :knows ?b . ?a :likes ?c }", "decomposed"),
    "groups": ("SELECT ?a (COUNT(?b) AS ?n) { ?a :knows ?b } GROUP BY ?a", None),
    "optional": ("SELECT ?a ?c { ?a :knows ?b OPTIONAL { ?b :likes ?c } }", None),
    "absent": ("SELECT ?a ?b { ?a :knows ?b FILTER NOT EXISTS { ?b :likes ?a } }", None),
    "reach": ("SELECT ?b { :a :knows+ ?b }", None),
    "first": ("SELECT ?a ?b { ?a :likes ?b } ORDER BY ?a ?b LIMIT 2", None),
}

WINDOW = """REGISTER RSTREAM :out AS SELECT ?a ?c
    FROM NAMED WINDOW :w ON :s [RANGE 4 STEP 2] WHERE { WINDOW :w { ?a :at ?b } ?b :knows ?c }"""


class World:
    """A graph with queries of all kinds, and the first half of the changes."""

    def __init__(self):
        self.graph = LiveGraph()
        self.queries = {
            name: self.graph.watch(PREFIX + text, strategy=strategy, name=name)
            for name, (text, strategy) in QUERIES.items()
        }
        self.windows = self.graph.watch(PREFIX + WINDOW, name="window")
        self.graph.apply(
            batch(
                (0, 0, "+ a knows b"),
                (0, 0, "+ b likes a"),
                (0, 1, "+ b knows c"),
                (1, 0, "+ c likes b"),
                (1, 1, "+ c knows a"),
                (1, 1, "- b likes a"),
            )
        )
        self.graph.stream(quad("s")[0]).push([quad("x at a")], time=1)
        self.graph.stream(quad("s")[0]).push([quad("y at b"), quad("z at c")], time=3)
        self.state()

    def state(self):
        """All that can be seen of it, in order."""
        graph = self.graph
        seen = {
            "quads": sorted(" ".join(map(str, each[:3])) for each in graph.quads()),
            "size": len(graph),
            "clock": graph.clock,
            "results": [str(result) for result in self.windows.results()],
        }
        for name, query in self.queries.items():
            deltas = [(delta.time, sorted(map(line, delta))) for delta in query.deltas()]
            total = Counter()
            for row in query.rows():
                total[tuple(map(str, row.row.values()))] += row.diff
            table = query.table(terms=True)
            rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
            answer = Counter(tuple(map(str, row)) for row in rows)
            assert +total == answer, f"{name}: deltas add up to another answer"
            assert query.count() == answer.total(), name
            seen[name] = deltas
        return seen

    def expect_oracle(self):
        """The answers are those of pyoxigraph on the quads."""
        store = Store()
        store.extend(Quad(s, p, o) for s, p, o, _ in self.graph.quads())
        for name, (text, _) in QUERIES.items():
            if name != "first":
                found = store.query(PREFIX + text)
                expected = Counter(
                    tuple("None" if term is None else str(term) for term in row) for row in found
                )
                table = self.queries[name].table(terms=True)
                rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
                assert Counter(tuple(map(str, row)) for row in rows) == expected, name


def buffered(world):
    """Writes that wait in the buffer, until an answer is read."""
    world.queries["join"].count()


def applied(world):
    world.graph.apply(
        batch(
            (5, 0, "+ d knows a"),
            (5, 0, "- a knows b"),
            (5, 1, "+ a likes d"),
            (6, 0, "+ c likes a"),
            (6, 0, "- c knows a"),
        )
    )


def committed(world):
    commit(world.graph, "+ a knows d", "- b knows c", "+ d likes d", time=5)


def pushed(world):
    """It closes windows."""
    world.graph.stream(quad("s")[0]).push([quad("u at c")], time=7)


def advanced(world):
    """It closes windows as well."""
    world.graph.advance(9)


STEPS = [applied, committed, pushed, advanced]


def after(world):
    """Later changes, which everything takes in as if nothing had happened."""
    commit(world.graph, "+ e knows a", "- b knows c", time=12)
    insert(world.graph, "a likes e")
    world.graph.stream(quad("s")[0]).push([quad("v at a")], time=13)
    world.graph.advance(20)


def check_step(step, most):
    """All or nothing, and the later changes come on top of it."""
    untouched, through = World(), World()
    with fault_at(0) as counted:
        step(through)
    before, done = untouched.state(), through.state()
    after(untouched), after(through)
    endings = {"nothing": untouched.state(), "all": through.state()}
    assert counted.calls > 10
    for number in places(counted.calls, most):
        world = World()
        with pytest.raises(InjectedFault) as raised, fault_at(number):
            step(world)
        state = world.state()
        assert state in (before, done), raised.value
        happened = "nothing" if state == before else "all"
        world.expect_oracle()
        after(world)
        assert world.state() == endings[happened], raised.value
        world.expect_oracle()


@pytest.mark.parametrize("step", STEPS)
def test_all_or_nothing(step):
    check_step(step, 25)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_all_or_nothing_at_every_call(step):
    check_step(step, None)


def check_buffered(most):
    def written():
        world = World()
        insert(world.graph, "d knows a", "a likes d")
        commit(world.graph, "- c knows a", "+ c likes a", time=5)
        return world

    through = written()
    with fault_at(0) as counted:
        buffered(through)
    expected = through.state()
    after(through)
    ending = through.state()
    assert counted.calls > 10
    for number in places(counted.calls, most):
        world = written()
        with pytest.raises(InjectedFault) as raised, fault_at(number):
            buffered(world)
        assert world.state() == expected, raised.value
        world.expect_oracle()
        after(world)
        assert world.state() == ending, raised.value


def test_writes_that_returned_are_not_lost():
    """A fault while an answer is read leaves them in the buffer, or applied."""
    check_buffered(40)


@pytest.mark.slow
def test_writes_that_returned_are_not_lost_at_any_call():
    check_buffered(None)


# --- callbacks and programs ---

PROGRAM = """
QUERY Pairs AS SELECT ?a ?c { ?a :knows ?b . ?b :knows ?c }
EVENT Met(?a) AS { ?a :meets ?b }
EVENT Paired(?a) ON APPEAR OF Pairs(?a)
PATTERN Twice(?a) AS Met(?a){2} WITHIN 9
RULE Like WHEN FACT { ?a :knows ?b } EVENT m = Met(?a) THEN INSERT { ?a :likes ?b }
RULE Note ON Paired(?a) THEN INSERT { ?a :is :paired }
RULE Often ON Twice(?a) THEN INSERT { ?a :is :sociable }
"""


def check_program(most):
    """Queries agree with the graph, and the rules with its facts, wherever the fault came."""

    def start():
        graph = LiveGraph()
        program = graph.run(Program.parse(PREFIX + PROGRAM))
        watched = graph.watch(PREFIX + "SELECT ?a ?c { ?a :knows ?b . ?b :likes ?c }")
        heard = []
        watched.on_delta(lambda delta: heard.extend(map(line, delta)))
        insert(graph, "a knows b", time=1)
        graph.publish([quad("a meets c")], time=2)
        return graph, program, watched

    def step(graph):
        commit(graph, "+ b knows c", "+ b knows d", time=3)
        graph.publish([quad("b meets a")], time=3)

    graph, program, _ = start()
    with fault_at(0) as counted:
        step(graph)
    assert [f.rule for f in program.firings()] == ["Like", "Note", "Like", "Like"]
    for number in places(counted.calls, most):
        graph, program, watched = start()
        with pytest.raises(InjectedFault) as raised, fault_at(number):
            step(graph)
        expect_consistent(graph, [watched, *program.queries.values()], raised.value)
        fired = program.fired
        insert(graph, "e knows f", time=4)
        graph.publish([quad("e meets a"), quad("a meets e")], time=4)
        rules = [(f.rule, str(f.values["a"])) for f in list(program.firings())[fired:]]
        known = [("Like", quad("a")[0]), ("Like", quad("e")[0]), ("Often", quad("a")[0])]
        assert sorted(rules) == known, raised.value
        expect_consistent(graph, [watched, *program.queries.values()], raised.value)


def expect_consistent(graph, queries, where):
    store = Store()
    store.extend(Quad(s, p, o) for s, p, o, _ in graph.quads())
    assert len(store) == len(graph), where
    for query in queries:
        total = Counter()
        for row in query.rows():
            total[tuple(map(str, row.row.values()))] += row.diff
        expected = Counter(tuple(map(str, row)) for row in store.query(query.text))
        assert +total == expected, (where, query.name)
        assert query.count() == expected.total(), (where, query.name)


def test_a_program_goes_on():
    check_program(60)


@pytest.mark.slow
def test_a_program_goes_on_after_any_call():
    check_program(None)

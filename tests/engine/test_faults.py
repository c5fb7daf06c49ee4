"""A fault anywhere inside a call: all of its changes have happened or none; the next call goes on.

Each test fails at the first call of a function of the package, then at the second, and so on.
"""

from __future__ import annotations

from collections import Counter

import pytest
from engine.injection import InjectedFault, after_fault, fault_at, places
from engine.small_graph import PREFIX, batch, commit, insert, line, quad
from pyoxigraph import Quad, Store

from graphtide import Limits, LiveGraph, Program
from graphtide.errors import LimitError

QUERIES = {
    "join": ("SELECT ?a ?c { ?a :knows ?b . ?b :knows ?c }", "search"),
    "memories": ("SELECT ?a ?c { ?a :knows ?b . ?b :likes ?c }", "rete"),
    "decomposed": ("SELECT ?a ?b { ?a :knows ?b . ?a :likes ?c }", "decomposed"),
    "counting": (
        "SELECT ?a (COUNT(*) AS ?n) { ?a :knows ?b . ?b :likes ?c } GROUP BY ?a",
        "counting",
    ),
    "groups": ("SELECT ?a (COUNT(?b) AS ?n) { ?a :knows ?b } GROUP BY ?a", None),
    "optional": ("SELECT ?a ?c { ?a :knows ?b OPTIONAL { ?b :likes ?c } }", None),
    "absent": ("SELECT ?a ?b { ?a :knows ?b FILTER NOT EXISTS { ?b :likes ?a } }", None),
    "reach": ("SELECT ?b { :a :knows+ ?b }", None),
    "first": ("SELECT ?a ?b { ?a :likes ?b } ORDER BY ?a ?b LIMIT 2", None),
}

WINDOW = """REGISTER RSTREAM :out AS SELECT ?a ?c
    FROM NAMED WINDOW :w ON :s [RANGE 4 STEP 2] WHERE { WINDOW :w { ?a :at ?b } ?b :knows ?c }"""


class World:
    """A graph with queries of all kinds, perhaps over windows, and some changes."""

    def __init__(self, *, windows):
        self.graph = LiveGraph()
        self.queries = {
            name: self.graph.watch(PREFIX + text, strategy=strategy, name=name)
            for name, (text, strategy) in QUERIES.items()
        }
        self.windows = self.graph.watch(PREFIX + WINDOW, name="window") if windows else None
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
        if windows:
            self.push(1, "x at a")
            self.push(3, "y at b", "z at c")
        self.state()

    def push(self, time, *texts):
        self.graph.stream(quad("s")[0]).push(list(map(quad, texts)), time=time)

    def state(self):
        """All that can be seen of it, in order."""
        graph = self.graph
        seen = {
            "quads": sorted(" ".join(map(str, each[:3])) for each in graph.quads()),
            "size": len(graph),
            "results": [str(result) for result in self.windows.results()] if self.windows else [],
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


def ending(world):
    """Later changes, which everything takes in as if nothing had happened; and the state then."""
    commit(world.graph, "+ e knows a", "- b knows c", time=12)
    insert(world.graph, "a likes e")
    if world.windows:
        world.push(13, "v at a")
    world.graph.advance(20)
    world.expect_oracle()
    return world.state(), world.graph.clock


BATCH = [
    (5, 0, "+ d knows a"),
    (5, 0, "- a knows b"),
    (5, 1, "+ a likes d"),
    (6, 0, "+ c likes a"),
    (6, 0, "- c knows a"),
]


def apply(*rows):
    return lambda world: world.graph.apply(batch(*rows))


def advance(to):
    return lambda world: world.graph.advance(to)


def commit_three(world):
    commit(world.graph, "+ a knows d", "- b knows c", "+ d likes d", time=5)


def push_one(world):
    world.push(7, "u at c")


STEPS = {
    "a batch": (False, apply(*BATCH), []),
    "a transaction": (False, commit_three, []),
    "a batch, closing windows": (
        True,
        apply(*BATCH),
        [advance(4), apply(*BATCH[:2]), apply(BATCH[2]), advance(6)],
    ),
    "a transaction, closing windows": (True, commit_three, [advance(4)]),
    "an event, closing windows": (True, push_one, [advance(4), advance(6)]),
    "an advance, closing windows": (True, advance(9), [advance(4), advance(6), advance(8)]),
}
"""What fails, in a world with windows or without. It is one transaction or, where windows close in
between, the parts that it consists of, and then the rest: a fault may come between those."""


def prefixes(windows, step, parts):
    """The states in which a fault may leave a world, and how each of them ends."""
    found = []
    for many in range(len(parts) + 1):
        world = World(windows=windows)
        for part in parts[:many]:
            part(world)
        found.append((world.state(), ending(world)))
    world = World(windows=windows)
    step(world)
    return [*found, (world.state(), ending(world))]


def check_step(name, most):
    """All or nothing, and the later changes come on top of it."""
    windows, step, parts = STEPS[name]
    expected = prefixes(windows, step, parts)
    through = World(windows=windows)
    with fault_at(0) as counted:
        step(through)
    assert through.state() == expected[-1][0]
    assert counted.calls > 10
    for number in places(counted.calls, most):
        world = World(windows=windows)
        with pytest.raises(InjectedFault) as raised, fault_at(number):
            step(world)
        with after_fault(raised.value):
            state = world.state()
            reached = [at for at, (prefix, _) in enumerate(expected) if prefix == state]
            assert reached, "half done"
            world.expect_oracle()
            ended = ending(world)
            # What was begun may be completed by the next call, but not undone.
            assert ended in [end for _, end in expected[reached[0] :]]


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_all_or_nothing(name):
    check_step(name, 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_all_or_nothing_at_every_call(name):
    check_step(name, None)


def check_buffered(most):
    def written():
        world = World(windows=False)
        insert(world.graph, "d knows a", "a likes d")
        commit(world.graph, "- c knows a", "+ c likes a", time=5)
        return world

    written().queries["join"].count()  # compiles: calls that the next ones do not have
    through = written()
    with fault_at(0) as counted:
        through.queries["join"].count()
    expected = through.state(), ending(through)
    assert counted.calls > 10
    for number in places(counted.calls, most):
        world = written()
        with pytest.raises(InjectedFault) as raised, fault_at(number):
            world.queries["join"].count()
        with after_fault(raised.value):
            assert world.state() == expected[0]
            world.expect_oracle()
            assert ending(world) == expected[1]


def test_writes_that_returned_are_not_lost():
    """A fault while an answer is read leaves them in the buffer, or applied."""
    check_buffered(30)


@pytest.mark.slow
def test_writes_that_returned_are_not_lost_at_any_call():
    check_buffered(None)


# --- a second fault while the first one is undone ---

TOGETHER = "SELECT ?a ?b { ?a :in ?x . ?b :in ?x }"
SMALL_MEMORY = Limits(flush_bytes=200_000)


def check_undo(most):
    """Transactions wait, one of them is over a limit, and there is no memory to undo it."""

    def written():
        graph = LiveGraph(limits=SMALL_MEMORY)
        query = graph.watch(PREFIX + TOGETHER)
        insert(graph, *(f"a{number} in x" for number in range(5)))
        with graph.transaction() as tx:
            for number in range(300):
                tx.insert(*quad(f"b{number} in y"))
        insert(graph, *(f"c{number} in x" for number in range(5)))
        return graph, query

    def look(graph):
        try:
            graph.apply(batch())
            len(graph)
        except (LimitError, MemoryError) as error:
            return [error]
        return []

    look(written()[0])  # compiles: calls that the next ones do not have
    graph, _ = written()
    with fault_at(0) as counted:
        assert look(graph)
    for number in places(counted.calls, most):
        graph, query = written()
        with fault_at(number, MemoryError) as fault:
            raised = look(graph)
        with after_fault(f"{number}: {raised}"):
            assert fault.done
            while errors := look(graph):
                raised += errors
            assert 10 - len(raised) <= len(graph) <= 10
            expect_consistent(graph, [query])
            insert(graph, "d in x")
            expect_consistent(graph, [query])


def test_a_fault_while_a_transaction_is_undone():
    check_undo(60)


@pytest.mark.slow
def test_a_fault_anywhere_while_a_transaction_is_undone():
    check_undo(None)


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

    parsed = Program.parse(PREFIX + PROGRAM)

    def start():
        graph = LiveGraph()
        program = graph.run(parsed)
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
        with after_fault(raised.value):
            expect_consistent(graph, [watched, *program.queries.values()])
            expect_firings(graph, program)
            expect_consistent(graph, [watched, *program.queries.values()])


def expect_firings(graph, program):
    fired = program.fired
    insert(graph, "e knows f", time=4)
    graph.publish([quad("e meets a"), quad("a meets e")], time=4)
    rules = Counter((f.rule, f.values["a"].value[-1]) for f in program.firings()[fired:])
    rules.subtract([("Like", "a"), ("Like", "e"), ("Often", "a")])
    # The rest of what was interrupted may come first.
    assert not -rules and set(+rules) <= {("Note", "a"), ("Like", "b")}
    fired = program.fired
    graph.publish([quad("b meets e")], time=5)
    known = [
        s for s, p, *_ in graph.quads() if p.value.endswith("knows") and str(s) == quad("b")[0]
    ]
    likes = [f.rule for f in program.firings()[fired:] if f.rule == "Like"]
    assert len(likes) == len(known)


def expect_consistent(graph, queries):
    store = Store()
    store.extend(Quad(s, p, o) for s, p, o, _ in graph.quads())
    assert len(store) == len(graph)
    for query in queries:
        total = Counter()
        for row in query.rows():
            total[tuple(map(str, row.row.values()))] += row.diff
        expected = Counter(tuple(map(str, row)) for row in store.query(query.text))
        assert +total == expected, query.name
        assert query.count() == expected.total(), query.name


def test_a_program_goes_on():
    check_program(60)


@pytest.mark.slow
def test_a_program_goes_on_after_any_call():
    check_program(None)

"""Ctrl-C anywhere inside a call: what the following calls owe is not lost.

Changes that calls have accepted are applied, callbacks are called, rules fire and raise their
errors. An interrupt may leave a count or a mark of the engine behind, of which the answers of
queries show nothing.
"""

from __future__ import annotations

import pytest
from engine.injection import after_fault, fault_at, places

import graphtide as gt

QUERY = "SELECT ?s { ?s <e:p> ?o }"
RULE = "PREFIX : <e:> EVENT A(?x) AS { ?x :a ?y } RULE R ON A(?x) THEN CALL f(?x)"
MORE = "PREFIX : <e:> EVENT B(?x) AS { ?x :b ?y } RULE S ON B(?x) THEN INSERT { ?x :z 1 }"
WINDOW = """REGISTER RSTREAM <e:out> AS SELECT ?x
    FROM NAMED WINDOW <e:w> ON <e:in> [RANGE 4 STEP 2] { WINDOW <e:w> { ?x <e:c> ?y } }"""


def events(name, kind="c"):
    return [(f"<e:{name}>", f"<e:{kind}>", "<e:y>")]


def transact(graph):
    with graph.transaction(time=3) as tx:
        tx.insert("<e:2>", "<e:p>", "<e:2>")


def apply(graph):
    rows = [(3 + at, at, 1, f"<e:{2 + at}>", "<e:p>", "<e:2>", None) for at in range(2)]
    graph.apply(gt.ChangeBatch.of(rows))


CALLS = {
    "insert": lambda graph: graph.insert("<e:2>", "<e:p>", "<e:2>"),
    "insert later": lambda graph: graph.insert("<e:2>", "<e:p>", "<e:2>", time=3),
    "transaction": transact,
    "update": lambda graph: graph.update("INSERT DATA { <e:2> <e:p> <e:2> }"),
    "apply": apply,
    "push": lambda graph: graph.stream("<e:in>").push(events("2"), time=3),
    "push_many": lambda graph: graph.stream("<e:in>").push_many(
        [(events("2"), 3), (events("3"), 7)]
    ),
    "publish": lambda graph: graph.publish(events("2"), time=3),
    "advance": lambda graph: graph.advance(5),
    "look": lambda graph: (graph.insert("<e:2>", "<e:p>", "<e:2>"), len(graph)),
    "watch": lambda graph: graph.watch("SELECT * { ?x <e:p> ?y . ?y <e:p> ?z }"),
    "run": lambda graph: graph.run(gt.Program.parse(MORE), name="more"),
}


class World:
    """A graph, and what callbacks and functions have got."""

    def __init__(self, *, window, rule):
        self.graph, self.heard, self.closes, self.called = gt.LiveGraph(), [], [], []
        self.window, self.rule = window, rule
        query = self.graph.watch(QUERY)
        query.on_delta(lambda delta: self.heard.extend(map(str, delta)))
        if window:
            self.graph.watch(WINDOW, name="w").on_result(self.closes.append)
        if rule:
            self.graph.run(gt.Program.parse(RULE), functions={"f": self.fail})
        self.graph.insert("<e:1>", "<e:p>", "<e:1>")
        self.graph.stream("<e:in>").push(events("1"), time=1)

    def fail(self, x):
        self.called.append(str(x))
        raise ValueError

    def check(self):
        graph = self.graph
        graph.insert("<e:9>", "<e:p>", "<e:9>", time=graph.clock if self.rule else None)
        assert self.heard.count("+ s=<e:9>") == 1
        assert ("<e:9>", "<e:p>", "<e:9>") in graph
        if self.rule:
            with pytest.raises(gt.GraphtideError):
                graph.stream("<e:in>").push(events("9", "a"), time=9)
            assert self.called.count("<e:9>") == 1
        if self.window:
            self.closes.clear()
            graph.advance(20)
            assert self.closes


@pytest.mark.parametrize("rule", [False, True])
@pytest.mark.parametrize("window", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_callbacks_and_errors_come_after_an_interrupt(name, window, rule):
    world = World(window=window, rule=rule)
    with fault_at(0, returns=True) as counted:
        CALLS[name](world.graph)
    for number in places(counted.calls, 40):
        world, fault = World(window=window, rule=rule), None
        try:
            with fault_at(number, KeyboardInterrupt, returns=True):
                CALLS[name](world.graph)
        except KeyboardInterrupt as raised:
            fault = raised
        with after_fault(fault):
            world.check()


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_rest_of_a_batch_waits_for_what_the_interrupted_event_causes(interrupted):
    graph, called = gt.LiveGraph(), []
    faults = [KeyboardInterrupt] if interrupted else []

    def f(x):
        if faults:
            raise faults.pop()
        called.append(str(x))

    emitting = "PREFIX : <e:> EVENT A(?x) AS { ?x :a ?y } RULE E ON A(?x) THEN EMIT :in { ?x :b 1 }"
    reading = """PREFIX : <e:> EVENT A(?x) AS { ?x :a ?y } EVENT B(?x) AS { ?x :b ?y }
        RULE B ON B(?x) THEN CALL f(?x) RULE A ON A(?x) THEN CALL f(?x)"""
    graph.run(gt.Program.parse(emitting), firing="agenda", resolver="newest")
    graph.run(gt.Program.parse(reading), firing="agenda", resolver="newest", functions={"f": f})
    batch = [(events("1", "a"), 3), (events("2", "a"), 3)]
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            graph.stream("<e:in>").push_many(batch)
    else:
        graph.stream("<e:in>").push_many(batch)
    graph.advance(3)
    assert called == ["<e:1>", "<e:1>", "<e:2>", "<e:2>"]

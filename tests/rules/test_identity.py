"""Ids of firings and blank nodes of templates are made of what fired, and of no counter."""

from __future__ import annotations

import pytest

import graphtide as gt
from graphtide.lang.tide.program import Program
from graphtide.rules.firing import Firing
from graphtide.rules.identity import FiringIds

HEAD = "PREFIX : <http://e/>\nEVENT A(?x) AS { ?x :a ?y }\nEVENT B(?x) AS { ?x :b ?y }\n"
CALLS = HEAD + "RULE R ON A(?x) THEN CALL f(?x)"
NOISE = HEAD + "RULE R ON B(?x) THEN CALL f(?x) RULE S ON A(?x) THEN INSERT { ?x :is :seen }"
BLANKS = HEAD + "RULE R ON A(?x) THEN INSERT { [] :of ?x }"
EMITS = HEAD + "RULE R ON A(?x) THEN EMIT :out { [] :e ?x } ; INSERT { [] :of ?x }"


def triple(x, p="a", y="y"):
    return tuple(f"<http://e/{each}>" for each in (x, p, y))


EVENTS = [("x", 1), ("z", 1), ("x", 3), ("x", 3), ("z", 3), ("x", 3), ("x", 9)]


def ids(*, noise=False, together=False, **options):
    """The ids that the calls of a rule get, with their arguments."""
    found = []
    graph = gt.LiveGraph()
    if noise:
        graph.run(Program.parse(NOISE), functions={"f": lambda x: None})
        graph.insert(*triple("n", "p"), time=0)
    program = graph.run(
        Program.parse(CALLS),
        functions={"f": lambda x, firing_id: found.append((str(x), firing_id))},
        **options,
    )
    stream = graph.stream("<http://e/s>")
    if noise:
        stream.push([triple("x", "b")], time=1)
    if together:
        stream.push_many([([triple(x)], time) for x, time in EVENTS])
    else:
        for x, time in EVENTS:
            stream.push([triple(x)], time=time)
            if noise:
                graph.insert(*triple(x, "p"), time=time)
    assert len(program.firings()) == len(EVENTS)
    return found


@pytest.mark.parametrize("options", [{}, {"firing": "agenda", "resolver": "oldest"}])
def test_ids_depend_on_what_fired_alone(options):
    expected = ids(**options)
    assert [x for x, _ in expected] == [f"<http://e/{x}>" for x, _ in EVENTS]
    assert len({one for _, one in expected}) == len(EVENTS)  # equal events fire twice
    assert ids(noise=True, **options) == expected
    assert ids(together=True, **options) == expected


def test_ids_are_those_before_after_a_restart(tmp_path):
    found = []

    def f(x, firing_id):
        found.append(firing_id)

    for part in (EVENTS[:4], EVENTS[4:]):
        with gt.LiveGraph.open(tmp_path, functions={"f": f}) as graph:
            if not graph.programs:
                graph.run(Program.parse(CALLS), functions={"f": f})
            for x, time in part:
                graph.stream("<http://e/s>").push([triple(x)], time=time)
    assert found == [one for _, one in ids()]


def test_a_cascade_that_is_rolled_back_takes_no_ids():
    """The event that is refused leaves no trace in the ids of equal events after it."""
    endless = CALLS + " RULE E ON B(?x) THEN EMIT :t { ?x :a ?x } ; EMIT :t { ?x :b ?x }"
    found = []
    graph = gt.LiveGraph()
    functions = {"f": lambda x, firing_id: found.append(firing_id)}
    graph.run(Program.parse(endless), functions=functions, max_firings=5)
    stream = graph.stream("<http://e/s>")
    with pytest.raises(gt.GraphtideError):
        stream.push([triple("x", "b")], time=3)
    del found[:]
    for x, time in EVENTS[2:]:
        stream.push([triple(x)], time=time)
    assert found == [one for _, one in ids()][2:]


@pytest.mark.parametrize("text", [BLANKS, EMITS])
def test_blank_nodes_do_not_depend_on_batches_or_other_programs(text):
    def quads(*, together, noise):
        graph = gt.LiveGraph()
        if noise:
            graph.run(Program.parse(NOISE), functions={"f": lambda x: None})
        graph.run(Program.parse(text))
        stream = graph.stream("<http://e/s>")
        if together:
            stream.push_many([([triple(x)], time) for x, time in EVENTS])
        else:
            for x, time in EVENTS:
                stream.push([triple(x)], time=time)
        return sorted(str(q[0]) for q in graph.quads() if "/of>" in str(q[1]))

    expected = quads(together=False, noise=False)
    assert len(set(expected)) == len(EVENTS)
    assert quads(together=True, noise=False) == expected
    assert quads(together=False, noise=True) == expected


def test_what_a_long_stream_leaves_behind_is_bounded():
    graph = gt.LiveGraph()
    program = graph.run(Program.parse(CALLS), functions={"f": lambda x, firing_id: None})
    stream = graph.stream("<http://e/s>")
    for time in range(3000):
        stream.push([triple("x")], time=time)
    assert len(program.firings()) == 3000
    assert len(program.dump()["engine"]["ids"]) < 600


def test_ids_that_were_given_out_of_order_are_cut():
    """Rules that fire together are given ids rule by rule: number 4 before number 1."""
    ids = FiringIds()
    firings = {n: Firing(f"R{n % 2}", n, {}, {}, number=n) for n in range(6)}
    given = {n: ids.of(firings[n], clock=5) for n in (0, 2, 4, 1, 3, 5)}
    ids.cut(3)
    assert [number for number, *_ in ids.dump()] == [0, 2, 1]
    other = Firing("R9", 4, {}, {}, number=4)
    assert ids.of(other, clock=5) not in given.values()

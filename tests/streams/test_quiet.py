"""Closes that change nothing cost nothing: the same results, numbers and firings as one by one."""

from __future__ import annotations

import time

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from graphtide import Limits, LiveGraph, Program
from graphtide.errors import LimitError

PROGRAM = """PREFIX : <ex:>
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
RULE R WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,6000] a THEN INSERT { ?x :is :alone }
"""

BODIES = (
    "WINDOW <ex:w> { ?s <ex:a> ?o }",
    "?x <ex:in> ?y OPTIONAL { WINDOW <ex:w> { ?s <ex:a> ?o } }",
    "?x <ex:is> ?y OPTIONAL { WINDOW <ex:w> { ?s <ex:a> ?o } }",
)


class World:
    """Windowed queries over one stream, perhaps beside a program."""

    def __init__(self, queries, *, program, heard=None, limits=None):
        self.graph = LiveGraph(limits=limits)
        self.graph.insert("<ex:k>", "<ex:in>", "<ex:l>")
        self.queries = [
            self.graph.watch(
                f"REGISTER {output} <ex:o{number}> AS SELECT * FROM NAMED WINDOW <ex:w> "
                f"ON <ex:s> [RANGE {length} STEP {step}] {{ {body} }}"
            )
            for number, (output, length, step, body) in enumerate(queries)
        ]
        if heard is not None:
            for query, own in zip(self.queries, heard, strict=True):
                query.on_result(own.append)
        self.program = self.graph.run(Program.parse(PROGRAM)) if program else None

    def take(self, times):
        for number, at in enumerate(times):
            self.graph.stream("<ex:s>").push([(f"<ex:{number}>", "<ex:a>", "<ex:b>")], time=at)
        self.graph.advance(times[-1] + 40)

    def seen(self):
        fired = [] if self.program is None else [(f.rule, f.time) for f in self.program.firings()]
        return self.graph.transactions, self.graph.clock, len(self.graph), fired


def shown(results):
    return [(each.time, sorted(map(str, each))) for each in results]


queries = st.tuples(
    st.sampled_from(["ISTREAM", "DSTREAM", "RSTREAM"]),
    st.integers(1, 30),
    st.integers(1, 4),
    st.sampled_from(BODIES),
)


@given(
    st.lists(queries, min_size=1, max_size=3),
    st.lists(st.integers(1, 7) | st.integers(5000, 15_000), min_size=1, max_size=4),
    st.booleans(),
)
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_results_are_those_of_a_graph_that_calls_back_at_every_close(asked, gaps, program):
    times = [sum(gaps[: k + 1]) for k in range(len(gaps))]
    heard = [[] for _ in asked]
    told = World(asked, program=program, heard=heard)
    told.take(times)
    quiet = World(asked, program=program)
    quiet.take(times)
    assert quiet.seen() == told.seen()
    for query, own in zip(quiet.queries, heard, strict=True):
        results, every = shown(query.results()), shown(own)
        assert len(results) == min(len(every), 10_000) or query.evicted
        assert results == every[len(every) - len(results) :]
        assert query.evicted == sum(len(rows) for _, rows in every[: len(every) - len(results)])


@pytest.mark.parametrize("program", [False, True])
@pytest.mark.parametrize("output", ["ISTREAM", "RSTREAM"])
def test_an_event_in_the_far_future_takes_no_time(output, program):
    world = World([(output, 10, 1, BODIES[0]), (output, 60, 7, BODIES[1])], program=program)
    begin = time.perf_counter()
    world.take([5, 10**15])
    assert time.perf_counter() - begin < 20
    first, second = world.queries
    assert first.results()[-1].time == 10**15 + 40
    assert second.last_result().time == 60 + (10**15 + 40 - 60) // 7 * 7
    assert len(first.results()) == 10_000
    assert world.graph.transactions == 1 + program  # closes are not counted


@pytest.mark.parametrize("program", [False, True])
def test_closes_that_a_callback_gets_have_a_limit_of_time(program):
    heard = [[]]
    asked = [("RSTREAM", 10, 1, BODIES[0])]
    world = World(asked, program=program, heard=heard, limits=Limits(flush_seconds=0.2))
    begin = time.perf_counter()
    with pytest.raises(LimitError):
        world.take([5, 10**9])
    assert time.perf_counter() - begin < 20
    assert heard[0] == [], "the input is not through"
    with pytest.raises(LimitError):
        world.graph.advance(10**9)
    assert (before := len(heard[0])) > 0, "the next call runs those that are due"
    with pytest.raises(LimitError):
        world.graph.advance(10**9)
    assert len(heard[0]) > before, "and goes on"

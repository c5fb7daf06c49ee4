"""Every time that a user gives is a whole number of ticks, or an error before anything happens."""

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest

import graphtide as gt

TRIPLE = ("<ex:a>", "<ex:p>", "<ex:b>")
PROGRAM = "EVENT A(?x) AS { ?x <ex:p> ?y } RULE R ON A(?x) THEN CALL f(?x)"
HOSTILE = (
    True, False, 1.5, 5.0, float("nan"), float("inf"), Decimal(5), datetime(2026, 1, 1, tzinfo=UTC),
    "5", b"5", (5,), np.float64(5), np.bool_(True), np.datetime64("2026-01-01"),
    2**62 + 1, -(2**62) - 1, 2**63, 2**63 + 5, 10**400, np.uint64(2**63),
)  # fmt: skip


def transaction(graph, time):
    with graph.transaction(time=time) as tx:
        tx.insert(*TRIPLE)


CALLS = {
    "insert": lambda graph, time: graph.insert(*TRIPLE, time=time),
    "delete": lambda graph, time: graph.delete(*TRIPLE, time=time),
    "transaction": transaction,
    "update": lambda graph, time: graph.update("INSERT DATA { <ex:a> <ex:p> <ex:b> }", time=time),
    "apply": lambda graph, time: graph.apply(
        gt.ChangeBatch.of([(0, 1, 1, *TRIPLE, None)]), time=time
    ),
    "advance": lambda graph, time: graph.advance(time),
    "publish": lambda graph, time: graph.publish([TRIPLE], time=time),
    "publish end": lambda graph, time: graph.publish([TRIPLE], start=0, end=time),
    "publish start": lambda graph, time: graph.publish([TRIPLE], start=time, end=9),
    "publish duration": lambda graph, time: graph.publish([TRIPLE], time=9, duration=time or 1.5),
    "push": lambda graph, time: graph.stream("<ex:s>").push([TRIPLE], time=time),
    "push_many": lambda graph, time: graph.stream("<ex:s>").push_many([([TRIPLE], time)]),
    "stream advance": lambda graph, time: graph.stream("<ex:s>").advance(time),
    "lateness": lambda graph, time: graph.stream("<ex:late>", lateness=time),
    "history": lambda graph, time: graph.watch("ASK { ?s ?p ?o }", history=time),
    "assert_event": lambda graph, time: graph.programs[0].assert_event([TRIPLE], time=time),
    "assert_events": lambda graph, time: graph.programs[0].assert_events([([TRIPLE], time)]),
    "program advance": lambda graph, time: graph.programs[0].advance(time),
}


@pytest.fixture
def graph():
    graph = gt.LiveGraph()
    graph.insert("<ex:x>", "<ex:p>", "<ex:y>", time=1)
    graph.run(gt.Program.parse(PROGRAM), functions={"f": lambda _: None})
    return graph


def seen(graph):
    """What can be seen of a graph: nothing of it may change."""
    return (
        sorted(map(str, graph.quads())), graph.clock, graph.transactions,
        len(graph.queries), len(graph.programs[0].firings()),
    )  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_time_is_refused_before_anything_happens(graph, call):
    before = seen(graph)
    for time in HOSTILE:
        with pytest.raises(gt.GraphtideError, match=r"whole number of ticks|out of bounds"):
            CALLS[call](graph, time)
    assert seen(graph) == before


@pytest.mark.parametrize("number", [np.int8, np.int32, np.int64, np.uint16])
def test_integers_of_numpy_are_times_and_a_store_keeps_them(tmp_path, number):
    with gt.LiveGraph.open(tmp_path) as graph:
        graph.insert(*TRIPLE, time=number(5))
        graph.stream("<ex:s>", lateness=number(2)).push([TRIPLE], time=number(6))
        graph.watch("ASK { ?s ?p ?o }", name="any", history=number(9))
        graph.advance(number(7))
    with gt.LiveGraph.open(tmp_path) as graph:
        assert (len(graph), graph.clock) == (1, 7)


def test_the_bound_is_a_time():
    graph = gt.LiveGraph()
    graph.insert(*TRIPLE, time=2**62 - 1)
    graph.advance(2**62)
    assert (len(graph), graph.clock) == (1, 2**62)

"""Matching does not write past the end of an array after a fault, and has limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from engine.small_graph import PREFIX, iri
from rules.growth import PROGRAMS

from graphtide import Limits, LiveGraph, Program
from graphtide.errors import LimitError

TESTS = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "name",
    [each if each == "join" else pytest.param(each, marks=pytest.mark.slow) for each in PROGRAMS],
)
def test_a_fault_between_two_lines_leaves_arrays_that_fit(name):
    run = subprocess.run(
        [sys.executable, "-m", "rules.growth", name], cwd=TESTS, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-1000:]


JOIN_OF_SIX = """EVENT A(?x) AS { ?x :a ?y }
RULE R WHEN EVENT a = A(?a) EVENT b = A(?b) EVENT c = A(?c) EVENT d = A(?d) EVENT e = A(?e)
    EVENT f = A(?f) THEN INSERT { ?a :is ?b }"""

JOIN_OF_NOTHING = """EVENT A(?x) AS { ?x :a ?y }
EVENT N(?x) AS { ?x :never ?y }
RULE R WHEN EVENT a = A(?a) EVENT b = A(?b) EVENT c = A(?c) EVENT d = A(?d) EVENT e = A(?e)
    EVENT n = N(?n) THEN INSERT { ?a :is ?b }"""

TRIPLES = """EVENT A(?x) AS { ?x :a ?b . ?c :a ?d . ?e :a ?f . ?g :b ?h }
RULE R ON A(?x) THEN INSERT { ?x :is :here }"""


def pushed(graph, many, *, triples=1):
    stream = graph.stream(iri("in"))
    for time in range(many):
        stream.push([(iri(f"x{k}"), iri("a"), iri(f"y{time}")) for k in range(triples)], time=time)
    return len(graph)


@pytest.mark.parametrize(
    ("program", "limits", "events", "triples"),
    [
        (JOIN_OF_SIX, Limits(flush_bytes=20_000_000), 12, 1),
        (JOIN_OF_NOTHING, Limits(flush_seconds=0.2), 80, 1),
        (TRIPLES, Limits(flush_seconds=0.2), 1, 700),
    ],
)
def test_an_event_over_a_limit_is_refused_alone(program, limits, events, triples):
    graph = LiveGraph(limits=limits)
    running = graph.run(Program.parse(PREFIX + program))
    other = graph.run(
        Program.parse(
            PREFIX + "EVENT B(?x) AS { ?x :b ?y }\nRULE S ON B(?x) THEN INSERT { ?x :is :seen }"
        )
    )
    with pytest.raises(LimitError) as raised:
        pushed(graph, events, triples=triples)
    assert "was not taken in" in raised.value.__notes__[0]
    fired = running.fired
    graph.stream(iri("in")).push([(iri("z"), iri("b"), iri("z"))], time=events)
    assert (running.fired, other.fired) == (fired, 1)
    running.close()
    assert (iri("z"), iri("is"), iri("seen"), None) in graph

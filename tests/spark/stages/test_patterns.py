"""Patterns on partitions: the complex events of one process, whatever the cuts and faults."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from spark.stages.program_runs import (
    PREFIX,
    change,
    event,
    fired,
    fired_on_partitions,
    in_process,
    iri,
    on_partitions,
    watermark,
)
from spark.stages.random_programs import EVENTS, PATTERNS, found_in, random_rows
from support.sampling import quick_sample

from graphtide.errors import UnsupportedError
from graphtide.spark.state import cache


def program(*names):
    """Patterns, and rules over each of them."""
    lines = []
    for at, name in enumerate(names):
        lines.append(f"PATTERN P{at}{PATTERNS[name]}")
        parameters = PATTERNS[name][: PATTERNS[name].index(")") + 1]
        first = parameters[1:-1].split(",")[0]
        lines.append(f"RULE R{at} WHEN EVENT P{at}{parameters} THEN CALL f({first})")
    return PREFIX + EVENTS + "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("shape", quick_sample(PATTERNS, 15))
def test_as_in_one_process(shape, monkeypatch):
    rng = Random(shape)
    names = (shape, rng.choice(list(PATTERNS)))
    monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
    rows, last = random_rows(rng, 40)
    end = last + rng.choice((0, 3, 30))
    text = program(*names)
    alone = in_process(text, rows, end)
    expected = found_in(alone, len(names))
    for partitions in rng.sample((1, 2, 4), 2):
        running = on_partitions(text, [*rows, watermark(end)], partitions, rng)
        assert Counter(running.events) == expected, (text, partitions)
        assert fired_on_partitions(running) == fired(alone), (text, partitions)


MIXED = ("one after the other", "immediate", "strict", "a gap in immediate", "a gap per value")


@pytest.mark.parametrize("shape", MIXED)
@pytest.mark.slow
def test_events_of_several_types_and_of_none(shape):
    """One graph event is an A, a B and a C; another one matches no declaration: it is noise."""
    rng = Random(shape)
    rows = []
    for time in range(1, 25):
        subject, object_ = iri(f"u{rng.randrange(2)}"), iri(f"u{rng.randrange(3)}")
        kinds = rng.choice(("a", "b", "ab", "ab", "z", "az"))
        triples = [(subject, iri(kind), object_) for kind in kinds]
        if rng.random() < 0.3:
            triples.append((iri("u3"), iri(rng.choice("ab")), object_))
        rows += event(time, time, *triples)
    text = program(shape)
    alone = in_process(text, rows, 40)
    for partitions in (1, 3):
        running = on_partitions(text, [*rows, watermark(40)], partitions, rng)
        assert Counter(running.events) == found_in(alone, 1), (text, partitions)
        assert fired_on_partitions(running) == fired(alone)


def test_two_names_for_one_change_are_one_event_on_partitions():
    text = (
        PREFIX
        + """
    QUERY Hot AS SELECT ?x { ?x :p ?y }
    EVENT Up(?x) ON APPEAR OF Hot(?x)
    EVENT Rise(?x) ON APPEAR OF Hot(?x)
    PATTERN P0(?x) AS Up(?x) -> Rise(?x)
    PATTERN P1() AS Up(_) -> Rise(_) CONTEXT STRICT
    """
    )
    rows, rng = [], Random(3)
    for time in range(1, 20):
        names = rng.sample(("a", "b", "c"), 2)
        rows += [change(time, time, time % 2 * 2 - 1, name, "p", "o") for name in names]
    alone = in_process(text, rows, 30)
    assert alone.matched("P0") and alone.matched("P1")
    for partitions in (1, 3):
        running = on_partitions(text, [*rows, watermark(30)], partitions, rng)
        assert Counter(running.events) == found_in(alone, 2), partitions


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        ("PATTERN P(?x) AS A(?x) -> A(?x)", False),
        ("PATTERN P(?x) AS B(?x) -> B(?x)", False),
        ("PATTERN P(?x) AS Up(?x) -> Up(?x) CONTEXT STRICT", False),
        ("PATTERN P(?x) AS Up(?x) -> Up(?x)", True),
        ("", True),
    ],
)
def test_a_retraction_that_a_pattern_may_see_is_rejected(pattern, allowed):
    text = (
        PREFIX
        + f"""
    QUERY Hot AS SELECT ?x {{ ?x :p ?y }}
    EVENT A(?x) AS {{ ?x :a ?y }}
    EVENT B(?x) AS {{ ?x :b ?y }}
    EVENT Up(?x) ON APPEAR OF Hot(?x)
    {pattern}
    RULE R WHEN EVENT a = A(?x) THEN RETRACT a
    """
    )
    if allowed:
        on_partitions(text, [], 2, Random(1))
    else:
        with pytest.raises(UnsupportedError, match="may be an event of a pattern"):
            on_partitions(text, [], 2, Random(1))


SESSIONS = """
PATTERN P0(?x, COUNT(?a) AS ?n, COLLECT(?a.y) AS ?all) AS
  A(?x, _){+} GREEDY AS a -> NOT A(?x, _) WITHIN 3s CONTEXT CHRONICLE PER ?x
RULE R0 ON P0(?x, ?n, ?all) THEN CALL f(?n)
"""


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.slow
def test_parameters_computed_on_partitions(partitions, monkeypatch):
    rng = Random(partitions)
    monkeypatch.setattr(cache, "SMALL_LOG", 0)
    rows, last = random_rows(rng, 40)
    text = PREFIX + EVENTS + SESSIONS
    alone = in_process(text, rows, last + 9)
    assert len(found_in(alone, 1)) > 3
    running = on_partitions(text, [*rows, watermark(last + 9)], partitions, rng)
    assert Counter(running.events) == found_in(alone, 1)
    assert fired_on_partitions(running) == fired(alone)

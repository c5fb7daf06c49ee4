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
    with_actions,
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
PATTERN P0(?x, COUNT(?a) AS ?n, COLLECT(?a.y) AS ?all, FIRST(?a.y) AS ?first, LAST(?a.y) AS ?last,
  TIMEOF(a) - STARTOF(a) AS ?long) AS
  A(?x, _){+} GREEDY AS a -> NOT A(?x, _) WITHIN 3s CONTEXT CHRONICLE PER ?x
RULE R0 ON P0 THEN CALL f(?n)
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


LASTING = {
    "during": "WHEN EVENT t = Trip(?x, ?y) EVENT b = B(?x, ?z) DURING t",
    "starts": "WHEN EVENT a = A(?x, ?z) STARTS t EVENT t = Trip(?x, ?y)",
    "two": "WHEN EVENT t = Trip(?x, ?y) EVENT s = Trip(?y, ?z) OVERLAPS t",
    "after": "WHEN EVENT t = Trip(?x, ?y) EVENT s = Trip(?x, ?z) AFTER[0,4] t",
    "none during": "WHEN EVENT t = Trip(?x, ?y) NO EVENT b = B(?x, ?z) DURING t",
    "none after": "WHEN EVENT t = Trip(?x, ?y) NO EVENT s = Trip(?x, ?z) AFTER[1,6] t",
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", LASTING)
def test_complex_events_that_last_on_partitions(shape, monkeypatch):
    rng = Random(shape)
    monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5)))
    pattern = "PATTERN Trip(?x, ?y) AS (A(?x, ?y) -> B(?x, _)) WITHIN 9 INTERVAL"
    text = f"{PREFIX}{EVENTS}{pattern}\nRULE R {LASTING[shape]} THEN CALL f(?x)"
    seen = 0
    for _ in range(3):
        rows, last = random_rows(rng, 50)
        end = last + rng.choice((0, 3, 30))
        alone = in_process(text, rows, end)
        running = on_partitions(text, [*rows, watermark(end)], rng.choice((1, 2, 4)), rng)
        assert fired_on_partitions(running) == fired(alone)
        starts = Counter(tuple(begin for begin, _ in f.events.values()) for f in alone.firings())
        assert Counter(each[-1] for each in running.firings) == starts
        seen += any(begin < end for f in alone.firings() for begin, end in f.events.values())
    assert seen


def test_the_start_of_a_complex_event_in_actions_on_partitions(tmp_path):
    text = f"""{PREFIX}{EVENTS}
    PATTERN Trip(?x) AS (A(?x, _) -> B(?x, _)) WITHIN 9 INTERVAL
    RULE R WHEN EVENT t = Trip(?x) THEN CALL f(STARTOF(t), TIMEOF(t)) ; RETRACT t
    RULE S WHEN EVENT t = Trip(?x) EVENT c = C(?x) AFTER[0,9] t THEN CALL g(?x)"""
    told = []
    batches = [
        event(3, 0, (iri("u"), iri("a"), iri("v"))),
        event(8, 1, (iri("u"), iri("b"), iri("v"))),
        event(12, 2, (iri("u"), iri("a"), iri("v")), (iri("u"), iri("b"), iri("v"))),
        [watermark(40)],
    ]
    functions = {"f": lambda *times: told.append([t.value for t in times]), "g": told.append}
    with_actions(text, batches, 2, tmp_path, functions, quiet=True)
    assert told == [["3", "8"]]

"""Rules on partitions: the firings of one process, whatever the cuts and faults.

Spark itself is in `test_in_spark`; here are its stages without it.
"""

from __future__ import annotations

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
from spark.stages.random_programs import EVENTS, RULES, random_rows
from spark.stages.window_streams import on_partitions as windows_on_partitions
from spark.stages.window_streams import windowed
from support.sampling import quick_sample

from graphtide.spark.state import cache


def program(*names):
    rules = (f"RULE R{at} {RULES[name]} THEN CALL f(?x)\n" for at, name in enumerate(names))
    return PREFIX + EVENTS + "".join(rules)


@pytest.mark.parametrize("shape", quick_sample(RULES, 15))
def test_as_in_one_process(shape, monkeypatch):
    rng = Random(shape)
    names = (shape, rng.choice(list(RULES)))
    monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
    rows, last = random_rows(rng, 40)
    end = last + rng.choice((0, 3, 30))
    text = program(*names)
    expected = fired(in_process(text, rows, end))
    for partitions in rng.sample((1, 2, 4), 2):
        running = on_partitions(text, [*rows, watermark(end)], partitions, rng)
        assert fired_on_partitions(running) == expected, (text, partitions)
        assert running.rejected == []


@pytest.mark.slow
def test_beside_a_query_over_windows():
    """The same reports as without rules, and the same firings as without windows."""
    window = windowed("ISTREAM", "WINDOW :w { ?a :a ?b } ?b :p ?c")
    text = program("none after, with facts", "rows and events")
    both = text.replace("QUERY Hot", f"QUERY W AS {window.removeprefix(PREFIX.strip())}\nQUERY Hot")
    for seed in range(3):
        rng = Random(seed)
        rows, last = random_rows(rng, 40)
        end = last + 20
        expected, _ = windows_on_partitions({"W": window}, [*rows, watermark(end)], 2, rng)
        running = on_partitions(both, [*rows, watermark(end)], 2, rng)
        reports = [row for row in running.deltas if row[0] == "W" and row[3] > 0]
        assert {(*row[:3], row[4]): row[3] for row in reports} == expected and expected
        assert fired_on_partitions(running) == fired(in_process(text, rows, end))


def test_rows_of_no_quad_are_facts_from_the_start_and_no_events():
    text = (
        PREFIX
        + """
QUERY Hot AS SELECT ?x { { VALUES ?x { :u0 :u1 } } UNION { ?x :p ?y } }
EVENT Up(?x) ON APPEAR OF Hot(?x)
EVENT A(?x) AS { ?x :a ?y }
RULE R WHEN EVENT u = Up(?x) THEN CALL f(?x)
RULE S WHEN FACT { VALUES ?x { :u0 :u1 } } EVENT a = A(?x) THEN CALL f(?x)
"""
    )
    rows = [change(3, 0, 1, "u2", "p", "u3"), *event(4, 1, (iri("u0"), iri("a"), iri("u1")))]
    alone = fired(in_process(text, rows, 9))
    assert {rule for rule, *_ in alone} == {"R", "S"}
    for partitions in (1, 2, 4):
        running = on_partitions(text, [*rows, watermark(9)], partitions, Random(partitions))
        assert fired_on_partitions(running) == alone

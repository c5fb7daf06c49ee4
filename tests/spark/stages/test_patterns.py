"""Patterns on partitions: the complex events of one process, whatever the cuts and faults."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from spark.stages.program_runs import (
    PREFIX,
    fired,
    fired_on_partitions,
    in_process,
    on_partitions,
    watermark,
)
from spark.stages.test_rules import EVENTS, random_rows

from graphtide.spark.state import cache

PATTERNS = {
    "one after the other": "(?x) AS (A(?x, ?y) -> B(?x, ?z)) WITHIN 6s",
    "no end": "(?x, ?y) AS A(?x, ?y) -> B(?x, ?y)",
    "nothing shared": "(?x, ?z) AS (A(?x, ?y) -> B(?y, ?z)) WITHIN 9s",
    "absence": "(?x, ?y) AS A(?x, ?y) -> NOT B(?x, _) WITHIN 4s",
    "absence between": "(?x) AS A(?x, ?y) -> NOT C(?x) -> B(?x, ?z)",
    "either, or both": "(?x) AS ((A(?x, _) OR C(?x)) -> (A(?x, _) AND B(?x, _))) WITHIN 20s",
    "at the same time": "(?x) AS ALL(A(?x, _) -> C(?x), B(?x, _))",
    "again and again": "(?x) AS (A(?x, _){3}) WITHIN 15s",
    "it lasts": "(?x) AS (A(?x, _) -> B(?x, _)) HOLDS FOR 2s",
    "immediate": "(?x) AS A(?x, _) -> B(?x, _) CONTEXT IMMEDIATE",
    "strict per value": "(?x) AS A(?x, _){+} -> B(?x, _) CONTEXT STRICT PER ?x",
    "strict": "(?x) AS A(?x, _){2} -> B(?y, _) CONTEXT STRICT",
    "a constant": "(?y) AS A(:u1, ?y) -> B(:u1, ?y)",
    "rows that come and go": "(?x) AS (Up(?x) -> A(?x, _)) WITHIN 9s",
    "composite absence": "(?x) AS A(?x, _) -> NOT (B(?x, _) -> C(?x)) -> A(?x, :u2)",
}  # fmt: skip


def program(*names):
    """Patterns, and rules over each of them."""
    lines = []
    for at, name in enumerate(names):
        lines.append(f"PATTERN P{at}{PATTERNS[name]}")
        parameters = PATTERNS[name][: PATTERNS[name].index(")") + 1]
        first = parameters[1:-1].split(",")[0]
        lines.append(f"RULE R{at} WHEN EVENT P{at}{parameters} THEN CALL f({first})")
    return PREFIX + EVENTS + "\n".join(lines)


def found_in(running, many):
    return Counter(
        (f"P{at}", each.time, tuple(str(v) for v in each.values.values()))
        for at in range(many)
        for each in running.complex_events(f"P{at}")
    )


@pytest.mark.parametrize("shape", PATTERNS)
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

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
from spark.stages.random_programs import EVENTS, PATTERNS, found_in, random_rows
from support.sampling import quick_sample

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

"""The law of the scheduler on partitions: the output of one process, item by item, for any cut.

What actions change takes effect with the next micro-batch there, so these rules only call.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from spark.stages.program_runs import fired, fired_on_partitions, on_partitions, watermark

from oracles.schedule_programs import random_schedule
from oracles.schedules import PREFIX, run_one_by_one, text_of


def calling(schedule):
    """The schedule with one program, of which all rules only call, and no change events of windows.

    Those are not supported on Spark, so that what needs them is left out. Callbacks of a user are
    not there either, and rows of one DataFrame are in order of time.
    """
    lines = [re.sub(r"THEN .*", "THEN CALL f(?x)", line) for line in schedule.programs[0]]
    windows = [line.split()[1] for line in lines if " WINDOW " in line]
    lines = [line for line in lines if not any(f"OF {name}(" in line for name in windows)]
    changes = re.compile("|".join(f"{name}(Appear|Disappear|Update)" for name in windows) or "$^")
    lines = [line for line in lines if not changes.search(line)]
    while True:
        types = {
            line.split()[1].partition("(")[0] for line in lines if line[:4] in ("EVEN", "PATT")
        }
        known = [line for line in lines if set(re.findall(r"\bP\d\b", line)) <= types]
        if known == lines:
            break
        lines = known
    lines.append("RULE Each ON EA(?x) THEN CALL f(?x)")
    return replace(
        schedule,
        programs=(tuple(lines),),
        items=tuple(sorted(schedule.items, key=lambda item: item.time)),
        firing="events",
        failing="",
        alignment="close",
        lateness=(),
        reacting=False,
    )


def rows_of(schedule):
    """Each item is a transaction of its own."""
    rows = []
    for tx, item in enumerate(schedule.items):
        stream = None
        if item.kind != "change":
            stream = text_of(item.stream or "published")[1:-1]
        rows += [(*row, stream) for row in item.rows(tx)]
    return rows


def check(seed):
    schedule = calling(random_schedule(Random(seed)))
    alone = run_one_by_one(schedule)
    assert alone.errors == []
    (program,) = alone.programs
    expected = Counter(
        (pattern.name, each.time, tuple(map(str, each.values.values())))
        for pattern in program.program.patterns
        for each in program.matches(pattern.name)
    )
    text = PREFIX + "\n".join(schedule.programs[0])
    rng = Random(seed)
    for partitions in rng.sample((1, 2, 4), 2):
        rows = [*rows_of(schedule), watermark(schedule.end)]
        running = on_partitions(text, rows, partitions, rng)
        assert running.rejected == []
        assert fired_on_partitions(running) == fired(program), (seed, text)
        assert Counter(running.events) == expected, (seed, text)
        for query in alone.queries:
            if query.windows is None:
                assert deltas_of(running, query.name) == deltas_alone(query), seed
    return program.fired + expected.total()


def deltas_alone(query):
    """By time and row: the transactions of a time have other numbers in one process."""
    total = Counter()
    for row in query.rows():
        values = tuple(None if term is None else str(term) for term in row.row.values())
        total[row.time, values] += row.diff
    return Counter({key: diff for key, diff in total.items() if diff})


def deltas_of(running, name):
    total = Counter()
    for query, time, _, diff, values in running.deltas:
        if query == name:
            total[time, values] += diff
    return Counter({key: diff for key, diff in total.items() if diff})


@pytest.mark.slow
def test_partitions_give_what_one_process_gives():
    assert sum(check(seed) for seed in range(6)) > 5


@pytest.mark.slow
def test_partitions_give_what_one_process_gives_at_length():
    assert sum(check(seed) for seed in range(100, 160)) > 100

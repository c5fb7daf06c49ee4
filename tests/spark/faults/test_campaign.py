"""Kills of queries, windows, patterns and rules, of kinds and at moments that a seed decides.

`make faults` has 26 kills of each (KILLS=…, SEED=…); without a number there are a few. After all of
them the output equals that of one process, each row once.
"""

import os
from collections import Counter
from functools import partial
from random import Random

import pytest
from spark.faults import reactions
from spark.faults.stream import ONE_STAGE, TWO_STAGES, assert_exact, write_cut
from spark.stages.window_streams import in_process, random_rows, watermark, windowed

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("KILLS", "0"))
SEED = int(os.environ.get("SEED", "0"))
FILES_PER_KILL = 5
"""A kill uses up at most so many files of the input."""

in_faults = pytest.mark.skipif(not KILLS, reason="runs with make faults")


def files_per_trigger(random):
    """Sizes of micro-batches, for a query and its restarts."""
    return [random.randint(1, 3)] * 5


@pytest.mark.parametrize(
    ("queries", "layout", "kills"),
    [
        pytest.param(ONE_STAGE, "grid", KILLS, marks=in_faults, id="queries"),
        pytest.param(TWO_STAGES, "rete", KILLS or 5, id="joins"),
    ],
)
def test_queries(queries, layout, kills, make_assault):
    """In the Rete layout every stage has state, and workers die in any of them."""
    assault, expected = make_assault(
        SEED + 4,
        queries,
        master="local[2,4]",
        files=FILES_PER_KILL * kills + 30,
        routes=2,
        small_log=10,
    )
    assault.job["layout"] = layout
    assault.pace()
    assault.campaign(kills, partial(files_per_trigger, assault.random))
    assert_exact(assault, expected)


def test_windows(make_assault, tmp_path):
    """Events are in graphs that have their stream's name."""
    kills, seed = KILLS or 2, SEED + 7
    queries = {
        "came": windowed("ISTREAM", "WINDOW :w { ?a :p ?b } ?b :r ?c", "?a ?c"),
        "all": windowed("RSTREAM", "{ SELECT (COUNT(*) AS ?n) { WINDOW :w { ?a :p ?b } } }"),
    }
    files = FILES_PER_KILL * kills + 10
    rows, last = random_rows(Random(seed), max(300, 3 * files))
    names = {"came": ("a", "c"), "all": ("n",)}
    expected = Counter(
        (name, time, tx, diff, frozenset(zip(names[name], values, strict=True)))
        for (name, time, tx, values), diff in in_process(queries, rows, last + 20).items()
    )
    table = [
        (*row[:3], seq, *row[3:6], row[7] and f"<{row[7]}>")
        for seq, row in enumerate([*rows, watermark(last + 20)])
    ]
    cuts = sorted(Random(seed).sample(range(1, len(table)), files - 1))
    write_cut(tmp_path / "input", table, cuts)
    assault = make_assault.job(seed, queries)
    assault.pace()
    assault.campaign(kills, partial(files_per_trigger, assault.random))
    assert_exact(assault, expected)
    assert max(note["oldest"] for note in assault.noted()) > 1, "logs were compacted on the way"


@in_faults
def test_patterns_and_rules(tmp_path):
    files = FILES_PER_KILL * KILLS + 10
    rows, last = reactions.stream(SEED + 11, 2 * files)
    assault = reactions.make_assault(tmp_path, rows, SEED + 11, per_file=2)
    assault.pace()
    try:
        assault.campaign(KILLS, lambda: assault.random.randint(5, 60))
    finally:
        assault.clear()
    reactions.assert_equal(tmp_path, rows, last)

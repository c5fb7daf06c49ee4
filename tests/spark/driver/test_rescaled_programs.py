"""Programs with windows, patterns, rules and feedback that are rescaled in the middle, on Spark."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from spark.stages.program_runs import PREFIX, change, fired, in_process, iri
from spark.stages.random_programs import EVENTS, PATTERNS, RULES, found_in, random_rows

from graphtide.lang.tide.program import Program
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import write_changes
from graphtide.spark import read_output
from graphtide.spark.driver.rescale import rescale
from graphtide.spark.driver.run import run

pytestmark = pytest.mark.slow

STREAMS = ("http://e/s", "http://e/t")


def write(folder, name, rows):
    """Rows as a change log: events are inserts into the graphs of their streams."""
    folder.mkdir(exist_ok=True)
    quads = [(*row[:6], row[6] if row[7] is None else f"<{row[7]}>") for row in rows]
    write_changes(ChangeBatch.of(quads), folder / name)


def finish(spark, folder, text, functions, **options):
    where = {"changes": folder / "in", "out": folder / "out", "checkpoint": folder / "checkpoint"}
    options |= {"once": True, "functions": functions, "streams": STREAMS}
    job = run(spark, Program.parse(text), **where, **options)
    for _ in job.statuses():
        pass


def test_patterns_and_rules_as_in_one_process(spark, tmp_path):
    rng = Random(11)
    names, patterns = ["with facts", "none after, with facts"], ["absence", "strict per value"]
    text = PREFIX + EVENTS
    text += "".join(f"RULE R{n} {RULES[name]} THEN CALL f(?x)\n" for n, name in enumerate(names))
    text += "".join(f"PATTERN P{n}{PATTERNS[name]}\n" for n, name in enumerate(patterns))
    rows, last = random_rows(rng, 50)
    end, half = last + 20, rows[len(rows) // 2][:2]
    after = change(end, 1000, 1, "u0", "z", "u0")
    write(tmp_path / "in", "0.rdfp", [row for row in rows if row[:2] < half])
    functions = {"f": lambda _: None}
    finish(spark, tmp_path, text, functions, partitions=2, rows_per_batch=20)
    rescale(spark, tmp_path / "checkpoint", partitions=3)
    write(tmp_path / "in", "1.rdfp", [*(row for row in rows if row[:2] >= half), after])
    finish(spark, tmp_path, text, functions)
    alone = in_process(text, rows, end)
    firings = read_output(tmp_path / "out", "firings").to_pylist(maps_as_pydicts="strict")
    found = Counter(
        (r["rule"], r["time"], tuple(r["values"].values()), tuple(r["events"].values()))
        for r in firings
    )
    assert len(alone.firings()) > 5
    assert found == fired(alone)
    events = Counter(
        (name, row["time"], tuple(list(row.values())[3:]))
        for name in ("P0", "P1")
        for row in read_output(tmp_path / "out", name).to_pylist()
    )
    assert events == found_in(alone, 2) and events


ACTIONS = """
QUERY Border AS SELECT ?y { ?x :is :reached . ?x :next ?y FILTER NOT EXISTS { ?y :is :reached } }
RULE Go ON APPEAR OF Border THEN INSERT { ?y :is :reached } ; CALL f(?y)
"""


def test_what_actions_did_last_is_read_once(spark, tmp_path):
    """By hand: n1 to n6 are reached in turn, each because of the one before."""
    chain = [change(1, 0, 1, f"n{i}", "next", f"n{i + 1}") for i in range(6)]
    more = [change(2, 1, 1, "n0", "is", "reached"), change(3, 2, 1, "x", "z", "x")]
    write(tmp_path / "in", "0.rdfp", [*chain, *more])
    calls = []
    functions = {"f": lambda y: calls.append(y.value)}
    finish(spark, tmp_path, PREFIX + ACTIONS, functions, partitions=2)
    assert [name[-2:] for name in calls] == [f"n{n}" for n in range(1, 7)]
    # As if it had been killed after the last micro-batch, which read what actions did before it
    # and no change log, was written, and before Spark knew.
    commits = tmp_path / "checkpoint" / "stream" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for path in commits.glob(f"*{last}*"):
        path.unlink()
    rescale(spark, tmp_path / "checkpoint", partitions=3)
    write(tmp_path / "in", "1.rdfp", [change(9, 3, 1, "n6", "next", "n7")])
    finish(spark, tmp_path, PREFIX + ACTIONS, functions)
    fired_for = [
        dict(row["values"])["y"] for row in read_output(tmp_path / "out", "firings").to_pylist()
    ]
    assert fired_for == [iri(f"n{n}") for n in range(1, 8)]
    border = read_output(tmp_path / "out", "Border").to_pylist()
    assert Counter(row["y"] for row in border if row["diff"] > 0) == Counter(fired_for)
    assert Counter(row["y"] for row in border if row["diff"] < 0) == Counter(fired_for)

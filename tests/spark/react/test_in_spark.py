"""Programs in Spark itself: firings, complex events, feedback, calls, restarts."""

from __future__ import annotations

import json
import os
from collections import Counter
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark.react.harness import (
    PREFIX,
    change,
    event,
    fired,
    in_process,
    iri,
    mark,
)
from spark.react.test_patterns_on_cells import PATTERNS, found_in
from spark.react.test_rules_on_cells import EVENTS, RULES, random_rows

from graphtide.errors import GraphtideError
from graphtide.lang.program import parse_program
from graphtide.spark import run_program

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

SCHEMA = "time long, tx long, diff int, s string, p string, o string, g string, stream string"


def write_rows(folder, batches):
    """A file for each micro-batch, in the order of their names."""
    folder.mkdir(exist_ok=True)
    before = len(list(folder.iterdir()))
    for number, rows in enumerate(batches, start=before):
        names = SCHEMA.replace("long", "").split(", ")
        names = [name.split()[0] for name in names]
        lines = (json.dumps(dict(zip(names, row, strict=True))) for row in rows)
        path = folder / f"{number:05}.json"
        path.write_text("\n".join(lines))
        os.utime(path, (10**9 + number,) * 2)


def start(spark, folder, text, **how):
    """A run over the files of a folder, one in each micro-batch, until all is read."""
    files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    how = {"once": True, "cells": 2, **how}
    out, checkpoint = folder / "out", folder / "checkpoint"
    changes = files.json(str(folder / "in"))
    return run_program(
        spark, parse_program(text), changes=changes, out=out, checkpoint=checkpoint, **how
    )


def finish(run):
    for _ in run.statuses():
        pass


def firings(folder):
    """What was written, in order."""
    found = []
    for path in sorted((folder / "out" / "firings").glob("*.parquet")):
        found += pq.read_table(path).to_pylist(maps_as_pydicts="strict")
    return found


def count(rows):
    return Counter(
        (r["rule"], r["time"], tuple(r["values"].values()), tuple(r["events"].values()))
        for r in rows
    )


def cut(rows, rng, most=30):
    at, batches = 0, []
    while at < len(rows):
        size = rng.randint(1, most)
        batches.append(rows[at : at + size])
        at += size
    return batches


def test_rules_and_patterns_as_in_one_process(spark, tmp_path):
    rng = Random(7)
    names = ["with facts", "none after, with facts", "states", "rows and events"]
    patterns = ["absence", "strict per value", "rows that come and go"]
    text = PREFIX + EVENTS
    text += "".join(f"RULE R{n} {RULES[name]} THEN CALL f(?x)\n" for n, name in enumerate(names))
    text += "".join(f"PATTERN P{n}{PATTERNS[name]}\n" for n, name in enumerate(patterns))
    text += "RULE Told PRIORITY 3 WHEN EVENT P0(?x, ?y) THEN CALL f(?x)\n"
    rows, last = random_rows(rng, 60)
    end = last + 10
    write_rows(tmp_path / "in", cut([*rows, mark(end)], rng))
    called = []
    finish(start(spark, tmp_path, text, functions={"f": lambda x: called.append(str(x))}))
    alone = in_process(text, rows, end)
    written = firings(tmp_path)
    assert len(alone.firings) > 20
    assert count(written) == fired(alone)
    assert Counter(called) == Counter(row["values"]["x"] for row in written)
    assert len({row["id"] for row in written}) == len(written)
    expected = found_in(alone, len(patterns))
    found = Counter(
        (name, row["time"], tuple(v for k, v in row.items() if k not in ("time", "tx", "diff")))
        for name in ("P0", "P1", "P2")
        for row in pq.read_table(tmp_path / "out" / name).to_pylist()
    )
    assert found == expected and found

"""Programs in Spark itself: firings, complex events, feedback, calls, restarts."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from spark.driver.alarms import SCENE, ex
from spark.stages.program_runs import PREFIX, change, event, fired, in_process, iri, watermark
from spark.stages.random_programs import EVENTS, PATTERNS, RULES, found_in, random_rows

from graphtide.cli.main import main
from graphtide.errors import ActionError, GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import write_changes
from graphtide.spark import run as run_job

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
    how = {"once": True, "partitions": 2, **how}
    out, checkpoint = folder / "out", folder / "checkpoint"
    changes = files.json(str(folder / "in"))
    return run_job(
        spark, Program.parse(text), changes=changes, out=out, checkpoint=checkpoint, **how
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


def cut(rows, rng, most=40):
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
    rows, last = random_rows(rng, 50)
    end = last + 10
    write_rows(tmp_path / "in", cut([*rows, watermark(end)], rng))
    called = []
    finish(start(spark, tmp_path, text, functions={"f": lambda x: called.append(str(x))}))
    alone = in_process(text, rows, end)
    written = firings(tmp_path)
    assert len(alone.firings()) > 15
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


ACTIONS = """
QUERY Border AS SELECT ?y { ?x :is :reached . ?x :next ?y FILTER NOT EXISTS { ?y :is :reached } }
EVENT Ping(?x) AS { ?x :ping ?y }
RULE Go ON APPEAR OF Border THEN INSERT { ?y :is :reached } ; EMIT :pings { ?y :ping ?y }
RULE Pong WHEN FACT { ?z :next ?x } EVENT Ping(?x) THEN INSERT { ?z :before ?x } ; CALL f(?x)
"""


def test_feedback_goes_on_where_a_failed_call_stopped_it(spark, tmp_path):
    """By hand: n1 to n4 are reached in turn; the call of n2 fails once, and is made again."""
    chain = [change(1, 0, 1, f"n{i}", "next", f"n{i + 1}") for i in range(4)]
    late = event(1, 5, (iri("n9"), iri("ping"), iri("n9")))
    write_rows(
        tmp_path / "in", [[*chain, change(2, 1, 1, "n0", "is", "reached"), watermark(3)], late]
    )
    calls, broken = [], True

    def call(x, firing_id):
        nonlocal broken
        calls.append((x.value[-2:], firing_id))
        if broken and x.value.endswith("n2"):
            broken = False
            raise OSError("the receiver is away")

    with pytest.raises(ActionError, match=r"the rule Pong at 3 with .*the receiver is away"):
        finish(start(spark, tmp_path, PREFIX + ACTIONS, functions={"f": call}, late="reject"))
    first = firings(tmp_path)
    finish(start(spark, tmp_path, PREFIX + ACTIONS, functions={"f": call}, late="reject"))
    written = firings(tmp_path)
    assert written[: len(first)] == first
    assert [name for name, _ in calls] == ["n1", "n2", "n2", "n3", "n4"]
    assert len(set(calls)) == 4
    assert {i for _, i in calls} == {row["id"] for row in written if row["rule"] == "Pong"}
    assert [row["values"]["y"] for row in written if row["rule"] == "Go"] == [
        iri(f"n{number}") for number in range(1, 5)
    ]
    deltas = pq.read_table(tmp_path / "out" / "Border").to_pylist()
    assert sum(row["diff"] for row in deltas) == 0 and len(deltas) == 8
    (aside,) = pq.read_table(tmp_path / "out" / "quarantine").to_pylist()
    assert aside["reason"].startswith("too late")


def test_the_alarms_of_the_paper_with_the_command(shared_session, tmp_path, capsys, caplog):
    (tmp_path / "in").mkdir()
    stream = "<http://e/s>"
    rows = [
        (*row[:6], stream if row[7] else None)
        for part in SCENE[:-1]
        for row in part
    ]  # fmt: skip
    rows.append((60, 0, 1, ex("x"), ex("y"), ex("z"), None))
    write_changes(ChangeBatch.of(rows), tmp_path / "in" / "000.rdfp")
    program = Path(__file__).parents[2] / "examples" / "alarms.tide"
    places = {name: tmp_path / place for name, place in
              (("--changes", "in"), ("--out", "out"), ("--checkpoint", "c"))}  # fmt: skip
    tokens = [part for pair in places.items() for part in map(str, pair)]
    tokens += ["--stream", stream[1:-1], "--spark", "master=local[2]", "--partitions", "2"]
    assert main(["run", str(program), *tokens]) == 0
    said = capsys.readouterr().err
    found = {(row["rule"], row["time"], row["values"]["alarm"]) for row in firings(tmp_path)}
    assert ("AlarmConfirmation", 13, ex("a2")) in found
    assert ("AlarmCancelled", 12, ex("a1")) in found
    assert ("AlarmOnActivation", 21, ex("a3")) in found
    assert ("AlarmIgnored", 31, ex("a3")) in found
    assert f"rules: {len(list(firings(tmp_path)))} firings" in said
    assert " 0 rejected" in said
    assert "the program sees what the rule AlarmCancelled does (whatever uses" in caplog.text


FEEDS_BACK = "actions run on the driver, and the program sees them with the next micro-batch"


@pytest.mark.xfail(strict=True, raises=AssertionError, reason=FEEDS_BACK)
def test_the_alarms_of_the_paper_over_a_bounded_dataframe(spark, tmp_path):
    """a1 is cancelled at 12, so its confirmation at 13 confirms nothing."""
    rows = [row for part in SCENE[:-1] for row in part]
    frame = spark.createDataFrame([*rows, watermark(60)], SCHEMA).coalesce(1)
    text = (Path(__file__).parents[2] / "examples" / "alarms.tide").read_text()
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "checkpoint", "partitions": 2}
    run_job(spark, Program.parse(text), changes=frame, **places)
    assert count(firings(tmp_path)) == fired(in_process(text, rows, 60))


def test_bounded_dataframes_as_in_one_process(spark, tmp_path):
    """Rules and patterns over all rows at once, without a stream."""
    rng = Random(8)
    text = PREFIX + EVENTS + f"PATTERN P0{PATTERNS['absence']}\n"
    text += f"RULE R0 {RULES['none after, with facts']} THEN CALL f(?x)\n"
    rows, last = random_rows(rng, 50)
    end = last + 10
    frame = spark.createDataFrame([*rows, watermark(end)], SCHEMA).coalesce(1)
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "checkpoint", "partitions": 2}
    called = []
    functions = {"f": lambda x: called.append(str(x))}
    program = Program.parse(text)
    run_job(spark, program, changes=frame, functions=functions, **places)
    alone = in_process(text, rows, end)
    assert count(firings(tmp_path)) == fired(alone) and len(alone.firings()) > 5
    assert len(called) == len(alone.firings())
    found = Counter(
        ("P0", row["time"], (row["x"], row["y"]))
        for row in pq.read_table(tmp_path / "out" / "P0").to_pylist()
    )
    assert found == found_in(alone, 1) and found
    assert not list((tmp_path / "out" / "quarantine").iterdir())
    with pytest.raises(GraphtideError, match="has the output of a bounded DataFrame"):
        run_job(spark, program, changes=frame, functions=functions, **places)


def test_actions_over_a_bounded_dataframe(spark, tmp_path):
    """By hand: n1 to n4 are reached in turn, each in the round after the one before."""
    rows = [change(1, 0, 1, f"n{i}", "next", f"n{i + 1}") for i in range(4)]
    rows.append(change(2, 1, 1, "n0", "is", "reached"))
    text, calls = PREFIX + ACTIONS, []
    functions = {"f": lambda x: calls.append(x.value[-2:])}
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "checkpoint", "partitions": 2}
    frame = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    run_job(spark, Program.parse(text), changes=frame, functions=functions, **places)
    assert calls == ["n1", "n2", "n3", "n4"]
    deltas = pq.read_table(tmp_path / "out" / "Border").to_pylist()
    assert sum(row["diff"] for row in deltas) == 0 and len(deltas) == 8


def test_the_order_of_a_bounded_dataframe_has_to_be_known(spark, tmp_path):
    write_rows(tmp_path / "in", [[change(1, 0, diff, "n0", "is", "reached")] for diff in (1, -1)])
    frame = spark.read.schema(SCHEMA).json(str(tmp_path / "in")).coalesce(1)
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "checkpoint", "partitions": 2}
    functions = {"f": print}
    with pytest.raises(GraphtideError, match="their order is not known"):
        run_job(
            spark, Program.parse(PREFIX + ACTIONS), changes=frame, functions=functions, **places
        )

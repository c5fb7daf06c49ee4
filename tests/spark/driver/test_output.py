"""Files of a run: output, progress, and the program that a checkpoint belongs to."""

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphtide.cli import spark_engine
from graphtide.cli.spark_engine import print_start
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark.driver.options import (
    RunOptions,
    check_options,
    claim_checkpoint,
    claim_hubs,
    read_fingerprint,
    source_name,
    trigger_milliseconds,
)
from graphtide.spark.driver.sink import Sink
from graphtide.spark.driver.status import lag
from graphtide.spark.files import Location
from graphtide.spark.partition.hubs import hub_counts
from graphtide.spark.session import default_partitions
from graphtide.spark.state.messages import REJECTED

NOTHING = REJECTED.empty_table()
ROWS = pa.Table.from_pylist([{"reason": "no term", "file": "a.nt", "line": 3}], schema=REJECTED)


def deltas(*rows):
    time, tx, diff, x = zip(*rows, strict=True)
    return pa.table({"time": time, "tx": tx, "diff": diff, "x": x})


def run_options(changes, out, checkpoint, partitions=2, **more):
    places = map(Location.of, (changes, out, checkpoint))
    return RunOptions(*places, partitions, **more)


def test_a_batch_is_written_once_however_often_it_is_run(tmp_path, caplog):
    caplog.set_level("INFO", "graphtide")
    first, other = deltas((1, 0, 1, "<ex:a>")), deltas((1, 0, 5, "<ex:wrong>"))
    for table in (first, other):
        sink = Sink(tmp_path, "run", {"q": ["x"]})
        sink.write(0, {"q": table}, ROWS)
    assert pq.read_table(tmp_path / "q").to_pylist() == first.to_pylist()
    assert pq.read_table(tmp_path / "quarantine").to_pylist() == ROWS.to_pylist()
    assert caplog.messages == [
        "micro-batch 0: 1 rows to quarantine, 1 in all",
        "micro-batch 0 had been written before: its files stay",
    ]
    progress = json.loads((tmp_path / "_progress.json").read_text())
    assert progress == {
        "batch": 0,
        "time": 1,
        "tx": 0,
        "quarantined": 1,
        "fired": 0,
        "queries": {"q": {"answer": 1, "appeared": 1, "disappeared": 0}},
    }


def test_what_a_crash_leaves_behind_is_no_output(tmp_path):
    sink = Sink(tmp_path, "run", {"q": ["x"]})
    (tmp_path / "q" / "_batch-00000000.parquet.tmp").write_bytes(b"half")
    sink.write(0, {"q": deltas((1, 0, 1, "<ex:a>"))}, NOTHING)
    assert [path.name for path in (tmp_path / "q").iterdir()] == ["batch-00000000.parquet"]


@pytest.mark.parametrize("full", ["q", "quarantine"])
def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path, full):
    sink = Sink(tmp_path, "run", {"q": ["x"]})
    written = {"q": deltas((1, 0, 1, "<ex:a>"))}
    unfinished = tmp_path / full / "_batch-00000000.parquet.tmp"
    unfinished.symlink_to("/dev/full")
    with pytest.raises(GraphtideError, match=r"batch 0 cannot be written to .*No space left") as no:
        sink.write(0, written, ROWS)
    assert "make room" in no.value.hint
    assert not (tmp_path / full / "batch-00000000.parquet").exists()
    assert not (tmp_path / "_progress.json").exists()
    unfinished.unlink(missing_ok=True)
    again = Sink(tmp_path, "run", {"q": ["x"]})
    again.write(0, written, ROWS)
    assert pq.read_table(tmp_path / "q").to_pylist() == written["q"].to_pylist()
    assert pq.read_table(tmp_path / "quarantine").num_rows == again.progress.quarantined == 1


def test_an_output_directory_that_is_gone_is_told(tmp_path):
    sink = Sink(tmp_path, "run", {"q": ["x"]})
    (tmp_path / "quarantine").rmdir()
    with pytest.raises(GraphtideError, match="cannot be written") as caught:
        sink.write(0, {"q": deltas((1, 0, 1, "<ex:a>"))}, ROWS)
    assert "start again" in caught.value.hint


def test_what_a_crash_at_the_very_start_leaves_is_no_hindrance(tmp_path):
    for name, file in {"out": "_graphtide.json.7.tmp", "c": "graphtide.json.7.tmp"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("{")
    made = claim_checkpoint(Location.of(tmp_path / "c"), {"q": "x"}, 2, "in")
    Sink(tmp_path / "out", made.run, {"q": ["x"]})


def test_tallies_go_on_after_a_restart(tmp_path):
    Sink(tmp_path, "run", {"q": ["x"]}).write(0, {"q": deltas((1, 0, 2, "<ex:a>"))}, NOTHING)
    sink = Sink(tmp_path, "run", {"q": ["x"]})
    sink.write(1, {"q": deltas((2, 1, -1, "<ex:a>"))}, NOTHING)
    tally = sink.progress.queries["q"]
    assert (tally.answer, tally.appeared, tally.disappeared) == (1, 2, 1)
    assert (sink.progress.time, sink.progress.tx) == (2, 1)


def test_json_lines(tmp_path):
    Sink(tmp_path, "run", {"q": ["x"]}, "json").write(
        7, {"q": deltas((1, 0, 1, "<ex:ü>"))}, NOTHING
    )
    text = (tmp_path / "q" / "batch-00000007.json").read_text(encoding="utf-8")
    assert text == '{"time": 1, "tx": 0, "diff": 1, "x": "<ex:ü>"}\n'


def test_the_output_of_another_run_is_refused(tmp_path):
    Sink(tmp_path, "one", {"q": ["x"]})
    with pytest.raises(GraphtideError, match="output of another run"):
        Sink(tmp_path, "two", {"q": ["x"]})


def test_a_directory_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("do not lose me")
    with pytest.raises(GraphtideError, match="not the output of graphtide"):
        Sink(tmp_path, "run", {"q": ["x"]})
    with pytest.raises(GraphtideError, match="not a checkpoint of graphtide"):
        claim_checkpoint(Location.of(tmp_path), {"q": "x"}, 2, "in")


def test_a_query_cannot_take_the_quarantines_place(tmp_path):
    with pytest.raises(GraphtideError, match="cannot be named quarantine"):
        Sink(tmp_path, "run", {"Quarantine": []})


def test_a_checkpoint_goes_on_with_its_own_program_only(tmp_path, caplog):
    caplog.set_level("INFO", "graphtide")
    where = Location.of(tmp_path / "c")
    made = claim_checkpoint(where, {"a": "x", "b": "y"}, 2, "in")
    assert claim_checkpoint(where, {"a": "x", "b": "y"}, 2, "in") == made
    assert [text.split(" checkpoint")[0] for text in caplog.messages] == ["made", "resumes from"]
    assert read_fingerprint(where) == made
    for queries, partitions, changes, said in [
        ({"a": "x"}, 2, "in", "query b is missing"),
        ({"a": "x", "b": "z"}, 2, "in", "query b has changed"),
        ({"b": "y", "a": "x"}, 2, "in", "another order"),
        ({"a": "x", "b": "y"}, 3, "in", "it has 2 partitions and not 3"),
        ({"a": "x", "b": "y"}, 2, "other", "it reads in and not other"),
    ]:
        with pytest.raises(GraphtideError, match=said) as caught:
            claim_checkpoint(where, queries, partitions, changes)
        assert "another --checkpoint" in caught.value.hint


def test_the_hubs_of_a_checkpoint_stay(tmp_path):
    where = Location.of(tmp_path / "c")
    made = claim_checkpoint(where, {"a": "x"}, 2, "in")
    hubs = {name: hub_counts([f"<ex:{n}>" for n in name]) for name in ("a", "b", "ab")}
    counted = hub_counts({"<ex:a>": {"<ex:p> s": 7}})
    assert made.hubs == () and claim_hubs(where, made, (), more=False) == made
    # Before the stream has begun, they can be changed.
    for named in (hubs["b"], counted):
        owner = claim_hubs(where, made, named, more=False)
        assert owner.hubs == named and read_fingerprint(where) == owner
    offsets = tmp_path / "c" / "stream" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1\n{}\n{}")
    for named, more in ((hubs["a"], False), ((), False), (hubs["a"], True)):
        assert claim_hubs(where, owner, named, more=more).hubs == counted
    for named, more in ((hubs["b"], False), (hubs["ab"], False), (hubs["b"], True)):
        with pytest.raises(GraphtideError, match="has the hubs <ex:a> and not") as caught:
            claim_hubs(where, owner, named, more=more)
        assert "graphtide.spark.rescale(spark, CHECKPOINT, hubs=HUBS)" in caught.value.hint
    owner = claim_hubs(where, replace(owner, hubs=hubs["ab"]), hubs["b"], more=True)
    assert owner.hubs == hubs["ab"]


def test_a_damaged_fingerprint_is_named(tmp_path):
    (tmp_path / "graphtide.json").write_text("{")
    with pytest.raises(GraphtideError, match=r"graphtide\.json cannot be read"):
        read_fingerprint(Location.of(tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"changes": "nowhere"}, "nowhere: there is no such directory"),
        ({"changes": "file"}, "file: unknown suffix ''"),
        ({"partitions": 0}, "at least one partition"),
        ({"trigger": "soon"}, 'invalid trigger "soon": write 500ms'),
        (
            {"start": "latest", "data": (Path("a.ttl"),)},
            'start="latest" leaves out data, which is read before the changes',
        ),
        ({"once": True, "idle_seconds": 1.0}, "idle_seconds is for a run that goes on"),
    ],
)
def test_wrong_options_are_told_before_spark_starts(tmp_path, change, message):
    (tmp_path / "file").write_text("")
    (tmp_path / "in").mkdir()
    options = {"changes": "in", "out": "out", "checkpoint": "c", "partitions": 2} | change
    for name in ("changes", "out", "checkpoint"):
        options[name] = tmp_path / options[name]
    with pytest.raises(GraphtideError) as caught:
        check_options(Program.parse("QUERY a AS SELECT * { ?s ?p ?o }"), run_options(**options))
    assert message in str(caught.value)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("P(?x)", "a query and a pattern are both named P"), ("Q(?time)", "?time cannot be a column")],
)
def test_patterns_whose_output_has_no_place_are_refused(pattern, message, tmp_path):
    options = run_options(tmp_path, tmp_path / "out", tmp_path / "c", 2)
    value = pattern[2:-1]
    text = f"""QUERY P AS SELECT ?x {{ ?x <ex:p> ?y }}
EVENT A(?x) AS {{ ?x <ex:a> ?y }}
PATTERN {pattern} AS A({value}) -> A({value})"""
    with pytest.raises(GraphtideError) as caught:
        check_options(Program.parse(text), options)
    assert message in str(caught.value)


def test_events_of_windows_are_refused_before_spark_starts(tmp_path):
    options = run_options(tmp_path, tmp_path / "out", tmp_path / "c", 2)
    program = Program.parse(
        "QUERY Q AS REGISTER ISTREAM <ex:o> AS SELECT ?x FROM NAMED WINDOW <ex:w> ON <ex:s> "
        "[RANGE 10 STEP 5] WHERE { WINDOW <ex:w> { ?x <ex:p> ?y } } "
        "RULE r ON APPEAR OF Q THEN INSERT { ?x a <ex:Seen> }"
    )
    with pytest.raises(GraphtideError, match="over windows, do not run on Spark"):
        check_options(program, options)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("contents", "once", "message"),
    [
        ({}, False, "is empty: waiting for change logs"),
        ({"a.nt": "", "_b.nt": "hidden"}, True, "is empty: there is nothing to do"),
        ({"a.nt": "", "b.nt": "x"}, True, "empty: a.nt; only the last file may grow"),
        ({"a.nt": "x"}, True, None),
    ],
)
def test_empty_files_are_named(tmp_path, capsys, contents, once, message):
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    options = run_options(tmp_path, tmp_path / "out", tmp_path / "c", 2, once=once)
    print_start(options, Program.parse("QUERY a AS SELECT * { ?s ?p ?o }"))
    first, *more = capsys.readouterr().err.splitlines()
    assert first == f"1 query over {tmp_path}: starts at the beginning"
    assert [message in line for line in more] == ([] if message is None else [True])


def test_triggers_and_partitions():
    assert [trigger_milliseconds(text) for text in ("250ms", "2s", "1.5m")] == [250, 2000, 90_000]
    assert default_partitions("local") == 1
    assert default_partitions("local[4]") == 4
    assert default_partitions("local[*]") == os.cpu_count()
    with pytest.raises(GraphtideError, match="--partitions is needed"):
        default_partitions("spark://host:7077")


def test_what_is_left_to_read(tmp_path):
    for name, size in {"a.nt": 10, "b.nt": 20, "c.nt": 30, "_d.nt": 40}.items():
        (tmp_path / name).write_bytes(b"x" * size)
    assert lag(Location.of(tmp_path), "b.nt", 15) == (1, 35)
    assert lag(Location.of(tmp_path), "c.nt", 30) == (0, 0)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2", "needs Java 17, and this is Java 11"),
        ("#!/bin/sh\necho nothing", "prints no version"),
        (None, "there is no bin/java"),
    ],
)
def test_an_unfit_java_is_explained(tmp_path, monkeypatch, script, message):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if script is not None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "java").write_text(script)
        (tmp_path / "bin" / "java").chmod(0o755)
    with pytest.raises(GraphtideError, match=message) as caught:
        spark_engine.check_needs()
    assert "install Java 17" in caught.value.hint


def test_java_is_not_started_for_its_version(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\nexit 1")
    (tmp_path / "bin" / "java").chmod(0o755)
    (tmp_path / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n')
    spark_engine.check_needs()
    (tmp_path / "release").write_text('JAVA_VERSION="1.8.0_392"\n')
    with pytest.raises(GraphtideError, match="this is Java 8"):
        spark_engine.check_needs()


def test_no_java_at_all(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GraphtideError, match="Spark needs Java, and none is installed"):
        spark_engine.check_needs()


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(spark_engine, "find_spec", lambda name: None if name == "pandas" else name)
    with pytest.raises(GraphtideError, match="Spark needs pandas") as caught:
        spark_engine.check_needs()
    assert "graphtide[spark]" in caught.value.hint


def test_data_is_for_change_logs(tmp_path):
    table = SimpleNamespace(isStreaming=False)
    with pytest.raises(GraphtideError, match="data is loaded before change logs, and changes is a"):
        source_name(table, (tmp_path / "a.ttl",))


def test_a_query_does_not_change_its_columns_in_the_same_output(tmp_path):
    Sink(tmp_path, "run", {"q": ["x"]})
    Sink(tmp_path, "run", {"q": ["x"], "r": ["x"]})
    with pytest.raises(GraphtideError, match="has output of r with other columns"):
        Sink(tmp_path, "run", {"q": ["x"], "r": ["x", "y"]})

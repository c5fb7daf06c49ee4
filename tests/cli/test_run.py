"""`graphtide run --engine process`: rows, complex events and firings, printed and in files."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

DOORS = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?d { ?d :is :open }
EVENT Opened(?d) ON APPEAR OF Open(?d)
EVENT Closed(?d) ON DISAPPEAR OF Open(?d)
PATTERN Left(?d) AS Opened(?d) -> NOT Closed(?d) WITHIN 30s
RULE Warn ON Left(?d) THEN INSERT { ?d :was :forgotten } ; CALL tell(?d)
"""
OPEN = "<http://example.org/{}> <http://example.org/is> <http://example.org/open> ."


def at(time, *rows):
    return "\n".join([f"H time {time} .", "TX .", *rows, "TC .", ""])


FIRST = at(5, f"A {OPEN.format('front')}") + at(9, f"A {OPEN.format('back')}")
SECOND = at(20, f"D {OPEN.format('back')}") + at(60, f"A {OPEN.format('back')}")

# The front door is open from 5 on: at 35 it has been for 30 s. The back door is closed in time.
LINES = [
    "+ time=5 tx=0 ?d=:front",
    "+ time=9 tx=1 ?d=:back",
    "- time=20 tx=2 ?d=:back",
    "* time=5..35 Left ?d=:front",
    "! time=35 Warn ?d=:front",
    "+ time=60 tx=3 ?d=:back",
]


@pytest.fixture
def doors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "doors.tide").write_text(DOORS)
    (tmp_path / "day.rdfp").write_text(FIRST + SECOND)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "1.rdfp").write_text(FIRST)
    (tmp_path / "logs" / "2.rdfp").write_text(SECOND)
    return tmp_path


def test_a_program_prints_rows_complex_events_and_firings(doors, run):
    ran = run("run", "doors.tide", "--engine", "process", "--changes", "day.rdfp")
    assert (ran.code, ran.lines) == (0, LINES)
    assert "CALL tell: listed as firings, not called" in ran.err
    assert "Open: 2 rows now, +3 -1" in ran.err
    assert "Left: 1 complex event" in ran.err
    assert "rules: 1 firing" in ran.err


def test_a_directory_is_one_log(doors, run):
    ran = run("run", "doors.tide", "--engine", "process", "--changes", "logs")
    assert (ran.code, ran.lines) == (0, LINES)


def test_objects_for_machines(doors, run):
    ran = run("run", "doors.tide", "--engine", "process", "--changes", "day.rdfp", "--json")
    front = {"d": "<http://example.org/front>"}
    assert ran.objects[0] == {"query": "Open", "time": 5, "tx": 0, "diff": 1, "row": front}
    assert {"pattern": "Left", "start": 5, "time": 35, "values": front} in ran.objects
    fired = {"rule": "Warn", "time": 35, "values": front, "events": {"Left": 35}}
    assert fired in ran.objects
    assert len(ran.objects) == len(LINES)


@pytest.mark.parametrize("form", ["parquet", "json"])
def test_files_as_of_a_run_on_spark(doors, run, form):
    ran = run(
        *("run", "doors.tide", "--engine", "process", "--changes", "day.rdfp", "--out", "out"),
        *("--format", form),
    )
    assert (ran.code, ran.lines) == (0, LINES)
    assert "the output is in out" in ran.err

    def read(name):
        if form == "parquet":
            return pq.read_table(doors / "out" / name).to_pylist()
        paths = sorted((doors / "out" / name).glob("batch-*.json"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    front = "<http://example.org/front>"
    assert [(row["time"], row["diff"]) for row in read("Open")] == [
        (5, 1),
        (9, 1),
        (20, -1),
        (60, 1),
    ]
    assert read("Left") == [{"time": 35, "tx": None, "diff": 1, "d": front}]
    (firing,) = read("firings")
    assert (firing["rule"], firing["time"], dict(firing["values"])) == ("Warn", 35, {"d": front})
    assert len(firing["id"]) == 32
    progress = json.loads((doors / "out" / "_progress.json").read_text())
    assert (progress["fired"], progress["queries"]["Open"]["answer"]) == (1, 2)
    again = run("run", "doors.tide", "--engine", "process", "--changes", "day.rdfp", "--out", "out")
    assert again.code == 2
    assert "holds the output of another run" in again.err


def test_data_comes_first(doors, run):
    (doors / "now.nt").write_text(OPEN.format("side"))
    ran = run(
        *("run", "doors.tide", "--engine", "process", "--data", "now.nt", "--changes", "day.rdfp")
    )
    assert ran.lines[0] == "+ time=0 tx=0 ?d=:side"
    assert "* time=0..30 Left ?d=:side" in ran.lines
    assert "+ time=5 tx=1 ?d=:front" in ran.lines


def test_until_lets_timers_expire(doors, run):
    tokens = "run", "doors.tide", "--engine", "process", "--changes", "day.rdfp", "--until"
    assert "* time=60..90 Left ?d=:back" in run(*tokens, 100).lines
    assert "is in the past" in run(*tokens, 10).err


@pytest.mark.parametrize("changes", ["broken.nt", "logs"])
def test_rejected_input_is_listed_and_in_the_quarantine(doors, run, changes):
    (doors / "logs" / "3.nt").write_text(f"nonsense\n{OPEN.format('side')}\n")
    (doors / "broken.nt").write_text(f"nonsense\n{OPEN.format('side')}\n")
    tokens = "run", "doors.tide", "--engine", "process", "--changes", changes
    ran = run(*tokens, "--out", "out")
    assert ran.code == 0
    assert ran.lines[-1].endswith("?d=:side")
    assert "rejected: 1 line" in ran.err
    (row,) = pq.read_table(doors / "out" / "quarantine").to_pylist()
    assert (row["line"], row["text"]) == (1, "nonsense")
    assert run(*tokens, "--on-error", "raise").code == 2
    limited = run(*tokens, "--max-quarantined", 0)
    assert limited.code == 2
    assert "more than the 0 allowed" in limited.err


def test_a_query_is_a_program(doors, run):
    (doors / "open.rq").write_text("SELECT ?d { ?d <http://example.org/is> ?x }")
    ran = run("run", "open.rq", "--engine", "process", "--changes", "day.rdfp")
    assert [line[0] for line in ran.lines] == ["+", "+", "-", "+"]


def test_events_of_streams(doors, run):
    (doors / "seen.tide").write_text(
        "EVENT Seen(?x) AS { ?x <ex:seen> ?y }\n"
        "RULE Note ON Seen(?x) THEN INSERT { ?x a <ex:Known> }\n"
        "QUERY Known AS SELECT ?x { ?x a <ex:Known> }"
    )
    (doors / "seen.rdfp").write_text(at(3, "A <ex:a> <ex:seen> <ex:b> <ex:camera> ."))
    tokens = "run", "seen.tide", "--engine", "process", "--changes", "seen.rdfp"
    ran = run(*tokens, "--stream", "ex:camera", "--until", 10)
    assert "! time=3 Note ?x=<ex:a>" in ran.lines
    assert any(line.startswith("+ time=3") and "?x=<ex:a>" in line for line in ran.lines)


@pytest.mark.slow
def test_standard_input(doors, start):
    tokens = "run", "doors.tide", "--engine", "process", "--changes", "-"
    process = start(*tokens, stdin=-1)
    out, _ = process.communicate(FIRST + SECOND, timeout=120)
    assert (process.returncode, out.splitlines()) == (0, LINES)


@pytest.mark.slow
def test_a_directory_is_followed(doors, start):
    (doors / "logs" / "2.rdfp").unlink()
    process = start(
        *("run", "doors.tide", "--engine", "process", "--changes", "logs", "--follow"),
        *("--out", "out"),
    )
    assert [process.stdout.readline().rstrip() for _ in range(2)] == LINES[:2]
    (doors / "logs" / "2.rdfp").write_text(SECOND)
    assert [process.stdout.readline().rstrip() for _ in range(4)] == LINES[2:]
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert pq.read_table(doors / "out" / "Open").num_rows == 4


def test_without_java_it_runs_in_process(doors, run, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(doors))
    ran = run("run", "doors.tide", "--changes", "day.rdfp", "--checkpoint", "ckpt")
    assert (ran.code, ran.lines) == (0, LINES)
    assert ran.err.startswith("running in process, without Spark: JAVA_HOME is ")
    assert "--checkpoint is not used" in ran.err


@pytest.mark.parametrize("name", ["alarms.tide", "rail.tide", "repairs.tide"])
def test_the_examples_run(run, tmp_path, name):
    (tmp_path / "empty.rdfp").write_text("")
    changes = tmp_path / "empty.rdfp"
    ran = run("run", EXAMPLES / name, "--engine", "process", "--changes", changes)
    assert (ran.code, ran.lines) == (0, [])


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (("--lateness", 5), 'invalid --lateness "5": 0 in process'),
        (("--lateness", -1), 'invalid --lateness "-1": give 0 or more'),
        (("--partitions", 0), 'invalid --partitions "0": give 1 or more'),
        (("--tick-ms", 0), 'invalid --tick-ms "0": give 1 or more'),
        (("--spark", "rows-per-batch=0"), 'invalid --spark "rows-per-batch=0": give 1 or more'),
        (("--max-quarantined", -1), 'invalid --max-quarantined "-1": give 0 or more'),
        (("--until", 5, "--follow"), "--follow it has no end"),
        (("--changes", "nowhere"), "nowhere: there is no such file or directory"),
        (("--data", "nowhere.ttl"), "nowhere.ttl: there is no such file"),
        (("--data", "doors.rq"), "is a query"),
        (("--out", "day.rdfp"), 'invalid --out "day.rdfp": it is a file'),
        (("--engine", "spark", "--spark", "trigger=5x"), 'invalid trigger "5x": '),
        (("--engine", "spark", "--until", 5), "--until is for --engine process"),
        (("--engine", "spark", "--spark", "hub=ex:a"), "hubs: not an RDF term: 'ex:a'"),
    ],
)
def test_mistakes(doors, run, tokens, message):
    given = {"--engine": "process", "--changes": "day.rdfp"}
    defaults = [
        word for name, value in given.items() if name not in tokens for word in (name, value)
    ]
    ran = run("run", "doors.tide", *defaults, *tokens)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.slow
def test_counts_of_a_long_log(doors, run):
    rows = "".join(at(n, f"A {OPEN.format(n)}") for n in range(2000))
    (doors / "day.rdfp").write_text(rows)
    ran = run("run", "doors.tide", "--engine", "process", "--changes", "day.rdfp")
    assert Counter(line[0] for line in ran.lines) == {"+": 2000, "*": 1969, "!": 1969}


def test_options_reach_spark(doors):
    """Limits, hubs, --lateness, --tick-ms and --idle-seconds are options of the Spark run."""
    from graphtide.cli import run as command
    from graphtide.cli.options import SparkSettings
    from graphtide.cli.spark_engine import run_options
    from graphtide.lang.tide.program import Program
    from graphtide.limits import Limits
    from graphtide.spark.partition.hubs import named_hubs

    request = command.RunRequest(
        Program.parse(DOORS),
        doors / "logs",
        partitions=2,
        limits=Limits(digits=7),
        idle_seconds=2.5,
        lateness=3,
        tick_ms=250,
        spark=SparkSettings(hubs=("<ex:h>",)),
    )
    options = run_options(request, request.changes, doors)
    assert (options.limits, options.hubs) == (Limits(digits=7), ("<ex:h>",))
    assert (options.clock.lateness, options.clock.tick_ms) == (3, 250)
    assert options.clock.idle_seconds == 2.5 and options.clock.rejects_late
    assert not options.finds_hubs
    found = run_options(
        replace(request, spark=SparkSettings(hubs=("auto",))), request.changes, doors
    )
    assert found.finds_hubs and named_hubs(found.hubs) == ()


def test_the_clock_of_silent_sources_is_for_spark(doors, run):
    tokens = ("run", "doors.tide", "--engine", "process", "--changes", "day.rdfp")
    ran = run(*tokens, "--idle-seconds", "5")
    assert ran.code == 2 and "--idle-seconds is for --engine spark" in ran.err
    assert 'invalid --idle-seconds "-1.0"' in run(*tokens, "--idle-seconds", "-1").err


def test_durations_are_in_ticks(doors, run):
    tokens = ("run", "doors.tide", "--engine", "process", "--changes", "day.rdfp")
    assert "* time=5..8 Left ?d=:front" in run(*tokens, "--tick-ms", "10000").lines


def test_a_run_can_leave_out_what_is_there(doors, run):
    tokens = ("run", "doors.tide", "--engine", "process", "--changes", "logs")
    assert run(*tokens, "--start", "earliest").lines == LINES
    assert run(*tokens, "--start", "latest").lines == []

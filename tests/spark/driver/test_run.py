"""`graphtide run` from end to end: the same deltas as in process, and a second start goes on."""

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout

import pyarrow.parquet as pq
import pytest

from graphtide.cli.main import main
from graphtide.datasets.railway import QUERIES, change_stream
from graphtide.graph import LiveGraph
from graphtide.rdf.formats.change_log import write_changes

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

PROGRAM = "\n".join(
    f"QUERY {name} AS {text[text.index('SELECT') :]}" for name, text in list(QUERIES.items())[:2]
)
PREFIX = next(iter(QUERIES.values())).partition("\n")[0]


def command(*tokens):
    return [sys.executable, "-m", "graphtide.cli.main", *map(str, tokens)]


def run_tokens(folder, *more, program="rail.tide"):
    tokens = ["run", folder / program, "--changes", folder / "in", "--out", folder / "out"]
    return [*tokens, "--checkpoint", folder / "checkpoint", "--spark", "master=local[2]", *more]


def run_here(*tokens):
    """Run a command in this process, and in the tests' session (`shared_session`)."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(token) for token in tokens])
    return subprocess.CompletedProcess(tokens, code, out.getvalue(), err.getvalue())


def run_apart(*tokens):
    return subprocess.run(
        command(*tokens), capture_output=True, text=True, timeout=600, check=False
    )


def write(folder, stream, first, last):
    for number in range(first, last):
        write_changes(stream[number], folder / "in" / f"{number:03}.rdfp")


def expected(stream):
    graph = LiveGraph()
    names = list(QUERIES)[:2]
    watches = {name: graph.watch(QUERIES[name], history=10**6) for name in names}
    for batch in stream:
        graph.apply(batch)
    return {
        name: sorted(
            (row.time, row.tx, row.diff, *map(str, row.row.values())) for row in watch.rows()
        )
        for name, watch in watches.items()
    }


def written(folder):
    return {
        name: sorted(
            tuple(row.values()) for row in pq.read_table(folder / "out" / name).to_pylist()
        )
        for name in list(QUERIES)[:2]
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which a run was made, and made again with more input, from before its end.

    Both are processes of their own: what the second knows of the first is in the folder.
    """
    folder = tmp_path_factory.mktemp("run")
    (folder / "in").mkdir()
    (folder / "rail.tide").write_text(f"{PREFIX}\n{PROGRAM}")
    stream = list(change_stream(40, seed=3))
    write(folder, stream, 0, 20)
    first = run_apart(
        *run_tokens(folder, "--json", "--partitions", 2, "--spark", "rows-per-batch=400")
    )
    # As if it had been killed after the last micro-batch was written, before Spark noted it.
    commits = folder / "checkpoint" / "stream" / "commits"
    for path in commits.glob(
        f"*{max(int(p.name) for p in commits.iterdir() if p.name.isdigit())}*"
    ):
        path.unlink()
    write(folder, stream, 20, len(stream))
    (folder / "in" / "999.nq").write_text("this is no statement\n")
    second = run_apart(*run_tokens(folder))
    return folder, stream, first, second


def test_the_deltas_are_those_of_the_engine_in_process(folder):
    folder, stream, first, second = folder
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert written(folder) == expected(stream)


def test_each_micro_batch_is_an_object(folder):
    _, _, first, _ = folder
    batches = [json.loads(text) for text in first.stdout.splitlines()]
    assert [batch["batch"] for batch in batches] == list(range(len(batches)))
    assert len(batches) > 1
    assert batches[-1]["lag_bytes"] == 0
    assert batches[-1]["file"] == "019.rdfp"
    assert set(batches[-1]["matches"]) == set(list(QUERIES)[:2])


def test_a_second_start_says_where_it_goes_on(folder):
    _, _, first, second = folder
    assert "2 queries over" in first.stderr and "starts at the beginning" in first.stderr
    assert "resumes after micro-batch 0: 000.rdfp is read up to line" in second.stderr


def test_the_quarantine_has_the_reason_and_the_place(folder):
    folder, _, _, second = folder
    (row,) = pq.read_table(folder / "out" / "quarantine").to_pylist()
    assert row["file"] == str(folder / "in" / "999.nq")
    assert (row["line"], row["column"], row["text"]) == (1, 1, "this is no statement")
    assert "subject" in row["reason"]
    assert "1 row rejected" in second.stderr


def test_a_checkpoint_of_another_program_is_refused(folder):
    folder, *_ = folder
    (folder / "other.tide").write_text(f"{PREFIX}\n{PROGRAM.replace('?sensor', '?s')}")
    for more, program, said in [
        ((), "other.tide", "query RouteSensor has changed"),
        (("--partitions", 3), "rail.tide", "it has 2 partitions and not 3"),
    ]:
        ran = run_here(*run_tokens(folder, *more, program=program))
        assert ran.returncode == 2
        assert "was made by another program" in ran.stderr and said in ran.stderr
        assert "graphtide.spark.rescale or graphtide.spark.evolve; or start again" in ran.stderr


def test_ctrl_c_stops_a_run_that_waits_for_more(tmp_path):
    (tmp_path / "rail.tide").write_text(f"{PREFIX}\n{PROGRAM}")
    (tmp_path / "in").mkdir()
    write(tmp_path, list(change_stream(3, seed=3)), 0, 3)
    tokens = run_tokens(tmp_path, "--spark", "trigger=200ms", "--follow")
    with subprocess.Popen(command(*tokens), stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 300
        while not (tmp_path / "out" / "_progress.json").exists() and time.monotonic() < until:
            time.sleep(0.2)
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "stopping after this micro-batch" in said
    assert "the output is in" in said


def test_a_quarantine_that_is_full_stops_the_run(shared_session, tmp_path):
    (tmp_path / "rail.tide").write_text(f"{PREFIX}\n{PROGRAM}")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.nq").write_text("no\nno\nno\n")
    ran = run_here(*run_tokens(tmp_path, "--partitions", 1, "--max-quarantined", 2))
    assert ran.returncode == 2
    assert "3 rows are rejected, more than the 2 allowed" in ran.stderr
    assert "--max-quarantined" in ran.stderr
    assert pq.read_table(tmp_path / "out" / "quarantine").num_rows == 3


DOORS = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?door { ?door :is :open }
EVENT Opened(?door) ON APPEAR OF Open(?door)
EVENT Closed(?door) ON DISAPPEAR OF Open(?door)
PATTERN Left(?door) AS Opened(?door) -> NOT Closed(?door) WITHIN 30s
RULE Warn ON Left(?door) THEN INSERT { ?door :was :forgotten }
"""
OPEN = "<http://example.org/{}> <http://example.org/is> <http://example.org/open> ."


def test_data_and_one_change_log_as_in_process(shared_session, tmp_path, monkeypatch):
    """Rows, complex events and firings are printed if they are not written; nothing is left."""
    (tmp_path / "doors.tide").write_text(DOORS)
    (tmp_path / "now.ttl").write_text(OPEN.format("side"))
    log = [(5, "A", "front"), (9, "A", "back"), (20, "D", "back"), (60, "D", "front")]
    (tmp_path / "day.rdfp").write_text(
        "".join(
            f"H time {time} .\nTX .\n{row} {OPEN.format(door)}\nTC .\n" for time, row, door in log
        )
    )
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    tokens = ["run", tmp_path / "doors.tide", "--data", tmp_path / "now.ttl", "--json"]
    tokens += ["--changes", tmp_path / "day.rdfp", "--spark", "master=local[2]", "--engine"]

    def printed(engine):
        ran = run_here(*tokens, engine)
        assert ran.returncode == 0, ran.stderr
        found = [json.loads(line) for line in ran.stdout.splitlines()]
        # Spark does not output when the match of a pattern began.
        return [{key: row[key] for key in row if key != "start"} for row in found]

    in_process = printed("process")
    assert len(in_process) == 9
    assert printed("spark") == in_process
    assert not [path for path in (tmp_path / "tmp").iterdir() if path.name.startswith("graphtide")]

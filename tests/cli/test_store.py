"""--store, `graphtide store` and `graphtide replay`."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import graphtide as gt
from graphtide.cli.main import main

PAIRS = "SELECT ?a ?c { ?a <ex:knows> ?b . ?b <ex:knows> ?c }"
TIDE = """
QUERY Known AS SELECT ?a { ?a <ex:knows> ?b }
RULE Note ON APPEAR OF Known THEN INSERT { ?a <ex:is> <ex:known> }
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "pairs.rq").write_text(PAIRS)
    (tmp_path / "known.tide").write_text(TIDE)
    (tmp_path / "insert.ru").write_text("INSERT DATA { <ex:a> <ex:knows> <ex:b> }")
    for day, (s, o) in enumerate([("b", "c"), ("c", "d")], 1):
        log = f"H time {10 * day} .\nTX .\nA <ex:{s}> <ex:knows> <ex:{o}> .\nTC .\n"
        (tmp_path / f"day{day}.rdfp").write_text(log)
    return tmp_path


def run(capsys, *arguments):
    code = main([str(each) for each in arguments])
    found = capsys.readouterr()
    assert code == 0, found.err
    return found.out


def test_update_watch_and_query_one_store(files, capsys):
    store = files / "rail"
    assert run(capsys, "update", files / "insert.ru", "--store", store) == ""
    watched = run(
        capsys, "watch", files / "pairs.rq", "--store", store, "--changes", files / "day1.rdfp"
    )
    assert "ex:a" in watched
    watched = run(
        capsys, "watch", files / "pairs.rq", "--store", store, "--changes", files / "day2.rdfp"
    )
    assert "<ex:b>" in watched
    assert "<ex:a>" not in watched  # that was there before
    found = run(capsys, "query", files / "pairs.rq", "--store", store, "--format", "csv")
    assert found.splitlines() == ["a,c", "ex:a,ex:c", "ex:b,ex:d"]


def test_a_program_goes_on_in_a_store(files, capsys):
    store = files / "rail"
    for day, name in ((1, "<ex:b>"), (2, "<ex:c>")):
        changes = files / f"day{day}.rdfp"
        found = run(capsys, "run", files / "known.tide", "--store", store, "--changes", changes)
        assert [line for line in found.splitlines() if "!" in line]
        assert name in found
    with gt.LiveGraph.open(store) as graph:
        assert len(graph.programs) == 1
        assert graph.programs[0].fired == 2


def test_replay_runs_another_program_over_the_same_inputs(files, capsys):
    store = files / "rail"
    for day in (1, 2):
        changes = files / f"day{day}.rdfp"
        run(capsys, "watch", files / "pairs.rq", "--store", store, "--changes", changes)
    found = run(capsys, "replay", store, files / "known.tide")
    assert found.count("!") == 2
    later = run(capsys, "replay", store, files / "pairs.rq", "--since", "15")
    assert [line for line in later.splitlines() if "<ex:b>" in line]
    early = run(capsys, "replay", store, files / "pairs.rq", "--until", "15")
    assert "<ex:b>" not in early


def test_info_verify_and_compact(files, capsys):
    store = files / "rail"
    for day in (1, 2):
        changes = files / f"day{day}.rdfp"
        run(capsys, "watch", files / "pairs.rq", "--store", store, "--changes", changes)
    found = run(capsys, "store", "info", store)
    assert "watch     pairs" in found
    assert "snapshot-" in found
    assert "good up to row" in run(capsys, "store", "verify", store)
    run(capsys, "store", "compact", store, "--retain", "0s")
    assert "rows none" in run(capsys, "store", "info", store)
    found = run(capsys, "query", files / "pairs.rq", "--store", store, "--format", "csv")
    assert found.splitlines() == ["a,c", "ex:b,ex:d"]


def test_a_damaged_row_is_found_and_cut(files, capsys):
    store = files / "rail"
    with gt.LiveGraph.open(store, durability="transaction") as graph:
        for number in range(4):
            graph.insert(f"<ex:{number}>", "<ex:knows>", "<ex:x>")
    import sqlite3

    with sqlite3.connect(store / "journal.db") as database:
        database.execute("UPDATE journal SET chunk = zeroblob(9) WHERE number = 3")
        database.execute("DELETE FROM snapshots")
    assert main(["store", "verify", str(store)]) == 1
    found = capsys.readouterr().out
    assert "row 3 of the journal does not have its checksum" in found
    assert "good up to row 2" in found
    with pytest.raises(gt.GraphtideError, match="row 3 of the journal"):
        gt.LiveGraph.open(store)
    run(capsys, "store", "compact", store, "--cut")
    with gt.LiveGraph.open(store) as graph:
        assert len(graph) == 2


def test_follow_a_store_that_another_process_writes(files):
    store = files / "rail"
    with gt.LiveGraph.open(store, durability="transaction") as graph:
        graph.insert("<ex:a>", "<ex:knows>", "<ex:b>")
        arguments = ["watch", files / "pairs.rq", "--store", store, "--follow", "--limit", "2"]
        follower = subprocess.Popen(
            [sys.executable, "-m", "graphtide.cli.main", *arguments], stdout=subprocess.PIPE
        )
        time.sleep(1)
        graph.insert("<ex:b>", "<ex:knows>", "<ex:c>")
        graph.insert("<ex:c>", "<ex:knows>", "<ex:d>")
        out, _ = follower.communicate(timeout=60)
    assert b"<ex:a>" in out
    assert b"<ex:b>" in out


def test_errors_of_the_command_line(files, capsys):
    for arguments, message in (
        (["store", "info", files / "nothing"], "there is no store"),
        (["query", files / "pairs.rq", "--store", files / "nothing"], "there is no store"),
        (["watch", files / "pairs.rq"], "no changes to watch"),
    ):
        assert main([str(each) for each in arguments]) == 2
        assert message in capsys.readouterr().err

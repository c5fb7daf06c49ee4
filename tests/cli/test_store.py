"""--store, `graphtide store` and `graphtide replay`."""

from __future__ import annotations

import json
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
    objects = run(capsys, "replay", store, files / "pairs.rq", "--json").splitlines()
    assert [json.loads(line)["row"]["a"] for line in objects] == ["<ex:b>"]


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


@pytest.mark.slow
def test_follow_a_store_that_another_process_writes(files):
    store = files / "rail"
    with gt.LiveGraph.open(store, durability="transaction") as graph:
        graph.insert("<ex:a>", "<ex:knows>", "<ex:b>")
        arguments = ["watch", files / "pairs.rq", "--store", store, "--follow", "--rows", "2"]
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


# --- what is no store ---


@pytest.fixture
def places(files, monkeypatch):
    """Names that are no store: an empty directory, a file, files of somebody else, damage."""
    import sqlite3

    monkeypatch.chdir(files)
    for name in ("empty", "foreign", "noise", "database", "locked"):
        (files / name).mkdir()
    (files / "plain").write_text("hello")
    (files / "foreign" / "readme.txt").write_text("hello")
    (files / "noise" / "journal.db").write_text("not a database")
    (files / "locked" / "lock.db").mkdir()
    with sqlite3.connect(files / "database" / "journal.db") as database:
        database.execute("CREATE TABLE mine (a)")
    return files


NOT_A_STORE = {
    "missing": "there is no store in missing: no such directory",
    "empty": "there is no store in empty: it has no journal.db",
    "plain": "there is no store in plain: it is a file",
    "foreign": "there is no store in foreign: it has no journal.db",
    "noise": "noise/journal.db: file is not a database",
    "database": "database/journal.db is not the journal of a store",
}
READS = (
    "store info {}",
    "store verify {}",
    "store compact {}",
    "store compact {} --cut",
    "replay {} known.tide",
    "why pairs.rq --store {}",
    "query pairs.rq --store {}",
    "watch pairs.rq --store {} --follow",
)


@pytest.mark.parametrize("name", NOT_A_STORE)
def test_commands_that_need_a_store_say_what_is_there_instead(places, capsys, name):
    before = sorted(path.name for path in places.rglob("*"))
    for command in READS:
        code = main(command.format(name).split())
        found = capsys.readouterr()
        verified = command.startswith("store verify") and name in ("noise", "database")
        assert code == (1 if verified else 2), command
        assert NOT_A_STORE[name] in (found.out if verified else found.err), command
        assert verified or "hint: " in found.err, command
        assert "Traceback" not in found.err + found.out, command
    made = {path.name for path in places.rglob("*")} - set(before)
    assert made <= {"lock.db", "journal.db-wal", "journal.db-shm"}, made


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("plain", "plain cannot be the directory of a store"),
        ("noise", "noise/journal.db: file is not a database"),
        ("database", "database/journal.db is not the journal of a store"),
        ("locked", "locked/lock.db: Is a directory"),
    ],
)
def test_commands_that_make_a_store_leave_other_files_alone(places, capsys, name, problem):
    before = {path: path.read_bytes() for path in places.rglob("*") if path.is_file()}
    for command in (
        f"update insert.ru --store {name}",
        f"watch pairs.rq --store {name} --changes day1.rdfp",
        f"run known.tide --store {name} --changes day1.rdfp",
    ):
        assert main(command.split()) == 2, command
        error = capsys.readouterr().err
        assert problem in error
        assert "hint: " in error
    assert all(path.read_bytes() == content for path, content in before.items())


def test_each_command_has_an_example(capsys):
    for command in ("store info", "store verify", "store compact", "replay", "why"):
        assert main([*command.split(), "--help"]) == 0
        assert f"graphtide {command}" in capsys.readouterr().out.replace("│", ""), command

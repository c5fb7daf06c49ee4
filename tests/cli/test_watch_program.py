"""graphtide run --watch-program and --disable."""

import os

from graphtide.cli.process_engine import ProgramWatch
from graphtide.cli.session import EventOutput, FiringOutput, RowOutput, Session
from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program

EX = "<http://example.org/{}>".format
TEXT = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?d { ?d :is :open }
EVENT Opened(?d) ON APPEAR OF Open
EVENT Shut(?d) ON DISAPPEAR OF Open
PATTERN Both(?d) AS Opened(?d) -> Shut(?d)
RULE Tell ON Opened(?d) THEN CALL tell(?d)
"""
LOG = f"H time 1 .\nTX .\nA {EX('d')} {EX('is')} {EX('open')} .\nTC .\n"


def test_a_file_that_changes_is_read_again(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("graphtide.cli.process_engine.POLL_SECONDS", 0)
    path = tmp_path / "doors.tide"
    path.write_text(TEXT)
    graph = LiveGraph()
    running = graph.run(Program.read(path), functions={"tell": lambda _: None})
    session = Session(graph, {})
    session.add_program(running)
    watch = ProgramWatch(path, running, session)
    graph.insert(EX("a"), EX("is"), EX("open"), time=1)
    assert {type(each) for each in session.take()} == {RowOutput, FiringOutput}
    assert watch.look() == []

    path.write_text(TEXT.replace("RULE Tell", "RULE Say") + "QUERY All AS SELECT ?s { ?s ?p ?o }\n")
    found = watch.look()
    assert [each.query for each in found] == ["All"]
    assert "added QUERY All, RULE Say" in capsys.readouterr().err
    graph.delete(EX("a"), EX("is"), EX("open"), time=2)
    kinds = [type(each) for each in session.take()]
    assert kinds.count(EventOutput) == 1  # its token was kept
    assert kinds.count(RowOutput) == 2

    path.write_text("QUERY")
    os.utime(path, ns=(1, 1))
    assert watch.look() == []
    assert "the program goes on as it was" in capsys.readouterr().err
    path.write_text("PREFIX : <http://example.org/>\nQUERY Rest AS SELECT ?s { ?s :is ?o }")
    watch.look()
    assert set(session.tallies) == {"Rest"}
    graph.insert(EX("b"), EX("is"), EX("open"), time=3)
    assert [each.query for each in session.take()] == ["Rest"]


def test_the_command_line(files, run):
    (files / "doors.tide").write_text(TEXT)
    (files / "log.rdfp").write_text(LOG)
    given = ("run", "doors.tide", "--changes", "log.rdfp", "--engine", "process")
    assert any(line.startswith("!") for line in run(*given, "--watch-program").lines)
    ran = run(*given, "--watch-program", "--out", "out")
    assert ran.code == 2
    assert "--watch-program is not for --out" in ran.err


def test_on_spark_there_is_evolve(files, run, monkeypatch):
    monkeypatch.setattr("graphtide.cli.run.choose_engine", lambda engine: engine)
    (files / "doors.tide").write_text(TEXT)
    (files / "log.rdfp").write_text(LOG)
    ran = run("run", "doors.tide", "--changes", "log.rdfp", "--watch-program")
    assert ran.code == 2
    assert "graphtide.spark.evolve" in ran.err


def test_a_disabled_group(files, run):
    (files / "doors.tide").write_text(TEXT.replace("RULE Tell", "RULE Tell IN night"))
    (files / "log.rdfp").write_text(LOG)
    given = ("run", "doors.tide", "--changes", "log.rdfp", "--engine", "process")
    assert any(line.startswith("!") for line in run(*given).lines)
    assert not any(line.startswith("!") for line in run(*given, "--disable", "night").lines)
    ran = run(*given, "--disable", "nigt")
    assert ran.code == 2
    assert "did you mean night?" in ran.err

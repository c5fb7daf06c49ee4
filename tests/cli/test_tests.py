"""graphtide test: the outcome of each test, as text and as JSON, and the exit code."""

import json

PROGRAM = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?door { ?door :is :open }
TEST Opens
  GIVEN INSERT { :d :is :open }
  EXPECT Open(:d)
"""
FAILS = """TEST Shuts
  GIVEN INSERT { :d :is :open }
  EXPECT NOT Open
"""


def test_tests_that_pass(files, run):
    (files / "doors.tide").write_text(PROGRAM)
    ran = run("test", "doors.tide")
    assert ran.code == 0
    assert ran.lines == ["ok    doors.tide:3 Opens"]
    assert "1 test, 0 failed" in ran.err


def test_a_test_that_fails(files, run):
    (files / "doors.tide").write_text(PROGRAM + FAILS)
    ran = run("test", "doors.tide")
    assert ran.code == 1
    assert ran.lines[1:] == [
        "FAIL  doors.tide:6 Shuts",
        "        - NOT Open",
        "        + Open(?door = :d)",
    ]
    assert "2 tests, 1 failed" in ran.err


def test_json(files, run):
    (files / "doors.tide").write_text(PROGRAM + FAILS)
    ran = run("test", "doors.tide", "--json")
    assert ran.code == 1
    passed, failed = map(json.loads, ran.lines)
    assert passed == {
        "test": "Opens", "file": "doors.tide", "line": 3, "passed": True, "failed": [],
    }  # fmt: skip
    assert failed["failed"] == [{"expected": "NOT Open", "line": 8, "found": ["Open(?door = :d)"]}]


def test_nothing_to_test(files, run):
    (files / "plain.tide").write_text("QUERY All AS SELECT * { ?s ?p ?o }")
    ran = run("test", "plain.tide")
    assert ran.code == 2
    assert "plain.tide declares no tests" in ran.err
    assert "GIVEN" in ran.err


def test_a_run_ignores_tests(files, run):
    (files / "doors.tide").write_text(PROGRAM + FAILS)
    (files / "log.rdfp").write_text("TX .\nA <ex:a> <ex:b> <ex:c> .\nTC .\n")
    ran = run("run", "doors.tide", "--engine", "process", "--changes", "log.rdfp")
    assert ran.code == 0
    assert ran.lines == []
    assert "3 tests" not in run("check", "doors.tide").out
    assert "1 query, 0 events, 0 rules, 2 tests" in run("check", "doors.tide").out


def test_durations_are_in_ticks(files, run):
    (files / "left.tide").write_text("""PREFIX : <http://example.org/>
EVENT Opened(?d) AS { ?d :is :open }
EVENT Closed(?d) AS { ?d :is :closed }
PATTERN Left(?d) AS Opened(?d) -> NOT Closed(?d) WITHIN 30s
TEST Soon
  GIVEN EMIT :doors { :d :is :open }
  UNTIL 5
  EXPECT Left(:d)
""")
    assert run("test", "left.tide").code == 1
    assert run("test", "left.tide", "--tick-ms", "10000").code == 0

"""Programs on the command line: check, explain, fmt."""

from pathlib import Path

import pytest

ALARMS = Path(__file__).parents[2] / "examples" / "alarms.tide"
WRONG = """PREFIX : <ex:>
EVENT A(?x) AS { ?x a :A }
RULE r ON B(?x) THEN CALL f()
RULE s ON A(?x) TEHN
"""


def test_a_sound_program(run):
    ran = run("check", ALARMS)
    assert ran.code == 0
    assert ran.lines == [f"{ALARMS}: ok, 0 queries, 4 events, 4 rules, 4 tests"]


def test_all_mistakes_of_a_program_are_told(files, run):
    (files / "wrong.tide").write_text(WRONG)
    ran = run("check", "wrong.tide")
    assert ran.code == 1
    assert "wrong.tide:3:11: there is no event named B" in ran.out
    assert "wrong.tide:4:17: expected THEN, found 'TEHN'" in ran.out
    assert ran.out.count("hint: did you mean") == 1


NEVER = """PREFIX : <http://example.org/>
EVENT A(?x) AS { ?e :a ?x }
EVENT B(?x) AS { ?e :b ?x }
RULE r WHEN EVENT p = A(?x) EVENT c = B(?x) DURING p THEN INSERT { ?x :in :p }
"""
LASTING = "TEST t GIVEN AT 2 B(:x) FROM 1 TO 3 A(:x) EXPECT r\n"


def test_rules_that_never_fire_between_instants(files, run):
    (files / "never.tide").write_text(NEVER)
    (files / "log.rdfp").write_text("TX .\nA <ex:e> <http://example.org/a> <ex:x> .\nTC .\n")
    warning = "never.tide:4: warning: the rule r never fires: c DURING p never holds between"
    checked = run("check", "never.tide")
    assert checked.code == 0 and warning in checked.out
    ran = run("run", "never.tide", "--engine", "process", "--changes", "log.rdfp")
    assert ran.code == 0 and warning in ran.err and "warning" not in ran.out


def test_a_program_whose_tests_have_events_that_last(files, run):
    (files / "lasts.tide").write_text(NEVER + LASTING)
    assert run("test", "lasts.tide").code == 0
    assert "warning" not in run("check", "lasts.tide").out


def test_how_long_events_are_kept(run):
    ran = run("explain", ALARMS)
    assert ran.code == 0
    assert "RULE AlarmConfirmation" in ran.lines
    assert "  a = Alarm(?alarm, ?e)            retained for 5, as long as c may come" in ran.lines
    assert "  c = Confirmation(?conf, ?alarm)  not retained, no partner comes after it" in ran.lines


def test_the_plans_of_a_programs_queries(files, run):
    (files / "all.tide").write_text("QUERY All AS SELECT ?s { ?s ?p ?o }")
    assert run("explain", "all.tide").lines[:3] == ["QUERY All", "  strategy search", "  answer ?s"]


@pytest.mark.parametrize("name", ["alarms.tide", "rail.tide"])
def test_the_examples_are_laid_out(run, name):
    assert run("fmt", "--check", ALARMS.with_name(name)).code == 0


def test_fmt_writes_and_checks(files, run):
    (files / "a.tide").write_text("query a as SELECT * { ?s ?p ?o }")
    assert run("fmt", "a.tide", "--check").code == 1
    assert run("fmt", "a.tide").code == 0
    assert (files / "a.tide").read_text() == "QUERY a AS SELECT * { ?s ?p ?o }\n"
    assert run("fmt", "a.tide", "--check").code == 0


def test_fmt_refuses_what_it_cannot_read(files, run):
    (files / "wrong.tide").write_text(WRONG)
    ran = run("fmt", "wrong.tide")
    assert ran.code == 2
    assert "wrong.tide:4:17" in ran.err
    assert (files / "wrong.tide").read_text() == WRONG
    assert run("fmt").code == 2


DOORS = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?d { ?d :is :open }
EVENT Opened(?d) ON APPEAR OF Open(?d)
EVENT Closed(?d) ON DISAPPEAR OF Open(?d)
PATTERN Left(?d) AS Opened(?d) -> NOT Closed(?d) WITHIN 30s
RULE Tell ON Left(?d) THEN CALL tell(?d)
"""


def test_a_pattern_with_its_tokens(files, run):
    (files / "doors.tide").write_text(DOORS)
    (files / "day.rdfp").write_text(
        "TX .\nA <http://example.org/front> <http://example.org/is> <http://example.org/open> .\n"
        "TC .\n"
    )
    whole = run("explain", "doors.tide")
    assert whole.code == 0
    assert "[1] after Opened(?d)" in whole.lines
    assert "unless Closed(?d)" in whole.out
    assert "RULE Tell" in whole.lines
    shown = run("explain", "doors.tide", "--pattern", "Left", "--changes", "day.rdfp")
    assert "1 token now" in shown.lines
    assert "?d=<http://example.org/front> waits until 30" in shown.out


def test_the_plan_of_a_pattern_has_its_durations_in_ticks(files, run):
    (files / "left.tide").write_text(
        "EVENT A(?d) AS { ?d <ex:a> ?x }\nEVENT B(?d) AS { ?d <ex:b> ?x }\n"
        "PATTERN Left(?d) AS A(?d) -> NOT B(?d) WITHIN 30s\n"
    )
    usual = run("explain", "left.tide")
    longer = run("explain", "left.tide", "--tick-ms", "10000")
    assert usual.code == longer.code == 0 and usual.out != longer.out


def test_one_pattern_is_drawn(files, run):
    (files / "doors.tide").write_text(DOORS)
    drawn = run("explain", "doors.tide", "--pattern", "Left", "--format", "svg")
    assert drawn.code == 0
    assert drawn.out.startswith("<svg")
    whole = run("explain", "doors.tide", "--format", "svg")
    assert whole.code == 2
    assert "--pattern NAME" in whole.err
    assert "did you mean Left" in run("explain", "doors.tide", "--pattern", "Lef").err

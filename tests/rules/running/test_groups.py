"""Groups of rules that are switched on and off."""

import pytest

from graphtide import LiveGraph, Program
from graphtide.errors import GraphtideError, QueryError
from graphtide.lang.tide.builder import ProgramBuilder
from graphtide.lang.tide.format import format_program
from graphtide.rules.explain import explain_rules

EX = "<http://example.org/{}>".format
TEXT = """PREFIX : <http://example.org/>
EVENT Knock(?d) AS { ?d :is :knocked }
EVENT Ring(?d) AS { ?d :is :rung }
RULE Day WHEN EVENT k = Knock(?d) EVENT r = Ring(?d) AFTER[0,5] k THEN CALL day(?d)
RULE Night IN night PRIORITY 2
  WHEN EVENT k = Knock(?d) EVENT r = Ring(?d) AFTER[0,5] k THEN CALL night(?d)
"""


@pytest.fixture
def said():
    return []


@pytest.fixture
def program(said):
    functions = {"day": lambda _: said.append("day"), "night": lambda _: said.append("night")}
    return LiveGraph().run(Program.parse(TEXT), functions=functions)


def happen(program, what, time):
    program.assert_event([(EX("d"), EX("is"), EX(what))], time=time)


def test_a_disabled_group_does_not_fire_and_forgets(program, said):
    assert program.groups == {"night": True}
    happen(program, "knocked", 1)
    done = program.disable("night")
    assert done.removed == (("RULE", "Night"),)
    assert program.groups == {"night": False}
    happen(program, "rung", 2)
    assert said == ["day"]
    happen(program, "knocked", 3)
    program.enable("night")  # it has not seen the knock
    happen(program, "rung", 4)
    assert said == ["day", "day", "day"]
    happen(program, "knocked", 5)
    happen(program, "rung", 6)
    assert said[3:] == ["night", "day", "day", "day"]


def test_what_is_switched_twice_is_switched_once(program):
    program.disable("night")
    assert not program.disable("night").removed
    program.enable("night")
    assert not program.enable("night").added


def test_a_group_may_be_disabled_from_the_start(said):
    functions = {"day": lambda _: said.append("day"), "night": lambda _: said.append("night")}
    program = LiveGraph().run(Program.parse(TEXT), functions=functions, disabled=["night"])
    happen(program, "knocked", 1)
    happen(program, "rung", 2)
    assert said == ["day"]


def test_a_replacement_leaves_groups_disabled(program, said):
    program.disable("night")
    program.replace(TEXT.replace("AFTER[0,5]", "AFTER[0,6]"))
    assert program.groups == {"night": False}
    happen(program, "knocked", 1)
    happen(program, "rung", 2)
    assert said == ["day"]
    program.replace(TEXT.replace("IN night", ""))
    assert program.groups == {}
    assert [rule.name for rule in program.program.rules] == ["Day", "Night"]


def test_why_not_of_a_disabled_rule(program):
    program.disable("night")
    with pytest.raises(GraphtideError, match="in the group night, which is off"):
        program.why_not("Night")


def test_unknown_groups(program):
    with pytest.raises(GraphtideError, match="no group named nigt") as caught:
        program.disable("nigt")
    assert caught.value.hint == "did you mean night?"
    with pytest.raises(GraphtideError, match="no group"):
        LiveGraph().run(
            Program.parse(TEXT), functions={"day": print, "night": print}, disabled=["x"]
        )


def test_noise_of_a_pattern_does_not_depend_on_groups():
    text = TEXT + "PATTERN P(?d) AS Knock(?d) -> Ring(?d) CONTEXT STRICT"
    program = LiveGraph().run(Program.parse(text), functions={"day": print, "night": print})
    assert ("PATTERN", "P") in program.disable("night").kept


def test_the_language():
    rules = Program.parse(TEXT).rules
    assert [rule.group for rule in rules] == ["", "night"]
    assert "RULE Night IN night PRIORITY 2" in format_program(TEXT).splitlines()
    builder = ProgramBuilder().event("E", "?x", "?x a <ex:E>")
    builder = builder.rule("R", on="E(?x)", then=["CALL f(?x)"], group="g", priority=3)
    assert "RULE R IN g PRIORITY 3 ON E(?x) THEN CALL f(?x)" in builder.text
    assert builder.build().groups == ("g",)
    assert "RULE Night IN night" in explain_rules(Program.parse(TEXT))
    named = "EVENT In(?x) AS { ?x a <ex:In> } RULE In ON In(?x) THEN CALL in(?x)"
    assert Program.parse(named).rules[0].group == ""
    with pytest.raises(QueryError, match="expected a name"):
        Program.parse("EVENT E(?x) AS { ?x a <ex:E> } RULE R IN ON E(?x) THEN CALL f(?x)")

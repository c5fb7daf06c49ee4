"""TEST in programs: what it says, its mistakes, its layout; and that `test` may still be a name."""

import pytest

from graphtide.errors import QueryError
from graphtide.lang.tide.format import format_program
from graphtide.lang.tide.program import Program

HEAD = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?door { ?door :is :open }
EVENT Knock(?door, ?who) AS { ?door :by ?who ; :at ?place }
EVENT Opened(?door) ON APPEAR OF Open
RULE Let ON Knock(?door, ?who) THEN INSERT { ?door :is :open }
PATTERN Twice(?door) AS Knock(?door, _) -> Knock(?door, _)
"""


def parsed(text):
    return Program.parse(HEAD + text).tests[0]


def error_of(text):
    with pytest.raises(QueryError) as caught:
        Program.parse(HEAD + text)
    return caught.value


def test_steps_and_claims():
    found = parsed(
        "TEST t GIVEN INSERT { :d :is :shut } AT 3 Knock(:d, :ann) ; DELETE { :d :is :shut } "
        "PUBLISH { :x :y :z } AT 7 EMIT :s { :a :b 1 } UNTIL 9 "
        "EXPECT AT 3 Let(?door = :d) NOT Twice(:d) AT 8 2 Open FACT { ?d :is :open }"
    )
    assert [step.time for step in found.steps] == [0, 3, 3, 7]
    knock, delete = found.steps[1].given
    assert [str(p) for _, p, _ in knock.triples] == [
        "<http://example.org/by>",
        "<http://example.org/at>",
    ]
    assert delete.diff == -1
    assert str(found.steps[3].given[0].stream) == "<http://example.org/s>"
    assert found.until == 9
    kinds = [(c.kind, c.name, c.time, c.count, c.only) for c in found.claims]
    assert kinds[:3] == [
        ("rule", "Let", 3, None, False),
        ("pattern", "Twice", None, 0, False),
        ("query", "Open", 8, 2, False),
    ]
    assert found.claims[3].text == "FACT { ?d :is :open }"


def test_a_test_changes_nothing_in_a_program():
    plain = Program.parse(HEAD)
    assert Program.parse(HEAD + "TEST t EXPECT NOT Open") == plain
    assert not plain.tests


def test_a_test_may_be_included(tmp_path):
    (tmp_path / "tests.tide").write_text("PREFIX : <http://example.org/>\nTEST t EXPECT NOT Open")
    (tmp_path / "door.tide").write_text(HEAD + 'INCLUDE "tests.tide"')
    (test,) = Program.read(tmp_path / "door.tide").tests
    assert test.file.endswith("tests.tide")
    assert test.line == 2


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("TEST", "found 'TEST'", None),
        ("TEST GIVEN AT 3 Knock(:d, :a) EXPECT Open", "expected a name for the test", None),
        ("TEST t GIVEN AT 3 Knock(:d, :a)", "expected", None),
        ("TEST t EXPECT Opn", "no rule, pattern or query named Opn", "did you mean Open?"),
        ("TEST t EXPECT Let(:d)", "the values of a rule have no order", "write ?door = …"),
        ("TEST t EXPECT Let(?dor = :d)", "has no variable ?dor", "did you mean ?door?"),
        ("TEST t EXPECT Open(:a, :b)", "has 1 column\n", "it is Open(?door)"),
        ("TEST t EXPECT Open(?door)", "expected '='", None),
        ("TEST t EXPECT AT 1.5 Open", "invalid time 1.5", "whole ticks"),
        ("TEST t EXPECT 1.5 Open", "invalid number 1.5", "whole number"),
        ("TEST t EXPECT FACT { ?x }", "expected", None),
        ("TEST t GIVEN Knock(:d) EXPECT Open", "has 2 parameters, not 1", "it is Knock"),
        ("TEST t GIVEN Knock(:d, ?a) EXPECT Open", "?a has no value in a test", "a term"),
        ("TEST t GIVEN Opened(:d) EXPECT Open", "not an event that comes from outside", "insert"),
        ("TEST t GIVEN Twice(:d) EXPECT Open", "not an event that comes from outside", "insert"),
        ("TEST t GIVEN Knok(:d, :a) EXPECT Open", "no event named Knok", "did you mean Knock?"),
        ("TEST t GIVEN INSERT { ?a :b :c } EXPECT Open", "?a has no value in a test", "a term"),
        ("TEST t GIVEN INSERT { } EXPECT Open", "no triples", "write some"),
        ("TEST t GIVEN PUBLISH { GRAPH :g { :a :b :c } } EXPECT Open", "must not contain", "plain"),
        (
            "TEST t GIVEN AT 5 INSERT { :a :b :c } AT 4 INSERT { :a :b :d } EXPECT Open",
            "4 is before 5",
            "order of time",
        ),
        ("TEST t GIVEN AT 5 INSERT { :a :b :c } UNTIL 4 EXPECT Open", "4 is before 5", "in order"),
        ("TEST t GIVEN FROM 5 TO 4 Knock(:d, :a) EXPECT Open", "4 is before 5", "order of time"),
        ("TEST t GIVEN FROM 5 Knock(:d, :a) EXPECT Open", "expected TO", None),
        ("TEST t GIVEN FROM 1 TO 4 INSERT { :a :b :c } EXPECT Open", "INSERT does not last", "AT"),
        ("TEST t GIVEN FROM 1 TO 4 EMIT :s { :a :b :c } EXPECT Open", "EMIT does not last", "AT"),
        ("TEST t EXPECT Open\nTEST t EXPECT Open", "two tests named t", "line 7"),
    ],
)
def test_mistakes_have_a_place_and_a_hint(text, message, hint):
    error = error_of(text)
    assert message in error.message
    assert error.line >= 7
    if hint is not None:
        assert hint in (error.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "EVENT Test(?x) AS { ?x a :Test } RULE r ON Test(?x) THEN CALL test(?x)",
        "QUERY Test AS SELECT ?x { ?x a :T }\nRULE test ON APPEAR OF\n  Test THEN CALL f(?x)",
        (
            "EVENT Test(?x) AS { ?x a :T }\nPATTERN P(?x) AS\n  Test -> Test OR\n  Test\n"
            "RULE r ON P THEN CALL\n test(?x)"
        ),
    ],
)
def test_test_may_still_be_a_name(text):
    assert Program.parse("PREFIX : <ex:>\n" + text).rules


LAID_OUT = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?door { ?door :is :open }
EVENT Knock(?door) AS { ?door :is :knocked }

# It opens.
TEST Opens
  GIVEN INSERT { :d :is :shut }
        AT 3 DELETE { :d :is :shut } ; INSERT { :d :is :open }
        FROM 2 TO 5 Knock(:d)
  UNTIL 9
  EXPECT AT 2 NOT Open
         ONLY Open(:d)
         1 Open(?door = :d)
         NOT FACT { :d :is :shut }
TEST Shut
  EXPECT NOT Open
"""


def test_layout():
    assert format_program(LAID_OUT) == LAID_OUT
    flat = LAID_OUT.replace("\n  ", " ").replace("TEST", "test").replace("EXPECT", "expect")
    assert format_program(flat) == LAID_OUT
    assert Program.parse(flat).tests[0].claims[1].values == (
        ("door", Program.parse(LAID_OUT).tests[0].claims[1].values[0][1]),
    )

"""All errors of a program are reported together, each in its place, and none twice."""

from __future__ import annotations

import pytest

from graphtide.lang.tide.lexer import NAMED
from graphtide.lang.tide.program import Program

HEAD = "PREFIX : <http://example.org/>\nEVENT A(?x) AS { ?e :a ?x }\n"


def errors(text: str) -> list[tuple[int, str, str | None]]:
    """Line, first line of the message, and hint of each error."""
    found = Program.check(text).errors
    return [(e.line or 0, e.message.split("\n")[0], e.hint) for e in found]


DECLARED = {
    "QUERY": "Hot AS SELECT ?x { ?x :is :hot }",
    "EVENT": "B(?x) AS { ?e :b ?x }",
    "PATTERN": "P(?x) AS A(?x) -> A(?x)",
    "RULE": "R WHEN EVENT a = A(?x) THEN CALL tell(?x)",
    "GOAL": "G NONE OF Cold",
    "FIX": "F ON Cold(?x) THEN DELETE { ?x :is :cold }",
    "TEST": "T GIVEN INSERT { :a :is :cold } EXPECT Cold(:a)",
}
AFTER = "QUERY Cold AS SELECT ?x { ?x :is :cold }\n"


@pytest.mark.parametrize("word", NAMED)
@pytest.mark.parametrize("before", ["", "QUERY First AS SELECT ?x { ?x :is 1 }\n"])
def test_a_misspelt_declaration_is_one_error_and_the_rest_is_read(word, before):
    for at in range(1, len(word)):  # a letter is missing
        wrong = word[:at] + word[at + 1 :]
        if len(wrong) < 3:
            continue
        text = f"{HEAD}{before}{wrong} {DECLARED[word]}\n{AFTER}"
        program, found = Program.check(text)
        assert [(e.column, e.hint) for e in found] == [(1, f"did you mean {word}?")], wrong
        named = (program.queries, program.events, program.patterns, program.rules)
        assert {d.name for kind in named for d in kind} >= {"A", "Cold"}


def test_errors_inside_of_a_misspelt_declaration_are_reported_too():
    text = HEAD + "RULEE R ON A(?x) THEN CALL tell(?y)\nEVNT B(?z) AS { ?e :b ?x }"
    assert [(line, message.split(",")[0]) for line, message, _ in errors(text)] == [
        (3, "expected PREFIX"),
        (3, "?y has no value in this rule"),
        (4, "expected PREFIX"),
        (4, "the parameter ?z of the event B is not bound"),
    ]


def test_a_broken_declaration_hides_no_error_of_its_users_and_causes_none():
    text = (
        HEAD
        + """EVENT B(?x) AZ { ?e :b ?x }
QUERY Q AS SELEC ?x { ?x :is 1 }
RULE R ON B(?x) THEN CALL tell(?x)
RULE S ON B(?x) THEN CALL tell(?y)
RULE T WHEN EVENT a = A(?x) EVENT b = B(?y) AFTER[9,1] a THEN INSERT { ?x :and ?z }
RULE U ON APPEAR OF Q(?x) THEN CALL tell(?x)
PATTERN P(?x) AS A(?x) -> B(?x)
"""
    )
    assert [(line, message) for line, message, _ in errors(text) if line > 4] == [
        (6, "?y has no value in this rule"),
        (7, "the lower bound is above the upper bound"),
        (7, "?z has no value in this rule"),
    ]
    assert {line for line, *_ in errors(text)} == {3, 4, 6, 7}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("RULE R WEN EVENT a = A(?x) THEN CALL tell(?x)", "WHEN"),
        ("RULE R WHEN EVENT a = A(?x) EVENT b = A(?x) AFTR a THEN CALL tell(?x)", "AFTER"),
        ("RULE R WHEN EVENT a = A(?x) EVENT b = A(?x) DURNG a THEN CALL tell(?x)", "DURING"),
        ("RULE R ON A(?x) THN CALL tell(?x)", "THEN"),
        ("RULE R ON A(?x) THEN CAL tell(?x)", "CALL"),
        ("PATTERN P(?x) AS (A(?x) -> A(?x)) WITIN 5s", "WITHIN"),
        ("PATTERN P(?x) AS A(?x) -> A(?x) CONTXT STRICT", "CONTEXT"),
        ("PATTERN P(?x) AS A(?x) -> A(?x) CONTEXT STRCT", "STRICT"),
        ("EVENT B(?x) AS { ?e :b ?x } CHEK (?x > 1)", "CHECK"),
        ("EVENT B(?x) ON APEAR OF Q(?x)", "APPEAR"),
    ],
)
def test_a_misspelt_keyword_has_the_word_that_was_meant(wrong, right):
    (found,) = errors(f"{HEAD}{wrong}\n")
    assert found[2] == f"did you mean {right}?"


def test_names_that_look_like_declarations_stay_names():
    text = (
        HEAD
        + "RULE R WHEN EVENT evnt = A(?x)\nEVENT rul = A(?x)\nrul AFTER evnt\nTHEN CALL tell(?x)"
    )
    assert errors(text) == []

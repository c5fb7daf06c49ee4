"""Patterns that are refused: each with its reason, its place and advice, also those of Python."""

import pytest

from graphtide.algebra.expressions import Var
from graphtide.lang.durations import WrittenDuration
from graphtide.lang.tide.ast import (
    Atom,
    Either,
    Follows,
    HoldsFor,
    Interleaved,
    Not,
    PatternDeclaration,
    Repeat,
    Within,
)
from graphtide.lang.tide.pattern_checks import flaws_of
from graphtide.lang.tide.program import Program

HEAD = """PREFIX : <http://example.org/>
EVENT a AS { :a :is :a } EVENT b AS { :b :is :b } EVENT c AS { :c :is :c } EVENT d AS { :d :is :d }
EVENT A(?x) AS { ?x a :A } EVENT B(?x, ?y) AS { ?x :b ?y }
"""


def errors_of(text):
    found = Program.check(HEAD + text)[1]
    return [(e.line, e.column, e.message.split("\n")[0], e.hint or "") for e in found]


def only_error_of(text):
    (error,) = errors_of(text)
    return error


SHAPES = [
    # what accepts the empty trace, or none
    ("a{*}", 2, "the pattern P accepts the empty sequence", "{+} instead of {*}"),
    ("a{*} OR b", 2, "the pattern P accepts the empty sequence", "{+} instead of {*}"),
    ("(a -> b){*}", 9, "the pattern P accepts the empty sequence", "{+} instead of {*}"),
    ("(a -> b) WITHIN 1s HOLDS FOR 2s", 20, "HOLDS FOR is longer", "WITHIN is the maximum"),
    ("(a -> b) WITHIN 1 HOLDS FOR 2", 19, "HOLDS FOR is longer", "WITHIN is the maximum"),
    ("((a -> b) HOLDS FOR 2s -> c) WITHIN 1s", 30, "HOLDS FOR is longer", "WITHIN is the maximum"),
    ("((a -> b) HOLDS FOR 2s){3} WITHIN 5s", 28, "HOLDS FOR is longer", "WITHIN is the maximum"),
    ("ALL((a -> b) HOLDS FOR 2s, c) WITHIN 1s", 31, "HOLDS FOR is longer", "WITHIN is the maximum"),
    ("(a -> NOT b WITHIN 5s) WITHIN 3s", 24, "HOLDS FOR is longer", "WITHIN is the maximum"),
    ("(a -> NOT b WITHIN 5s) HOLDS FOR 6s", 24, "HOLDS FOR is longer", "WITHIN is the maximum"),
    ("(a OR b) HOLDS FOR 1s", 10, "HOLDS FOR is longer", "WITHIN is the maximum"),
    ("a{0}", 2, "nothing can match {0}", "write {1} or more"),
    ("a -> b{0}", 7, "nothing can match {0}", "write {1} or more"),
    # NOT
    ("NOT a", 1, "cannot begin with NOT", "event before it"),
    ("NOT a -> b", 1, "cannot begin with NOT", "event before it"),
    ("NOT a WITHIN 5s", 1, "cannot begin with NOT", "event before it"),
    ("a{*} -> NOT b -> c", 9, "cannot begin with NOT", "event before it"),
    ("(NOT a -> b){+} -> c", 2, "cannot begin with NOT", "event before it"),
    ("a -> NOT b", 6, "the end of a pattern needs WITHIN", "add WITHIN and a duration"),
    ("a -> NOT b -> c{*}", 6, "the end of a pattern needs WITHIN", "add WITHIN and a duration"),
    ("(a -> NOT b){3}", 7, "the end of a pattern needs WITHIN", "add WITHIN and a duration"),
    ("(a -> NOT b) AND c", 7, "the end of a pattern needs WITHIN", "add WITHIN and a duration"),
    ("a -> (NOT b OR c)", 7, "NOT cannot be an operand of OR", "an event before it"),
    ("a -> (c OR NOT b WITHIN 5s)", 12, "NOT cannot be an operand of OR", "an event before it"),
    ("a AND NOT b", 7, "NOT cannot be an operand of AND", "an event before it"),
    ("a -> ALL(b, NOT c)", 13, "NOT cannot be an operand of ALL", "an event before it"),
    ("a -> NOT b{*} -> c", 6, "the pattern after NOT accepts", "{+} instead of {*}"),
    ("a -> NOT (b{*} OR c) -> d", 6, "the pattern after NOT accepts", "{+} instead of {*}"),
    ("a -> NOT NOT b -> c", 6, "NOT NOT is not allowed", "remove both"),
    ("a -> NOT (NOT b) -> c", 6, "NOT NOT is not allowed", "remove both"),
    ("a -> NOT (NOT b WITHIN 5s) -> c", 6, "NOT NOT is not allowed", "remove both"),
    ("a -> NOT (NOT b -> c) -> d", 11, "cannot begin with NOT", "event before it"),
    ("a -> NOT (b -> NOT c) -> d", 16, "the end of a pattern needs WITHIN", "an event after it"),
    ("a -> (NOT b){3} -> c", 13, "NOT alone cannot be repeated", "NOT a{3}"),
    ("a -> (NOT b) HOLDS FOR 5s -> c", 14, "HOLDS FOR cannot be applied to NOT", "NOT … WITHIN"),
    ("a -> (NOT b -> NOT c) WITHIN 5s", 23, "needs an event outside of NOT", "same brackets"),
    # times on what takes none
    ("a WITHIN 5s", 3, "WITHIN on a single event has no effect", "(a -> b) WITHIN"),
    ("((a)){1} WITHIN 5s", 10, "WITHIN on a single event has no effect", "(a -> b) WITHIN"),
    ("b -> a HOLDS FOR 5s", 8, "HOLDS FOR on a single event has no effect", "HOLDS FOR …"),
    ("a -> NOT b HOLDS FOR 5s -> c", 12, "HOLDS FOR on a single event has no effect", "HOLDS FOR"),
    ("(a -> b) WITHIN -5s", 10, "WITHIN is negative", "0 or more"),
    # ALL
    ("ALL(a{+}, b)", 6, "{+} and {*} are not allowed inside ALL", "a fixed number"),
    ("ALL(a -> (b OR c{*}), d)", 17, "{+} and {*} are not allowed inside ALL", "a fixed number"),
    ("ALL(ALL(a{+}, b), c)", 10, "{+} and {*} are not allowed inside ALL", "a fixed number"),
    ("ALL(a -> NOT b -> c, d)", 10, "NOT is not allowed inside ALL", "use AND"),
    # size
    ("a{10001}", -9, "P has more than 10,000 positions", "use smaller parts"),
    ("(a -> b){100}{51}", -9, "P has more than 10,000 positions", "use smaller parts"),
    (" AND ".join("a" * 11), -9, "P has more than 10,000 positions", "use smaller parts"),
    ("ALL(a{99}, b{99})", -9, "P has more than 10,000 positions", "use smaller parts"),
    # what cannot be read
    ("cc -> A(?x)", 1, "there is no event named cc", "did you mean c?"),
    ("A(?x, ?y) -> b", 2, "the event A has 1 parameter, not 2", "it is A(?x)"),
    ("A(x) -> b", 3, "expected a variable or a term, found 'x'", ""),
    ("A(ex:c) -> b", 3, "the prefix 'ex:' is not declared", ""),
    ("a{} -> b", 2, "invalid repetition '{}'", "{3} for three times"),
    ("a{1 0} -> b", 2, "invalid repetition '{1 0}'", "{3} for three times"),
    ("(a -> b) WITHIN 1.5s", 17, "expected a duration, found '1.5s'", "500ms"),
    ("(a -> b) WITHIN 5x", 17, "expected a duration, found '5x'", "500ms"),
    ("(a -> b) WITHIN c", 17, "expected a duration such as 10s, found 'c'", ""),
    ("(a -> b) WITHN 5s", 10, "expected '->', a repetition such as '{3}'", "did you mean WITHIN?"),
    ("a - > b", 3, "expected '(', '->'", ""),
    ("a ->", 4, "expected a name, '(', NOT or ALL, found the end", ""),
    ("a -> Strict", 6, "expected a name, '(', NOT or ALL, found 'Strict'", "is a keyword"),
    ("(a -> b", 7, "expected ')', found the end", ""),
    ("a -> b CONTEXT STRCT", 16, "expected CHRONICLE, IMMEDIATE, STRICT or UNRES", "STRICT?"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "column", "message", "hint"), SHAPES)
def test_a_mistake_has_its_place_and_advice(text, column, message, hint):
    line, found, problem, advice = only_error_of(f"\n\nPATTERN P AS {text}")
    ends_early = problem.endswith("the end of the program")
    assert (line, found) == (6, 13 + column + ends_early if column > 0 else 9)
    assert message in problem
    assert hint in advice
    assert bool(hint) == bool(advice) or "prefix" in message


VARIABLES = [  # the mark is where the mistake is
    ("(^?z) AS A(?x) -> B", "the parameter ?z of the pattern P is not bound", "there are ?x, ?y"),
    ("(^?x) AS A(?x) OR a", "?x is not bound in some matches of the pattern P", "OR"),
    ("(^?x) AS a -> A(?x){*}", "?x is not bound in some matches of the pattern P", "{*}"),
    ("(?a, ^?x) AS B(?a, _) -> NOT A(?x) -> b", "?x occurs only in NOT", "outside of NOT"),
    ("(^?x, ?x) AS A(?x)", "?x is given twice", ""),
    ("^(:x) AS a -> b", "only variables are allowed here", ""),
    (" AS a -> ^NOT A(?x) -> A(?x)", "?x is used in NOT before", "before NOT"),
    (" AS a -> ^NOT (A(?x) -> b) -> c -> A(?x)", "is used in NOT before", "before NOT"),
    (" AS a -> (^NOT A(?x) -> A(?x)){2}", "?x is used in NOT before", "before NOT"),
    (" AS (a -> ^NOT A(?x) -> b) AND A(?x)", "?x is used in NOT before", "before NOT"),
    (" AS A(?x) OR a -> ^NOT A(?x) -> A(?x)", "?x is used in NOT before", "before NOT"),
    (" AS A -> B CONTEXT STRICT PER ^?y", "PER ?y: the event A does not have ?y", "begins with"),
    (" AS (a OR A) -> A CONTEXT STRICT PER ^?x", "PER ?x: the event a does", "begins with"),
    (" AS A -> A CONTEXT STRICT PER ?x, ^?x", "?x is given twice", ""),
]


@pytest.mark.parametrize(("marked", "message", "hint"), VARIABLES)
def test_variables_that_have_no_value(marked, message, hint):
    text = f"PATTERN P{marked}"
    line, column, problem, advice = only_error_of(text.replace("^", ""))
    assert (line, column) == (4, text.index("^") + 1)
    assert message in problem
    assert hint in advice


@pytest.mark.parametrize(
    "text",
    [
        "A(?x) -> NOT B(?x, ?any) -> a",
        "(A(?x) OR B(?x, _)) -> NOT A(?x) -> A(?x)",
        "(A(?x) OR a) -> NOT A(?x) -> b",  # where nothing gives ?x a value, it may be anything
        "a -> NOT (A(?x) -> B(?x, ?y)) -> b",
        "a -> (NOT b -> c){+} -> d",
        "(a -> NOT b){+} -> c",
        "((a -> NOT b) OR c) -> d",
        "a -> NOT b -> NOT c -> d",
        "a -> NOT b WITHIN 5s -> NOT c WITHIN 5s",
        "(a -> NOT b) WITHIN 5s HOLDS FOR 2s",
        "(a -> b) WITHIN 1s HOLDS FOR 20",  # a tick may be anything
        "(a -> b) WITHIN 1s HOLDS FOR 1s",
        "(a OR b) WITHIN 1s",
        "ALL(a{3}, (b -> c) WITHIN 5s)",
        " AND ".join("a" * 10),
        "a{10000}",
        "a -> a{9999}",
    ],
)
def test_what_is_not_refused(text):
    assert errors_of(f"PATTERN P AS {text}") == []


# --- patterns inside of patterns ---


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("PATTERN P AS a -> P", 9, "the pattern P uses itself"),
        ("PATTERN P AS a -> Q PATTERN Q AS P", 9, "the pattern P uses itself: P -> Q -> P"),
        (
            "PATTERN X AS P PATTERN P AS Q OR a PATTERN R AS P -> a PATTERN Q AS R{2}",
            24,
            "the pattern P uses itself: P -> Q -> R -> P",
        ),
    ],
)
def test_a_pattern_that_uses_itself(text, column, message):
    line, found, problem, advice = only_error_of(text)
    assert (line, found, problem) == (4, column, message)
    assert advice


def test_each_circle_is_told_of():
    found = errors_of("PATTERN P AS P PATTERN Q AS Q PATTERN R AS P -> S PATTERN S AS R")
    assert [problem for *_, problem, _ in found] == [
        "the pattern P uses itself",
        "the pattern Q uses itself",
        "the pattern R uses itself: R -> S -> R",
    ]


def test_a_mistake_that_a_use_makes_is_where_the_use_is():
    text = "PATTERN P AS a{+} -> b\nPATTERN Q AS ALL(c, P)\nPATTERN R AS c -> NOT Q -> d"
    line, column, problem, _ = only_error_of(text)
    assert (line, column, problem) == (5, 21, "{+} and {*} are not allowed inside ALL")


def test_names_are_shared_with_events():
    line, column, problem, advice = only_error_of("PATTERN a AS b -> c")
    assert (line, column, problem) == (4, 9, "there are two events named a")
    assert advice == "the first one is in line 2"
    line, column, problem, advice = only_error_of("PATTERN P AS a -> b RULE r ON PP THEN CALL f()")
    assert (problem, advice) == ("there is no event named PP", "did you mean P?")
    problem = only_error_of("PATTERN P(?x) AS A(?x) -> b RULE r ON P(?x, ?y) THEN CALL f()")[2]
    assert problem == "the event P has 1 parameter, not 2"


def test_the_context_of_a_file():
    text = "PATTERN P AS a -> b CONTEXT STRICT\nCONTEXT STRICT"
    line, column, problem, advice = only_error_of(text)
    assert (line, column, problem) == (5, 1, "CONTEXT must come before the patterns of a file")
    assert advice == "write it above the first PATTERN"
    problem = only_error_of("CONTEXT STRICT CONTEXT STRICT")[2]
    assert problem == "CONTEXT is given twice in this file"


@pytest.mark.parametrize(
    "text",
    ["(" * 5000 + "a" + ")" * 5000, "a" + "{1}" * 5000, "a -> NOT (" * 200 + "a" + ")" * 200],
)
def test_what_is_nested_too_deep(text):
    assert "nested deeper than 100" in only_error_of(f"PATTERN P AS {text}")[2]


@pytest.mark.slow
def test_patterns_inside_of_patterns_do_not_explode():
    doubled = " ".join(f"PATTERN P{n + 1} AS P{n} -> P{n}" for n in range(60))
    found = errors_of(f"PATTERN P0 AS a -> b {doubled}")
    assert {problem for *_, problem, _ in found} == {
        "with P12 this pattern has more than 10,000 positions"
    }
    wrapped = " ".join(f"PATTERN P{n + 1} AS (P{n} OR a) -> b" for n in range(80))
    found = errors_of(f"PATTERN P0 AS a -> b {wrapped}")
    assert {problem for *_, problem, _ in found} == {"this pattern is nested deeper than 100"}


# --- patterns made in Python ---

a, b = Atom("a", ()), Atom("b", ())
x = Var("x")
MADE = [
    (Repeat(a, 0, None), (), "accepts the empty sequence"),
    (Repeat(a, 5, 2), (), "nothing can match {5,2}"),
    (Repeat(a, -1, -1), (), "nothing can match {-1}"),
    (Not(a), (), "cannot begin with NOT"),
    (Either((a, Not(b))), (), "NOT cannot be an operand of OR"),
    (Interleaved((a, Repeat(b, 1, None))), (), "are not allowed inside ALL"),
    (Within(a, WrittenDuration(5)), (), "WITHIN on a single event"),
    (
        HoldsFor(Within(Follows((a, b)), WrittenDuration(1)), WrittenDuration(2)),
        (),
        "HOLDS FOR is longer",
    ),
    (Follows((a, b)), (x,), "the parameter ?x of the pattern P is not bound"),
]


@pytest.mark.parametrize(("body", "parameters", "message"), MADE)
def test_patterns_made_in_python_are_checked_too(body, parameters, message):
    found = flaws_of(PatternDeclaration("P", parameters, body, "CHRONICLE", (), 1))
    assert any(message in flaw.message for flaw in found)


def test_a_sound_pattern_made_in_python():
    body = Follows((Atom("A", (x,)), Within(Not(b), WrittenDuration(5))))
    assert not list(flaws_of(PatternDeclaration("P", (x,), body, "STRICT", (), 1)))

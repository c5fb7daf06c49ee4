"""Patterns and texts that would take a backtracking matcher for ever, or more memory than is."""

from __future__ import annotations

import pytest

from graphtide.errors import ExpressionError
from graphtide.functions.regex import compile_pattern, compile_replacement
from graphtide.limits import Allowance, Limits


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 5000 + "b"),
        ("^(a|a)*$", "a" * 5000 + "b"),
        ("^(a|aa)+$", "a" * 5000 + "b"),
        ("(.*)*x$", "a" * 5000),
        ("^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 5000),
        ("(x+x+)+y", "x" * 5000),
        ("a{0,30}a{0,30}a{0,30}a{0,30}$b", "a" * 5000),
    ],
)
def test_exponential_patterns_take_linear_time(pattern, text):
    with Allowance(Limits(regex_steps=1)):  # so that it was not the backtracking matcher
        assert not compile_pattern(pattern).search(text)


def test_hostile_patterns_with_a_back_reference_run_out_of_steps():
    limits = Limits(regex_steps=10_000)
    compiled = compile_pattern(r"^(a+)+\1b$")
    with Allowance(limits):
        assert compiled.search("aab")
        with pytest.raises(ExpressionError, match="too many steps"):
            compiled.search("a" * 40)
    assert limits.exceeded == {"regex_steps": 1}


def test_the_steps_of_all_matches_of_a_replacement_count_together():
    compiled = compile_pattern(r"(a)\1")
    parts = compile_replacement("x", 1)
    with Allowance(Limits(regex_steps=1000)):
        assert compiled.replace("aa" * 50, parts) == "x" * 50
        with pytest.raises(ExpressionError, match="too many steps"):
            compiled.replace("aa" * 500, parts)


@pytest.mark.parametrize(
    "pattern", ["(((a{1000}){1000}){1000})", "(" * 200 + ")" * 200, "a{9999999999}", "[" * 200]
)
def test_huge_patterns_are_errors(pattern):
    with pytest.raises(ExpressionError):
        compile_pattern(pattern)


# https://www.w3.org/TR/xpath-functions-31/#regex-syntax, on back-references
@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^([ab])x\1$", ["axa", "bxb"], ["axb", "x"]),
        (r"""('|").*\1""", ["'a'", '"b"'], ["'a\""]),
        (r"^(a)|\1b$", ["a", "b"], ["c"]),  # a group that has matched nothing is empty
        (r"^(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10$", ["abcdefghijj"], ["abcdefghija0"]),
        (r"^(a)\10$", ["aa0"], ["aa"]),  # there is no group 10
    ],
)
def test_back_references(pattern, yes, no):
    compiled = compile_pattern(pattern)
    assert [text for text in yes + no if compiled.search(text)] == yes


def test_back_references_ignore_case_where_the_pattern_does():
    assert compile_pattern(r"^(é)\1$", "i").search("éÉ")
    assert not compile_pattern(r"^(é)\1$").search("éÉ")


@pytest.mark.parametrize("pattern", [r"\1(a)", r"(a\1)", r"(a)\2"])
def test_a_reference_to_a_group_that_has_not_ended_is_an_error(pattern):
    with pytest.raises(ExpressionError, match="has not ended before it"):
        compile_pattern(pattern)


def test_word_boundaries_are_those_of_unicode():
    compiled = compile_pattern(r"\bé")
    assert [text for text in ("é", "aé", "a é", "éa") if compiled.search(text)] == [
        "é",
        "a é",
        "éa",
    ]
    assert compile_pattern(r"\bb\b").search("a b c")
    assert compile_pattern(r"o\b").replace("yo é zoé", ("0",)) == "y0 é zoé"


def test_more_repetitions_than_the_linear_matcher_knows():
    compiled = compile_pattern("^a{1500}$")
    assert compiled.search("a" * 1500)
    assert not compiled.search("a" * 1499)


# https://www.w3.org/TR/xpath-functions-31/#flags, on the flag i
@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("[A-Z-[IO]]", ["A", "B", "a", "b"], ["I", "O", "i", "o"]),
        ("[^Q]", ["x"], ["q", "Q"]),
        ("z", ["z", "Z"], ["y"]),
    ],
)
def test_case_is_ignored_before_complements_and_subtractions(pattern, yes, no):
    compiled = compile_pattern(f"^{pattern}$", "i")
    assert [text for text in yes + no if compiled.search(text)] == yes

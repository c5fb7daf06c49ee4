"""Patterns: the shared part as pyoxigraph matches it, the rest by the XPath recommendation."""

from __future__ import annotations

import re

import pytest
from pyoxigraph import Literal
from support.sampling import quick_sample

from graphtide.algebra.expressions import Call, Const, Var
from graphtide.errors import ExpressionError
from graphtide.functions.regex import compile_pattern, compile_replacement

A = Var("a")
TEXTS = [
    *("", "a", "b", "abc", "ab", "aab", "ABC", "a-c", "a c", "a\nb", "a\n", "a.c", "[]", "{"),
    *("$a^", "é😀ß", "aa", "K", "KELVIN \u212a", "1", "٣", "\u00a0", "\x1c", "a#b", "_", "+"),
    *("-", "x]", "a_b", "\\", "a\tb", "σς", "&", "a/b"),
]
PATTERNS = [
    *("a", "^a", "a$", "^abc$", "b+", "a.c", "[abc]+", "[^a]", "a|b", "(a)(b)", "(?:ab)+"),
    *("a{2}", "a{2,}", "a{1,2}", "a*?b", "a{1000}", "(^a)", "a||b", "(|a)", "()", "", "^", "$"),
    *(r"\d+", r"\D", r"\w+", r"\W", r"\s", r"\S+", r"\p{L}", r"\p{Lu}", r"\P{L}", r"\pL"),
    *(r"[\p{L}-]", "[a-]", "[-a]", r"[a\-z]", r"[\]]", "[]a]", r"[^\d]", r"[\d\s]", r"[\D]"),
    *(r"[^\D]", r"[\W]", "[.]", "[é]", r"[\^a]", "[a^]", "[a|b]", "[(]", r"[\P{L}a]"),
    *(r"\.", r"\\", r"\n", r"\t", r"\$", r"\^", r"\/", r"\-", r"\b", r"\Bb", r"\A", r"\z"),
    *(r"\x41", r"\x{41}", r"\u0041", r"\ ", r"\#", "&", "~", "#", "a b", "a#b", "é", "😀"),
    *("(?i)AB", "(?i:A)b", "(?P<x>a)", "(?<x>a)", "]", "}", "ß", "K", r"\p{Cn}"),
]
INVALID = [
    *("(", ")", "a)", "(a", "*", "+a", "?", "a|*", "[", "[]", "[a", "[b-a]", r"[a-\d]", "a{"),
    *("a{,2}", "{", "\\", r"\q", r"\1", "(?=a)", "(?!a)", "(?<=a)b", "(?>a)", "(?#c)a", r"\Z"),
    *(r"\p{Qq}", r"\p{IsBasicLatin}", r"\é"),
]


@pytest.mark.parametrize("flags", quick_sample(["", "i", "s", "m", "x", "q", "sm"], 3))
@pytest.mark.parametrize("pattern", PATTERNS + INVALID)
def test_matches_as_pyoxigraph(make_oracle, ours, pattern, flags):
    expression = Call("REGEX", (A, Const(Literal(pattern)), Const(Literal(flags))))
    oracle = make_oracle([Literal(text) for text in TEXTS])
    for text, expected in zip(TEXTS, oracle.unary(expression), strict=True):
        assert ours(expression, {A: Literal(text)}) == expected, text


@pytest.mark.parametrize(
    "pattern", [*INVALID, "a++", "a{2}{3}", "[[:alpha:]]", "a(?i)b", r"a\x{110000}"]
)
def test_invalid_patterns_are_errors(pattern):
    with pytest.raises(ExpressionError):
        compile_pattern(pattern)


# https://www.w3.org/TR/xmlschema11-2/#regexs
@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("[a-z-[aeiou]]", "bz", "aeB"),
        ("[^a-z-[0-9]]", "A-", "a5"),
        (r"[\w-[\d]]", "ab_", "19-"),
        (r"[a-z-[b-y-[m]]]", "amz", "by"),
        (r"\i", "a_:é", "1-. "),
        (r"\c", "a1-._:", " +"),
        (r"[\c-[\i]]", "1-.", "a:"),
        (r"\I", "1-", "a_"),
        (r"\C", " +", "a1"),
        (r"[^\C]", "a1", " +"),
        (r"\p{Nd}", "1٣", "aⅧ"),
    ],
)
def test_classes_of_xml_schema(pattern, yes, no):
    compiled = compile_pattern(pattern)
    assert [character for character in yes + no if compiled.search(character)] == list(yes)


@pytest.mark.parametrize(
    ("text", "pattern", "replacement", "flags", "expected"),
    [
        # The examples of https://www.w3.org/TR/xpath-functions-31/#func-replace
        ("abracadabra", "bra", "*", "", "a*cada*"),
        ("abracadabra", "a.*a", "*", "", "*"),
        ("abracadabra", "a.*?a", "*", "", "*c*bra"),
        ("abracadabra", "a", "", "", "brcdbr"),
        ("abracadabra", "a(.)", "a$1$1", "", "abbraccaddabbra"),
        ("AAAA", "A+", "b", "", "b"),
        ("AAAA", "A+?", "b", "", "bbbb"),
        ("darted", "^(.*?)d(.*)$", "$1c$2", "", "carted"),
        ("reluctant", "r.*t", "tapioca", "q", "reluctant"),
        # Further rules of the same clause
        ("ab", "(a)|(b)", "[$1$2]", "", "[a][b]"),
        ("ab", "a", r"\$\\", "", "$\\b"),
        ("ab", "(a)", "$0$0", "", "aab"),
        ("ab", "a", "$1", "", "b"),
        ("a\nb", "^.$", "x", "m", "x\nx"),
        ("a b", "a b", "x", "x", "a b"),
        ("a.b", "A.B", "$", "iq", "$"),
    ],
)
def test_replacements(text, pattern, replacement, flags, expected):
    compiled = compile_pattern(pattern, flags)
    parts = compile_replacement(replacement, compiled.groups, flags)
    assert compiled.replace(text, parts) == expected


@pytest.mark.parametrize("replacement", ["$", "a$b", "\\", r"\n", "${1}"])
def test_invalid_replacements_are_errors(replacement):
    with pytest.raises(ExpressionError):
        compile_replacement(replacement, 1)


def test_unknown_flags_are_errors():
    with pytest.raises(ExpressionError, match=re.escape("flag: g, z")):
        compile_pattern("a", "gzi")

"""The linear matcher, the backtracking one and Python's `re` find the same matches."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from graphtide.functions.regex import compile_pattern, compile_replacement, syntax
from graphtide.functions.regex.backtracking import BacktrackingProgram
from graphtide.limits import Allowance, Limits

ATOMS = ["a", "b", "é", "_", ".", "[ab]", "[^a]", "[a-cé]", r"\d", r"\w", r"\s", r"\D", "1", " "]
QUANTIFIERS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}"]
UNLIMITED = Limits(regex_steps=None)


def combine(inner):
    """Larger patterns from smaller ones."""
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        inner.map(lambda body: f"({body})"),
        st.tuples(inner, st.sampled_from(QUANTIFIERS)).map(lambda two: f"(?:{two[0]}){two[1]}"),
        st.tuples(inner, st.sampled_from(QUANTIFIERS)).map(lambda two: f"({two[0]}){two[1]}"),
    )


anchored = st.tuples(
    st.sampled_from(["", "", "^"]),
    st.recursive(st.sampled_from(ATOMS), combine, max_leaves=6),
    st.sampled_from(["", "", "$"]),
).map("".join)
texts = st.text("abcéA_1 \n", max_size=10)
flags = st.sampled_from(["", "i", "s", "m", "im"])


def by_re(pattern, flag):
    """The same pattern for Python, whose `$` also matches before a last newline."""
    translated = pattern if "m" in flag else pattern.replace("$", r"\Z")
    return re.compile(f"(?{flag}){translated}" if flag else translated)


def spans_of(match):
    return [place for group in range(match.re.groups + 1) for place in match.span(group)]


@given(anchored, texts, flags)
def test_matches_are_those_of_re(pattern, text, flag):
    expected = by_re(pattern, flag)
    assert compile_pattern(pattern, flag).search(text) == bool(expected.search(text))


@given(anchored, texts, flags)
def test_the_backtracking_matcher_finds_the_spans_of_re(pattern, text, flag):
    program = BacktrackingProgram(syntax.parse_pattern(pattern, flag))
    with Allowance(UNLIMITED):
        found = next(program.finditer(text), None)
    expected = by_re(pattern, flag).search(text)
    assert found == (None if expected is None else spans_of(expected))


@given(anchored, texts, flags, st.sampled_from(["x", "<$0>", "$1$1"]))
def test_replacements_are_those_of_re(pattern, text, flag, replacement):
    compiled = compile_pattern(pattern, flag)
    expected = by_re(pattern, flag)
    if expected.search(""):
        return  # an error of REPLACE
    parts = compile_replacement(replacement, compiled.groups)
    with Allowance(UNLIMITED):
        found = compiled.replace(text, parts)
    groups = expected.groups
    filled = {"x": r"x", "<$0>": r"<\g<0>>", "$1$1": r"\1\1" if groups else ""}[replacement]
    assert found == expected.sub(filled, text)

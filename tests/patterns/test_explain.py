"""What explain says: in words, as Mermaid, as SVG; with tokens and without."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from patterns.patterns import automaton, detector, either, holds, no, plus, run, star, then, within

from graphtide.patterns.explain import explain_pattern
from graphtide.patterns.measure import lifetime
from graphtide.patterns.tables import key_of

BODY = then(within(then("a(v)", no(then("x(v)", "y(v)")), "b(v)"), 5), within(no("c(v)"), 30))


def test_the_whole_text_with_live_tokens():
    running = detector(BODY, per="v", parameters="v")
    run(running, "a(1)@0 a(2)@1 b(2)@3")
    named = {1: ":one", 2: ":two"}
    assert explain_pattern(running.automaton, running=running, decode=named.get).splitlines() == [
        "PATTERN P, parameters ?v",
        "  context CHRONICLE, for each ?v by itself",
        "  all events share ?v: on Spark it is divided by that",
        "  a token lives 35 ticks at most",
        "  memory: a token for each event of the last 35 ticks that can begin one",
        "  tokens may be in several states: NOT of a pattern of several events",
        "[0] start",
        "  to [1]: a(?v), zone 0 begins",
        "[1] after a(?v): 1 token",
        "  to [2]: b(?v), at most 5 after zone 0 began, unless x(?v) -> y(?v)",
        "[2] after b(?v): 1 token",
        "  to [3]: 30 have passed from here, zone 1 begins, unless c(?v)",
        "[3] after time, complete",
        "2 tokens now",
        "  token since 0 at 1 ?v=:one waits until 5",
        "  token since 1 at 2 ?v=:two waits until 33",
    ]


def test_mermaid_has_every_position_and_transition():
    text = explain_pattern(automaton(then("a", plus("b"), "c")), "mermaid")
    assert text.startswith("flowchart LR\n")
    for line in ('n1["after a"]', 'n2 -->|"b, again"| n2', 'n2 -->|"c"| n3'):
        assert line in text


def test_svg_is_well_formed_and_shows_tokens():
    running = detector(BODY, parameters="v")
    run(running, "a(1)@0")
    root = ET.fromstring(explain_pattern(running.automaton, "svg", running))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 5  # the last state has a rim
    assert "1 token" in texts


@pytest.mark.parametrize(
    ("body", "ticks"),
    [
        (within(then("a", "b"), 5), 5),
        (within(then("a", within(then("b", "c"), 2)), 9), 9),
        (then(within(then("a", "b"), 5), within(no("c"), 30)), 35),
        (then("a", within(no("b"), 4), within(no("c"), 3)), 7),
        (within(then("a", plus("b"), "c"), 6), 6),
        (then("a", "b"), float("inf")),
        (then(within(then("a", "b"), 5), "c"), float("inf")),
        (then("a", plus(within(no("b"), 4))), 4),
        (either(within(then("a", "b"), 5), within(then("a", "c"), 8)), 8),
    ],
)
def test_the_life_of_a_token(body, ticks):
    assert lifetime(automaton(body)).ticks == ticks


def test_why_a_token_may_live_for_ever():
    assert lifetime(automaton(then("a(v)", "b"))).why == "after a(?v) it may wait for b for ever"
    forever = then("a", plus(within(no("b"), 4)), within(no("c"), 1), star("x"), "d")
    assert "for ever" in lifetime(automaton(forever)).why


def test_strict_needs_one_token():
    text = explain_pattern(automaton(then("a(v)", "b(v)"), "STRICT", per="v"))
    assert "memory: one token of each ?v" in text


def test_the_key_has_to_stand_in_not_too():
    assert key_of(automaton(then("a(v)", no("x(v)"), "b(v)")))[0] == (0,)
    assert key_of(automaton(then("a(v)", no("x(_)"), "b(v)")))[0] == ()


def test_holds_for_in_words():
    text = explain_pattern(automaton(holds(then("a", "b"), 4)))
    assert "to [2]: b, at least 4 after zone 0 began" in text

"""PATTERN in the .tide language: what expressions mean, contexts, patterns inside of patterns."""

import pytest
from pyoxigraph import Literal, NamedNode

from graphtide.algebra.expressions import Call, Const, Var
from graphtide.errors import GraphtideError, ProgramError
from graphtide.lang.durations import WrittenDuration
from graphtide.lang.tide.ast import (
    Atom,
    Both,
    Either,
    EventDeclaration,
    Follows,
    HoldsFor,
    Interleaved,
    Not,
    PatternDeclaration,
    PatternSource,
    Repeat,
    Within,
)
from graphtide.lang.tide.program import Program

HEAD = """PREFIX : <http://example.org/>
QUERY Hot AS SELECT ?r ?t { ?r :temperature ?t }
EVENT a AS { :a :is :a } EVENT b AS { :b :is :b } EVENT c AS { :c :is :c } EVENT d AS { :d :is :d }
EVENT A(?x) AS { ?x a :A } EVENT B(?x, ?y) AS { ?x :b ?y }
"""
a, b, c, d = (Atom(name, ()) for name in "abcd")
x, y, z, s = (Var(name) for name in "xyzs")


def patterns_of(text):
    return {pattern.name: pattern for pattern in Program.parse(HEAD + text).patterns}


def body_of(text):
    return patterns_of(f"PATTERN P AS {text}")["P"].body


def seconds(number):
    return WrittenDuration(number * 1000, in_time=True)


# --- expressions ---

EXPRESSIONS = [
    ("a -> b", Follows((a, b))),
    ("a->b", Follows((a, b))),
    ("a -> b -> c", Follows((a, b, c))),
    ("(a -> b) -> c", Follows((a, b, c))),
    ("a -> (b -> c)", Follows((a, b, c))),
    ("a OR b or c", Either((a, b, c))),
    ("a And (b AND c)", Both((a, b, c))),
    ("a -> b OR c", Either((Follows((a, b)), c))),
    ("a -> b OR c -> d", Follows((Either((Follows((a, b)), c)), d))),
    ("a OR b AND c OR d", Either((Both((Either((a, b)), c)), d))),
    ("a -> (b OR c)", Follows((a, Either((b, c))))),
    ("all(a -> b, c OR d, a)", Interleaved((Follows((a, b)), Either((c, d)), a))),
    ("ALL(a -> b)", Follows((a, b))),
    ("a{3}", Repeat(a, 3, 3)),
    ("a{1}", Repeat(a, 1, 1)),
    ("a { + } -> b", Follows((Repeat(a, 1, None), b))),
    ("a{*} -> b", Follows((Repeat(a, 0, None), b))),
    ("a{2}{3}", Repeat(Repeat(a, 2, 2), 3, 3)),
    ("a{+} RELUCTANT -> b", Follows((Repeat(a, 1, None), b))),
    ("a{+} GREEDY -> b", Follows((Repeat(a, 1, None, greedy=True), b))),
    ("(a -> b){3} WITHIN 10s", Within(Repeat(Follows((a, b)), 3, 3), seconds(10))),
    ("(a -> b) WITHIN 10s {3}", Repeat(Within(Follows((a, b)), seconds(10)), 3, 3)),
    ("(a -> b) WITHIN 5 OR c", Either((Within(Follows((a, b)), WrittenDuration(5)), c))),
    ("(a -> b) within 2 min", Within(Follows((a, b)), seconds(120))),
    ("(a -> b) WITHIN PT1.5S", Within(Follows((a, b)), WrittenDuration(1500, in_time=True))),
    ("a{2} HOLDS FOR 500ms", HoldsFor(Repeat(a, 2, 2), WrittenDuration(500, in_time=True))),
    (
        "(a -> b) WITHIN 5s HOLDS FOR 2s",
        HoldsFor(Within(Follows((a, b)), seconds(5)), seconds(2)),
    ),
    ("a -> NOT b -> c", Follows((a, Not(b), c))),
    ("a -> NOT b{3} -> c", Follows((a, Not(Repeat(b, 3, 3)), c))),
    ("a -> NOT b WITHIN 5s", Follows((a, Within(Not(b), seconds(5))))),
    ("a -> (NOT b) WITHIN 5s", Follows((a, Within(Not(b), seconds(5))))),
    ("a -> NOT b{3} WITHIN 5s", Follows((a, Within(Not(Repeat(b, 3, 3)), seconds(5))))),
    ("a -> NOT (b -> c) WITHIN 5s", Follows((a, Within(Not(Follows((b, c))), seconds(5))))),
    (
        "a -> NOT ((b -> c) WITHIN 5s) -> d",
        Follows((a, Not(Within(Follows((b, c)), seconds(5))), d)),
    ),
    (
        "a -> NOT (b -> c) HOLDS FOR 2s WITHIN 5s -> d",
        Follows((a, Within(Not(HoldsFor(Follows((b, c)), seconds(2))), seconds(5)), d)),
    ),
    ("(a -> NOT b) WITHIN 5s", Within(Follows((a, Not(b))), seconds(5))),
    ("(a -> NOT b) -> c", Follows((a, Not(b), c))),
]


@pytest.mark.parametrize(("text", "body"), EXPRESSIONS)
def test_what_an_expression_means(text, body):
    assert body_of(text) == body


def test_arguments():
    constants = NamedNode("http://example.org/c"), Literal(5)
    text = "PATTERN P(?x) AS B(?x, _) -> B(:c, 5) -> A -> B"
    body = patterns_of(text)["P"].body
    assert body == Follows(
        (Atom("B", (x, None)), Atom("B", constants), Atom("A", (x,)), Atom("B", (x, y)))
    )


# The parsing tests of the paper's tool: {*} is what must fail, but for where more comes after it.
BASES = {
    "(a -> b)": Follows((a, b)),
    "(a OR b)": Either((a, b)),
    "(a AND b)": Both((a, b)),
}
TIMES = {"": None, "{10}": (10, 10), "{+}": (1, None), "{*}": (0, None)}


@pytest.mark.parametrize("within", ["", " WITHIN 1s"])
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("base", BASES)
def test_an_operator_with_times_and_a_window(base, times, within):
    expected = Repeat(BASES[base], *TIMES[times]) if times else BASES[base]
    expected = Within(expected, seconds(1)) if within else expected
    whole = f"{base}{times}{within}"
    followed = (*expected.parts, c) if isinstance(expected, Follows) else (expected, c)
    assert body_of(f"{whole} -> c") == Follows(followed)
    if times == "{*}":
        with pytest.raises(GraphtideError, match="accepts the empty sequence"):
            body_of(whole)
    else:
        assert body_of(whole) == expected


@pytest.mark.parametrize("within", ["", " WITHIN 1s"])
@pytest.mark.parametrize("times", TIMES)
def test_not_with_times_and_a_window(times, within):
    text = f"c -> NOT a{times}{within} -> d"
    if times == "{*}":
        with pytest.raises(GraphtideError, match="accepts the empty sequence"):
            body_of(text)
        return
    denied = Not(Repeat(a, *TIMES[times]) if times else a)
    assert body_of(text) == Follows((c, Within(denied, seconds(1)) if within else denied, d))
    ends = f"c -> NOT a{times}{within}"
    if within:
        assert body_of(ends) == Follows((c, Within(denied, seconds(1))))
    else:
        with pytest.raises(GraphtideError, match="NOT at the end of a pattern needs WITHIN"):
            body_of(ends)


@pytest.mark.parametrize(
    "text",
    ["a{*} -> b", "a{*} AND b", "(a -> b{*}) -> c", "(a -> (b -> c{*})) -> d", "a -> b{*}"],
)
def test_what_may_be_left_out_has_something_beside_it(text):
    assert body_of(text)


@pytest.mark.parametrize("text", ["a{*}", "a{*} OR b", "(a -> b){*}", "a{*} -> b{*}", "a{*}{3}"])
def test_what_accepts_nothing_at_all(text):
    with pytest.raises(GraphtideError, match="accepts the empty sequence"):
        body_of(text)


# --- contexts ---


def test_contexts():
    found = patterns_of("""PATTERN P AS a -> b  PATTERN Q AS a -> b CONTEXT immediate
        pattern R(?x) as A(?x) -> B(?x, ?y) context Strict per ?x
        PATTERN S AS B -> B CONTEXT CHRONICLE PER ?y, ?x""")
    assert {name: (p.context, p.per) for name, p in found.items()} == {
        "P": ("CHRONICLE", ()),
        "Q": ("IMMEDIATE", ()),
        "R": ("STRICT", (x,)),
        "S": ("CHRONICLE", (y, x)),
    }


def test_a_file_may_have_a_context(tmp_path):
    (tmp_path / "p.tide").write_text(
        'CONTEXT STRICT INCLUDE "q.tide" PATTERN P AS a -> b PATTERN R AS a -> b CONTEXT IMMEDIATE'
    )
    (tmp_path / "q.tide").write_text(HEAD + "PATTERN Q AS a -> b")
    contexts = {p.name: p.context for p in Program.read(tmp_path / "p.tide").patterns}
    assert contexts == {"P": "STRICT", "Q": "CHRONICLE", "R": "IMMEDIATE"}


@pytest.mark.parametrize("name", ["Context", "All", "Within", "Holds", "Strict", "Per"])
def test_words_of_patterns_are_names_elsewhere(name):
    text = f"EVENT {name}(?x) AS {{ ?x a :A }} RULE {name} ON {name}(?x) THEN CALL {name}(?x)"
    assert Program.parse("PREFIX : <ex:> " + text).rules[0].events[0].type.name == name


# --- patterns inside of patterns ---


def test_a_pattern_inside_of_another():
    found = patterns_of("""PATTERN Q AS P(?z) -> P(_) OR P(:c)
        PATTERN P(?x) AS A(?x) -> B(?x, ?s)
        PATTERN R(?x) AS P{2} -> P""")
    first = Atom("A", (z,)), Atom("B", (z, Var("P.s")))
    second = Atom("A", (Var("P.2.x"),)), Atom("B", (Var("P.2.x"), Var("P.2.s")))
    constant = NamedNode("http://example.org/c")
    third = Atom("A", (constant,)), Atom("B", (constant, Var("P.3.s")))
    assert list(found) == ["Q", "P", "R"]
    assert found["Q"].body == Either((Follows((*first, *second)), Follows(third)))
    one, other = (Follows((Atom("A", (x,)), Atom("B", (x, Var(v))))) for v in ("P.s", "P.2.s"))
    assert found["R"].body == Follows((Repeat(one, 2, 2), *other.parts))


def test_three_patterns_deep_every_variable_has_its_own_name():
    found = patterns_of("""PATTERN R AS Q -> Q -> B(?s, ?s)
        PATTERN Q AS P(?s) -> A(?x)
        PATTERN P(?x) AS B(?x, ?s)""")
    assert found["Q"].body == Follows((Atom("B", (s, Var("P.s"))), Atom("A", (x,))))
    names = ["Q.s", "Q.P.s", "Q.x", "Q.2.s", "Q.2.P.s", "Q.2.x"]
    mine = [Var(name) for name in names]
    assert found["R"].body == Follows(
        (
            *(Atom("B", tuple(mine[:2])), Atom("A", (mine[2],))),
            *(Atom("B", tuple(mine[3:5])), Atom("A", (mine[5],))),
            Atom("B", (s, s)),
        )
    )


def test_a_pattern_keeps_its_meaning_inside_of_another():
    found = patterns_of("""PATTERN W AS (a -> b) WITHIN 5s
        PATTERN Q AS c OR W{2} -> NOT W -> d""")
    window = Within(Follows((a, b)), seconds(5))
    assert found["Q"].body == Follows((Either((c, Repeat(window, 2, 2))), Not(window), d))


def test_patterns_of_other_files(tmp_path):
    (tmp_path / "p.tide").write_text('PATTERN P AS Q -> a INCLUDE "q.tide"')
    (tmp_path / "q.tide").write_text(HEAD + 'INCLUDE "r.tide" PATTERN Q AS b -> R')
    (tmp_path / "r.tide").write_text("PATTERN R AS c -> d")
    found = {p.name: p.body for p in Program.read(tmp_path / "p.tide").patterns}
    assert found["P"] == Follows((b, c, d, a))
    assert found["Q"] == Follows((b, c, d))


def test_many_patterns_in_a_row():
    steps = " ".join(f"PATTERN P{n + 1} AS P{n} -> a" for n in range(300))
    found = patterns_of(f"PATTERN P0 AS a -> b {steps}")
    assert len(found["P300"].body.parts) == 302


# --- what else knows of patterns ---


def test_rules_wait_for_patterns_as_for_events():
    program = Program.parse(
        HEAD
        + """PATTERN P(?x) AS A(?x) -> B(?x, ?y)
        RULE r ON P(?z) THEN CALL f(?z)
        RULE q WHEN EVENT p = P(?x) EVENT A(?x) AFTER[1,5] p THEN CALL f(?x)"""
    )
    first, second = program.rules
    assert first.events[0].type == EventDeclaration("P", (x,), PatternSource("P"), 5)
    assert first.events[0].arguments == (z,)
    assert [use.name for use in second.events] == ["p", "A"]
    assert [event.name for event in program.events] == ["a", "b", "c", "d", "A", "B"]
    body = Follows((Atom("A", (x,)), Atom("B", (x, y))))
    assert program.patterns == (PatternDeclaration("P", (x,), body, "CHRONICLE", (), 5),)


@pytest.mark.parametrize(
    "event",
    [
        "EVENT E(?r, ?t) AS { ?r :is ?t }",
        "EVENT E(?r, ?t) ON APPEAR OF Hot",
        "EVENT E ON DISAPPEAR OF Hot",
        "EVENT E(?r, ?t) ON CHANGE OF ?r FROM { ?r a :A } TO { ?r :is ?t }",
    ],
)
def test_events_with_a_check(event):
    check = Call(">", (Var("t"), Const(Literal(30))))
    for text, expected in ((event, None), (f"{event} check (?t > 30)", check)):
        program = Program.parse(f"{HEAD}{text}\nPATTERN P AS E -> E")
        assert {e.name: e.check for e in program.events}["E"] == expected


def test_a_check_is_about_the_parameters():
    def first_of(text):
        (error,) = Program.check(HEAD + text)[1]
        return error.line, error.column, error.message.split("\n")[0], error.hint

    text = "EVENT E(?r) ON APPEAR OF Hot(?r) CHECK (?rr > 30)"
    message = "?rr is not a parameter of the event E"
    assert first_of(text) == (5, 41, message, "did you mean ?r?")
    text = "EVENT E(?r) ON APPEAR OF Hot(?r) CHECK (EXISTS { ?r :is :odd })"
    hint = "write a query, and an event ON APPEAR OF it"
    assert first_of(text) == (5, 40, "EXISTS is not allowed here", hint)
    text = "EVENT E(?r) ON APPEAR OF Hot(?r) CHECK ?r"
    assert first_of(text)[:3] == (5, 40, "expected '(', found '?r'")


def test_all_mistakes_are_found_in_one_go():
    broken = ["a -> NOT b", "a{0}", "bb -> A(?x)", "A -> B(?x)", "(a -> b", "a{x} -> a WITHIN 5x"]
    text = "\n".join(f"PATTERN P{n} AS {each}" for n, each in enumerate(broken))
    with pytest.raises(ProgramError) as caught:
        Program.parse(f"{HEAD}{text}\nRULE r ON P1 THEN CALL f(?x)")
    lines = [error.line for error in caught.value.errors]
    # What ends too early is told of where the next declaration begins; P1 is known, if broken.
    assert lines == [5, 6, 7, 8, 10, 10, 10]

"""Patterns as texts: their layout, which changes no meaning, and patterns written in Python."""

from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphtide.algebra.expressions import Var
from graphtide.errors import GraphtideError, QueryError
from graphtide.lang.durations import WrittenDuration
from graphtide.lang.tide.ast import (
    Atom,
    Both,
    Either,
    Follows,
    HoldsFor,
    Interleaved,
    Not,
    Repeat,
    Within,
)
from graphtide.lang.tide.builder import ProgramBuilder
from graphtide.lang.tide.format import absent, event, format_program, interleaved
from graphtide.lang.tide.lexer import cut
from graphtide.lang.tide.parser import tree_of
from graphtide.lang.tide.patterns import PatternReader
from graphtide.lang.tide.program import Program
from graphtide.lang.tide.source import DeclaredNames, Source

HEAD = """PREFIX : <http://example.org/>
EVENT A(?x) AS { ?x a :A }
EVENT B(?x, ?y) AS { ?x :b ?y }
EVENT C AS { :c :c :c }
"""
KINDS = {Follows: "->", Either: "OR", Both: "AND"}

LAYOUTS = [
    ("a->b  ->c", "a -> b -> c"),
    ("((a))", "a"),
    ("a -> b OR c -> d", "((a -> b) OR c) -> d"),
    ("a OR (b or c)", "a OR b OR c"),
    ("(a->b) { 3 }within 10s holds  for 2 min", "(a -> b){3} WITHIN 10s HOLDS FOR 2 min"),
    ("((a -> b) WITHIN 5s){+}", "((a -> b) WITHIN 5s){+}"),
    ("(a -> b) WITHIN 5s{2}", "((a -> b) WITHIN 5s){2}"),
    ("a{2}{3}", "(a{2}){3}"),
    ("all( a->b,(c))", "ALL(a -> b, c)"),
    ("ALL((a))", "a"),
    ("a -> not b within 5s", "a -> NOT b WITHIN 5s"),
    ("a -> (not b) within 5s", "a -> NOT b WITHIN 5s"),
    ("a -> not (b{2}) -> c", "a -> NOT b{2} -> c"),
    ("a -> not ((b->c) within 5s) -> d", "a -> NOT ((b -> c) WITHIN 5s) -> d"),
    ("a -> not (b->c) holds for 5s -> d", "a -> NOT ((b -> c) HOLDS FOR 5s) -> d"),
    ("not not a", "NOT (NOT a)"),
    ("B( ?x,_,:c )", "B(?x, _, :c)"),
    ('B( ?x,"a, b")', 'B( ?x,"a, b")'),
    ("a -> b context strict per ?x,?y", "a -> b CONTEXT STRICT PER ?x, ?y"),
]


@pytest.mark.parametrize(("text", "laid_out"), LAYOUTS)
def test_the_layout(text, laid_out):
    expected = f"PATTERN P(?x) AS {laid_out}\n"
    assert format_program(f"pattern P( ?x )\n  as {text}") == expected
    assert format_program(expected) == expected


def test_a_long_pattern_has_a_line_for_each_step():
    steps = [f"{name}(?first, ?second, ?third)" for name in ("Alarm", "Confirmation", "Repair")]
    text = f"PATTERN P(?first) AS {' -> '.join(steps)} CONTEXT STRICT PER ?first"
    laid_out = f"""PATTERN P(?first) AS
  {steps[0]}
  -> {steps[1]}
  -> {steps[2]}
  CONTEXT STRICT PER ?first
"""
    assert format_program(text) == laid_out
    assert format_program(laid_out) == laid_out


def test_the_rest_of_the_file():
    text = """context  strict
# first
pattern P as a->b # tail

event E(?x) as { ?x a :E } check(?x>3)
"""
    assert (
        format_program(text)
        == """CONTEXT STRICT
# first
PATTERN P AS a -> b  # tail

EVENT E(?x) AS { ?x a :E } CHECK (?x>3)
"""
    )


@pytest.mark.slow
def test_a_pattern_that_cannot_be_laid_out():
    with pytest.raises(QueryError, match="cannot be formatted") as caught:
        format_program("PATTERN P AS a\n  -> # why\n  b")
    assert (caught.value.line, caught.value.column) == (2, 6)
    with pytest.raises(QueryError, match="nested deeper than 100"):
        format_program("PATTERN P AS " + "(" * 5000 + "a" + ")" * 5000)


# --- the layout changes no meaning ---


def full(node):
    """A pattern with all brackets that there can be."""
    match node:
        case Atom(name, arguments):
            written = ("_" if each is None else str(each) for each in arguments)
            return f"{name}({', '.join(written)})"
        case Follows(parts) | Either(parts) | Both(parts):
            return f" {KINDS[type(node)]} ".join(f"({full(part)})" for part in parts)
        case Interleaved(parts):
            return f"ALL({', '.join(map(full, parts))})"
        case Repeat(part, least, most):
            return f"({full(part)}){{{'+*'[least == 0] if most is None else most}}}"
        case Not(part):
            return f"NOT ({full(part)})"
        case Within(part, length) | HoldsFor(part, length):
            word = "WITHIN" if isinstance(node, Within) else "HOLDS FOR"
            unit = "ms" if length.in_time else ""
            return f"({full(part)}) {word} {length.amount}{unit}"


def flat(node):
    """A pattern in which no operator stands directly in itself."""
    match node:
        case Atom():
            return node
        case Follows(parts) | Either(parts) | Both(parts):
            inner = map(flat, parts)
            lists = ([*p.parts] if isinstance(p, type(node)) else [p] for p in inner)
            return type(node)(tuple(reduce(lambda one, other: one + other, lists)))
        case Interleaved(parts):
            return Interleaved(tuple(map(flat, parts)))
        case Repeat(part, least, most):
            return Repeat(flat(part), least, most)
        case Not(part):
            return Not(flat(part))
        case Within(part, length) | HoldsFor(part, length):
            return type(node)(flat(part), length)


arguments = st.sampled_from([Var("x"), Var("y"), None, Literal(5), NamedNode("http://e.org/c")])
atoms = (
    st.builds(Atom, st.just("A"), st.tuples(arguments))
    | st.builds(Atom, st.just("B"), st.tuples(arguments, arguments))
    | st.just(Atom("C", ()))
)
lengths = st.builds(WrittenDuration, st.integers(0, 9), st.booleans())
times = st.sampled_from([(1, 1), (2, 2), (1, None), (0, None)])


def wider(inner):
    parts = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        *(st.builds(kind, parts) for kind in (Follows, Either, Both, Interleaved)),
        st.builds(lambda part, bounds: Repeat(part, *bounds), inner, times),
        st.builds(Not, inner),
        st.builds(Within, inner, lengths),
        st.builds(HoldsFor, inner, lengths),
    )


patterns = st.recursive(atoms, wider, max_leaves=8)


def body_of(text):
    """What an expression means, whether or not it would be refused."""
    source = Source(f"{HEAD}PATTERN P AS {text}")
    (chunk,) = (chunk for chunk in cut(source.text) if chunk.word == "PATTERN")
    (expression,) = (part for part in tree_of(chunk).children if hasattr(part, "data"))
    names = DeclaredNames(events={each.name: each for each in Program.parse(HEAD).events})
    body = PatternReader(source, names).read(expression)
    assert source.errors == []
    return body


def laid_out(text):
    return format_program(f"PATTERN P AS {text}").removeprefix("PATTERN P AS").strip()


@given(patterns)
def test_brackets_decide(pattern):
    assert body_of(full(pattern)) == flat(pattern)


@given(patterns)
def test_the_layout_means_the_same(pattern):
    short = laid_out(full(pattern))
    assert laid_out(short) == short
    assert body_of(short) == flat(pattern)


chains = st.lists(st.tuples(st.sampled_from(["->", "OR", "AND"]), patterns), max_size=4)


@given(patterns, chains)
def test_chains_are_read_from_the_left(first, others):
    text = full(first) if isinstance(first, Atom) else f"({full(first)})"
    expected = first
    kinds = {sign: kind for kind, sign in KINDS.items()}
    for sign, part in others:
        text += f" {sign} ({full(part)})"
        expected = kinds[sign]((expected, part))
    assert body_of(text) == body_of(laid_out(text)) == flat(expected)


@given(patterns)
def test_the_same_is_refused_before_and_after(pattern):
    def errors_of(text):
        program, errors = Program.check(f"{HEAD}PATTERN P AS {text}")
        found = [(p.parameters, p.body, p.context) for p in program.patterns]
        return found, sorted(error.message.split("\n")[0] for error in errors)

    assert errors_of(full(pattern)) == errors_of(laid_out(full(pattern)))


# --- patterns written in Python ---

a, b, c = event("A", "?x"), event("B", "?x", None), event("C")


WRITTEN = [
    (a >> b >> c, "A(?x) -> B(?x, _) -> C"),
    (a >> b | c, "(A(?x) -> B(?x, _)) OR C"),
    (a & b & a, "A(?x) AND B(?x, _) AND A(?x)"),
    ((a | c) >> b, "(A(?x) OR C) -> B(?x, _)"),
    (a.times(3) >> b.at_least_once() >> c.any_times(), "A(?x){3} -> B(?x, _){+} -> C{*}"),
    ((a >> b).times(3).within("10s"), "(A(?x) -> B(?x, _)){3} WITHIN 10s"),
    ((a >> b).within("10s").times(3), "((A(?x) -> B(?x, _)) WITHIN 10s){3}"),
    ((a & b).holds_for(2).within(10), "(A(?x) AND B(?x, _)) HOLDS FOR 2 WITHIN 10"),
    (a >> absent(b).within("5s"), "A(?x) -> NOT B(?x, _) WITHIN 5s"),
    (a >> absent((b >> c).within("5s")) >> c, "A(?x) -> NOT ((B(?x, _) -> C) WITHIN 5s) -> C"),
    ((a >> absent(b)).within("5s"), "(A(?x) -> NOT B(?x, _)) WITHIN 5s"),
    (interleaved(a >> b, c), "ALL(A(?x) -> B(?x, _), C)"),
    (event("B", Var("x"), 5) >> event("B", "?x", ":c"), "B(?x, 5) -> B(?x, :c)"),
    (event("A", NamedNode("ex:c")) >> event("A", True), "A(<ex:c>) -> A(true)"),
    (event("A", Literal("a, b")) >> event("A", '"a"@en'), 'A("a, b") -> A("a"@en)'),
]


@pytest.mark.parametrize(("pattern", "text"), WRITTEN)
def test_a_pattern_written_in_python(pattern, text):
    def program():
        return (
            ProgramBuilder({"": "http://example.org/"})
            .event("A", "?x", "?x a :A")
            .event("B", "?x ?y", "?x :b ?y", check="?y > 3")
            .event("C", "", ":c :c :c")
        )

    assert str(pattern) == text
    assert laid_out(text) == text
    built = program().pattern("P", "", pattern).build()
    assert (
        built
        == program().pattern("P", "", text).build()
        == Program.parse(
            f"PREFIX : <http://example.org/>\nEVENT A(?x) AS {{ ?x a :A }}\n"
            "EVENT B(?x, ?y) AS { ?x :b ?y } CHECK (?y > 3)\nEVENT C() AS { :c :c :c }\n"
            f"PATTERN P AS {text}"
        )
    )


def test_contexts_in_python():
    def program():
        return ProgramBuilder().event("A", "?x ?y", "?x ?y 1")

    one = event("A", "?x", "?y")
    built = program().pattern("P", "?x", one >> one, context="STRICT", per="?x ?y").build()
    assert (built.patterns[0].context, built.patterns[0].per) == ("STRICT", (Var("x"), Var("y")))
    built = program().pattern("P", "?x", one >> one).context("IMMEDIATE").build()
    assert (built.patterns[0].context, built.patterns[0].per) == ("IMMEDIATE", ())
    with pytest.raises(GraphtideError, match="PER needs a context"):
        program().pattern("P", "?x", one >> one, per="?x")


def test_mistakes_in_python_are_told_of():
    with pytest.raises(GraphtideError, match="invalid duration 'soon'"):
        (a >> b).within("soon")
    with pytest.raises(GraphtideError, match="cannot be an argument of an event"):
        event("A", object())
    with pytest.raises(QueryError, match="a pattern cannot begin with NOT"):
        ProgramBuilder().event("C", "", "<ex:c> <ex:c> 1").pattern("P", "", absent(c)).build()


NEW = """PREFIX : <http://example.org/>
EVENT A(?k, ?v) AS { ?e :k ?k ; :v ?v }
PATTERN P(?k, COUNT(?up) AS ?n) AS A(?k, _){2,5} AS up WHERE (?up.v > PREV(?up.v)) -> A(?k, _)
PATTERN Q(?k) AS (A(?k, _)? -> A(?k, _){1,} GREEDY -> NOT A(?k, _) WITHIN 5s)
  CONTEXT UNRESTRICTED SKIP TO NEXT PER ?k
PATTERN R(?k) AS (A(?k, _){3} -> A(?k, _)) WITHIN 1w CONTEXT STRICT PER ?k INTERVAL
RULE S
  WHEN EVENT p = P(?k, ?n)
       EVENT r = R(?k) OVERLAPS p
       BIND (?n * 2 AS ?m)
  THEN INSERT { ?k :at TIMEOF(p) }
"""


def test_the_form_of_repetitions_names_and_conditions():
    """Spaces and small letters go; what is in canonical form stays, and means the same."""
    loose = NEW.replace("{2,5}", "{ 2 , 5 }").replace("GREEDY", "greedy").replace("SKIP", "skip")
    formatted = format_program(loose)
    assert format_program(formatted) == formatted
    one, two = (
        [replace(each, line=0) for each in Program.parse(text).patterns]
        for text in (formatted, NEW)
    )
    assert one == two
    for part in ("{2,5} AS up WHERE (?up.v > PREV(?up.v))", "{1,} GREEDY", "SKIP TO NEXT PER ?k"):
        assert part in formatted
    assert "\n       BIND (?n * 2 AS ?m)\n" in formatted

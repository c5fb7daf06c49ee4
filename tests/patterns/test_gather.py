"""Conditions between events, and parameters computed from them.

The conditions are written once more in Python, for the brute-force evaluator.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal

import graphtide as gt
from graphtide.errors import QueryError
from graphtide.lang.tide.format import format_program
from graphtide.patterns import general
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import make_detector
from graphtide.patterns.explain import explain_pattern
from graphtide.patterns.saved import load_tokens, save_tokens
from graphtide.rdf.dictionary import TermDictionary
from oracles.event_oracle import EventOracle

HEAD = """PREFIX : <http://example.org/>
EVENT A(?k, ?v) AS { ?e :ak ?k ; :av ?v }
EVENT B(?k, ?v) AS { ?e :bk ?k ; :bv ?v }
EVENT C(?k, ?v) AS { ?e :ck ?k ; :cv ?v }
"""
NUMBERS = {"A": 0, "B": 1, "C": 2}


def of(named, alias):
    """The values ?v of the events of a name."""
    return [event.values[1] for name, event in named if name == alias]


def rises(named, alias):
    values = of(named, alias)
    return len(values) < 2 or values[-1] > values[-2]


PATTERNS = {
    "A(?k, _) -> B(?k, _) WHERE (?B.v > 2 * ?A.v)": {
        "B": lambda n: of(n, "B")[-1] > 2 * of(n, "A")[-1],
    },
    "A(?k, _) AS a -> A(?k, _) AS b WHERE (?b.v = ?a.v + 1) -> B(?k, _)": {
        "b": lambda n: of(n, "b")[-1] == of(n, "a")[-1] + 1,
    },
    "A(?k, _) -> B(?k, _){+} AS up WHERE (?up.v > PREV(?up.v)) -> C(?k, _)": {
        "up": lambda n: rises(n, "up"),
    },
    "A(?k, _){1,3} GREEDY AS a WHERE (SUM(?a.v) <= 4) -> (B(?k, _) OR A(?k, _))": {
        "a": lambda n: sum(of(n, "a")) <= 4,
    },
    "(A(?k, _) AS a -> B(?k, _){2,} AS b WHERE (COUNT(?b) < 4 && ?b.v >= ?a.v) -> C(?k, _))"
    " WITHIN 9": {
        "b": lambda n: len(of(n, "b")) < 4 and of(n, "b")[-1] >= of(n, "a")[-1],
    },
    "A(?k, _) AS a -> NOT B(?k, _) AS b WHERE (?b.v > ?a.v) -> C(?k, _)": {
        "b": lambda n: of(n, "b")[-1] > of(n, "a")[-1],
    },
    "A(?k, ?x) -> B(?k, _) WHERE (?B.v != ?x && TIMEOF(B) - TIMEOF(A) <= 3)": {
        "B": lambda n: of(n, "B")[-1] != of(n, "A")[-1]
        and [e.time for name, e in n if name == "B"][-1]
        - [e.time for name, e in n if name == "A"][-1]
        <= 3,
    },
}  # fmt: skip

streams = st.lists(
    st.tuples(st.sampled_from("AABBC"), st.integers(1, 2), st.integers(1, 4), st.integers(0, 2)),
    min_size=1,
    max_size=8,
)
contexts = st.sampled_from(["CHRONICLE", "IMMEDIATE", "STRICT", "UNRESTRICTED"])


def automaton_of(text, terms, parameters="?k"):
    program = gt.Program.parse(f"{HEAD}PATTERN P({parameters}) AS {text}")
    pattern = program.patterns[0]
    return pattern, compile_pattern(pattern, NUMBERS, terms.encode, 1000, terms)


def timed(stream):
    now, found = 0, []
    for type_, key, value, gap in stream:
        now += gap
        found.append((type_, (key, value), now))
    return found


def run(automaton, events, terms, *, again=False):
    """The matches: values, time, indices of events. `again`: go on from saved tokens each time."""
    detector, found = make_detector(automaton), []
    for type_, values, time in events:
        ids = tuple(terms.encode(Literal(value)) for value in values)
        found += detector.step(NUMBERS[type_], ids, time)
        if again:
            saved = save_tokens(detector, terms)
            detector = make_detector(automaton)
            load_tokens(detector, saved, terms)
    found += detector.advance(200)
    return [
        (tuple(terms.decode(i).value if i else None for i in each.values), each.time, each.used)
        for each in found
    ]


@pytest.mark.parametrize("text", list(PATTERNS))
@settings(deadline=None, max_examples=40)
@given(stream=streams, context=contexts, again=st.booleans())
def test_conditions_between_events(text, stream, context, again):
    terms = TermDictionary()
    pattern, automaton = automaton_of(f"{text} CONTEXT {context} PER ?k", terms)
    rules = PATTERNS[text]
    oracle = EventOracle(
        pattern, tick_ms=1000, condition=lambda atom, named, _: rules[atom.alias](named)
    )
    events = timed(stream)
    expected = [m for event in events for m in oracle.step(*event)] + oracle.advance(200)
    shown = [(tuple(map(str, m.values)), m.time, m.used) for m in expected]
    assert sorted(run(automaton, events, terms, again=again)) == sorted(shown)


BARE = [
    ("A(?k, _) -> B(?k, _) WHERE …", "?B.v > 2 * ?A.v"),
    ("A(?k, _) -> B(?k, _){+} AS up WHERE … -> C(?k, _)", "?up.v > PREV(?up.v)"),
    ("A(?k, _) AS a -> B(?k, _) WHERE … -> C(?k, _)", "(?B.v + 1) * 2 > -?a.v"),
    ("A(?k, _) AS a -> NOT B(?k, _) AS b WHERE … WITHIN 5", "!(?b.v>?a.v)&&?b.v != 3"),
    ("(A(?k, _) AS a WHERE … OR B(?k, _)) -> C(?k, _)", "?a.v NOT IN (1, 2)"),
    ("ALL(A(?k, _) AS a WHERE …, B(?k, _)) CONTEXT STRICT PER ?k", "?a.v IN (?k)"),
    ("(A(?k, _) AS a WHERE …){2} -> B(?k, _)", 'STR(?a.v) < "->"@en || COUNT(?a) > 1'),
]


@pytest.mark.parametrize(("text", "condition"), BARE)
def test_brackets_around_a_condition_may_be_left_out(text, condition):
    bare, bracketed = (text.replace("…", c) for c in (condition, f"({condition})"))
    programs = [gt.Program.parse(f"{HEAD}PATTERN P(?k) AS {each}") for each in (bare, bracketed)]
    assert programs[0].patterns == programs[1].patterns
    assert format_program(f"PATTERN P(?k) AS {bare}") == format_program(
        f"PATTERN P(?k) AS {bracketed}"
    )


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("A(?k, _) WHERE ?A.v > -> B(?k, _)", 39, "expected an expression"),
        ("A(?k, _) WHERE -> B(?k, _)", 33, "expected '(' or a condition"),
        ("A(?k, _) WHERE ?A.w > 1 -> B(?k, _)", 27, "has no parameter w"),
        ("A(?k, _) WHERE ?A.v > 1 WITHN 5 -> B(?k, _)", 42, "found 'WITHN'"),
        ("A(?k, _) WHERE ?A.v > 1) -> B(?k, _)", 41, "found ')'"),
    ],
)
def test_errors_of_conditions_without_brackets(text, column, message):
    with pytest.raises(QueryError, match=re.escape(message)) as caught:
        gt.Program.parse(f"{HEAD}PATTERN P(?k) AS {text}")
    assert caught.value.column == column


COMPUTED = (
    "?k, COUNT(?b) AS ?n, SUM(?b.v) AS ?sum, AVG(?b.v) AS ?avg, FIRST(?b.v) AS ?first, "
    "LAST(?b.v) AS ?last, MIN(?b.v) AS ?min, MAX(?b.v) AS ?max, COLLECT(?b.v) AS ?all, "
    "TIMEOF(b) - STARTOF(b) AS ?long, ?a.v * 10 AS ?ten"
)


@settings(deadline=None, max_examples=60)
@given(stream=streams, context=contexts)
def test_parameters_computed_from_the_events_of_a_match(stream, context):
    terms = TermDictionary()
    text = f"A(?k, _) AS a -> B(?k, _){{+}} AS b -> C(?k, _) CONTEXT {context} PER ?k"
    _, automaton = automaton_of(text, terms, COMPUTED)
    events = timed(stream)
    for values, _, used in run(automaton, events, terms):
        a, *middle, _ = [events[n] for n in used]
        (_, (_, first), _) = a
        own = [value for _, (_, value), _ in middle]
        k, n, total, mean, *rest = values
        assert (k, int(n), int(total)) == (str(a[1][0]), len(own), sum(own))
        assert float(mean) == pytest.approx(sum(own) / len(own))
        numbers = [own[0], own[-1], min(own), max(own)]
        collected = " ".join(map(str, own))
        long = middle[-1][2] - middle[0][2]
        assert rest == [*map(str, numbers), collected, str(long), str(10 * first)]


@settings(deadline=None, max_examples=40)
@given(values=st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_all_rising_sequences(values):
    """Every combination of at least two values that rise, by trying all of them."""
    terms = TermDictionary()
    text = (
        "A(?k, _) -> B(?k, _){2,} AS b WHERE (?b.v > PREV(?b.v)) -> C(?k, _) CONTEXT UNRESTRICTED"
    )
    _, automaton = automaton_of(text, terms, "COLLECT(?b.v) AS ?all")
    between = [("B", (1, value), time) for time, value in enumerate(values, 2)]
    events = [("A", (1, 1), 1), *between, ("C", (1, 1), 99)]
    expected = Counter(
        " ".join(map(str, some))
        for size in range(2, len(values) + 1)
        for some in combinations(values, size)
        if all(x < y for x, y in pairwise(some))
    )
    assert Counter(row[0] for row, *_ in run(automaton, events, terms)) == expected


def test_sessions():
    """What comes with pauses of less than 5 is one session: the first use of GREEDY."""
    terms = TermDictionary()
    text = "A(?k, _){+} GREEDY AS a -> NOT A(?k, _) WITHIN 5s CONTEXT CHRONICLE PER ?k"
    _, automaton = automaton_of(text, terms, "?k, COUNT(?a) AS ?n, SUM(?a.v) AS ?sum")
    times = [1, 2, 6, 20, 21, 40]
    events = [("A", (1, 2), time) for time in times]
    found = [(row, time) for row, time, _ in run(automaton, events, terms)]
    assert found == [(("1", "3", "6"), 11), (("1", "2", "4"), 26), (("1", "1", "2"), 45)]


ERRORS = {
    "A(?k, _) AS a WHERE (?b.v > 1) -> B(?k, _) AS b": "no event before it is named b",
    "A(?k, _) AS a WHERE (?a.w > 1) -> B(?k, _)": "the event A has no parameter w",
    "A(?k, _) AS a -> B(?k, _) AS a": "there are two events named a",
    "(A(?k, _) -> B(?k, _)) AS a -> C(?k, _)": "AS is for one event",
    "A(?k, _) -> B(?k, _) WHERE (COUNT(?B.v) > 1)": "COUNT is of an event",
    "A(?k, _) -> B(?k, _) WHERE (?z > 1)": "?z has no value here",
    "A(?k, _) -> B(?k, _){+} GREEDY": "GREEDY at the end of a pattern has no effect",
    "(A(?k, _) -> B(?k, _)){+} GREEDY -> C(?k, _)": "GREEDY is for one event",
    "A(?k, _){3,2} -> B(?k, _)": "nothing can match {3,2}",
    "A(?k, _) -> B(?k, _) CONTEXT STRICT SKIP PAST LAST": "SKIP PAST LAST is for CONTEXT UNRES",
    "A(_, _) -> B(?k, _) CONTEXT CHRONICLE PER ?k": "PER ?k: the event A does not have ?k",
}


@pytest.mark.parametrize("text", list(ERRORS))
def test_what_is_refused(text):
    (error,) = gt.Program.check(f"{HEAD}PATTERN P(?k) AS {text}").errors
    assert ERRORS[text] in error.message
    assert error.hint
    assert error.line == 5


def test_a_condition_in_explain():
    terms = TermDictionary()
    text = "A(?k, _) AS a -> B(?k, _) WHERE (?B.v > 2 * ?a.v) CONTEXT UNRESTRICTED SKIP TO NEXT"
    shown = explain_pattern(automaton_of(text, terms)[1])
    assert "B(?k, _) WHERE (?B.v > (2 * ?a.v))" in shown
    assert "context UNRESTRICTED, SKIP TO NEXT" in shown
    assert "conditions between events" in shown


def test_too_many_combinations_are_an_error_and_grow_no_further(monkeypatch):
    """`A{+} -> B` has an instance for each choice of A's: 2 ** n - 1 of them after n A's."""
    monkeypatch.setattr(general, "MAX_INSTANCES", 100)
    terms = TermDictionary()
    _, automaton = automaton_of("A(?k, _){+} -> B(?k, _) CONTEXT UNRESTRICTED", terms)
    detector = make_detector(automaton)
    one = (terms.encode(Literal(1)), terms.encode(Literal(1)))
    for time in range(6):
        detector.step(NUMBERS["A"], one, time)
    for time in range(6, 9):
        with pytest.raises(gt.GraphtideError, match="more than 100 instances"):
            detector.step(NUMBERS["A"], one, time)
        assert len(detector.tokens()) == 2**6 - 1


def test_all_parcels_of_a_truck():
    """One departure is part of three matches: each parcel has a stream of its own."""
    told = []
    for scope in ("CHRONICLE PER ?p", "UNRESTRICTED"):
        graph = gt.LiveGraph()
        graph.run(
            gt.Program.parse(f"""PREFIX : <http://example.org/>
            EVENT Load(?p, ?t) AS {{ ?p :into ?t }}
            EVENT Depart(?t) AS {{ ?t :departs ?d }}
            EVENT Unload(?p, ?t) AS {{ ?p :outof ?t }}
            PATTERN Moved(?p, ?t) AS Load(?p, ?t) -> Depart(?t) -> Unload(?p, ?t) CONTEXT {scope}
            RULE Tell ON Moved(?p, ?t) THEN CALL tell(?p)"""),
            functions={"tell": lambda p: told.append(p.value[-1])},
        )
        iri = "<http://example.org/{}>".format
        for time, parcel in enumerate("123"):
            graph.publish([(iri(parcel), iri("into"), iri("t"))], time=time)
        graph.publish([(iri("t"), iri("departs"), iri("now"))], time=5)
        for time, parcel in enumerate("231"):
            graph.publish([(iri(parcel), iri("outof"), iri("t"))], time=6 + time)
    assert told == [*"231", *"231"]

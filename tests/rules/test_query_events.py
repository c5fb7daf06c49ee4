"""Events that changes of the graph cause, against a brute-force evaluator over all its states."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from rules.brute_force import Event, matches

from graphtide import LiveGraph
from graphtide.algebra.expressions import Var
from graphtide.lang.sparql import parse_query
from graphtide.rdf.term import NamedNode
from graphtide.rules import run
from graphtide.testing.reference import evaluate_query

SPACE = "http://example.org/"
DECLARED = f"""
PREFIX : <{SPACE}>
QUERY Near AS SELECT ?a ?b {{ ?a :near ?b . ?a :on :yes FILTER (?a != ?b) }}
EVENT Came(?a)       ON APPEAR OF Near(?a)
EVENT Went(?a, ?b)   ON DISAPPEAR OF Near(?a, ?b)
EVENT Moved(?a, ?b)  ON CHANGE OF ?x FROM {{ ?x :near ?a }} TO {{ ?x :near ?b }}
EVENT Switched(?x)   ON CHANGE OF ?x FROM {{ ?x :on :yes }} TO {{ ?x :on :no }}
EVENT Said(?x, ?y)   AS {{ ?x :says ?y }}
"""
NEAR = parse_query(
    f"PREFIX : <{SPACE}> SELECT ?a ?b {{ ?a :near ?b . ?a :on :yes FILTER (?a != ?b) }}"
)
WIDTHS = {"Came": 1, "Went": 2, "Moved": 2, "Switched": 1, "Said": 2}
FACTS = (
    "",
    "FACT { ?p :on :yes }",
    "FACT { ?p :near ?z FILTER (?z != ?p) }",
    "FACT { ?p :near :w }",
)


def iri(name):
    return NamedNode(SPACE + name)


@st.composite
def rule_texts(draw):
    names = draw(st.sampled_from(("a", "ab", "ab", "abc")))
    lines = [draw(st.sampled_from(FACTS))]
    for name in names:
        kind = draw(st.sampled_from(sorted(WIDTHS)))
        given = [draw(st.sampled_from(("?p", "?p", "?q", "?r", ":u"))) for _ in range(WIDTHS[kind])]
        low = draw(st.integers(-3, 2))
        test = f"AFTER[{low},{low + draw(st.integers(2, 7))}] a" if name != "a" else ""
        lines.append(f"EVENT {name} = {kind}({', '.join(given)}) {test}")
    if "?p" not in " ".join(lines[1:]):
        lines[0] = ""
    return "RULE R WHEN " + "\n".join(lines) + "\nTHEN CALL tell()"


values = st.sampled_from("uuv")
quads = st.one_of(
    st.tuples(values, st.just("near"), values),
    st.tuples(values, st.just("on"), st.sampled_from(("yes", "no"))),
)
steps = st.lists(
    st.one_of(
        st.tuples(values, values),
        st.lists(st.tuples(st.sampled_from((1, -1)), quads), min_size=1, max_size=4),
    ),
    min_size=6,
    max_size=9,
)


def rows(query, state):
    return set(evaluate_query(query, state))


def near(state, predicate, subject=None):
    return {(s, o) for s, p, o, _ in state if p == iri(predicate) and subject in (None, s)}


def caused(before, after):
    """The events of a transaction, from the two states by the words of their declarations."""
    old, new = rows(NEAR, before), rows(NEAR, after)
    yield from (("Came", (a,)) for a in {a for a, _ in new} - {a for a, _ in old})
    yield from (("Went", pair) for pair in old - new)
    went = near(before, "near") - near(after, "near")
    came = near(after, "near") - near(before, "near")
    yield from (("Moved", pair) for pair in {(a, b) for x, a in went for y, b in came if x == y})
    for x in map(iri, "uv"):
        was, is_ = near(before, "on", x), near(after, "on", x)
        if (x, iri("yes")) in was - is_ and (x, iri("no")) in is_ - was:
            yield "Switched", (x,)


def play(running, history, gaps):
    """Let it happen; the events and states as the brute force wants them."""
    graph = running.graph
    events, states, now = [], [frozenset()], 0
    for step, gap in zip(history, gaps, strict=True):
        now += gap
        if isinstance(step, tuple):
            x, y = map(iri, step)
            graph.assert_event([(x, iri("says"), y)], time=now)
            events.append(Event("Said", (x, y), now, len(states) - 1))
            continue
        state = set(states[-1])
        with graph.transaction(time=now) as tx:
            for diff, (s, p, o) in step:
                quad = iri(s), iri(p), iri(o)
                (tx.insert if diff > 0 else tx.delete)(*quad)
                (state.add if diff > 0 else state.discard)((*quad, None))
        states.append(frozenset(state))
        events += [
            Event(kind, found, now, len(states) - 1)
            for kind, found in caused(states[-2], states[-1])
        ]
    return events, states


@settings(deadline=None, max_examples=200)
@given(rule_texts(), steps, st.lists(st.sampled_from((0, 1, 1, 2)), min_size=9, max_size=9))
def test_rules_over_changes_match_as_defined(text, history, gaps):
    running = run(DECLARED + text, LiveGraph(), functions={"tell": lambda: None})
    (registered,) = running._rules.values()
    rule = registered.matcher.rule
    events, states = play(running, history, gaps[: len(history)])
    found = Counter(
        (
            tuple(firing.events[c.name][1] for c in rule.positive),
            frozenset((Var(v), t) for v, t in firing.values.items()),
        )
        for firing in running.firings
    )
    assert found == matches(rule, events, states, 10_000)

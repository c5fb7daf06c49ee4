"""Random rules and histories of events and changes, and runs of the engine over them."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st
from pyoxigraph import NamedNode
from rules.brute_force import Event
from rules.engine import Engine

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import TriplePattern
from graphtide.engine.events import make_events
from graphtide.lang.sparql.parse import parse_query
from graphtide.rules.model import EventCondition, EventType, Rule
from graphtide.rules.temporal import AllTests, AnyTest, NotTest, Temporal


def iri(name):
    return NamedNode(f"ex:{name}")


def event_type(name):
    """Graph events `[] a :name ; :x ?x ; :y ?y`."""
    return EventType(
        name,
        (Var("x"), Var("y")),
        (
            TriplePattern(Var("e"), iri("type"), iri(name)),
            TriplePattern(Var("e"), iri("x"), Var("x")),
            TriplePattern(Var("e"), iri("y"), Var("y")),
        ),
    )


def triples(kind, x, y, number):
    e = iri(f"event{number}")
    return [(e, iri("type"), iri(kind)), (e, iri("x"), x), (e, iri("y"), y)]


TYPES = {name: event_type(name) for name in "AB"}


VALUES = [iri(n) for n in "uv"]


NAMES = [Var("p"), Var("p"), Var("q"), Var("r"), iri("u")]


arguments = st.tuples(*(st.sampled_from(NAMES) for _ in "xy"))


def after(this, other, low, width):
    return Temporal("AFTER", this, other, (low, low + width))


def rules(denied=False):
    @st.composite
    def make(draw):
        names = "abc"[: draw(st.integers(1, 3))]
        events = [
            EventCondition(n, TYPES[draw(st.sampled_from("AB"))], draw(arguments)) for n in names
        ]
        tests = [
            after(this, other, draw(st.integers(-4, 3)), draw(st.integers(1, 7)))
            for this, other in zip(names[1:], names, strict=False)
        ]
        test = AllTests(tuple(tests))
        if not denied and tests and draw(st.booleans()):
            test = draw(
                st.sampled_from([AnyTest((tests[0], tests[-1])), NotTest(tests[0]), AllTests(())])
            )
        if denied:
            events.append(EventCondition("n", TYPES["B"], draw(arguments), negated=True))
            low = draw(st.integers(-3, 3))
            other = draw(st.sampled_from(names))
            denials = [after("n", other, low, draw(st.integers(0, 5)))]
            if draw(st.booleans()):
                bounds = (draw(st.integers(-3, 1)), draw(st.integers(2, 9)))
                denials.append(Temporal("BEFORE", "n", draw(st.sampled_from(names)), bounds))
            test = AllTests((*tests, *denials))
        facts = draw(st.sampled_from(FACTS))
        return Rule("rule", tuple(events), facts and parse_query(facts), test)

    return make()


FACTS = (
    None,
    "SELECT ?p { ?p <ex:on> <ex:yes> }",
    "SELECT ?p ?z { ?p <ex:near> ?z }",
    "SELECT ?q { ?q <ex:near> ?z FILTER NOT EXISTS { ?q <ex:on> <ex:yes> } }",
    "SELECT ?p ?z { ?p <ex:near> ?z FILTER (?z != ?p) }",
)


happenings = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("AB"), st.sampled_from(VALUES), st.sampled_from(VALUES)),
        st.tuples(
            st.sampled_from((1, -1)),
            st.sampled_from(VALUES),
            st.sampled_from([(iri("on"), iri("yes")), (iri("near"), iri("u"))]),
        ),
    ),
    min_size=8,
    max_size=14,
)


gaps = st.lists(st.sampled_from((0, 0, 1, 2)), min_size=14, max_size=14)


def run(rule_list, history, times, end=60, *, batched=False, stride=1024):
    """The firings of each rule, and the history as the brute force wants it.

    `batched` tells of events all at once, up to the next change of the graph.
    """
    engine = Engine()
    engine.engine.batch_size = stride
    held = []

    def tell():
        encode = engine.graph.terms.encode
        ids = [[tuple(map(encode, triple)) for triple in event] for event, _ in held]
        engine.take_events(make_events(ids, [time for _, time in held]))
        held.clear()

    for rule in rule_list:
        engine.add(rule)
    events, states, now = [], [frozenset()], 0
    engine.state_times = [0]
    for number, (what, gap) in enumerate(zip(history, times, strict=False)):
        now += gap
        if isinstance(what[0], str):
            kind, x, y = what
            if batched:
                held.append((triples(kind, x, y, number), now))
            else:
                engine.assert_event(triples(kind, x, y, number), time=now)
            events.append(Event(kind, (x, y), now, len(states) - 1))
        else:
            tell()
            diff, subject, (predicate, object_) = what
            engine.advance(now)
            (engine.graph.insert if diff > 0 else engine.graph.delete)(subject, predicate, object_)
            quad = (subject, predicate, object_, None)
            states.append(states[-1] | {quad} if diff > 0 else states[-1] - {quad})
            engine.state_times.append(now)
    tell()
    engine.advance(end)
    return engine, events, states


def found(engine, rule):
    names = [c.name for c in rule.positive]
    return Counter(
        (
            tuple(firing.events[name][1] for name in names),
            frozenset((Var(v), t) for v, t in firing.values.items()),
        )
        for firing in engine.firings()
        if firing.rule == rule.name
    )

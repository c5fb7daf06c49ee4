"""NO EVENT in arrays does what its definition in Python does: the same matches, in its order."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules.engine import Engine
from rules.histories import TYPES, VALUES, arguments, iri, rules, triples

from graphtide import LiveGraph
from graphtide.algebra.expressions import Call, Var
from graphtide.engine.events import make_events
from graphtide.lang.tide.references import EventReference
from graphtide.rules.effects import GraphConnection
from graphtide.rules.kernel import layout
from graphtide.rules.matching import absence as compiled
from graphtide.rules.model import EventCondition, Rule
from graphtide.rules.rule_set import RuleSet
from graphtide.rules.temporal import AllTests, AnyTest, ExpressionTest, NotTest, Temporal
from oracles.plain_absence import PlainAbsence

MAX_DURATION = 2


@st.composite
def denied_rules(draw):
    """One NO EVENT, or two, of which the second has a test with OR and NOT."""
    rule = draw(rules(denied=True))
    if draw(st.booleans()):
        names = [condition.name for condition in rule.positive]
        bounds = [(low, low + draw(st.integers(0, 5))) for low in draw(st.tuples(*[LOWS] * 2))]
        one, two = (Temporal("AFTER", "m", draw(st.sampled_from(names)), b) for b in bounds)
        reads = draw(expressions(names))
        test = draw(
            st.sampled_from([
                one,
                AnyTest((one, two)),
                AllTests((one, NotTest(two))),
                AllTests((one, reads)),
                AnyTest((two, AllTests((one, NotTest(reads))))),
                AllTests((one, NotTest(AnyTest((two, reads))))),
            ])
        )  # fmt: skip
        other = EventCondition("m", TYPES["A"], draw(arguments), negated=True)
        rule = replace(rule, events=(*rule.events, other), test=AllTests((*rule.test.tests, test)))
    return rule


@st.composite
def expressions(draw, names):
    """A test that reads values: of the two events, or their times."""
    if draw(st.booleans()):
        times = (
            EventReference("TIMEOF", "m"),
            EventReference("TIMEOF", draw(st.sampled_from(names))),
        )
        return ExpressionTest(Call("<=", tuple(each.variable for each in times)), times)
    one, two = (Var(draw(st.sampled_from("pqr"))) for _ in range(2))
    return ExpressionTest(Call(draw(st.sampled_from(("=", "!="))), (one, two)))


LOWS = st.integers(-3, 3)
EVENT = st.tuples(st.sampled_from("AB"), *[st.sampled_from(VALUES)] * 2, st.sampled_from((0, 0, 1)))
FACT = st.sampled_from([(iri("on"), iri("yes")), (iri("near"), iri("u"))])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.lists(EVENT, min_size=1, max_size=20), st.integers(0, 2)),
        st.tuples(st.just("take"), st.lists(EVENT, min_size=1, max_size=2), st.integers(0, 2)),
        st.tuples(st.just("advance"), st.integers(1, 6)),
        st.tuples(st.just("retract"), st.integers(1, 12)),
        st.tuples(st.just("fact"), st.sampled_from((1, -1)), st.sampled_from(VALUES), FACT),
        st.tuples(st.just("savepoint")),
        st.tuples(st.just("rollback"), st.integers(0, 3)),
        st.tuples(st.just("begin")),
        st.tuples(st.just("reload")),
    ),
    min_size=3,
    max_size=14,
)


class Twins:
    """Two sets of one rule over one graph: NO EVENT in arrays, and in Python."""

    def __init__(self, rule):
        self.graph, self.rule = LiveGraph(), rule
        self.connection, self.made = GraphConnection(self.graph._streams), 0
        self.sets = self._make()
        self.now, self.saved, self.number = 0, [], 0

    def _make(self):
        pair = []
        for plainly in (False, True):
            rules_ = RuleSet(self.connection, MAX_DURATION)
            self.made += 1  # their queries are named after them
            rules_.add(replace(self.rule, name=f"rule{self.made}"), None)
            matcher = _matcher(rules_)
            assert isinstance(matcher.absence, compiled.Absence)
            if plainly:
                matcher.absence = PlainAbsence(matcher.absence.no_events, matcher.facts)
            pair.append(rules_)
        return pair

    def both(self, ask):
        one, two = (ask(each) for each in self.sets)
        assert one == two
        return one

    def step(self, kind, *given):
        getattr(self, kind)(*given)
        self.both(lambda each: each.retained)
        self.both(lambda each: each.next_deadline())
        self.both(lambda each: _absence(each).first_since())
        self.both(lambda each: sorted(map(_waiting, _absence(each).pending())))
        for condition in self.rule.negative:
            self.both(lambda each, c=condition: sorted(map(repr, _absence(each).events(c))))
        self.both(lambda each: {i for ids in _pending_ids(each) for i in ids.ravel().tolist()})

    def take(self, events, duration):
        encode, rows, ends = self.graph.terms.encode, [], []
        for kind, x, y, gap in events:
            self.now += gap
            self.number += 1
            rows.append([tuple(map(encode, t)) for t in triples(kind, x, y, self.number)])
            ends.append(self.now)
        batch = make_events(rows, ends, duration)
        since = self.connection.position

        def ask(each):
            each.catch_up()
            return [_listed(share.matches) for share in each.take(batch, since)]

        self.both(ask)

    def advance(self, ticks):
        self.now += ticks
        self.both(lambda each: [_listed(share.matches) for share in each.advance(self.now)])

    def retract(self, back):
        self.both(lambda each: each.retract(each.order - back))

    def fact(self, diff, subject, predicate_object):
        (self.graph.insert if diff > 0 else self.graph.delete)(subject, *predicate_object)

    def savepoint(self):
        states = [(each.savepoint(), each.order) for each in self.sets]
        self.saved.append((self.now, states))

    def rollback(self, to):
        if self.saved:
            del self.saved[1 + min(to, len(self.saved) - 1) :]
            self.now, states = self.saved[-1]
            for each, state in zip(self.sets, states, strict=True):
                each.rollback(*state)

    def begin(self):
        self.saved.clear()
        self.both(lambda each: each.begin())

    def reload(self):
        """Each goes on with what the other has saved."""
        self.begin()
        one, two = (_matcher(each).dump(inf) for each in self.sets)
        assert _plain(one["absence"]) == _plain(two["absence"])
        before, self.sets = self.sets, self._make()
        for each, old, saved in zip(self.sets, before, (two, one), strict=True):
            each.order = old.order
            _matcher(each).load(saved)


def _matcher(rules_):
    (entry,) = rules_
    return entry.matcher


def _absence(rules_):
    return _matcher(rules_).absence


def _waiting(pending):
    events = repr(pending.match.events)
    return pending.row[1:], pending.spans, pending.until, pending.match.time, events


def _pending_ids(rules_):
    """The ids of pending matches; memories in arrays hold those of free places, too."""
    return [next(iter(_absence(rules_).held_ids()))]


def _listed(matches):
    return [each.tolist() for each in (matches.rows, matches.spans, matches.moments, matches.times)]


def _plain(saved):
    """Saved arrays as lists; those of nothing have any width."""
    if isinstance(saved, dict):
        return {name: _plain(each) for name, each in saved.items()}
    return saved.tolist()


@settings(deadline=None, max_examples=100)
@given(denied_rules(), STEPS)
def test_arrays_do_what_the_definition_does(rule, steps):
    twins = Twins(rule)
    for each in steps:
        twins.step(*each)
    twins.step("advance", 60)


TIMES = EventReference("TIMEOF", "n"), EventReference("TIMEOF", "a")
LATE = ExpressionTest(Call(">", tuple(reference.variable for reference in TIMES)), TIMES)
OTHER = ExpressionTest(Call("!=", (Var("y"), Var("z"))))
WITHIN = Temporal("AFTER", "n", "a", (0, 30))
SOON = Temporal("AFTER", "n", "a", (0, 8))
LATER = Temporal("AFTER", "n", "a", (4, 8))
WAITS = {
    "times": (WITHIN, "xy"),
    "times in an expression": (AllTests((WITHIN, NotTest(AllTests((SOON, LATE))))), "xy"),
    "values": (AllTests((WITHIN, AnyTest((LATER, OTHER)))), "xz"),
    "values alone": (AllTests((WITHIN, NotTest(AllTests((WITHIN, OTHER))))), "zy"),
}
"""By name: the test of a NO EVENT, and its parameters."""


@pytest.mark.parametrize("kind", WAITS)
@pytest.mark.parametrize("seed", range(3))
def test_many_matches_outgrow_their_arrays_between_savepoints(seed, kind, monkeypatch):
    """Many keys and times: the heap is made again, arrays are replaced, and all is rolled back."""
    rng = np.random.default_rng(seed)
    test, names = WAITS[kind]
    twins = Twins(open_doors(test, tuple(map(Var, names))))
    asked, forbids = [], compiled.Absence._forbids

    def counted(self, room, *given):
        asked.append(room)
        return forbids(self, room, *given)

    monkeypatch.setattr(compiled.Absence, "_forbids", counted)
    values = [iri(f"v{n}") for n in range(12)]

    def some(many):
        drawn = rng.integers(0, (2, 12, 12, 3), (many, 4)).tolist()
        return [("AB"[k], values[x], values[y], int(gap == 2)) for k, x, y, gap in drawn]

    for _ in range(4):
        twins.step("take", some(100), 0)
        for _ in range(3):
            twins.step("savepoint")
            twins.step("take", some(80), 1)
            twins.step("retract", int(rng.integers(1, 60)))
        twins.step("rollback", int(rng.integers(0, 3)))
        twins.step("take", some(60), 0)
        twins.step("rollback", 0)
        if rng.random() < 0.5:
            twins.step("reload")
    twins.step("advance", 100)
    assert set(asked) == (set() if kind == "times" else {layout.WAITING, layout.RETAINED})


def open_doors(test, denied=TYPES["B"].parameters):
    parameters = TYPES["A"].parameters
    closed = EventCondition("n", TYPES["B"], denied, negated=True)
    return Rule("rule", (EventCondition("a", TYPES["A"], parameters), closed), None, test)


def test_a_bound_as_a_filter_is_the_bound():
    """As a relation and as a FILTER: what fires is the same, though not when."""
    references = EventReference("TIMEOF", "n"), EventReference("TIMEOF", "a")
    early = Call("<=", tuple(reference.variable for reference in references))
    same = Temporal("AFTER", "n", "a", (0, 0))
    longer = AllTests((Temporal("AFTER", "n", "a", (0, 9)), ExpressionTest(early, references)))
    fired = []
    for test in (same, longer):
        engine = Engine()
        engine.add(open_doors(test))
        for number, (type_, name, time) in enumerate(
            [("A", "u", 1), ("B", "u", 1), ("A", "v", 2), ("B", "v", 3), ("A", "w", 4)]
        ):
            engine.assert_event(triples(type_, iri(name), iri(name), number), time=time)
        engine.advance(30)
        fired.append([firing.values for firing in engine.firings()])
    assert fired[0] == fired[1]
    assert len(fired[0]) == 2

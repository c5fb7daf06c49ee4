"""Why a rule does not fire, or a pattern is not complete: from what they retain, when asked."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from graphtide.algebra.expressions import Var
from graphtide.engine.explanations import bindings_of, row_text
from graphtide.patterns.explain import token_text, transition_text
from graphtide.plan.describe import expression_text
from graphtide.rules import temporal
from graphtide.rules.expiry import rule_retentions
from graphtide.rules.matching.types import Match, MatchedEvent
from graphtide.why.render import brief
from graphtide.why.tree import Explanation, WhyStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from graphtide.engine.query_host import DroppedToken
    from graphtide.patterns.tokens import Token
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.rules.detection import PatternRunner
    from graphtide.rules.firing import Firing
    from graphtide.rules.matching.no_events import Denial
    from graphtide.rules.matching.types import Binding
    from graphtide.rules.model import EventCondition
    from graphtide.rules.rule_set import RuleEntry

ATTEMPTS: Final = 2000
"""Combinations of events that are looked at, to find the one that comes closest."""

MAX_DROPPED: Final = 5
"""Dropped tokens that are shown."""

Attempt = tuple[dict[str, MatchedEvent], "Binding"]


class RuleQuestion:
    """Why a rule does not fire for some values of its variables."""

    def __init__(
        self, entry: RuleEntry, terms: TermDictionary, clock: int, values: Mapping[str, object]
    ) -> None:
        self._rule = entry.matcher.rule
        self._entry = entry
        self._terms = terms
        self._clock = clock
        columns = tuple(v.name for v in entry.matcher.shape.variables)
        self._values = bindings_of(columns, None, values)
        self._want: Binding = {
            Var(name): terms.lookup(term) for name, term in self._values.items() if term is not None
        }

    def explain(self, firings: Sequence[Firing]) -> Explanation:
        """The closest attempt, and the last firing with these values."""
        best = max(map(self._steps, self._attempts()), key=_held)
        asked = row_text(self._values) or "any values"
        fired = [firing for firing in firings if self._same(firing)]
        notes = [f"it fired for such values at {fired[-1].time}"] if fired else []
        if all(step.holds for step in best):
            notes.append("all of this holds: it fires with the next event that completes it")
        notes += self._waiting()
        title = f"{self._rule.name} does not fire for {asked} at {self._clock}"
        step = WhyStep("all", children=tuple(best), holds=all(each.holds for each in best))
        return Explanation(self._rule.name, self._values, title, (step,), notes=tuple(notes))

    def _same(self, firing: Firing) -> bool:
        return all(firing.values.get(name) == term for name, term in self._values.items())

    def _waiting(self) -> list[str]:
        absence = self._entry.matcher.absence
        pending = [] if absence is None else absence.pending()
        return [
            f"a match waits until {each.until:g}, as long as a NO EVENT may come"
            for each in pending
            if all(each.match.binding.get(v) == i for v, i in self._want.items())
        ]

    def _attempts(self) -> Iterator[Attempt]:
        """Combinations of retained events that agree with the values and with each other."""

        def further(
            index: int, events: dict[str, MatchedEvent], known: Binding
        ) -> Iterator[Attempt]:
            if index == len(self._rule.positive):
                yield events, known
                return
            name = self._rule.positive[index].name
            for event, binding in self._entry.matcher.events(index):
                if all(known.get(v, i) == i for v, i in binding.items()):
                    yield from further(index + 1, {**events, name: event}, {**known, **binding})
            yield from further(index + 1, events, known)

        return islice(further(0, {}, dict(self._want)), ATTEMPTS)

    def _steps(self, attempt: Attempt) -> list[WhyStep]:
        events, binding = attempt
        retained = rule_retentions(self._rule)
        steps = []
        for condition in self._rule.positive:
            event = events.get(condition.name)
            text = self._condition(condition, binding)
            if event is None:
                _, _, length = str(retained[condition.name]).partition(": ")
                note = f"there is none now; such events are {length}"
                steps.append(WhyStep("event", text, note=note, holds=False))
            else:
                steps.append(WhyStep("event", text, note=_when(event.span)))
        spans = {name: event.span for name, event in events.items()}
        tests = temporal.conjuncts(self._rule.test)
        ready = [test for test in tests if temporal.named(test) <= spans.keys()]
        steps += [self._test(test, spans, binding) for test in ready]
        match = None
        if len(events) == len(self._rule.positive):
            match = Match(self._rule, events, binding, self._clock)
        return [*steps, *self._negative(spans, binding), *self._facts(match, binding)]

    def _condition(self, condition: EventCondition, binding: Binding) -> str:
        given = (
            brief(self._terms.decode(binding[a]))
            if isinstance(a, Var) and binding.get(a)
            else brief(a)
            for a in condition.arguments
        )
        word = "NO EVENT " if condition.negated else ""
        return f"{word}{condition.name} = {condition.type.name}({', '.join(given)})"

    def _test(
        self, test: temporal.Test, spans: dict[str, temporal.Span], binding: Binding
    ) -> WhyStep:
        values = {v: self._terms.decode(i) for v, i in binding.items() if i}
        holds = temporal.holds(test, spans, values)
        match test:
            case temporal.Temporal(operator, this, other, numbers):
                bounds = f"[{', '.join(f'{n:g}' for n in numbers)}]" if numbers else ""
                text = f"{this} {operator}{bounds} {other}"
                return WhyStep("test", text, note=_distances(test, spans), holds=holds)
            case temporal.ExpressionTest(expression):
                note = ", ".join(f"{v} = {brief(term)}" for v, term in values.items())
                return WhyStep("test", expression_text(expression), note=note, holds=holds)
            case _:
                names = sorted(temporal.named(test))
                times = ", ".join(f"{name} {_when(spans[name])}" for name in names)
                return WhyStep("test", f"a test of {', '.join(names)}", note=times, holds=holds)

    def _spoils(
        self, denial: Denial, tests: list[temporal.Test], spans: Mapping[str, temporal.Span]
    ) -> bool:
        known = {**spans, denial.condition.name: denial.event.span}
        values = {v: self._terms.decode(i) for v, i in denial.binding.items() if i}
        return all(
            temporal.named(t) <= known.keys() and temporal.holds(t, known, values) for t in tests
        )

    def _negative(self, spans: Mapping[str, temporal.Span], binding: Binding) -> Iterator[WhyStep]:
        absence = self._entry.matcher.absence
        for condition in self._rule.negative:
            assert absence is not None  # noqa: S101 - the rule has a NO EVENT
            name, text = condition.name, self._condition(condition, binding)
            came = [
                denial
                for denial in absence.events(condition)
                if all(binding.get(v, i) == i for v, i in denial.binding.items())
            ]
            tests = [t for t in temporal.conjuncts(self._rule.test) if name in temporal.named(t)]
            spoiling = [d for d in came if self._spoils(d, tests, spans)]
            note = "none is retained that spoils it"
            if came and not temporal.named(temporal.AllTests(tuple(tests))) <= {*spans, name}:
                note = f"one came {_when(came[-1].event.span)}: it may spoil what comes"
            elif spoiling:
                note = f"one came {_when(spoiling[0].event.span)}"
            yield WhyStep("no event", text, note=note, holds=not spoiling)

    def _facts(self, match: Match | None, binding: Binding) -> Iterator[WhyStep]:
        query = self._entry.facts
        if query is None:
            return
        known = {v.name: self._terms.decode(i) for v, i in binding.items() if i}
        row = {name: known[name] for name in query.variables if name in known}
        found = query.why_not(row)
        inside = tuple(
            s for d in found.derivations for s in (d.children if d.kind == "all" else (d,))
        )
        holds, note = found.first_failure() is None, ""
        whole = match is not None and all(Var(name) in binding for name in query.variables)
        if holds and whole and match is not None and not self._entry.matcher.facts_hold(match):
            holds, note = False, "they hold only since after the first event"
        yield WhyStep("facts", "facts", (), inside, note, holds=holds)


def _held(steps: list[WhyStep]) -> tuple[int, int]:
    return sum(step.holds for step in steps if step.kind == "event"), -sum(
        not step.holds for step in steps
    )


def _when(span: temporal.Span) -> str:
    return f"at {span.end}" if span.start == span.end else f"from {span.start} to {span.end}"


def _distances(test: temporal.Temporal, spans: Mapping[str, temporal.Span]) -> str:
    """The distances of a temporal relation, their bounds, and by how much they are missed.

    >>> after = temporal.Temporal("AFTER", "e", "a", (0, 5))
    >>> _distances(after, {"a": temporal.Span(1, 1), "e": temporal.Span(8, 8)})
    'e starts 7 after a ends, allowed is 0 to 5: 2 too much'
    """
    this, other = spans[test.this], spans[test.other]
    times = {
        "start": (f"{test.this} starts", this.start), "end": (f"{test.this} ends", this.end),
        "other start": (f"{test.other} starts", other.start),
        "other end": (f"{test.other} ends", other.end),
    }  # fmt: skip
    texts = []
    for one, two, bounds in temporal.relation_bounds(test.operator, test.numbers):
        distance = times[one][1] - times[two][1]
        text = f"{times[one][0]} {distance} after {times[two][0]}, "
        text += f"allowed is {bounds.low:g} to {bounds.high:g}"
        if distance > bounds.high:
            text += f": {distance - bounds.high:g} too much"
        elif distance < bounds.low:
            text += f": {bounds.low - distance:g} too little"
        texts.append(text)
    return "; ".join(texts)


def no_match(
    runner: PatternRunner,
    terms: TermDictionary,
    values: Mapping[str, object],
    dropped: Sequence[DroppedToken] | None,
) -> Explanation:
    """Why a pattern is not complete for some values: its tokens, and what each waits for.

    And, if they are known, the tokens that were `dropped` last.
    """
    detector = runner.detector
    automaton = detector.automaton
    row = bindings_of(tuple(v.name for v in automaton.variables), None, values)
    want = {Var(name): terms.lookup(term) for name, term in row.items() if term is not None}

    def fits(token: Token) -> bool:
        pairs = zip(automaton.variables, token.configurations[0].values, strict=True)
        return all(not value or want.get(variable, value) == value for variable, value in pairs)

    steps = []
    for token in filter(fits, detector.tokens()):
        places = sorted({configuration.position for configuration in token.configurations})
        waits = tuple(
            WhyStep("token", transition_text(automaton, each), holds=False)
            for place in places
            for each in automaton.transitions[place]
        )
        text = token_text(token, detector.reader, lambda i: brief(terms.decode(i)))
        steps.append(WhyStep("token", text, (), waits, "it waits for one of these", holds=False))
    gone = [each for each in dropped or () if _agree(each.values, row)]
    steps += [
        WhyStep(
            "token",
            " ".join([f"token since {each.start:,}", row_text(each.values)]).rstrip(),
            note=f"dropped at {each.time:,}: {each.why}",
            holds=False,
        )
        for each in gone[-MAX_DROPPED:]
    ]
    if not steps:
        first = tuple(
            WhyStep("token", transition_text(automaton, each), holds=False)
            for each in automaton.transitions[0]
        )
        before = "nothing has begun it" + (", or what did was dropped" if dropped is None else "")
        note = f"{before}; it begins with one of these"
        steps.append(WhyStep("token", "no token", (), first, note, holds=False))
    title = f"{automaton.name} is not complete for {row_text(row) or 'any values'}"
    notes = [f"it has been complete {runner.total:,} times"]
    if dropped is None:
        notes.append("dropped tokens are not retained: only a durable graph has its past")
    elif len(gone) > MAX_DROPPED:
        notes.append(f"{len(gone):,} tokens were dropped; the last {MAX_DROPPED} are shown")
    root = WhyStep("all", children=tuple(steps), holds=False)
    return Explanation(automaton.name, row, title, (root,), notes=tuple(notes))


def _agree(known: Mapping[str, Term], row: Mapping[str, Term | None]) -> bool:
    return all(term is None or known.get(name, term) == term for name, term in row.items())

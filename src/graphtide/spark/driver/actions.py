"""Actions: what rules do when they fire, on the driver, micro-batch by micro-batch.

Calls come first: if one fails, nothing of its batch is written, and the batch is run again. So a
call is made at least once, and always with the same id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from graphtide.algebra.expressions import Var
from graphtide.errors import ActionError, GraphtideError
from graphtide.functions.templates import fill_template
from graphtide.lang.tide.ast import CallFunction, Delete, Emit, Insert, Retract, RuleDeclaration
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rules.actions import ActionRow, takes_graph, takes_id
from graphtide.rules.running.parts import check_functions
from graphtide.spark.output import FIRINGS
from graphtide.spark.partition.program import RETRACTS, ProgramSpec, event_span, event_term
from graphtide.spark.state.messages import AFTER_ALL, MessageKind, of_kind

if TYPE_CHECKING:
    from graphtide.algebra.nodes import TriplePattern
    from graphtide.rdf.terms import Term
    from graphtide.spark.driver.feedback import Cause, FeedbackLog


Functions = Mapping[str, Callable[..., object]]
"""What CALL calls, by name."""


class ActionRunner:
    """Carries out the actions of a program's firings."""

    def __init__(
        self,
        spec: ProgramSpec,
        functions: Functions,
        feedback: FeedbackLog | None,
    ) -> None:
        check_functions(spec.source, functions)
        check_no_graph(functions)
        self.spec = spec
        self._feedback = feedback
        self._functions = {name: (f, takes_id(f)) for name, f in functions.items()}

    def firings(self, messages: pa.Table) -> tuple[list[FiredRule], pa.Table]:
        """The firings of a batch, and as they are written."""
        fired = read_firings(messages, self.spec)
        return fired, firings_table(fired)

    def call(self, fired: list[FiredRule]) -> None:
        """Call functions, in the order of the firings."""
        terms = TermDictionary()
        for firing in fired:
            for action in firing.rule.actions:
                if isinstance(action, CallFunction):
                    self._call(action, firing, firing.row(terms))

    def _call(self, action: CallFunction, firing: FiredRule, row: Mapping[Var, Term]) -> None:
        function, with_id = self._functions[action.function]
        given = [row.get(a) if isinstance(a, Var) else a for a in action.arguments]
        try:
            function(*given, **({"firing_id": firing.id} if with_id else {}))
        except Exception as problem:
            raise ActionError(
                f"{firing.words()} failed: {type(problem).__name__}: {problem}",
                hint="start again when it is fixed: the micro-batch is run again, with all calls",
            ) from problem

    def feed_back(self, batch: int, time: int, fired: list[FiredRule]) -> None:
        """Write what the firings change in the graph and emit, at the time of the watermark."""
        if self._feedback is None:
            return
        self._feedback.begin(batch)
        self._feedback.write(batch, list(self._changes(fired, max(time, 0))))

    def _changes(
        self, fired: list[FiredRule], time: int
    ) -> Iterator[tuple[Cause, list[dict[str, Any]]]]:
        terms = TermDictionary()
        for firing in fired:
            rows = changes_of(firing, time, terms)
            if rows and self._feedback is not None:
                yield self._feedback.cause(firing.tx, firing.rule.name), rows


def changes_of(firing: FiredRule, time: int, terms: TermDictionary) -> list[dict[str, Any]]:
    """What a firing inserts, deletes and emits; of a quad, the last action counts."""
    row = firing.row(terms)
    changed: dict[tuple[str | None, ...], int] = {}
    emitted: list[dict[str, Any]] = []

    def filled(template: tuple[TriplePattern, ...], number: int) -> Iterator[list[str | None]]:
        for quad in fill_template(template, row, scope=f"{firing.id} {number}"):
            yield [None if term is None else str(term) for term in quad]

    for number, action in enumerate(firing.rule.actions):
        match action:
            case Insert(template) | Delete(template):
                diff = 1 if isinstance(action, Insert) else -1
                changed |= {tuple(quad): diff for quad in filled(template, number)}
            case Emit(stream, template):
                at = {"time": time, "diff": 1, "stream": stream.value}
                emitted += (
                    {**at, "s": s, "p": p, "o": o} for s, p, o, _ in filled(template, number)
                )
            case Retract(event):
                name = event_term(firing.events[event])
                at = {"time": time, "diff": 1, "stream": RETRACTS.value}
                emitted.append({**at, "s": name, "p": str(RETRACTS), "o": name})
            case _:
                pass
    quads = [
        {"time": time, "diff": diff, **dict(zip("spog", quad, strict=True))}
        for quad, diff in changed.items()
    ]
    return [*quads, *emitted]


def check_no_graph(functions: Mapping[str, object]) -> None:
    """Reject functions that take a graph."""
    for name, function in functions.items():
        if callable(function) and takes_graph(function):
            raise GraphtideError(
                f"{name} takes a graph, and on Spark there is none to give",
                hint="use INSERT, DELETE or EMIT in the rule",
            )


@dataclass(frozen=True, slots=True)
class FiredRule:
    """A rule that fired. `id` is the same whenever and however often the batch is run.

    `events` has the names of its events (`event_name`), or their times if nothing is retracted.
    """

    rule: RuleDeclaration
    time: int
    tx: int
    id: str
    values: dict[str, str]
    events: dict[str, str]

    def row(self, terms: TermDictionary) -> dict[Var, Term]:
        """The values by variable."""
        row = {Var(n): terms.decode(terms.encode(text)) for n, text in self.values.items()}
        spans = {name: event_span(event) for name, event in self.events.items()}
        return ActionRow(self.rule).completed(row, spans, self.time)

    def words(self) -> str:
        """The rule, when, and with which values."""
        values = ", ".join(f"?{name}={text}" for name, text in self.values.items())
        return f"the rule {self.rule.name} at {self.time} with {values or 'no values'}"


def read_firings(messages: pa.Table, spec: ProgramSpec) -> list[FiredRule]:
    """Firings by time, tx, event, priority, declaration and values: as in one process."""
    lines: list[dict[str, Any]] = of_kind(messages, MessageKind.FIRING).to_pylist()
    lines.sort(key=lambda line: _rank(line, spec))
    seen: Counter[tuple[object, ...]] = Counter()
    return [_fired(line, spec, seen) for line in lines]


def _rank(line: dict[str, Any], spec: ProgramSpec) -> tuple[object, ...]:
    """What firings are sorted by."""
    rule = line["id"]
    values = tuple(text or "" for text in line["values"])
    spans = [event_span(name) for name in line["events"]]
    stamps = line["time"], line["tx"], line["seq"]
    return (
        *stamps,
        -spec.rules[rule].priority,
        rule,
        values,
        [(each.end, each.start) for each in spans],
    )


def _fired(line: dict[str, Any], spec: ProgramSpec, seen: Counter[tuple[object, ...]]) -> FiredRule:
    rule = spec.rules[line["id"]]
    values = dict(zip(spec.rule_variables[line["id"]], line["values"], strict=True))
    key = rule.name, line["time"], line["tx"], *(text or "" for text in values.values())
    made = "\0".join(map(str, (*key, seen[key])))
    seen[key] += 1
    return FiredRule(
        spec.source.rules[line["id"]],
        line["time"],
        line["tx"],
        sha256(made.encode()).hexdigest()[:32],
        {name: text for name, text in values.items() if text is not None},
        {c.name: event for c, event in zip(rule.positive, line["events"], strict=True)},
    )


def firings_table(fired: list[FiredRule]) -> pa.Table:
    """Firings as they are written."""
    rows = [
        {
            "time": each.time,
            "tx": None if each.tx == AFTER_ALL else each.tx,
            "rule": each.rule.name,
            "id": each.id,
            "values": list(each.values.items()),
            "events": [(name, event_span(event).end) for name, event in each.events.items()],
        }
        for each in fired
    ]
    return pa.Table.from_pylist(rows, schema=FIRINGS)

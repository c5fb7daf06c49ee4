"""Reaction: what a program does with events on cells, as plain data that travels.

Everything between the stages is a delta row (`DELTAS`) with a number that says what it is: a query
below `TYPES`, an event, a row that is addressed to a pattern or a rule, a firing. Of an event,
`diff` is its place in its transaction: 0 for what the transaction itself caused, which happens
together, then one graph event after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.algebra.nodes import Distinct, Project, SelectQuery
from graphtide.algebra.variables import merge
from graphtide.errors import UnsupportedError
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.tide.ast import (
    CallFunction,
    Emit,
    GraphPattern,
    QueryChange,
    QueryUpdate,
    Retract,
    StateChange,
)
from graphtide.patterns.compile import compile_pattern
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rules.compile import Compiler
from graphtide.rules.matching.matcher import make_plan
from graphtide.spark.happened import RETRACTED
from graphtide.spark.react_keys import Keyed, pattern_key, rule_key
from graphtide.spark.shares import body_of
from graphtide.spark.stable_text import stable_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.algebra.expressions import Var
    from graphtide.lang.tide.program import Program
    from graphtide.rules.model import EventType, Rule

FRONTIER: Final = -1
TYPES: Final = 1_000_000
FIRED: Final = 2_000_000
TO_FACTS: Final = 3_000_000
TO_PATTERN: Final = 100_000_000
TO_RULE: Final = 1_000_000_000
SAVED: Final = 2_000_000_000
MOST_TYPES: Final = 10_000
"""The numbers of delta rows: how far the stream is; an event of a type; a rule that fired; a fact
of a rule; an event for a pattern or a rule (`MOST_TYPES` for each); the saved state of a cell."""

LAST: Final = 2**63 - 1
"""The tx of what happens because a time is over: after all transactions of that time."""

FEEDBACK: Final = -(2**62)
"""Transactions of actions have numbers from here on, below all others: they come first."""

BEFORE_ALL: Final = -(2**62)
"""The time of facts that depend on no quad."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A query that nobody has asked for by name: the facts of a rule, or rows that events tell of.

    Its rows are distinct. If rows of two queries have to be paired, they are sent on by the first
    `meet_by` columns.
    """

    name: str
    select: SelectQuery
    meet_by: int | None = None


@dataclass(frozen=True, slots=True)
class RowEvents:
    """Rows of a hidden query that come, or go, are events of a type."""

    type: int
    query: int
    appears: bool


@dataclass(frozen=True, slots=True)
class StateEvents:
    """Rows that go from one hidden query and rows that come to another are events of a type."""

    type: int
    gone: int
    come: int
    shared: int
    columns: tuple[tuple[bool, int], ...]
    """Where each parameter is: whether among the rows that come, and its column."""


@dataclass(frozen=True, slots=True)
class UpdateEvents:
    """Rows of one hidden query that stay while those of another change are events of a type."""

    type: int
    kept: int
    whole: int


ChangeEvents = RowEvents | StateEvents | UpdateEvents


@dataclass(frozen=True)
class Reaction:
    """The events, patterns and rules of a program. `first` is the number of its own queries."""

    program: Program
    cells: int
    tick_ms: int = 1000
    more_streams: tuple[str, ...] = ()

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that are known by name: those of EMIT, and others that were named."""
        actions = (action for rule in self.program.rules for action in rule.actions)
        emitted = (action.stream.value for action in actions if isinstance(action, Emit))
        return tuple(dict.fromkeys([*self.more_streams, *emitted]))

    @property
    def first(self) -> int:
        """The number of the first hidden query."""
        return len(self.program.queries)

    @cached_property
    def _compiler(self) -> Compiler:
        return Compiler(self.tick_ms)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of their declaration."""
        return tuple(self._compiler.rule(rule) for rule in self.program.rules)

    @cached_property
    def named(self) -> dict[str, EventType]:
        """The types of the events that patterns see, by name: all that are declared."""
        if not self.program.patterns:
            return {}
        return {event.name: self._compiler.type_of(event) for event in self.program.events}

    @cached_property
    def complex(self) -> dict[str, EventType]:
        """The types of complex events by the name of their pattern."""
        return {p.name: self._compiler.complex_type(p) for p in self.program.patterns}

    @cached_property
    def types(self) -> dict[EventType, int]:
        """All types of events, with their numbers."""
        used = [condition.type for rule in self.rules for condition in rule.events]
        extra = [RETRACTED] if self.retracts else []
        every = dict.fromkeys([*self.named.values(), *self.complex.values(), *used, *extra])
        return {type_: number for number, type_ in enumerate(every)}

    @cached_property
    def graph_types(self) -> tuple[tuple[int, EventType], ...]:
        """The types that are matched with the triples of graph events."""
        others = {*self._compiler_changes, *self.complex.values()}
        return tuple((n, type_) for type_, n in self.types.items() if type_ not in others)

    @property
    def _compiler_changes(self) -> dict[EventType, QueryChange | QueryUpdate | StateChange]:
        _ = self.rules, self.named, self.complex
        return self._compiler.changes

    @cached_property
    def _sources(self) -> tuple[tuple[Hidden, ...], tuple[ChangeEvents, ...]]:
        """The hidden queries, those of facts first; and the events that come from the others."""
        hidden = [Hidden(f"facts of {r.name}", _distinct(r.facts, r.facts.variables))
                  for r in self.rules if r.facts is not None]  # fmt: skip
        found: dict[tuple[object, ...], int] = {}
        events: list[ChangeEvents] = []

        def number(key: tuple[object, ...], made: Hidden) -> int:
            if key not in found:
                found[key] = self.first + len(hidden)
                hidden.append(made)
            return found[key]

        for type_, change in self._compiler_changes.items():
            at, parameters = self.types[type_], type_.parameters
            if isinstance(change, QueryChange):
                select = self._query(change.query)
                made = Hidden(
                    f"rows of {change.query} for {type_.name}", _distinct(select, parameters)
                )
                query = number((change.query, parameters), made)
                events.append(RowEvents(at, query, change.appears))
                continue
            if isinstance(change, QueryUpdate):
                select = self._query(change.query)
                whole = merge(parameters, select.variables)
                kept_query, whole_query = (
                    number((type_, which), Hidden(f"{which} {type_.name}", part, len(parameters)))
                    for which, part in (
                        ("kept", _distinct(select, parameters)),
                        ("whole", _distinct(select, whole)),
                    )
                )
                events.append(UpdateEvents(at, kept_query, whole_query))
                continue
            parts, shared = _states(change, parameters)
            gone, come = (
                number((type_, which), Hidden(f"{which} {type_.name}", part, shared))
                for which, part in zip(("before", "after"), parts, strict=True)
            )
            columns = tuple(_column(v, parts) for v in parameters)
            events.append(StateEvents(at, gone, come, shared, columns))
        return tuple(hidden), tuple(events)

    def _query(self, name: str) -> SelectQuery:
        text = self.program.texts[name]
        parsed = parse_standing(text)
        if not isinstance(parsed, SelectQuery):
            raise UnsupportedError(
                f"events of the query {name}, which is over windows, do not run on Spark",
                hint="run the program in one process: graphtide.rules.run(program, graph)",
            )
        return parsed

    @property
    def hidden(self) -> tuple[Hidden, ...]:
        """The hidden queries; their numbers go on from `first`."""
        return self._sources[0]

    @property
    def change_events(self) -> tuple[ChangeEvents, ...]:
        """The events that come from changes of the graph."""
        return self._sources[1]

    @cached_property
    def facts(self) -> dict[int, int]:
        """By number of a hidden query, the rule whose facts it has."""
        rules = [n for n, rule in enumerate(self.rules) if rule.facts is not None]
        return {self.first + at: rule for at, rule in enumerate(rules)}

    @cached_property
    def rule_keys(self) -> tuple[Keyed, ...]:
        """By what the rows of each rule find their cell."""
        return tuple(
            rule_key(rule, number % self.cells, self.types)
            for number, rule in enumerate(self.rules)
        )

    @cached_property
    def rule_variables(self) -> tuple[tuple[str, ...], ...]:
        """The names of the variables of each rule, in order."""
        return tuple(
            tuple(sorted(v.name for v in make_plan(rule).variables)) for rule in self.rules
        )

    @cached_property
    def pattern_keys(self) -> tuple[Keyed, ...]:
        """By what the events of each pattern find their cell; types are those of `named`."""
        numbers = {name: number for number, name in enumerate(self.named)}
        terms = TermDictionary()
        return tuple(
            pattern_key(
                compile_pattern(pattern, numbers, terms.encode, self.tick_ms), at % self.cells
            )
            for at, pattern in enumerate(self.program.patterns)
        )

    @cached_property
    def mark(self) -> str:
        """What the state of cells depends on, apart from the queries."""
        program = self.program
        return stable_text((program.events, program.patterns, program.rules, self.tick_ms))

    @property
    def feeds_back(self) -> bool:
        """Whether actions change the graph, or make events."""
        actions = (action for rule in self.program.rules for action in rule.actions)
        return any(not isinstance(action, CallFunction) for action in actions)

    @property
    def retracts(self) -> bool:
        """Whether actions may want events to be forgotten."""
        actions = (action for rule in self.program.rules for action in rule.actions)
        return any(isinstance(action, Retract) for action in actions)

    def check(self) -> None:
        """Refuse what cannot run on cells."""
        _ = self.hidden, self.rule_keys, self.pattern_keys


def is_feedback(tx: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which transactions are those of actions.

    >>> is_feedback(np.array([FEEDBACK + 7, 7, -(2**63)])).tolist()
    [True, False, False]
    """
    return np.asarray((tx >= FEEDBACK) & (tx < FEEDBACK // 2))


def reaction_of(
    program: Program, cells: int, tick_ms: int, streams: tuple[str, ...] = ()
) -> Reaction | None:
    """What a program does with events; None if it has nothing but queries."""
    if not program.rules and not program.patterns:
        return None
    return Reaction(replace(program, goals=(), fixes=()), cells, tick_ms, streams)


def _distinct(select: SelectQuery, variables: tuple[Var, ...]) -> SelectQuery:
    """The distinct rows of a query, cut down to some of its variables."""
    return replace(select, variables=variables, root=Distinct(Project(body_of(select), variables)))


def _states(
    change: StateChange, parameters: tuple[Var, ...]
) -> tuple[tuple[SelectQuery, SelectQuery], int]:
    """The queries before and after a change of state, with the columns that they share first."""
    shared = tuple(v for v in change.before.variables if v in change.after.variables)

    def part(select: SelectQuery) -> SelectQuery:
        own = tuple(v for v in parameters if v in select.variables)
        return _distinct(select, merge(shared, own))

    return (part(change.before), part(change.after)), len(shared)


def _column(variable: Var, parts: tuple[SelectQuery, SelectQuery]) -> tuple[bool, int]:
    comes = variable in parts[1].variables
    return comes, parts[comes].variables.index(variable)


def has_graph_events(program: Program) -> bool:
    """Whether a program declares events that are matched with graph events.

    >>> from graphtide.lang.tide.program import Program
    >>> has_graph_events(Program.parse("EVENT E(?x) AS { ?x a <ex:Alarm> }"))
    True
    """
    return any(isinstance(event.source, GraphPattern) for event in program.events)

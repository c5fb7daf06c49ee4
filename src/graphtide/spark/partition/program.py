"""ProgramSpec: the events, patterns and rules of a program, as a part of a job.

It says which queries the events and facts need, by which key rows find the partition of a rule or a
pattern, and how events are named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Distinct, Project, SelectQuery, TriplePattern
from graphtide.algebra.variables import merge
from graphtide.errors import UnsupportedError
from graphtide.lang.fingerprint import fingerprint_text
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.pattern_facts import walk
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.measure import lifetime
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rules.compile import Compiler, events_in_use
from graphtide.rules.matching.matcher import make_plan
from graphtide.rules.model import EventType, Rule
from graphtide.rules.temporal import Span
from graphtide.spark.partition.grids import EventKey, body_of, pattern_key, rule_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.lang.tide.program import Program

BEFORE_ALL: Final = -(2**62)
"""The time of facts that depend on no quad."""

RETRACTS: Final = NamedNode("urn:graphtide:retracts")
_EVENT_SPACE: Final = "urn:graphtide:happened:"

RETRACTED: Final = EventType(
    "RETRACT", (Var("event"),), (TriplePattern(Var("event"), RETRACTS, Var("event")),)
)
"""The type of the events by which actions retract other events."""

ANY_EVENT: Final = EventType("any event", (), (TriplePattern(Var("s"), Var("p"), Var("o")),))
"""The type of all graph events."""


@dataclass(frozen=True, slots=True)
class InternalQuery:
    """A query that the program needs: the facts of a rule, or rows whose changes are events.

    Its rows are distinct. If rows of two queries have to be paired, they are sent on by their first
    `consolidate_by` columns.
    """

    name: str
    select: SelectQuery
    consolidate_by: int | None = None


@dataclass(frozen=True, slots=True)
class RowEvents:
    """Rows that are added to the answer of a query, or removed, are events of a type."""

    type: int
    query: int
    appears: bool


@dataclass(frozen=True, slots=True)
class StateEvents:
    """Rows removed from one query and rows added to another, paired, are events of a type."""

    type: int
    removed: int
    added: int
    shared: int
    columns: tuple[tuple[bool, int], ...]
    """Where each parameter is: whether in the added row, and its column there."""


@dataclass(frozen=True, slots=True)
class UpdateEvents:
    """Rows that stay in one query while those of another change are events of a type."""

    type: int
    retained: int
    whole: int


ChangeEvents = RowEvents | StateEvents | UpdateEvents


@dataclass(frozen=True)
class ProgramSpec:
    """The events, patterns and rules of a program (`source`), on a number of partitions."""

    source: Program
    partitions: int
    tick_ms: int = 1000
    more_streams: tuple[str, ...] = ()

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that are known by name: those of EMIT, and others that were named."""
        actions = (action for rule in self.source.rules for action in rule.actions)
        emitted = (action.stream.value for action in actions if isinstance(action, tide.Emit))
        return tuple(dict.fromkeys([*self.more_streams, *emitted]))

    @property
    def first_internal(self) -> int:
        """The index of the first internal query: those of the program itself come before."""
        return len(self.source.queries)

    @cached_property
    def _compiler(self) -> Compiler:
        return Compiler(self.tick_ms)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of their declaration."""
        return tuple(self._compiler.rule(rule) for rule in self.source.rules)

    @cached_property
    def named(self) -> dict[str, EventType]:
        """The types of the events that patterns see, by name: all declared ones that are used."""
        if not self.source.patterns:
            return {}
        used = events_in_use(self.source)
        return {event.name: self._compiler.type_of(event) for event in used}

    @cached_property
    def noise_patterns(self) -> frozenset[int]:
        """The patterns for which every graph event may be noise."""
        return frozenset(
            number
            for number, pattern in enumerate(self.source.patterns)
            if pattern.context in tide.NOISY and not pattern.per
        )

    @cached_property
    def complex(self) -> dict[str, EventType]:
        """The types of complex events by the name of their pattern."""
        return {p.name: self._compiler.complex_type(p) for p in self.source.patterns}

    @cached_property
    def types(self) -> dict[EventType, int]:
        """All types of events, with their indices."""
        used = [condition.type for rule in self.rules for condition in rule.events]
        extra = [RETRACTED] if self.retracts else []
        extra += [ANY_EVENT] if self.noise_patterns else []
        every = dict.fromkeys([*self.named.values(), *self.complex.values(), *used, *extra])
        return {type_: number for number, type_ in enumerate(every)}

    @cached_property
    def graph_types(self) -> tuple[tuple[int, EventType], ...]:
        """The types that are matched with the triples of graph events."""
        others = {*self.changes, *self.complex.values()}
        return tuple((n, type_) for type_, n in self.types.items() if type_ not in others)

    @property
    def changes(
        self,
    ) -> dict[EventType, tide.QueryChange | tide.QueryUpdate | tide.StateChange]:
        """The types of events that changes of the graph cause, and which changes do."""
        _ = self.rules, self.named, self.complex
        return self._compiler.changes

    @cached_property
    def _sources(self) -> tuple[tuple[InternalQuery, ...], tuple[ChangeEvents, ...]]:
        """The internal queries, those of facts first; and the events that come from the others."""
        internal = [InternalQuery(f"facts of {r.name}", _distinct(r.facts, r.facts.variables))
                  for r in self.rules if r.facts is not None]  # fmt: skip
        found: dict[tuple[object, ...], int] = {}
        events: list[ChangeEvents] = []

        def index(key: tuple[object, ...], made: InternalQuery) -> int:
            if key not in found:
                found[key] = self.first_internal + len(internal)
                internal.append(made)
            return found[key]

        for type_, change in self.changes.items():
            at, parameters = self.types[type_], type_.parameters
            if isinstance(change, tide.QueryChange):
                select = self._query(change.query)
                made = InternalQuery(
                    f"rows of {change.query} for {type_.name}", _distinct(select, parameters)
                )
                query = index((change.query, parameters), made)
                events.append(RowEvents(at, query, change.appears))
                continue
            if isinstance(change, tide.QueryUpdate):
                select = self._query(change.query)
                whole = merge(parameters, select.variables)
                retained_query, whole_query = (
                    index(
                        (type_, which),
                        InternalQuery(f"{which} {type_.name}", part, len(parameters)),
                    )
                    for which, part in (
                        ("retained", _distinct(select, parameters)),
                        ("whole", _distinct(select, whole)),
                    )
                )
                events.append(UpdateEvents(at, retained_query, whole_query))
                continue
            parts, shared = _states(change, parameters)
            removed, added = (
                index((type_, which), InternalQuery(f"{which} {type_.name}", part, shared))
                for which, part in zip(("before", "after"), parts, strict=True)
            )
            columns = tuple(_column(v, parts) for v in parameters)
            events.append(StateEvents(at, removed, added, shared, columns))
        return tuple(internal), tuple(events)

    def _query(self, name: str) -> SelectQuery:
        text = self.source.texts[name]
        parsed = parse_standing(text)
        if not isinstance(parsed, SelectQuery):
            raise UnsupportedError(
                f"events of the query {name}, which is over windows, do not run on Spark",
                hint="run the program in one process: graphtide.rules.run(program, graph)",
            )
        return parsed

    @property
    def internal_queries(self) -> tuple[InternalQuery, ...]:
        """The internal queries; their indices begin at `first_internal`."""
        return self._sources[0]

    @property
    def change_events(self) -> tuple[ChangeEvents, ...]:
        """The events that come from changes of the graph."""
        return self._sources[1]

    @cached_property
    def facts(self) -> dict[int, int]:
        """By index of an internal query, the rule whose facts it has."""
        rules = [n for n, rule in enumerate(self.rules) if rule.facts is not None]
        return {self.first_internal + at: rule for at, rule in enumerate(rules)}

    @cached_property
    def rule_keys(self) -> tuple[EventKey, ...]:
        """By what the rows of each rule find their partition."""
        return tuple(
            rule_key(rule, number % self.partitions, self.types)
            for number, rule in enumerate(self.rules)
        )

    @cached_property
    def rule_variables(self) -> tuple[tuple[str, ...], ...]:
        """The names of the variables of each rule, in order."""
        return tuple(
            tuple(sorted(v.name for v in make_plan(rule).variables)) for rule in self.rules
        )

    @cached_property
    def pattern_keys(self) -> tuple[EventKey, ...]:
        """By what the events of each pattern find their partition; types are those of `named`."""
        numbers = {name: number for number, name in enumerate(self.named)}
        terms = TermDictionary()
        return tuple(
            pattern_key(
                compile_pattern(pattern, numbers, terms.encode, self.tick_ms), at % self.partitions
            )
            for at, pattern in enumerate(self.source.patterns)
        )

    @cached_property
    def longest(self) -> int:
        """How long a complex event may last: 0 unless a pattern is an INTERVAL."""
        indices = {name: index for index, name in enumerate(self.named)}
        terms = TermDictionary()
        lasting = (
            lifetime(compile_pattern(each, indices, terms.encode, self.tick_ms, terms)).ticks
            for each in self.source.patterns
            if each.interval
        )
        return int(max(lasting, default=0))

    @cached_property
    def fingerprint(self) -> str:
        """What the state of partitions depends on, apart from the queries."""
        program = self.source
        return fingerprint_text((program.events, program.patterns, program.rules, self.tick_ms))

    @property
    def feeds_back(self) -> bool:
        """Whether actions change the graph, or make events."""
        actions = (action for rule in self.source.rules for action in rule.actions)
        return any(not isinstance(action, tide.CallFunction) for action in actions)

    @property
    def retracts(self) -> bool:
        """Whether actions retract events."""
        actions = (action for rule in self.source.rules for action in rule.actions)
        return any(isinstance(action, tide.Retract) for action in actions)

    def check(self) -> None:
        """Raise what cannot run on partitions."""
        _ = self.internal_queries, self.rule_keys, self.pattern_keys
        for rule, declared in zip(self.rules, self.source.rules, strict=True):
            types = {condition.name: condition.type for condition in rule.positive}
            for action in declared.actions:
                if isinstance(action, tide.Retract) and self._patterns_see(types[action.event]):
                    raise UnsupportedError(
                        f"the rule {rule.name} retracts {action.event}, which may be an event of a "
                        "pattern: that does not run on Spark",
                        hint="run the program in one process, or the patterns in another program",
                    )

    def _patterns_see(self, type_: EventType) -> bool:
        """Whether events of a type may be events of a pattern; a graph event may have any type."""
        graph_types = {each for _, each in self.graph_types}
        atoms = (part for each in self.source.patterns for part in walk(each.body))
        seen = {self.named[atom.event] for atom in atoms if isinstance(atom, tide.Atom)}
        if type_ in graph_types:
            return bool(self.noise_patterns or graph_types & seen)
        return type_ in seen or (bool(self.noise_patterns) and type_ in self.named.values())


def program_spec(
    program: Program, partitions: int, tick_ms: int, streams: tuple[str, ...] = ()
) -> ProgramSpec | None:
    """What a program does with events; None if it has nothing but queries."""
    if not program.rules and not program.patterns:
        return None
    return ProgramSpec(replace(program, goals=(), fixes=()), partitions, tick_ms, streams)


def _distinct(select: SelectQuery, variables: tuple[Var, ...]) -> SelectQuery:
    """The distinct rows of a query, cut down to some of its variables."""
    return replace(select, variables=variables, root=Distinct(Project(body_of(select), variables)))


def _states(
    change: tide.StateChange, parameters: tuple[Var, ...]
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


# --- names of events ---


def event_times(start: int, end: int) -> str:
    """When an event was, as its name begins.

    >>> event_times(17, 17), event_times(12, 17)
    ('17', '17~12')
    """
    return f"{end}" if start == end else f"{end}~{start}"


def event_name(times: str, tx: int, seq: int, own: tuple[int, Sequence[str | None]] | None) -> str:
    """The name of an event, by which RETRACT finds it in every partition.

    A graph event has one name, whatever it matches. Any other event has a name of its own: `own` is
    its type and values.

    >>> event_name("17", 3, 1, None)
    '17/3/1'
    >>> event_name("17~12", 3, 0, (2, ["<ex:a>"]))
    '17~12/3/0/2-d957795fdb9a6514'
    """
    name = f"{times}/{tx}/{seq}"
    if own is None:
        return name
    type_, values = own
    text = "\0".join(value or "" for value in values)
    return f"{name}/{type_}-{sha256(text.encode()).hexdigest()[:16]}"


def event_span(name: str) -> Span:
    """When an event began and ended.

    >>> event_span("17/3/1"), event_span("17~12")
    (Span(start=17, end=17), Span(start=12, end=17))
    """
    end, _, start = name.partition("/")[0].partition("~")
    return Span(int(start or end), int(end))


def event_term(name: str) -> str:
    """The name of an event as a term.

    >>> name_of_term(event_term("17/3/1"))
    '17/3/1'
    """
    return f"<{_EVENT_SPACE}{name}>"


def name_of_term(text: str) -> str:
    """The name of an event that a term stands for."""
    return text[len(_EVENT_SPACE) + 1 : -1]

"""The declarations of a program as data: queries, events, rules, goals, fixes and patterns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pyoxigraph import NamedNode

    from graphtide.algebra.expressions import Expression, Var
    from graphtide.algebra.nodes import SelectQuery, TriplePattern
    from graphtide.lang.durations import WrittenDuration
    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """`QUERY name AS …`: the complete SPARQL text, and the line where it begins."""

    name: str
    text: str
    line: int


# --- events ---


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """`AS { pattern }`: triples of one graph event."""

    patterns: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class QueryChange:
    """`ON APPEAR OF query(variables)`: a row is new in the answer; or DISAPPEAR, it is gone."""

    query: str
    variables: tuple[Var, ...]
    appears: bool


@dataclass(frozen=True, slots=True)
class QueryUpdate:
    """`ON UPDATE OF query(variables)`: the other columns of such a row change."""

    query: str
    variables: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class StateChange:
    """`ON CHANGE OF ?e FROM { … } TO { … }`: a transaction ends one and begins the other."""

    of: Var
    before: SelectQuery
    after: SelectQuery


@dataclass(frozen=True, slots=True)
class PatternSource:
    """The matches of a PATTERN: complex events."""

    pattern: str


@dataclass(frozen=True, slots=True)
class EventDeclaration:
    """`EVENT name(parameters) … CHECK (check)`, or an anonymous event of a rule.

    Each pattern has an event declaration too, so that rules can use it by name.
    """

    name: str
    parameters: tuple[Var, ...]
    source: GraphPattern | QueryChange | QueryUpdate | StateChange | PatternSource
    line: int
    check: Expression | None = None


# --- rules ---


@dataclass(frozen=True, slots=True)
class EventUse:
    """`EVENT name = type(arguments)` in a rule, or `NO EVENT …`."""

    name: str
    type: EventDeclaration
    arguments: tuple[Var | Term, ...]
    negated: bool
    line: int


@dataclass(frozen=True, slots=True)
class TimeTest:
    """`this OPERATOR[numbers] other`: a temporal relation between two events."""

    operator: str
    this: str
    other: str
    numbers: tuple[WrittenDuration, ...]


@dataclass(frozen=True, slots=True)
class ValueTest:
    """`FILTER (expression)`, over the variables of events and facts."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Combined:
    """Tests joined by AND or OR, or one after NOT."""

    word: str
    parts: tuple[RuleTest, ...]


RuleTest = TimeTest | ValueTest | Combined


@dataclass(frozen=True, slots=True)
class Insert:
    """`INSERT { template }`."""

    template: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """`DELETE { template }`."""

    template: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class Emit:
    """`EMIT stream { template }`: publish an event."""

    stream: NamedNode
    template: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class CallFunction:
    """`CALL name(arguments)`: a Python function that the host passes to the program."""

    function: str
    arguments: tuple[Var | Term, ...]


@dataclass(frozen=True, slots=True)
class Retract:
    """`RETRACT name`: remove an event of the rule, so that no rule matches it any more."""

    event: str


Action = Insert | Delete | Emit | CallFunction | Retract


@dataclass(frozen=True, slots=True)
class RuleDeclaration:
    """`RULE name IN group PRIORITY n WHEN … THEN …`; the group of most rules is empty."""

    name: str
    events: tuple[EventUse, ...]
    facts: SelectQuery | None
    tests: tuple[RuleTest, ...]
    actions: tuple[Action, ...]
    priority: int
    line: int
    computed: tuple[tuple[Var, Expression], ...] = ()
    """`BIND (expression AS ?variable)`: values for the actions."""
    group: str = ""


# --- repair ---


@dataclass(frozen=True, slots=True)
class GoalDeclaration:
    """`GOAL name NONE OF query`, `AT MOST most OF query`, or `MINIMIZE query` (`most` is None)."""

    name: str
    query: str
    most: int | None
    weight: float
    line: int


@dataclass(frozen=True, slots=True)
class FixDeclaration:
    """`FIX name COST cost ON query(variables) THEN …`."""

    name: str
    query: str
    variables: tuple[Var, ...]
    actions: tuple[Insert | Delete, ...]
    cost: float
    line: int


# --- tests ---


@dataclass(frozen=True, slots=True)
class GivenChange:
    """`INSERT { … }` of a test, or `DELETE { … }`, whose `diff` is -1."""

    diff: int
    quads: tuple[tuple[Term, Term, Term, Term | None], ...]


@dataclass(frozen=True, slots=True)
class GivenEvent:
    """`Type(terms)` or `PUBLISH { … }` of a test; or `EMIT stream { … }`, an event of a stream."""

    triples: tuple[tuple[Term, Term, Term], ...]
    stream: NamedNode | None = None


@dataclass(frozen=True, slots=True)
class TestStep:
    """What happens at a time; changes that follow each other in it are one transaction.

    Its events last from `start`, if there is one, to that time.
    """

    time: int
    given: tuple[GivenChange | GivenEvent, ...]
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """`AT time NOT name(values)`: what a test expects of a rule, a pattern, a query or a FACT.

    At least one firing, match or row has these values, or so many do; with `only`, none of that
    name is there that no claim of the test describes. `query` is the text of a FACT.
    """

    kind: Literal["rule", "pattern", "query", "fact"]
    name: str
    values: tuple[tuple[str, Term], ...]
    time: int | None
    count: int | None
    only: bool
    text: str
    line: int
    query: str = ""


@dataclass(frozen=True, slots=True)
class TestDeclaration:
    """`TEST name GIVEN steps UNTIL until EXPECT claims`, with its file and the prefixes of that."""

    name: str
    steps: tuple[TestStep, ...]
    until: int | None
    claims: tuple[Claim, ...]
    prefixes: tuple[tuple[str, str], ...]
    file: str
    line: int


# --- event algebra ---
#
# A pattern accepts sequences of events, its *traces*. `Atom` is one event; the other nodes combine
# traces. docs/patterns.md defines time, absence and contexts.

Context = Literal["CHRONICLE", "IMMEDIATE", "STRICT", "UNRESTRICTED"]
"""Which partial matches an event extends: see docs/patterns.md."""

NOISY: Final = ("IMMEDIATE", "STRICT")
"""The contexts in which events that no partial match consumes may drop partial matches."""

Skip = Literal["NO SKIP", "SKIP TO NEXT", "SKIP PAST LAST"]
"""Which partial matches a match ends, in UNRESTRICTED."""


@dataclass(frozen=True, slots=True)
class Atom:
    """`Type(arguments) AS alias WHERE (condition)`: one event. None is the wildcard `_`.

    An event that conditions or computed parameters refer to has an alias, and the names of the
    declared parameters as `fields`.
    """

    event: str
    arguments: tuple[Var | Term | None, ...]
    alias: str = ""
    fields: tuple[str, ...] = ()
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Follows:
    """`p -> q -> …`: the parts one after the other."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """`p OR q OR …`: one of the parts."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class Both:
    """`p AND q AND …`: all parts in any order, without overlap. Nested ones count as one."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class Interleaved:
    """`ALL(p, q, …)`: all parts, arbitrarily interleaved."""

    parts: tuple[EventPattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`p{n,m}` is n to m times; `{n}` has m = n, and `{n,}`, `{+}`, `{*}` have no most (None).

    `greedy`: an event that can repeat the part does so.
    """

    part: EventPattern
    least: int
    most: int | None
    greedy: bool = False


@dataclass(frozen=True, slots=True)
class Not:
    """`NOT p`: no match of p between the events before and after it."""

    part: EventPattern


@dataclass(frozen=True, slots=True)
class Within:
    """`p WITHIN d`: at most d from the first event to the last. `NOT p WITHIN d`: no p for d."""

    part: EventPattern
    length: WrittenDuration


@dataclass(frozen=True, slots=True)
class HoldsFor:
    """`p HOLDS FOR d`: at least d from the first event to the last."""

    part: EventPattern
    length: WrittenDuration


EventPattern = Atom | Follows | Either | Both | Interleaved | Repeat | Not | Within | HoldsFor


@dataclass(frozen=True, slots=True)
class PatternDeclaration:
    """`PATTERN name(parameters) AS body CONTEXT context skip PER variables`.

    Patterns used in the body are inlined, so that every atom is an EVENT. Those of the parameters
    that are `computed` have expressions over the events of a match. `interval`: for rules a complex
    event lasts from its first event to its last.
    """

    name: str
    parameters: tuple[Var, ...]
    body: EventPattern
    context: Context
    per: tuple[Var, ...]
    line: int
    skip: Skip = "NO SKIP"
    computed: tuple[tuple[Var, Expression], ...] = ()
    interval: bool = False

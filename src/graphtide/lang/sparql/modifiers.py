"""Parser layer 6: solution modifiers (GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET) and windows.

https://www.w3.org/TR/sparql11-query/#solutionModifiers
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.nodes import Aggregate, Extend, Group, Node, Project, Values
from graphtide.algebra.windows import Output, WindowClause
from graphtide.lang.durations import UNITS, iso_milliseconds
from graphtide.lang.sparql.expressions import AggregateCall, Level
from graphtide.lang.sparql.groups import GroupParser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyoxigraph import NamedNode


# Grouping: https://www.w3.org/TR/sparql11-query/#sparqlAggregateAlgebra


def group_rows(
    node: Node,
    keys: Sequence[Var],
    aggregates: Mapping[AggregateCall, Var],
    fresh: Callable[[], Var],
) -> Group:
    """A Group node over `node`; arguments that are expressions become columns first."""
    found = []
    for call, name in aggregates.items():
        argument = call.argument
        if argument is not None and not isinstance(argument, Var):
            column = fresh()
            node = Extend(node, column, argument)
            argument = column
        found.append(Aggregate(name, call.function, argument, call.distinct, call.separator))
    return Group(node, tuple(dict.fromkeys(keys)), tuple(found))


def rows_to_count(node: Node, visible: tuple[Var, ...], level: Level) -> Node:
    """The rows that `COUNT(DISTINCT *)` distinguishes: without the variables of blank nodes."""
    stars = any(call.argument is None and call.distinct for call in level.aggregates)
    return Project(node, visible) if stars else node


def sampled(
    expression: Expression, known: frozenset[Var], level: Level, invent: Callable[[str], Var]
) -> Expression:
    """An expression of HAVING or ORDER BY; variables that are not grouped become SAMPLE."""
    samples = {}
    for variable in free_variables(expression) - known - frozenset(level.aggregates.values()):
        call = AggregateCall("SAMPLE", variable)
        if call not in level.aggregates:
            level.aggregates[call] = invent("sample")
        samples[variable] = level.aggregates[call]
    return substitute(expression, samples)


def free_variables(expression: Expression) -> frozenset[Var]:
    """The variables of an expression, without those inside EXISTS."""
    match expression:
        case Var():
            return frozenset((expression,))
        case Call(_, args):
            return frozenset().union(*map(free_variables, args))
        case Const() | Exists():
            return frozenset()
        case _:
            assert_never(expression)


def substitute(expression: Expression, values: Mapping[Var, Expression]) -> Expression:
    """Replace variables by expressions, except inside EXISTS."""
    match expression:
        case Var():
            return values.get(expression, expression)
        case Call(name, args):
            return Call(name, tuple(substitute(arg, values) for arg in args))
        case Const() | Exists():
            return expression
        case _:
            assert_never(expression)


def reads_only(expression: Expression, columns: frozenset[Var]) -> bool:
    """Whether an expression depends on these columns only."""
    match expression:
        case Var():
            return expression in columns
        case Call(_, args):
            return all(reads_only(arg, columns) for arg in args)
        case Const():
            return True
        case Exists():
            return False
        case _:
            assert_never(expression)


# RSP-QL: REGISTER, and windows in the dataset clause


class WindowParser(GroupParser):
    """Parses the RSP-QL clauses of a query."""

    output: Output | None = None
    registered: str | None = None

    def register_clause(self) -> None:
        """`REGISTER ISTREAM <name> AS`, if it is there."""
        if not self.accept("REGISTER"):
            return
        word = self.advance()
        match word.text.upper():
            case "ISTREAM" | "DSTREAM" | "RSTREAM" as output:
                self.output = output
            case "STREAM" | "QUERY":
                self.output = "RSTREAM"
            case _:
                hint = "write REGISTER ISTREAM <name> AS"
                self.fail(
                    f"expected ISTREAM, DSTREAM or RSTREAM after REGISTER, found {word}",
                    at=word.start,
                    hint=hint,
                )
        self.registered = self.iri().value if self.at_iri() else self.advance().text
        self.expect("AS")

    def window_clause(self) -> WindowClause:
        """The clause after `FROM NAMED WINDOW`."""
        start = self.token.start
        name = self.iri()
        self.expect("ON")
        self.accept("STREAM")
        stream = self.iri()
        self.expect("[")
        clause = self._extent(name, stream)
        self.expect("]")
        if any(known.iri == name for known in self.windows):
            self.fail(f"the window {name} is declared twice", at=start)
        return clause

    def _extent(self, name: NamedNode, stream: NamedNode) -> WindowClause:
        if self.accept("ELEMENTS", "TRIPLES"):
            count = self._number()
            step = self._number() if self.accept("STEP", "SLIDE") else 1
            return WindowClause(name, stream, "ELEMENTS", count, step)
        start = self.token.start
        self.expect("RANGE")
        length, in_time = self._duration()
        step, also = (length, in_time)
        if self.accept("STEP", "SLIDE"):
            step, also = self._duration()
        if in_time != also:
            hint = "write both as durations, such as PT10S, or both in ticks"
            self.fail("RANGE and STEP have different units", at=start, hint=hint)
        return WindowClause(name, stream, "RANGE", length, step, in_time)

    def _number(self) -> int:
        token = self.advance()
        if not token.text.isdigit() or int(token.text) < 1:
            self.fail(f"expected a number of at least 1, found {token}", at=token.start)
        return int(token.text)

    def _duration(self) -> tuple[int, bool]:
        """A duration, and whether it is in milliseconds rather than in ticks."""
        written = re.match(r"[Pp][0-9A-Za-z.]+", self.text[self.token.start :])
        found = iso_milliseconds(written[0]) if written else None
        token = self.token
        if written and found is not None:
            self.skip_to(token.start + len(written[0]))
            length, in_time = found, True
        elif self.advance().text.isdigit():
            unit = self.accept(*(unit.upper() for unit in UNITS))
            length = int(token.text) * (UNITS[unit.text.lower()] if unit else 1)
            in_time = unit is not None
        else:
            hint = "write a number of ticks, or a duration such as PT10S, 10s or 500ms"
            self.fail(f"expected a duration, found {token}", at=token.start, hint=hint)
        if length < 1:
            self.fail("the length of a window must not be 0", at=token.start)
        return length, in_time


@dataclass(frozen=True, slots=True)
class GroupKey:
    """An expression of GROUP BY, with its name and the offset of the name, if it has one."""

    expression: Expression
    name: Var | None = None
    start: int = 0


@dataclass(slots=True)
class Modifiers:
    """The solution modifiers of a query level."""

    group: list[GroupKey] | None = None
    having: list[Expression] = field(default_factory=list)
    order: list[tuple[Expression, bool]] = field(default_factory=list)  # whether descending
    offset: int = 0
    limit: int | None = None
    values: Values | None = None


class ModifierParser(WindowParser):
    """Parses solution modifiers."""

    def modifiers(self, level: Level) -> Modifiers:
        """All modifiers, in the order that the grammar fixes."""
        found = Modifiers()
        self._group_by(found)
        self.level = level
        if self.at("HAVING"):
            self.advance()
            found.having.append(self.constraint("HAVING"))
            while self.at_constraint() and not self._at_modifier():
                found.having.append(self.constraint("HAVING"))
        self._order_by(found)
        self.level = None
        self._limit_and_offset(found)
        if self.accept("VALUES"):
            found.values = self.values()
        return found

    def _at_modifier(self) -> bool:
        return self.at("ORDER", "LIMIT", "OFFSET", "VALUES")

    def _group_by(self, found: Modifiers) -> None:
        if not self.at("GROUP"):
            return
        self.advance()
        self.expect("BY")
        found.group = [self._group_key()]
        while self.token.kind == "var" or (self.at_constraint() and not self._at_group_end()):
            found.group.append(self._group_key())

    def _at_group_end(self) -> bool:
        return self.at("HAVING") or self._at_modifier()

    def _group_key(self) -> GroupKey:
        if self.token.kind == "var":
            return GroupKey(self.variable())
        if not self.accept("("):
            return GroupKey(self.constraint("GROUP BY"))
        expression = self.expression()
        name, start = None, self.token.start
        if self.accept("AS"):
            start = self.token.start
            name = self.variable()
        self.expect(")")
        return GroupKey(expression, name, start)

    def _order_by(self, found: Modifiers) -> None:
        if not self.at("ORDER"):
            return
        self.advance()
        self.expect("BY")
        found.order.append(self._order_key())
        while self.token.kind == "var" or (self.at_constraint() and not self._at_modifier()):
            found.order.append(self._order_key())

    def _order_key(self) -> tuple[Expression, bool]:
        if direction := self.accept("ASC", "DESC"):
            self.expect("(")
            expression = self.expression()
            self.expect(")")
            return expression, direction.text.upper() == "DESC"
        if self.token.kind == "var":
            return self.variable(), False
        return self.constraint("ORDER BY"), False

    def _limit_and_offset(self, found: Modifiers) -> None:
        seen: set[str] = set()
        while self.at("LIMIT", "OFFSET"):
            name = self.token.text.upper()
            if name in seen:
                self.fail(f"{name} is given twice")
            seen.add(name)
            self.advance()
            if name == "LIMIT":
                found.limit = self._whole_number()
            else:
                found.offset = self._whole_number()

    def _whole_number(self) -> int:
        if self.token.kind != "number" or not self.token.text.isdigit():
            self.fail(f"expected a whole number, found {self.token}")
        return int(self.advance().text)

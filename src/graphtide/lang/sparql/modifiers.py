"""Solution modifiers: GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET.

https://www.w3.org/TR/sparql11-query/#solutionModifiers
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.nodes import Aggregate, Extend, Group, Node, Project, Values
from graphtide.lang.durations import whole
from graphtide.lang.sparql.expressions import AggregateCall, Level

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from graphtide.lang.sparql.groups import GroupParser


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


class ModifierParser:
    """Parses solution modifiers."""

    def __init__(self, groups: GroupParser) -> None:
        self.tokens = groups.tokens
        self.terms = groups.terms
        self.expressions = groups.expressions
        self.groups = groups

    def parse(self, level: Level) -> Modifiers:
        """All modifiers, in the order that the grammar fixes."""
        found = Modifiers()
        self._group_by(found)
        self.expressions.level = level
        if self.tokens.at("HAVING"):
            self.tokens.advance()
            found.having.append(self.expressions.constraint("HAVING"))
            while self.expressions.at_constraint() and not self._at_modifier():
                found.having.append(self.expressions.constraint("HAVING"))
        self._order_by(found)
        self.expressions.level = None
        self._limit_and_offset(found)
        if self.tokens.accept("VALUES"):
            found.values = self.groups.values()
        return found

    def _at_modifier(self) -> bool:
        return self.tokens.at("ORDER", "LIMIT", "OFFSET", "VALUES")

    def _group_by(self, found: Modifiers) -> None:
        if not self.tokens.at("GROUP"):
            return
        self.tokens.advance()
        self.tokens.expect("BY")
        found.group = [self._group_key()]
        while self.tokens.token.kind == "var" or (
            self.expressions.at_constraint() and not self._at_group_end()
        ):
            found.group.append(self._group_key())

    def _at_group_end(self) -> bool:
        return self.tokens.at("HAVING") or self._at_modifier()

    def _group_key(self) -> GroupKey:
        if self.tokens.token.kind == "var":
            return GroupKey(self.terms.variable())
        if not self.tokens.accept("("):
            return GroupKey(self.expressions.constraint("GROUP BY"))
        expression = self.expressions.expression()
        name, start = None, self.tokens.token.start
        if self.tokens.accept("AS"):
            start = self.tokens.token.start
            name = self.terms.variable()
        self.tokens.expect(")")
        return GroupKey(expression, name, start)

    def _order_by(self, found: Modifiers) -> None:
        if not self.tokens.at("ORDER"):
            return
        self.tokens.advance()
        self.tokens.expect("BY")
        found.order.append(self._order_key())
        while self.tokens.token.kind == "var" or (
            self.expressions.at_constraint() and not self._at_modifier()
        ):
            found.order.append(self._order_key())

    def _order_key(self) -> tuple[Expression, bool]:
        if direction := self.tokens.accept("ASC", "DESC"):
            self.tokens.expect("(")
            expression = self.expressions.expression()
            self.tokens.expect(")")
            return expression, direction.text.upper() == "DESC"
        if self.tokens.token.kind == "var":
            return self.terms.variable(), False
        return self.expressions.constraint("ORDER BY"), False

    def _limit_and_offset(self, found: Modifiers) -> None:
        seen: set[str] = set()
        while self.tokens.at("LIMIT", "OFFSET"):
            name = self.tokens.token.text.upper()
            if name in seen:
                self.tokens.fail(f"{name} is given twice")
            seen.add(name)
            self.tokens.advance()
            if name == "LIMIT":
                found.limit = self._whole_number()
            else:
                found.offset = self._whole_number()

    def _whole_number(self) -> int:
        if self.tokens.token.kind != "number" or not self.tokens.token.text.isdigit():
            self.tokens.fail(f"expected a whole number, found {self.tokens.token}")
        return whole(self.tokens.advance().text)

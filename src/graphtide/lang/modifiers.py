"""Solution modifiers: GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET, and the trailing VALUES.

https://www.w3.org/TR/sparql11-query/#solutionModifiers
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.lang.window_clause import WindowParser

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression, Var
    from graphtide.algebra.nodes import Values
    from graphtide.lang.level import Level


@dataclass(frozen=True, slots=True)
class GroupKey:
    """An expression of GROUP BY, its name if it has one, and where that stands."""

    expression: Expression
    name: Var | None = None
    start: int = 0


@dataclass(slots=True)
class Modifiers:
    """What follows the pattern of a query level."""

    group: list[GroupKey] | None = None
    having: list[Expression] = field(default_factory=list)
    order: list[tuple[Expression, bool]] = field(default_factory=list)  # whether descending
    offset: int = 0
    limit: int | None = None
    values: Values | None = None


class ModifierParser(WindowParser):
    """Reads what may follow the pattern of a query level."""

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
                self.fail(f"there is a second {name}")
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

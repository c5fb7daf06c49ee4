"""SELECT and sub-SELECT, and the pattern and modifiers of all query forms.

https://www.w3.org/TR/sparql11-query/#convertSolMod
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Expression, Var
from graphtide.algebra.nodes import Distinct, Extend, Filter, Node, OrderKey, Project, Slice
from graphtide.algebra.rewrite import conjunction
from graphtide.algebra.traverse import rename
from graphtide.algebra.variables import mentioned, schema
from graphtide.lang.sparql import modifiers as mod
from graphtide.lang.sparql.expressions import Level
from graphtide.lang.sparql.graphs import join
from graphtide.lang.sparql.groups import GroupParser
from graphtide.lang.sparql.terms import TermParser
from graphtide.lang.sparql.triples import TriplesParser
from graphtide.lang.sparql.windows import WindowParser

if TYPE_CHECKING:
    from collections.abc import Sequence

_GROUPED_HINT = "add it to GROUP BY, or take one value with SAMPLE({})"
_RENAME_HINT = "give the expression another name"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of SELECT: its expression, if any, and the offsets of its variables."""

    variable: Var
    expression: Expression | None
    start: int
    uses: list[tuple[Var, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LevelRows:
    """The rows of a query level before projection, and its ORDER BY."""

    node: Node
    visible: tuple[Var, ...]
    order: list[tuple[Expression, bool]]
    modifiers: mod.Modifiers


class SelectParser:
    """Parses SELECT and the parts that all query forms have."""

    def __init__(self, text: str, base: str | None = None, *, standing: bool = True) -> None:
        self.terms = TermParser(text, base, standing=standing)
        self.tokens = self.terms.tokens
        self.triples = TriplesParser(self.terms)
        self.windows = WindowParser(self.terms)
        self.groups = GroupParser(self.triples, self.windows, self.subselect)
        self.expressions = self.groups.expressions
        self.modifiers = mod.ModifierParser(self.groups)

    def subselect(self) -> Node:
        """A sub-SELECT; variables that it does not project are renamed."""
        variables, distinct, columns, level = self.select_clause()
        self.tokens.accept("WHERE")
        rows = self.rows(self.groups.group(), columns, level)
        shown = rows.visible if variables is None else variables
        root = self.projected(rows, shown, distinct=distinct, ordered=False)
        hidden = [v for v in mentioned(root) if v in self.terms.first_seen and v not in shown]
        names = {v: self.triples.invent(f"{v.name}.") for v in sorted(hidden, key=str)}
        return rename(root, names)

    def select_clause(self) -> tuple[tuple[Var, ...] | None, bool, list[Column], Level]:
        """The clause between SELECT and the pattern; variables are None for `*`."""
        self.tokens.expect("SELECT")
        modifier = self.tokens.accept("DISTINCT", "REDUCED")
        distinct = modifier is not None and modifier.text.upper() == "DISTINCT"
        level = Level()
        if self.tokens.accept("*"):
            return None, distinct, [], level
        columns = self._columns(level)
        return tuple(column.variable for column in columns), distinct, columns, level

    def rows(self, where: Node, columns: Sequence[Column] | None, level: Level) -> LevelRows:
        """The rows of a level: pattern, modifiers and expressions of SELECT.

        `columns` is None for a form without SELECT, and empty for `SELECT *`.
        """
        start = self.tokens.token.start
        modifiers = self.modifiers.parse(level)
        node, having, order = where, modifiers.having, modifiers.order
        scope = frozenset(schema(where))
        visible = self.visible(where)
        if modifiers.group is not None or level.aggregates:
            if columns is not None and not columns:
                self.tokens.fail(
                    "SELECT * cannot be used with GROUP BY", at=start, hint="name the columns"
                )
            node = mod.rows_to_count(node, visible, level)
            node, keys = self._keys(node, modifiers.group or [])
            known = frozenset(keys)
            self._check_grouped(columns or (), known)
            aliases = _expanded(columns or ()) if having else {}
            having = [
                mod.sampled(mod.substitute(each, aliases), known, level, self.triples.invent)
                for each in having
            ]
            known |= {each.variable for each in columns or () if each.expression is not None}
            order = [(mod.sampled(e, known, level, self.triples.invent), down) for e, down in order]
            node = mod.group_rows(node, keys, level.aggregates, self.triples.fresh)
            visible = self.visible(node)
            scope = frozenset(keys)  # what is not grouped is out of scope
        if having:
            node = Filter(conjunction(having), node)
        if modifiers.values is not None:
            node = join(node, modifiers.values)
            visible = self.visible(node)
            scope |= frozenset(modifiers.values.variables)
        node = self._extended(node, columns or (), scope)
        return LevelRows(node, visible, order, modifiers)

    def projected(
        self, rows: LevelRows, variables: tuple[Var, ...], *, distinct: bool, ordered: bool = True
    ) -> Node:
        """The projected rows. If not `ordered`, only LIMIT and OFFSET use the order."""
        node, offset, limit = rows.node, rows.modifiers.offset, rows.modifiers.limit
        cut = offset > 0 or limit is not None
        if not cut and not (ordered and rows.order):
            return Distinct(Project(node, variables)) if distinct else Project(node, variables)
        columns = frozenset(variables)
        if distinct and all(mod.reads_only(expression, columns) for expression, _ in rows.order):
            node, distinct = Distinct(Project(node, variables)), False
        keys = []
        for expression, descending in rows.order:
            if isinstance(expression, Var):
                variable = expression
            else:
                variable = self.triples.fresh()
                node = Extend(node, variable, expression)
            if variable in schema(node):
                keys.append(OrderKey(variable, descending))
        return Slice(node, variables, tuple(keys), distinct, offset, limit)

    def _columns(self, level: Level) -> list[Column]:
        columns: list[Column] = []
        named: set[Var] = set()
        while self.tokens.token.kind == "var" or self.tokens.at("("):
            start = self.tokens.token.start
            expression: Expression | None = None
            uses: list[tuple[Var, int]] = []
            if bracket := self.tokens.accept("("):
                expression, uses = self.expressions.expression_in(level)
                self.tokens.expect("AS")
                start = self.tokens.token.start
            variable = self.terms.variable()
            if bracket:
                self.tokens.expect(")")
            if variable in named:
                self.tokens.fail(f"{variable} is selected twice", at=start)
            named.add(variable)
            columns.append(Column(variable, expression, start, uses))
        if not columns:
            self.tokens.fail(f"expected '*' or a variable after SELECT, found {self.tokens.token}")
        return columns

    def visible(self, node: Node) -> tuple[Var, ...]:
        """The columns of `SELECT *`, in order of first occurrence."""
        named = [v for v in schema(node) if v in self.terms.first_seen]
        return tuple(sorted(named, key=self.terms.first_seen.__getitem__))

    def _keys(self, node: Node, group: list[mod.GroupKey]) -> tuple[Node, list[Var]]:
        """The rows, with a column for each GROUP BY key."""
        keys = []
        for key in group:
            if key.name is not None and key.name in schema(node):
                message = f"{key.name} is already used in the pattern"
                self.tokens.fail(message, at=key.start, hint=_RENAME_HINT)
            if key.name is None and isinstance(key.expression, Var):
                keys.append(key.expression)
                continue
            keys.append(self.triples.fresh() if key.name is None else key.name)
            node = Extend(node, keys[-1], key.expression)
        return node, keys

    def _check_grouped(self, columns: Sequence[Column], keys: frozenset[Var]) -> None:
        known = set(keys)
        for column in columns:
            reads = column.uses
            if column.expression is None:
                reads = [(column.variable, column.start)]
            for variable, start in reads:
                if variable not in known:
                    message = f"{variable} is neither in GROUP BY nor in an aggregate"
                    self.tokens.fail(message, at=start, hint=_GROUPED_HINT.format(variable))
            known.add(column.variable)

    def _extended(self, node: Node, columns: Sequence[Column], scope: frozenset[Var]) -> Node:
        for column in columns:
            if column.expression is None:
                continue
            if column.variable in scope:
                message = f"{column.variable} is already used in the pattern"
                self.tokens.fail(message, at=column.start, hint=_RENAME_HINT)
            node = Extend(node, column.variable, column.expression)
        return node


def _expanded(columns: Sequence[Column]) -> dict[Var, Expression]:
    """The expression of each name after AS, with earlier names replaced."""
    meanings: dict[Var, Expression] = {}
    for column in columns:
        if column.expression is not None:
            meanings[column.variable] = mod.substitute(column.expression, meanings)
    return meanings

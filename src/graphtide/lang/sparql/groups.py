"""Parser layer 5: group graph patterns, translated as the recommendation says.

https://www.w3.org/TR/sparql11-query/#translateGraphPattern
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from graphtide.algebra.nodes import Extend, Filter, LeftJoin, Minus, Node, Union, Values
from graphtide.algebra.rewrite import conjunction
from graphtide.algebra.trees import balanced
from graphtide.algebra.variables import schema
from graphtide.algebra.windows import WindowClause, reify
from graphtide.lang.sparql import graphs
from graphtide.lang.sparql.expressions import ExpressionParser
from graphtide.lang.sparql.scanner import PATTERN_KEYWORDS, word_hint

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression, Var
    from graphtide.rdf.terms import Term


@dataclass(slots=True)
class _Group:
    """A group being parsed: the pattern so far, and the filters of the whole group."""

    node: Node = graphs.EMPTY_GROUP
    conditions: list[Expression] = field(default_factory=list)
    columns: set[Var] = field(default_factory=set)  # those of `node`

    def join(self, node: Node) -> None:
        self.node = graphs.join(self.node, node)
        self.columns.update(schema(node))

    @property
    def condition(self) -> Expression | None:
        return conjunction(self.conditions) if self.conditions else None

    def filtered(self) -> Node:
        condition = self.condition
        return self.node if condition is None else Filter(condition, self.node)


class GroupParser(ExpressionParser):
    """Parses `{ … }`."""

    def __init__(self, text: str, base: str | None = None, *, standing: bool = True) -> None:
        super().__init__(text, base, standing=standing)
        self.windows: list[WindowClause] = []
        self._window_clause: WindowClause | None = None

    def group(self) -> Node:
        """A group; its filters apply to the whole group, wherever they are written."""
        return self._group().filtered()

    @abstractmethod
    def subselect(self) -> Node:
        """A sub-SELECT; variables that it does not project are renamed."""

    def values(self) -> Values:
        """The data block after the keyword VALUES."""
        if self.accept("("):
            variables: list[Var] = []
            while not self.accept(")"):
                start = self.token
                variables.append(self.variable())
                if variables[-1] in variables[:-1]:
                    self.fail(f"{variables[-1]} is twice in VALUES", at=start.start)
            self.expect("{")
            rows = []
            while not self.accept("}"):
                rows.append(self._values_row(len(variables)))
            return Values(tuple(variables), tuple(rows))
        variable = self.variable()
        self.expect("{")
        column = []
        while not self.accept("}"):
            column.append((self._values_cell(),))
        return Values((variable,), tuple(column))

    def _group(self) -> _Group:
        outer, level = self.begin_scope(), self.level
        self.level = None
        self.enter()
        start = self.expect("{").start
        group = _Group()
        if self.at("SELECT"):
            group.join(self.subselect())
        else:
            while not self.at("}"):
                if self.token.kind == "end":
                    self.fail("unterminated group", at=start, hint="add '}'")
                self._element(group)
            self._end_bgp(group)
        self.expect("}")
        self.leave()
        self.end_scope(outer)
        self.level = level
        return group

    def _element(self, group: _Group) -> None:
        if self.accept("FILTER"):
            group.conditions.append(self.constraint("FILTER"))
        elif self.token.kind == "sign" and self.at("{"):
            self._end_bgp(group)
            group.join(self._union())
        elif self.token.kind == "word" and not self.at_literal():
            self._end_bgp(group)
            self._clause(group)
        else:
            self.triples_block()
            return
        self.accept(".")

    def _clause(self, group: _Group) -> None:
        word = self.advance()
        match word.text.upper():
            case "OPTIONAL":
                right = self._group()
                group.node = LeftJoin(group.node, right.node, right.condition)
                group.columns |= right.columns
            case "MINUS":
                group.node = Minus(group.node, self.group())
            case "BIND":
                self._bind(group)
            case "VALUES":
                group.join(self.values())
            case "GRAPH":
                group.join(self._graph())
            case "WINDOW":
                group.join(self._window())
            case "SERVICE":
                self._service(word.start)
            case "LATERAL":
                self.refuse("LATERAL", "join the group in without LATERAL", at=word.start)
            case _:
                near = word_hint(word.text, PATTERN_KEYWORDS)
                self.fail(f"expected a pattern or '}}', found {word}", at=word.start, hint=near)

    def _bind(self, group: _Group) -> None:
        self.expect("(")
        expression = self.expression()
        self.expect("AS")
        start = self.token.start
        variable = self.variable()
        self.expect(")")
        if variable in group.columns:
            message = f"BIND assigns {variable}, which the group already uses"
            self.fail(message, at=start, hint="use another name, and compare with FILTER")
        group.node = Extend(group.node, variable, expression)
        group.columns.add(variable)

    def _service(self, start: int) -> NoReturn:
        """Parse SERVICE, so that errors inside are reported first; then reject it."""
        self.accept("SILENT")
        if self.token.kind == "var":
            self.variable()
        else:
            self.iri()
        self.group()
        hint = "load the remote data into the graph, and query it there"
        self.refuse("SERVICE", hint, at=start)

    def _union(self) -> Node:
        choices = [self.group()]
        while self.accept("UNION"):
            choices.append(self.group())
        return balanced(Union, choices)

    def _window(self) -> Node:
        """`WINDOW iri { … }`: patterns over the content of a window."""
        start = self.token.start
        if self.token.kind == "var":
            hint = "name the window: the streams of a query must be known"
            self.refuse("WINDOW with a variable", hint)
        name = self.iri()
        clause = next((window for window in self.windows if window.iri == name), None)
        if clause is None:
            hint = f"declare it: FROM NAMED WINDOW {name} ON a stream [RANGE … STEP …]"
            self.fail(f"there is no window {name}", at=start, hint=hint)
        if self._window_clause is not None:
            self.fail("WINDOW inside WINDOW", at=start, hint="write the two side by side")
        self._window_clause = clause
        inside = self.group()
        self._window_clause = None
        return graphs.in_default_graph(inside, clause.graph)

    def _graph(self) -> Node:
        node = self._named_graph()
        clause = self._window_clause
        return node if clause is None else reify(node, clause.quads, self.fresh)

    def _named_graph(self) -> Node:
        if self.token.kind == "var":
            variable = self.variable()
            return graphs.in_variable_graph(self.group(), variable, self.fresh)
        name = self.iri()
        return graphs.in_named_graph(self.group(), name, self.fresh)

    def _end_bgp(self, group: _Group) -> None:
        group.join(self.take_pattern())

    def _values_row(self, width: int) -> tuple[Term | None, ...]:
        start = self.expect("(").start
        row = []
        while not self.accept(")"):
            row.append(self._values_cell())
        if len(row) != width:
            self.fail(f"a VALUES row of {len(row)} terms for {width} variables", at=start)
        return tuple(row)

    def _values_cell(self) -> Term | None:
        return None if self.accept("UNDEF") else self.constant("a constant or UNDEF")

"""Group graph patterns, translated as the recommendation says.

https://www.w3.org/TR/sparql11-query/#translateGraphPattern
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Extend, Filter, LeftJoin, Minus, Node, Union, Values
from graphtide.algebra.rewrite import conjunction
from graphtide.algebra.services import ServiceClause
from graphtide.algebra.trees import balanced
from graphtide.algebra.variables import certain, schema
from graphtide.algebra.windows import WindowClause, reify
from graphtide.lang.sparql import graphs
from graphtide.lang.sparql.expressions import ExpressionParser
from graphtide.lang.sparql.scanner import PATTERN_KEYWORDS, word_hint

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.algebra.expressions import Expression
    from graphtide.lang.sparql.triples import TriplesParser
    from graphtide.lang.sparql.windows import WindowParser
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


class GroupParser:
    """Parses `{ … }`; `subselect` parses a sub-SELECT, `windows` has those that are declared."""

    def __init__(
        self, triples: TriplesParser, windows: WindowParser, subselect: Callable[[], Node]
    ) -> None:
        self.tokens = triples.tokens
        self.terms = triples.terms
        self.triples = triples
        self.expressions = ExpressionParser(triples, self.group)
        self.windows = windows
        self._subselect = subselect
        self._window_clause: WindowClause | None = None

    def group(self) -> Node:
        """A group; its filters apply to the whole group, wherever they are written."""
        return self._group().filtered()

    def values(self) -> Values:
        """The data block after the keyword VALUES."""
        if self.tokens.accept("("):
            variables: list[Var] = []
            while not self.tokens.accept(")"):
                start = self.tokens.token
                variables.append(self.terms.variable())
                if variables[-1] in variables[:-1]:
                    self.tokens.fail(f"{variables[-1]} is twice in VALUES", at=start.start)
            self.tokens.expect("{")
            rows = []
            while not self.tokens.accept("}"):
                rows.append(self._values_row(len(variables)))
            return Values(tuple(variables), tuple(rows))
        variable = self.terms.variable()
        self.tokens.expect("{")
        column = []
        while not self.tokens.accept("}"):
            column.append((self._values_cell(),))
        return Values((variable,), tuple(column))

    def _group(self) -> _Group:
        outer, level = self.triples.begin_scope(), self.expressions.level
        self.expressions.level = None
        self.tokens.enter()
        start = self.tokens.expect("{").start
        group = _Group()
        if self.tokens.at("SELECT"):
            group.join(self._subselect())
        else:
            while not self.tokens.at("}"):
                if self.tokens.token.kind == "end":
                    self.tokens.fail("unterminated group", at=start, hint="add '}'")
                self._element(group)
            self._end_bgp(group)
        self.tokens.expect("}")
        self.tokens.leave()
        self.triples.end_scope(outer)
        self.expressions.level = level
        return group

    def _element(self, group: _Group) -> None:
        if self.tokens.accept("FILTER"):
            group.conditions.append(self.expressions.constraint("FILTER"))
        elif self.tokens.token.kind == "sign" and self.tokens.at("{"):
            self._end_bgp(group)
            group.join(self._union())
        elif self.tokens.token.kind == "word" and not self.terms.at_literal():
            self._end_bgp(group)
            self._clause(group)
        else:
            self.triples.triples_block()
            return
        self.tokens.accept(".")

    def _clause(self, group: _Group) -> None:
        word = self.tokens.advance()
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
                group.join(self._service())
            case "LATERAL":
                self.tokens.refuse("LATERAL", "join the group in without LATERAL", at=word.start)
            case _:
                near = word_hint(word.text, PATTERN_KEYWORDS)
                self.tokens.fail(
                    f"expected a pattern or '}}', found {word}", at=word.start, hint=near
                )

    def _bind(self, group: _Group) -> None:
        self.tokens.expect("(")
        expression = self.expressions.expression()
        self.tokens.expect("AS")
        start = self.tokens.token.start
        variable = self.terms.variable()
        self.tokens.expect(")")
        if variable in group.columns:
            message = f"BIND assigns {variable}, which the group already uses"
            self.tokens.fail(message, at=start, hint="use another name, and compare with FILTER")
        group.node = Extend(group.node, variable, expression)
        group.columns.add(variable)

    def _service(self) -> Node:
        """`SERVICE iri { … }`: a table of what the endpoint answers, in a graph of its own."""
        silent = self.tokens.accept("SILENT") is not None
        at_variable = self.tokens.token.kind == "var"
        where = self.terms.variable() if at_variable else self.terms.iri()
        begin = self.tokens.token.start
        standing, now_at = self.terms.standing, self.terms.now_at
        self.terms.standing = False  # functions are called over there
        inside = self.group()
        self.terms.standing, self.terms.now_at = standing, now_at
        body = self.tokens.text[begin : self.tokens.token.start].rstrip()
        columns = tuple(v.name for v in schema(inside) if v in self.terms.first_seen)
        sure = certain(inside)
        query = f"{self.terms.declarations()}SELECT {_shown(columns)} WHERE {body}"
        bound = tuple(name for name in columns if Var(name) in sure)
        if isinstance(where, Var):
            columns = tuple(dict.fromkeys((where.name, *columns)))
        endpoint = f"?{where.name}" if isinstance(where, Var) else where.value
        clause = ServiceClause(endpoint, silent, query, columns, bound)
        return clause.pattern(self.triples.invent("service"))

    def _union(self) -> Node:
        choices = [self.group()]
        while self.tokens.accept("UNION"):
            choices.append(self.group())
        return balanced(Union, choices)

    def _window(self) -> Node:
        """`WINDOW iri { … }`: patterns over the content of a window."""
        start = self.tokens.token.start
        if self.tokens.token.kind == "var":
            hint = "name the window: the streams of a query must be known"
            self.tokens.refuse("WINDOW with a variable", hint)
        name = self.terms.iri()
        clause = next((window for window in self.windows.clauses if window.iri == name), None)
        if clause is None:
            hint = f"declare it: FROM NAMED WINDOW {name} ON a stream [RANGE … STEP …]"
            self.tokens.fail(f"there is no window {name}", at=start, hint=hint)
        if self._window_clause is not None:
            self.tokens.fail("WINDOW inside WINDOW", at=start, hint="write the two side by side")
        self._window_clause = clause
        inside = self.group()
        self._window_clause = None
        return graphs.in_default_graph(inside, clause.graph)

    def _graph(self) -> Node:
        node = self._named_graph()
        clause = self._window_clause
        return node if clause is None else reify(node, clause.quads, self.triples.fresh)

    def _named_graph(self) -> Node:
        if self.tokens.token.kind == "var":
            variable = self.terms.variable()
            return graphs.in_variable_graph(self.group(), variable, self.triples.fresh)
        name = self.terms.iri()
        return graphs.in_named_graph(self.group(), name, self.triples.fresh)

    def _end_bgp(self, group: _Group) -> None:
        group.join(self.triples.take_pattern())

    def _values_row(self, width: int) -> tuple[Term | None, ...]:
        start = self.tokens.expect("(").start
        row = []
        while not self.tokens.accept(")"):
            row.append(self._values_cell())
        if len(row) != width:
            self.tokens.fail(f"a VALUES row of {len(row)} terms for {width} variables", at=start)
        return tuple(row)

    def _values_cell(self) -> Term | None:
        if self.tokens.accept("UNDEF"):
            return None
        if self.tokens.at("<<("):
            return self.triples.data_triple()
        return self.terms.constant("a constant or UNDEF")


def _shown(columns: tuple[str, ...]) -> str:
    """The columns to ask an endpoint for; without any, rows are still counted."""
    return " ".join(f"?{name}" for name in columns) or "(1 AS ?row)"

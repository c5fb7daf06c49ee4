"""The outermost layer of the grammar: a SELECT query from its prologue to its trailing VALUES.

https://www.w3.org/TR/sparql11-query/#convertSolMod
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.nodes import Distinct, Extend, Node, Project, SelectQuery
from graphtide.algebra.variables import schema
from graphtide.lang.groups import GroupParser
from graphtide.lang.hints import QUERY_KEYWORDS, word_hint
from graphtide.lang.join import join

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression, Var

_UPDATES = (
    "INSERT",
    "DELETE",
    "LOAD",
    "CLEAR",
    "DROP",
    "CREATE",
    "ADD",
    "MOVE",
    "COPY",
    "WITH",
)
_MODIFIERS = {
    "GROUP": ("GROUP BY", "watch the plain rows and group them where you use them"),
    "HAVING": ("HAVING", "watch the plain rows and group them where you use them"),
    "ORDER": ("ORDER BY", "watch without an order and sort the answer table"),
    "LIMIT": ("LIMIT", "watch all rows and cut the answer table"),
    "OFFSET": ("OFFSET", "watch all rows and cut the answer table"),
}
_SELECT_HINT = "standing queries are SELECT queries: ask for the variables that you need"


class SelectParser(GroupParser):
    """Reads a whole query."""

    def query(self) -> SelectQuery:
        """The query as algebra; fails at the first thing that is wrong or not maintained."""
        self.prologue()
        self._query_form()
        self.expect("SELECT")
        if self.at("REDUCED"):
            self.refuse("SELECT REDUCED", "use SELECT DISTINCT, or plain SELECT")
        distinct = self.accept("DISTINCT") is not None
        columns = self._columns()
        if self.at("FROM"):
            self.refuse("FROM", "load the data into the live graph and name graphs with GRAPH")
        self.accept("WHERE")
        node = self._modified(self.group())
        if columns is None:
            variables = self._visible(node)
        else:
            variables = tuple(columns)
            node = self._extended(node, columns)
        root: Node = Project(node, variables)
        return SelectQuery(variables, Distinct(root) if distinct else root, self.text)

    def _query_form(self) -> None:
        if self.at("ASK"):
            self.refuse("ASK", "use SELECT: the answer is yes while the watch has rows")
        if self.at("CONSTRUCT", "DESCRIBE"):
            self.refuse(self.token.text.upper(), _SELECT_HINT)
        if self.at(*_UPDATES):
            hint = "change the graph with LiveGraph.insert, delete or apply; watch it with SELECT"
            self.refuse("SPARQL Update", hint)
        if not self.at("SELECT"):
            word = self.token.text if self.token.kind == "word" else ""
            near = word_hint(word, QUERY_KEYWORDS)
            self.fail(f"expected SELECT or PREFIX, found {self.token}", hint=near)

    def _columns(self) -> dict[Var, tuple[Expression, int] | None] | None:
        """What stands after SELECT: None for `*`, else each column with its expression, if any."""
        if self.accept("*"):
            return None
        columns: dict[Var, tuple[Expression, int] | None] = {}
        while self.token.kind == "var" or self.at("("):
            start = self.token.start
            assigned = None
            if self.accept("("):
                expression = self.expression()
                self.expect("AS")
                start = self.token.start
                assigned = expression, start
            variable = self.variable()
            if assigned:
                self.expect(")")
            if variable in columns:
                self.fail(f"{variable} is selected twice", at=start)
            columns[variable] = assigned
        if not columns:
            self.fail(f"expected '*' or a variable after SELECT, found {self.token}")
        return columns

    def _modified(self, node: Node) -> Node:
        """Solution modifiers, of which only the trailing VALUES is maintained."""
        for keyword, (name, hint) in _MODIFIERS.items():
            if self.at(keyword):
                self.refuse(name, hint)
        if self.accept("VALUES"):
            node = join(node, self.values())
        if self.token.kind != "end":
            self.fail(f"expected the end of the query, found {self.token}")
        return node

    def _visible(self, node: Node) -> tuple[Var, ...]:
        """The columns of `SELECT *`, in order of first appearance in the text."""
        named = [v for v in schema(node) if v in self.first_seen]
        return tuple(sorted(named, key=self.first_seen.__getitem__))

    def _extended(self, node: Node, columns: dict[Var, tuple[Expression, int] | None]) -> Node:
        for variable, assigned in columns.items():
            if assigned is None:
                continue
            expression, start = assigned
            if variable in schema(node):
                message = f"{variable} is already used in the pattern"
                self.fail(message, at=start, hint="give the expression another name")
            node = Extend(node, variable, expression)
        return node

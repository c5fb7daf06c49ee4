"""The four query forms, from the prologue to the end.

https://www.w3.org/TR/sparql11-query/#QueryForms
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyoxigraph import BlankNode, NamedNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Dataset, Node, SelectQuery, TriplePattern
from graphtide.algebra.queries import AskQuery, ConstructQuery, DescribeQuery, Query
from graphtide.algebra.traverse import walk
from graphtide.lang.sparql.expressions import Level
from graphtide.lang.sparql.graphs import EMPTY_GROUP
from graphtide.lang.sparql.scanner import QUERY_KEYWORDS, word_hint
from graphtide.lang.sparql.select import LevelRows, SelectParser

if TYPE_CHECKING:
    from collections.abc import Iterable

UPDATE_KEYWORDS = (
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


class FormParser:
    """Parses a whole query."""

    def __init__(self, text: str, base: str | None = None, *, standing: bool = True) -> None:
        self.select = SelectParser(text, base, standing=standing)
        self.tokens = self.select.tokens
        self.terms = self.select.terms
        self.triples = self.select.triples
        self.groups = self.select.groups
        self.windows = self.select.windows

    def query(self) -> Query:
        """The query as algebra; raises the first error."""
        self.terms.prologue()
        self.windows.register_clause()
        query = self._form()
        if self.tokens.token.kind != "end":
            self.tokens.fail(f"expected the end of the query, found {self.tokens.token}")
        return query

    def dataset(self, keyword: str = "FROM") -> Dataset | None:
        """The dataset of FROM and FROM NAMED (or USING); None if there is neither."""
        default: list[NamedNode] = []
        named: list[NamedNode] = []
        while self.tokens.at(keyword):
            self.tokens.advance()
            if not self.tokens.accept("NAMED"):
                default.append(self.terms.iri())
            elif self.tokens.accept("WINDOW"):
                self.windows.clauses.append(self.windows.window_clause())
            else:
                named.append(self.terms.iri())
        return Dataset(tuple(default), tuple(named)) if default or named else None

    def template(self) -> tuple[TriplePattern, ...]:
        """`{ … }` of triples in which blank nodes stay blank nodes."""
        self.triples.begin_template()
        self.tokens.expect("{")
        triples = self.triples.template_triples()
        self.tokens.expect("}")
        self.triples.end_template()
        return triples

    def _form(self) -> Query:
        if self.tokens.at("SELECT"):
            return self._select()
        if self.tokens.accept("ASK"):
            dataset = self.dataset()
            self.tokens.accept("WHERE")
            rows = self.select.rows(self.groups.group(), None, Level())
            return AskQuery(self._query(rows, (), dataset))
        if self.tokens.accept("CONSTRUCT"):
            return self._construct()
        if self.tokens.accept("DESCRIBE"):
            return self._describe()
        return self._no_query()

    def _no_query(self) -> NoReturn:
        if self.tokens.at(*UPDATE_KEYWORDS):
            hint = "run updates with LiveGraph.update"
            self.tokens.refuse("SPARQL Update", hint)
        word = self.tokens.token.text if self.tokens.token.kind == "word" else ""
        near = word_hint(word, QUERY_KEYWORDS)
        self.tokens.fail(f"expected SELECT or PREFIX, found {self.tokens.token}", hint=near)

    def _select(self) -> SelectQuery:
        variables, distinct, columns, level = self.select.select_clause()
        dataset = self.dataset()
        self.tokens.accept("WHERE")
        rows = self.select.rows(self.groups.group(), columns, level)
        shown = rows.visible if variables is None else variables
        return SelectQuery(
            shown, self.select.projected(rows, shown, distinct=distinct), self.tokens.text, dataset
        )

    def _construct(self) -> ConstructQuery:
        if self.tokens.at("{"):
            template = self.template()
            dataset = self.dataset()
            self.tokens.accept("WHERE")
            where = self.groups.group()
        else:
            dataset = self.dataset()
            self.tokens.expect("WHERE")
            template = self.template()
            where = self.triples.as_pattern(template)
        rows = self.select.rows(where, None, Level())
        named = template_variables(template)
        blank = any(isinstance(part, BlankNode) for part in walk(template))
        shown = tuple(v for v in rows.visible if blank or v in named)
        return ConstructQuery(self._query(rows, shown, dataset), template)

    def _describe(self) -> DescribeQuery:
        everything = self.tokens.accept("*") is not None
        targets: list[Var | NamedNode] = []
        while not everything and (self.tokens.token.kind == "var" or self.terms.at_iri()):
            targets.append(
                self.terms.variable() if self.tokens.token.kind == "var" else self.terms.iri()
            )
        if not everything and not targets:
            self.tokens.fail(
                f"expected '*', a variable or an IRI after DESCRIBE, found {self.tokens.token}"
            )
        dataset = self.dataset()
        where: Node = EMPTY_GROUP
        if self.tokens.accept("WHERE") or self.tokens.at("{"):
            where = self.groups.group()
        rows = self.select.rows(where, None, Level())
        if everything:
            targets = list(rows.visible)
        shown = tuple(v for v in rows.visible if v in targets)
        return DescribeQuery(self._query(rows, shown, dataset), tuple(targets))

    def _query(
        self, rows: LevelRows, shown: tuple[Var, ...], dataset: Dataset | None
    ) -> SelectQuery:
        root = self.select.projected(rows, shown, distinct=False, ordered=False)
        return SelectQuery(shown, root, self.tokens.text, dataset)


def template_variables(template: Iterable[TriplePattern]) -> frozenset[Var]:
    """The variables of a template."""
    return frozenset(part for part in walk(tuple(template)) if isinstance(part, Var))

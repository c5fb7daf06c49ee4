"""Parser layer 8: the four query forms, from the prologue to the end.

https://www.w3.org/TR/sparql11-query/#QueryForms
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from pyoxigraph import BlankNode, NamedNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Bgp, Dataset, Node, SelectQuery, TriplePattern
from graphtide.algebra.queries import AskQuery, ConstructQuery, DescribeQuery, Query
from graphtide.lang.sparql.expressions import Level
from graphtide.lang.sparql.graphs import EMPTY_GROUP
from graphtide.lang.sparql.scanner import QUERY_KEYWORDS, word_hint
from graphtide.lang.sparql.select import LevelRows, SelectParser

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.rdf.terms import Term

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


class FormParser(SelectParser):
    """Parses a whole query."""

    def query(self) -> Query:
        """The query as algebra; raises the first error."""
        self.prologue()
        self.register_clause()
        query = self._form()
        if self.token.kind != "end":
            self.fail(f"expected the end of the query, found {self.token}")
        return query

    def dataset(self, keyword: str = "FROM") -> Dataset | None:
        """The dataset of FROM and FROM NAMED (or USING); None if there is neither."""
        default: list[NamedNode] = []
        named: list[NamedNode] = []
        while self.at(keyword):
            self.advance()
            if not self.accept("NAMED"):
                default.append(self.iri())
            elif self.accept("WINDOW"):
                self.windows.append(self.window_clause())
            else:
                named.append(self.iri())
        return Dataset(tuple(default), tuple(named)) if default or named else None

    def template(self) -> tuple[TriplePattern, ...]:
        """`{ … }` of triples in which blank nodes stay blank nodes."""
        self.begin_template()
        self.expect("{")
        triples = self.template_triples()
        self.expect("}")
        self.end_template()
        return triples

    def _form(self) -> Query:
        if self.at("SELECT"):
            return self._select()
        if self.accept("ASK"):
            dataset = self.dataset()
            self.accept("WHERE")
            rows = self.rows(self.group(), None, Level())
            return AskQuery(self._query(rows, (), dataset))
        if self.accept("CONSTRUCT"):
            return self._construct()
        if self.accept("DESCRIBE"):
            return self._describe()
        return self._no_query()

    def _no_query(self) -> NoReturn:
        if self.at(*UPDATE_KEYWORDS):
            hint = "run updates with LiveGraph.update"
            self.refuse("SPARQL Update", hint)
        word = self.token.text if self.token.kind == "word" else ""
        near = word_hint(word, QUERY_KEYWORDS)
        self.fail(f"expected SELECT or PREFIX, found {self.token}", hint=near)

    def _select(self) -> SelectQuery:
        variables, distinct, columns, level = self.select_clause()
        dataset = self.dataset()
        self.accept("WHERE")
        rows = self.rows(self.group(), columns, level)
        shown = rows.visible if variables is None else variables
        return SelectQuery(
            shown, self.projected(rows, shown, distinct=distinct), self.text, dataset
        )

    def _construct(self) -> ConstructQuery:
        if self.at("{"):
            template = self.template()
            dataset = self.dataset()
            self.accept("WHERE")
            where = self.group()
        else:
            dataset = self.dataset()
            self.expect("WHERE")
            template = self.template()
            where = self.as_pattern(template)
        rows = self.rows(where, None, Level())
        named = template_variables(template)
        blank = any(isinstance(part, BlankNode) for t in template for part in _parts(t))
        shown = tuple(v for v in rows.visible if blank or v in named)
        return ConstructQuery(self._query(rows, shown, dataset), template)

    def _describe(self) -> DescribeQuery:
        everything = self.accept("*") is not None
        targets: list[Var | NamedNode] = []
        while not everything and (self.token.kind == "var" or self.at_iri()):
            targets.append(self.variable() if self.token.kind == "var" else self.iri())
        if not everything and not targets:
            self.fail(f"expected '*', a variable or an IRI after DESCRIBE, found {self.token}")
        dataset = self.dataset()
        where: Node = EMPTY_GROUP
        if self.accept("WHERE") or self.at("{"):
            where = self.group()
        rows = self.rows(where, None, Level())
        if everything:
            targets = list(rows.visible)
        shown = tuple(v for v in rows.visible if v in targets)
        return DescribeQuery(self._query(rows, shown, dataset), tuple(targets))

    def _query(
        self, rows: LevelRows, shown: tuple[Var, ...], dataset: Dataset | None
    ) -> SelectQuery:
        root = self.projected(rows, shown, distinct=False, ordered=False)
        return SelectQuery(shown, root, self.text, dataset)

    def as_pattern(self, template: Iterable[TriplePattern]) -> Node:
        """A template as a pattern, in which blank nodes are variables."""
        variables: dict[BlankNode, Var] = {}

        def part(term: Var | Term) -> Var | Term:
            if not isinstance(term, BlankNode):
                return term
            if term not in variables:
                variables[term] = self.fresh()
            return variables[term]

        return Bgp(
            tuple(replace(t, subject=part(t.subject), object=part(t.object)) for t in template)
        )


def template_variables(template: Iterable[TriplePattern]) -> frozenset[Var]:
    """The variables of a template."""
    return frozenset(part for t in template for part in _parts(t) if isinstance(part, Var))


def _parts(triple: TriplePattern) -> tuple[object, ...]:
    return triple.subject, triple.predicate, triple.object, triple.graph

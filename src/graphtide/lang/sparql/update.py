"""SPARQL 1.1 Update.

https://www.w3.org/TR/sparql11-update/#sparqlUpdateLanguage
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyoxigraph import BlankNode, NamedNode

from graphtide.algebra import nodes as alg
from graphtide.algebra import updates as upd
from graphtide.algebra.expressions import Var
from graphtide.algebra.traverse import walk
from graphtide.lang.sparql.forms import UPDATE_KEYWORDS, FormParser
from graphtide.lang.sparql.graphs import in_default_graph
from graphtide.lang.sparql.scanner import word_hint

if TYPE_CHECKING:
    from collections.abc import Mapping


_TRANSFERS: Final[Mapping[str, type[upd.Add | upd.Move | upd.Copy]]] = {
    "ADD": upd.Add,
    "MOVE": upd.Move,
    "COPY": upd.Copy,
}

Quads = tuple[alg.TriplePattern, ...]


class UpdateParser:
    """Parses a whole update request; `using` stands for USING in each of its operations."""

    def __init__(
        self, text: str, base: str | None = None, using: alg.Dataset | None = None
    ) -> None:
        self._using = using
        self.forms = FormParser(text, base, standing=False)
        self.select = self.forms.select
        self.tokens = self.select.tokens
        self.terms = self.select.terms
        self.triples = self.select.triples
        self.groups = self.select.groups
        self._earlier_labels: frozenset[str] = frozenset()

    def update(self) -> upd.Update:
        """The operations in order; the request may be empty and may end with `;`."""
        operations: list[upd.Operation] = []
        self.terms.prologue()
        while self.tokens.token.kind != "end":
            operations.append(self._operation())
            if self.tokens.token.kind == "end":
                break
            if not self.tokens.accept(";"):
                self.tokens.fail(
                    f"expected ';' or the end of the update, found {self.tokens.token}"
                )
            self.terms.prologue()
        return upd.Update(tuple(operations), self.tokens.text)

    def _operation(self) -> upd.Operation:
        word = self.tokens.token
        if not self.tokens.accept(*UPDATE_KEYWORDS):
            near = word_hint(word.text, UPDATE_KEYWORDS) if word.kind == "word" else None
            self.tokens.fail(
                f"expected an operation such as INSERT or CLEAR, found {word}", hint=near
            )
        match word.text.upper():
            case "INSERT" | "DELETE" | "WITH" as first:
                return self._change(first)
            case "LOAD":
                silent, source = self._silent(), self.terms.iri()
                into = self._graph_name() if self.tokens.accept("INTO") else alg.DEFAULT_GRAPH
                return upd.Load(source, into, silent)
            case "CREATE":
                return upd.Create(silent=self._silent(), graph=self._graph_name())
            case "CLEAR":
                return upd.Clear(silent=self._silent(), target=self._target())
            case "DROP":
                return upd.Drop(silent=self._silent(), target=self._target())
            case other:
                silent, source_graph = self._silent(), self._graph_or_default()
                self.tokens.expect("TO")
                return _TRANSFERS[other](source_graph, self._graph_or_default(), silent)

    def _change(self, first: str) -> upd.Operation:
        default: NamedNode | alg.DefaultGraph = alg.DEFAULT_GRAPH
        if first == "WITH":
            default = self.terms.iri()
            self._check_using("WITH")
            if not self.tokens.at("INSERT", "DELETE"):
                self.tokens.fail(f"expected INSERT or DELETE, found {self.tokens.token}")
            first = self.tokens.advance().text.upper()
        elif self.tokens.accept("DATA"):
            return self._data(first)
        elif first == "DELETE" and self.tokens.accept("WHERE"):
            return self._delete_where()
        delete: Quads = ()
        insert: Quads = ()
        if first == "DELETE":
            delete = self._quads(blank_nodes=False)
        if first == "INSERT" or self.tokens.accept("INSERT"):
            insert = self._quads()
        return self._modify(_inside(delete, default), _inside(insert, default), default)

    def _data(self, first: str) -> upd.Operation:
        if first == "INSERT":
            return upd.InsertData(self._quads(variables=False))
        return upd.DeleteData(self._quads(variables=False, blank_nodes=False))

    def _delete_where(self) -> upd.Modify:
        quads = self._quads(blank_nodes=False)
        where = self._where(self.triples.as_pattern(quads))
        return upd.Modify(quads, (), replace(where, dataset=self._using))

    def _modify(
        self, delete: Quads, insert: Quads, default: NamedNode | alg.DefaultGraph
    ) -> upd.Modify:
        dataset = self.forms.dataset("USING")
        if dataset is not None:
            self._check_using("USING")
        dataset = dataset or self._using
        self.tokens.expect("WHERE")
        where = self.groups.group()
        if dataset is None and not isinstance(default, alg.DefaultGraph):
            where = in_default_graph(where, default)
        return upd.Modify(delete, insert, replace(self._where(where), dataset=dataset))

    def _check_using(self, word: str) -> None:
        if self._using is not None:
            hint = "name the graphs in one of the two"
            self.tokens.fail(f"{word} in a request whose graphs are given beside it", hint=hint)

    def _where(self, where: alg.Node) -> alg.SelectQuery:
        """Select all visible variables: each distinct row gets its own new blank nodes."""
        shown = self.select.visible(where)
        return alg.SelectQuery(shown, alg.Project(where, shown), self.tokens.text)

    def _quads(self, *, variables: bool = True, blank_nodes: bool = True) -> Quads:
        """`{ … }` with triples and GRAPH blocks."""
        start = self.tokens.token.start
        self.triples.begin_template()
        self.tokens.expect("{")
        quads = list(self.triples.template_triples())
        while self.tokens.accept("GRAPH"):
            graph = self.terms.variable() if self.tokens.token.kind == "var" else self.terms.iri()
            self.tokens.expect("{")
            quads += (replace(t, graph=graph) for t in self.triples.template_triples())
            self.tokens.expect("}")
            self.tokens.accept(".")
            quads += self.triples.template_triples()
        self.tokens.expect("}")
        labels = self.triples.end_template()
        if not variables:
            self._check_labels(labels, start)
        self._check_parts(quads, start, variables=variables, blank_nodes=blank_nodes)
        return tuple(quads)

    def _check_labels(self, labels: frozenset[str], start: int) -> None:
        if repeated := sorted(labels & self._earlier_labels):
            hint = "use different labels, or one operation"
            self.tokens.fail(
                f"{repeated[0]} is used in the data of two operations", at=start, hint=hint
            )
        self._earlier_labels |= labels

    def _check_parts(
        self, quads: list[alg.TriplePattern], start: int, *, variables: bool, blank_nodes: bool
    ) -> None:
        parts = list(walk(tuple(quads)))
        if not variables and any(isinstance(part, Var) for part in parts):
            hint = "use INSERT { … } WHERE { … } or DELETE { … } WHERE { … }"
            self.tokens.fail("data must not contain variables", at=start, hint=hint)
        if not blank_nodes and any(isinstance(part, BlankNode) for part in parts):
            hint = "match the blank node with a variable"
            self.tokens.fail("DELETE must not contain blank nodes", at=start, hint=hint)

    def _silent(self) -> bool:
        return self.tokens.accept("SILENT") is not None

    def _graph_name(self) -> NamedNode:
        self.tokens.expect("GRAPH")
        return self.terms.iri()

    def _graph_or_default(self) -> NamedNode | alg.DefaultGraph:
        if self.tokens.accept("DEFAULT"):
            return alg.DEFAULT_GRAPH
        self.tokens.accept("GRAPH")
        if not self.terms.at_iri():
            self.tokens.fail(f"expected DEFAULT or the IRI of a graph, found {self.tokens.token}")
        return self.terms.iri()

    def _target(self) -> NamedNode | alg.DefaultGraph | upd.Graphs:
        if self.tokens.accept("DEFAULT"):
            return alg.DEFAULT_GRAPH
        if self.tokens.accept("NAMED"):
            return upd.Graphs.NAMED
        if self.tokens.accept("ALL"):
            return upd.Graphs.ALL
        if not self.tokens.at("GRAPH"):
            self.tokens.fail(f"expected GRAPH, DEFAULT, NAMED or ALL, found {self.tokens.token}")
        return self._graph_name()


def _inside(quads: Quads, default: NamedNode | alg.DefaultGraph) -> Quads:
    """The quads, with the graph of WITH as default graph."""
    return tuple(
        replace(q, graph=default) if isinstance(q.graph, alg.DefaultGraph) else q for q in quads
    )

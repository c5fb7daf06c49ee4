"""The W3C's manifests of query evaluation tests, read into plain records.

Files are given IRIs under `BASE` instead of their places on this machine, so that the names of
named graphs, and with them the answers, are the same everywhere.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, Store, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.term import Term

BASE = "w3c://sparql-tests/"
_MANIFESTS = (
    "sparql10/manifest-evaluation.ttl",
    "sparql11/manifest-sparql11-query.ttl",
    "sparql11/manifest-sparql11-results.ttl",
)
_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_KINDS = {f"{_MF}QueryEvaluationTest", f"{_MF}CSVResultFormatTest"}
_FORMATS = {".ttl": RdfFormat.TURTLE, ".rdf": RdfFormat.RDF_XML, ".nt": RdfFormat.N_TRIPLES}


@dataclass(frozen=True, slots=True)
class EvaluationTest:
    """One test: the IRIs of its query, data and expected result."""

    iri: str
    query: str
    data: tuple[str, ...]
    graph_data: tuple[str, ...]
    result: str
    lax: bool  # duplicates may be dropped (REDUCED)

    @property
    def name(self) -> str:
        """Suite, folder and name, such as `sparql10/graph/dawg-graph-01`."""
        return f"{path_of(self.query).parent.relative_to(suite_folder())}/{self.iri.split('#')[-1]}"


def suite_folder() -> Path:
    """Where the suites are: beside the repository, or where the environment says."""
    default = Path(__file__).parents[3] / "shared" / "data" / "w3c-sparql-tests"
    return Path(os.environ.get("GRAPHTIDE_W3C_TESTS", default))


def evaluation_tests() -> list[EvaluationTest]:
    """Every query evaluation test of the SPARQL 1.0 and 1.1 suites; none when they are absent."""
    if not suite_folder().is_dir():
        return []
    return [test for name in _MANIFESTS for test in _tests_of(BASE + name)]


def path_of(iri: str) -> Path:
    """The file behind an IRI of a manifest."""
    return suite_folder() / iri.removeprefix(BASE)


def read_quads(iri: str, graph: NamedNode | None = None) -> list[Quad]:
    """A data file's triples, in the default graph or a named one."""
    path = path_of(iri)
    quads = parse(path=path, format=_FORMATS[path.suffix], base_iri=iri, rename_blank_nodes=True)
    return [Quad(q.subject, q.predicate, q.object, graph) for q in quads]


def _tests_of(manifest: str) -> Iterator[EvaluationTest]:
    if not path_of(manifest).is_file():
        return
    store = Store()
    store.extend(read_quads(manifest))
    for included in _items(store, f"{_MF}include"):
        yield from _tests_of(included.value)
    for test in _items(store, f"{_MF}entries"):
        if any(kind.value in _KINDS for kind in _objects(store, test, f"{_RDF}type")):
            yield _test(store, test)


def _test(store: Store, test: Term) -> EvaluationTest:
    (action,) = _objects(store, test, f"{_MF}action")
    (query,) = _objects(store, action, f"{_QT}query")
    (result,) = _objects(store, test, f"{_MF}result")
    return EvaluationTest(
        iri=test.value,
        query=query.value,
        data=tuple(each.value for each in _objects(store, action, f"{_QT}data")),
        graph_data=tuple(each.value for each in _objects(store, action, f"{_QT}graphData")),
        result=result.value,
        lax=bool(_objects(store, test, f"{_MF}resultCardinality")),
    )


def _objects(store: Store, subject: Term, predicate: str) -> list[Term]:
    assert isinstance(subject, NamedNode | BlankNode)
    return [quad.object for quad in store.quads_for_pattern(subject, NamedNode(predicate), None)]


def _items(store: Store, predicate: str) -> Iterator[Term]:
    """The members of the RDF lists that are values of a property."""
    for quad in list(store.quads_for_pattern(None, NamedNode(predicate), None)):
        cell = quad.object
        while cell.value != f"{_RDF}nil":
            yield from _objects(store, cell, f"{_RDF}first")
            (cell,) = _objects(store, cell, f"{_RDF}rest")

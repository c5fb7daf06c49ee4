"""The W3C's manifests of tests, read into plain records.

Files are given IRIs under `BASE` instead of their places on this machine, so that the names of
named graphs, and with them the answers, are the same everywhere.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, Store, parse

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from graphtide.rdf.terms import Term

BASE = "w3c://sparql-tests/"
_MANIFESTS = (
    "sparql10/manifest-evaluation.ttl",
    "sparql11/manifest-sparql11-query.ttl",
    "sparql11/manifest-sparql11-results.ttl",
    "sparql12/manifest.ttl",
)
_SYNTAX_MANIFESTS = (
    "sparql10/manifest-syntax.ttl",
    "sparql11/manifest-sparql11-query.ttl",
    "sparql11/manifest-sparql11-update.ttl",
    "sparql12/manifest.ttl",
)
_UPDATE_MANIFESTS = ("sparql11/manifest-sparql11-update.ttl", "sparql12/manifest.ttl")
_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_UT = "http://www.w3.org/2009/sparql/tests/test-update#"
_KINDS = {f"{_MF}QueryEvaluationTest", f"{_MF}CSVResultFormatTest"}
_SYNTAX_KINDS = {
    f"{_MF}{kind}": kind
    for kind in (
        "PositiveSyntaxTest",
        "PositiveSyntaxTest11",
        "PositiveUpdateSyntaxTest11",
        "PositiveUpdateSyntaxTest",
        "NegativeSyntaxTest",
        "NegativeSyntaxTest11",
        "NegativeUpdateSyntaxTest11",
        "NegativeUpdateSyntaxTest",
    )
}
_FORMATS = {
    ".ttl": RdfFormat.TURTLE,
    ".rdf": RdfFormat.RDF_XML,
    ".nt": RdfFormat.N_TRIPLES,
    ".trig": RdfFormat.TRIG,
    ".nq": RdfFormat.N_QUADS,
}


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
        return _name(self.query, self.iri)


@dataclass(frozen=True, slots=True)
class SyntaxTest:
    """One text that must, or must not, be read."""

    iri: str
    file: str
    positive: bool

    @property
    def update(self) -> bool:
        """Whether it is an update request; the manifests tell by the file's name alone."""
        return self.file.endswith(".ru")

    @property
    def name(self) -> str:
        """Suite, folder and name, such as `sparql11/syntax-query/test_1`."""
        return _name(self.file, self.iri)


@dataclass(frozen=True, slots=True)
class UpdateTest:
    """One update: its request, and the graphs before and after, by name; None is the default."""

    iri: str
    request: str
    before: tuple[tuple[str, str | None], ...]
    after: tuple[tuple[str, str | None], ...]

    @property
    def name(self) -> str:
        """Suite, folder and name, such as `sparql11/add/add01`."""
        return _name(self.request, self.iri)


def _name(file: str, iri: str) -> str:
    return f"{path_of(file).parent.relative_to(suite_folder())}/{iri.rpartition('#')[2]}"


@cache
def suite_folder() -> Path:
    """Where the suites are: beside the repository, or where the environment says."""
    default = Path(__file__).parents[3] / "shared" / "data" / "w3c-sparql-tests"
    return Path(os.environ.get("GRAPHTIDE_W3C_TESTS", default))


@cache
def evaluation_tests() -> list[EvaluationTest]:
    """Every query evaluation test of the three suites; none when they are absent."""
    return [_test(*entry) for name in _MANIFESTS for entry in _entries(BASE + name, _KINDS)]


def syntax_tests() -> list[SyntaxTest]:
    """Every syntax test of the SPARQL 1.0, 1.1 and 1.2 suites; none when they are absent."""
    found = []
    for name in _SYNTAX_MANIFESTS:
        for store, test in _entries(BASE + name, _SYNTAX_KINDS):
            kind = next(k.value for k in _objects(store, test, f"{_RDF}type"))
            (file,) = _objects(store, test, f"{_MF}action")
            word = _SYNTAX_KINDS[kind]
            found.append(SyntaxTest(test.value, file.value, word.startswith("Positive")))
    return found


def update_tests() -> list[UpdateTest]:
    """Every update evaluation test of the SPARQL 1.1 and 1.2 suites; none when they are absent."""
    found = []
    for name in _UPDATE_MANIFESTS:
        for store, test in _entries(BASE + name, {f"{_MF}UpdateEvaluationTest"}):
            (action,) = _objects(store, test, f"{_MF}action")
            (result,) = _objects(store, test, f"{_MF}result")
            (request,) = _objects(store, action, f"{_UT}request")
            before, after = _graphs(store, action), _graphs(store, result)
            found.append(UpdateTest(test.value, request.value, before, after))
    return found


@dataclass(frozen=True, slots=True)
class FederatedTest:
    """A query evaluation test with the data of the endpoints that it asks."""

    evaluation: EvaluationTest
    endpoints: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def name(self) -> str:
        """Suite, folder and name, such as `sparql11/service/service1`."""
        return self.evaluation.name


@cache
def federated_tests() -> list[FederatedTest]:
    """Every test of SERVICE in the SPARQL 1.1 suite; none when it is absent."""
    found = []
    for store, test in _entries(BASE + "sparql11/manifest-sparql11-fed.ttl", _KINDS):
        (action,) = _objects(store, test, f"{_MF}action")
        services = _objects(store, action, f"{_QT}serviceData")
        endpoints = [
            (
                _objects(store, service, f"{_QT}endpoint")[0].value,
                tuple(data.value for data in _objects(store, service, f"{_QT}data")),
            )
            for service in services
        ]
        endpoints.sort(reverse=True)  # one that asks another comes after it
        found.append(FederatedTest(_test(store, test), tuple(endpoints)))
    return found


def _graphs(store: Store, state: Term) -> tuple[tuple[str, str | None], ...]:
    """The files of a graph store, each with the name of its graph."""
    files: list[tuple[str, str | None]] = []
    files += [(file.value, None) for file in _objects(store, state, f"{_UT}data")]
    for each in _objects(store, state, f"{_UT}graphData"):
        (file,) = _objects(store, each, f"{_UT}graph")
        (label,) = _objects(store, each, f"{_RDFS}label")
        files.append((file.value, label.value))
    return tuple(files)


def path_of(iri: str) -> Path:
    """The file behind an IRI of a manifest."""
    return suite_folder() / iri.removeprefix(BASE)


def read_quads(iri: str, graph: NamedNode | None = None) -> list[Quad]:
    """A data file's quads; its triples are in the default graph, or a named one."""
    path = path_of(iri)
    quads = parse(path=path, format=_FORMATS[path.suffix], base_iri=iri, rename_blank_nodes=True)
    if graph is None:
        return list(quads)
    return [Quad(q.subject, q.predicate, q.object, graph) for q in quads]


def _entries(manifest: str, kinds: Container[str]) -> Iterator[tuple[Store, Term]]:
    """The tests of some kinds in a manifest and those it includes, each with its description."""
    if not path_of(manifest).is_file():
        return
    store = Store()
    store.extend(read_quads(manifest))
    for included in _items(store, f"{_MF}include"):
        yield from _entries(included.value, kinds)
    for test in _items(store, f"{_MF}entries"):
        if any(kind.value in kinds for kind in _objects(store, test, f"{_RDF}type")):
            yield store, test


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

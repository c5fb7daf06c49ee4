"""Expected results in each of the forms that the W3C suites use, as bags of rows."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    RdfFormat,
    Store,
    parse,
    parse_query_results,
)
from w3c.manifest import path_of, read_quads

from graphtide.rdf.terms import from_pyoxigraph
from oracles.answers import by_value

if TYPE_CHECKING:
    from pathlib import Path

    from graphtide.rdf.terms import Term

_RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_FORMATS = {
    ".srx": QueryResultsFormat.XML,
    ".srj": QueryResultsFormat.JSON,
    ".tsv": QueryResultsFormat.TSV,
}

Row = tuple["Term | None", ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The variables of a result, sorted, and its rows with a term or None for each."""

    variables: tuple[str, ...]
    rows: tuple[Row, ...]


def table(variables: list[str], rows: list[dict[str, Term | None]]) -> Table:
    """A result from rows by variable name."""
    names = tuple(sorted(variables))
    return Table(names, tuple(tuple(row.get(name) for name in names) for row in rows))


def expected_table(iri: str) -> Table:
    """The expected result of a SELECT query, whatever form it is written in."""
    path = path_of(iri)
    if path.suffix == ".csv":
        return _csv(path)
    if path.suffix in _FORMATS:
        solutions = parse_query_results(path=path, format=_FORMATS[path.suffix])
        assert isinstance(solutions, QuerySolutions), f"{path} holds no table"
        names = [variable.value for variable in solutions.variables]
        return table(names, [{name: _ours(row[name]) for name in names} for row in solutions])
    return _result_set(iri)


def expected_boolean(iri: str) -> bool:
    """The expected result of an ASK query."""
    path = path_of(iri)
    if path.suffix in _FORMATS:
        found = parse_query_results(path=path, format=_FORMATS[path.suffix])
        assert isinstance(found, QueryBoolean), f"{path} holds no truth value"
        return bool(found)
    store = Store()
    store.extend(read_quads(iri))
    (quad,) = _quads(store, None, "boolean")
    return quad.object.value == "true"


def expected_graph(iri: str) -> tuple[Row, ...]:
    """The expected triples of a CONSTRUCT or DESCRIBE query."""
    return tuple(
        (quad.subject, quad.predicate, from_pyoxigraph(quad.object)) for quad in read_quads(iri)
    )


def as_csv(found: Table) -> Table:
    """A result with what the CSV form keeps of it: plain texts, blank nodes, nothing for ''."""
    return Table(found.variables, tuple(tuple(map(_csv_cell, row)) for row in found.rows))


def numbers_by_value(found: Table) -> Table:
    """A result with every number in one spelling of its value."""
    return Table(found.variables, tuple(tuple(map(_by_value, row)) for row in found.rows))


def term_of(text: str) -> Term:
    """The term that an N-Triples text means."""
    (quad,) = parse(f"<a:a> <a:a> {text} .", format=RdfFormat.N_TRIPLES)
    return from_pyoxigraph(quad.object)


def _ours(term) -> Term | None:
    return None if term is None else from_pyoxigraph(term)


def _by_value(term: Term | None) -> Term | None:
    if not isinstance(term, Literal):
        return term
    ((_, text),) = by_value((("value", str(term)),))
    return term_of(text)


def _csv_cell(term: Term | None) -> Term | None:
    if term is None or isinstance(term, BlankNode):
        return term
    return Literal(term.value) if term.value else None


def _csv(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8") as lines:
        header, *records = csv.reader(lines)
    rows = [dict(zip(header, map(_csv_text, record), strict=True)) for record in records]
    return table(header, rows)


def _csv_text(text: str) -> Term | None:
    if text.startswith("_:"):
        return BlankNode(text[2:])
    return Literal(text) if text else None


def _result_set(iri: str) -> Table:
    """The form of the first suite: an rs:ResultSet described in RDF."""
    store = Store()
    store.extend(read_quads(iri))
    kind = NamedNode(f"{_RS}ResultSet")
    assert any(store.quads_for_pattern(None, None, kind)), f"{iri} holds no table"
    names = [quad.object.value for quad in _quads(store, None, "resultVariable")]
    solutions = [quad.object for quad in _quads(store, None, "solution")]
    rows = [_solution(store, solution) for solution in sorted(solutions, key=_place_in(store))]
    return table(names, rows)


def _place_in(store: Store):
    """Where a solution comes in an ordered result; 0 in others."""
    return lambda solution: sum(int(q.object.value) for q in _quads(store, solution, "index"))


def _solution(store: Store, solution: Term) -> dict[str, Term | None]:
    row: dict[str, Term | None] = {}
    for binding in _quads(store, solution, "binding"):
        (name,) = _quads(store, binding.object, "variable")
        (value,) = _quads(store, binding.object, "value")
        row[name.object.value] = value.object
    return row


def _quads(store: Store, subject: Term | None, name: str) -> list:
    return list(store.quads_for_pattern(subject, NamedNode(_RS + name), None))

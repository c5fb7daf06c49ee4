"""Results of queries in the formats of the W3C: JSON, XML, CSV and TSV; graphs as RDF.

https://www.w3.org/TR/sparql11-results-csv-tsv/, https://www.w3.org/TR/sparql11-results-json/ and
https://www.w3.org/TR/rdf-sparql-XMLres/
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, assert_never
from xml.sax.saxutils import escape, quoteattr

from pyoxigraph import BlankNode, NamedNode
from pyoxigraph import Literal as RdfLiteral

from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.read import write_quads
from graphtide.rdf.terms import DIRECTIONS, TripleTerm, triple_term

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from graphtide.rdf.terms import Term

_ITS: Final = "http://www.w3.org/2005/11/its"
RowsFormat = Literal["csv", "tsv", "json", "xml"]
Row = tuple["Term | None", ...]

XSD_STRING: Final = "http://www.w3.org/2001/XMLSchema#string"


@dataclass(frozen=True, slots=True)
class ResultRows:
    """The answer of SELECT: names of variables, and rows in order."""

    variables: tuple[str, ...]
    rows: Sequence[Row]


def graph_text(triples: Iterable[Row], form: str) -> str:
    r"""The answer of CONSTRUCT or DESCRIBE as RDF.

    >>> a = NamedNode("ex:a")
    >>> graph_text([(a, a, a)], "nt")
    '<ex:a> <ex:a> <ex:a> .\n'
    """
    lines = sorted(tuple(map(str, triple)) for triple in triples)
    batch = ChangeBatch.of((0, 0, 1, s, p, o, None) for s, p, o in lines)
    file = io.BytesIO()
    write_quads(batch, file, format=form)
    return file.getvalue().decode()


def truth_text(truth: bool, form: RowsFormat) -> str:  # noqa: FBT001 - the value itself
    r"""The answer of ASK; CSV and TSV define none, so they get the plain word.

    >>> truth_text(True, "json")
    '{"head": {}, "boolean": true}\n'
    """
    word = "true" if truth else "false"
    if form == "json":
        return f'{{"head": {{}}, "boolean": {word}}}\n'
    if form == "xml":
        return _document(f"  <head/>\n  <boolean>{word}</boolean>\n")
    return f"{word}\n"


def rows_text(answer: ResultRows, form: RowsFormat) -> str:
    r"""The answer of SELECT.

    >>> rows_text(ResultRows(("x",), [(NamedNode("ex:a"),), (None,)]), "csv")
    'x\r\nex:a\r\n""\r\n'
    """
    match form:
        case "csv":
            return _csv(answer)
        case "tsv":
            return _tsv(answer)
        case "json":
            return json.dumps(json_rows(answer), ensure_ascii=False, indent=1) + "\n"
        case "xml":
            return _xml(answer)
        case _:
            assert_never(form)


def _csv(answer: ResultRows) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(answer.variables)
    for row in answer.rows:
        writer.writerow([_plain(term) for term in row])
    return file.getvalue()


def _plain(term: Term | None) -> str:
    if term is None:
        return ""
    return str(term) if isinstance(term, BlankNode | TripleTerm) else term.value


def _tsv(answer: ResultRows) -> str:
    lines = [[f"?{name}" for name in answer.variables]]
    lines += [["" if term is None else str(term) for term in row] for row in answer.rows]
    return "".join("\t".join(line) + "\n" for line in lines)


def json_rows(answer: ResultRows) -> dict[str, Any]:
    """The answer of SELECT as the object that its JSON describes."""
    bindings = [
        {name: json_term(t) for name, t in zip(answer.variables, row, strict=True) if t is not None}
        for row in answer.rows
    ]
    return {"head": {"vars": list(answer.variables)}, "results": {"bindings": bindings}}


def json_row(row: Mapping[str, Term | None]) -> dict[str, Any]:
    """A row by its columns; what is unbound is left out."""
    return {name: json_term(term) for name, term in row.items() if term is not None}


def json_term(term: Term) -> dict[str, Any]:
    """A term as SPARQL's JSON has it.

    >>> json_term(NamedNode("ex:a"))
    {'type': 'uri', 'value': 'ex:a'}
    """
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.value}
    if isinstance(term, TripleTerm):
        parts = (("subject", term.subject), ("predicate", term.predicate), ("object", term.object))
        return {"type": "triple", "value": {name: json_term(part) for name, part in parts}}
    found = {"type": "literal", "value": term.value}
    if term.language:
        found["xml:lang"] = term.language
        if term.direction is not None:
            found["its:dir"] = str(term.direction)
    elif term.datatype.value != XSD_STRING:
        found["datatype"] = term.datatype.value
    return found


def term_of_json(found: Mapping[str, Any]) -> Term:
    """The term that an object of SPARQL's JSON means, or a `ValueError`.

    >>> print(term_of_json({"type": "literal", "value": "x", "xml:lang": "en", "its:dir": "ltr"}))
    "x"@en--ltr
    """
    value = found.get("value")
    match found.get("type"), value:
        case "uri", str():
            return NamedNode(value)
        case "bnode", str():
            return BlankNode(value)
        case "literal" | "typed-literal", str():
            language, kind = found.get("xml:lang"), found.get("datatype")
            if language is not None:
                direction = found.get("its:dir")
                way = None if direction is None else DIRECTIONS[direction]
                return RdfLiteral(value, language=language, direction=way)
            return RdfLiteral(value, datatype=None if kind is None else NamedNode(kind))
        case "triple", {"subject": subject, "predicate": predicate, "object": object_}:
            return triple_term(*map(term_of_json, (subject, predicate, object_)))
        case _:
            raise ValueError("its type must be uri, bnode, literal or triple")


def _xml(answer: ResultRows) -> str:
    head = "".join(f"    <variable name={quoteattr(name)}/>\n" for name in answer.variables)
    results = "".join(_xml_row(answer.variables, row) for row in answer.rows)
    return _document(f"  <head>\n{head}  </head>\n  <results>\n{results}  </results>\n")


def _xml_row(variables: Sequence[str], row: Row) -> str:
    cells = "".join(
        f"      <binding name={quoteattr(name)}>{_xml_term(term)}</binding>\n"
        for name, term in zip(variables, row, strict=True)
        if term is not None
    )
    return f"    <result>\n{cells}    </result>\n"


def _xml_term(term: Term) -> str:
    if isinstance(term, TripleTerm):
        parts = (("subject", term.subject), ("predicate", term.predicate), ("object", term.object))
        inside = "".join(f"<{name}>{_xml_term(part)}</{name}>" for name, part in parts)
        return f"<triple>{inside}</triple>"
    value = escape(term.value, {"\r": "&#13;"})
    if isinstance(term, NamedNode):
        return f"<uri>{value}</uri>"
    if isinstance(term, BlankNode):
        return f"<bnode>{value}</bnode>"
    mark = ""
    if term.language:
        mark = f" xml:lang={quoteattr(term.language)}"
        if term.direction is not None:
            mark += f' xmlns:its="{_ITS}" its:version="2.0" its:dir="{term.direction}"'
    elif term.datatype.value != XSD_STRING:
        mark = f" datatype={quoteattr(term.datatype.value)}"
    return f"<literal{mark}>{value}</literal>"


def _document(body: str) -> str:
    return (
        '<?xml version="1.0"?>\n'
        f'<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n{body}</sparql>\n'
    )

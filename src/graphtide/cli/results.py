"""Answers in the SPARQL results formats, and graphs as RDF.

https://www.w3.org/TR/sparql11-results-csv-tsv/, https://www.w3.org/TR/sparql11-results-json/ and
https://www.w3.org/TR/rdf-sparql-XMLres/
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never
from xml.sax.saxutils import escape, quoteattr

from pyoxigraph import BlankNode, NamedNode

from graphtide.cli.shorten import shortener
from graphtide.errors import GraphtideError
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.read import write_quads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.rdf.terms import Term

ResultFormat = Literal["table", "csv", "tsv", "json", "xml", "nt", "ttl"]
Row = tuple["Term | None", ...]

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


@dataclass(frozen=True, slots=True)
class Rows:
    """The answer of SELECT: variables by name, and rows in order."""

    variables: tuple[str, ...]
    rows: Sequence[Row]


def graph_text(triples: Sequence[Row], form: Literal["nt", "ttl"]) -> str:
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


def truth_text(truth: bool, form: ResultFormat) -> str:  # noqa: FBT001 - the value itself
    r"""The answer of ASK; the CSV and TSV formats have none, so they get the plain word.

    >>> truth_text(True, "json")
    '{"head": {}, "boolean": true}\n'
    """
    word = "true" if truth else "false"
    if form == "json":
        return f'{{"head": {{}}, "boolean": {word}}}\n'
    if form == "xml":
        return _document(f"  <head/>\n  <boolean>{word}</boolean>\n")
    return f"{word}\n"


def rows_text(answer: Rows, form: ResultFormat, query: str) -> str:
    r"""The answer of SELECT; a table shortens IRIs by the prefixes of the query.

    >>> rows_text(Rows(("x",), [(NamedNode("ex:a"),), (None,)]), "csv", "")
    'x\r\nex:a\r\n""\r\n'
    """
    match form:
        case "table":
            return _table(answer, query)
        case "csv":
            return _csv(answer)
        case "tsv":
            return _tsv(answer)
        case "json":
            return _json(answer)
        case "xml":
            return _xml(answer)
        case "nt" | "ttl":
            raise GraphtideError(f"rows cannot be written as {form}", hint="CONSTRUCT triples")
        case _:
            assert_never(form)


def _table(answer: Rows, query: str) -> str:
    short = shortener(query)
    header = [f"?{name}" for name in answer.variables]
    cells = [["" if t is None else short(t) for t in row] for row in answer.rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    lines = [header, ["─" * width for width in widths], *cells]
    padded = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)


def _csv(answer: Rows) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(answer.variables)
    for row in answer.rows:
        writer.writerow([_plain(term) for term in row])
    return file.getvalue()


def _plain(term: Term | None) -> str:
    if term is None:
        return ""
    return str(term) if isinstance(term, BlankNode) else term.value


def _tsv(answer: Rows) -> str:
    lines = [[f"?{name}" for name in answer.variables]]
    lines += [["" if term is None else str(term) for term in row] for row in answer.rows]
    return "".join("\t".join(line) + "\n" for line in lines)


def _json(answer: Rows) -> str:
    bindings = [
        {name: _json_term(t) for name, t in zip(answer.variables, row, strict=True) if t}
        for row in answer.rows
    ]
    found = {"head": {"vars": answer.variables}, "results": {"bindings": bindings}}
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def _json_term(term: Term) -> dict[str, str]:
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.value}
    found = {"type": "literal", "value": term.value}
    if term.language:
        found["xml:lang"] = term.language
    elif term.datatype.value != XSD_STRING:
        found["datatype"] = term.datatype.value
    return found


def _xml(answer: Rows) -> str:
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
    value = escape(term.value, {"\r": "&#13;"})
    if isinstance(term, NamedNode):
        return f"<uri>{value}</uri>"
    if isinstance(term, BlankNode):
        return f"<bnode>{value}</bnode>"
    mark = ""
    if term.language:
        mark = f" xml:lang={quoteattr(term.language)}"
    elif term.datatype.value != XSD_STRING:
        mark = f" datatype={quoteattr(term.datatype.value)}"
    return f"<literal{mark}>{value}</literal>"


def _document(body: str) -> str:
    return (
        '<?xml version="1.0"?>\n'
        f'<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n{body}</sparql>\n'
    )

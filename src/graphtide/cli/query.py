"""`graphtide query` and `graphtide update`: evaluate a query, or run an update, once on files.

Results are written in the formats of https://www.w3.org/TR/sparql11-results-csv-tsv/,
https://www.w3.org/TR/sparql11-results-json/ and https://www.w3.org/TR/rdf-sparql-XMLres/
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, assert_never
from xml.sax.saxutils import escape, quoteattr

from cyclopts import Parameter
from pyoxigraph import BlankNode, NamedNode

from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.queries import AskQuery, as_select
from graphtide.cli import options as opt
from graphtide.cli.inputs import load_data, open_graph, read_any_query, read_text
from graphtide.cli.output import counted, shortener
from graphtide.errors import DataError, GraphtideError, QueryError
from graphtide.graph import LiveGraph
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.read import write_quads
from graphtide.rdf.formats.registry import find_format
from graphtide.rdf.terms import Term, parse_term

ResultFormat = Literal["table", "csv", "tsv", "json", "xml", "nt", "ttl"]
Row = tuple["Term | None", ...]

XSD_STRING: Final = "http://www.w3.org/2001/XMLSchema#string"
TRIPLE_FORMATS: Final = ("nt", "ttl")


def query(
    query: Path,
    /,
    *,
    data: opt.DataOption = None,
    store: opt.StoreOption = None,
    format: Annotated[  # noqa: A002 - the name of the option
        ResultFormat | None,
        Parameter(
            help=f"{opt.FORMAT_HELP} table, csv, tsv, json or xml for rows; nt or ttl for the "
            "triples of CONSTRUCT and DESCRIBE. By default a table, or N-Triples."
        ),
    ] = None,
    limits: opt.LimitOptions = opt.DEFAULT_LIMITS,
) -> None:
    """Evaluate a query once.

    Parameters
    ----------
    query
        A file with a SPARQL query: SELECT, ASK, CONSTRUCT or DESCRIBE.
    """
    parsed, text = read_any_query(query)
    has_rows = isinstance(parsed, SelectQuery | AskQuery)
    if format in TRIPLE_FORMATS and has_rows:
        raise opt.invalid(
            "--format", format, "this query returns rows: table, csv, tsv, json or xml"
        )
    if format is not None and format not in TRIPLE_FORMATS and not has_rows:
        raise opt.invalid("--format", format, "this query returns triples: nt or ttl")
    if store is None:
        graph = LiveGraph(limits=limits.limits())
    elif data:
        raise GraphtideError(
            "--store and --data exclude each other: a query changes no store",
            hint="load the data into the store with graphtide update or watch",
        )
    else:
        graph = LiveGraph.open(store, read_only=True, limits=limits.limits())
    load_data(graph, data or ())
    table = graph.query(as_select(parsed), terms=True)
    rows = [
        tuple(None if text is None else parse_term(text) for text in row.values())
        for row in table.to_pylist()
    ]
    if isinstance(parsed, AskQuery):
        ((truth,),) = rows
        is_true = truth is not None and truth.value == "true"
        sys.stdout.write(truth_text(is_true, format or "table"))
    elif isinstance(parsed, SelectQuery):
        names = tuple(variable.name for variable in parsed.variables)
        sys.stdout.write(rows_text(ResultRows(names, rows), format or "table", text))
    else:
        sys.stdout.write(graph_text(rows, "ttl" if format == "ttl" else "nt"))


def update(
    request: Path,
    /,
    *,
    data: opt.DataOption = None,
    store: opt.StoreOption = None,
    out: Annotated[
        Path | None,
        Parameter(
            help=f"{opt.OUT_HELP} A file for the quads after the update, in the format of its "
            "suffix; by default N-Quads to standard output, unless there is a --store."
        ),
    ] = None,
    load_from: Path | None = None,
    limits: opt.LimitOptions = opt.DEFAULT_LIMITS,
) -> None:
    """Run a SPARQL Update request.

    Parameters
    ----------
    request
        A file with a SPARQL Update request (.ru).
    load_from
        The directory whose files LOAD may read; by default LOAD is an error.
    """
    check_out(out)
    text = read_text(request)
    with open_graph(store, limits.limits()) as graph:
        load_data(graph, data or ())
        try:
            changed = graph.update(text, load_from=load_from)
        except QueryError as error:
            error.source = error.source or str(request)
            raise
        if store is None or out is not None:
            write_graph(graph, out)
        there = counted(len(graph), "quad")
    print(f"{counted(changed, 'change')}, {there} now", file=sys.stderr)


# --- graphs ---


def check_out(out: Path | None) -> None:
    """Reject a file whose format is not one of graphs."""
    if out is not None and find_format(out).rdf is None:
        raise DataError(
            "the result is a graph, not a change log",
            source=str(out),
            hint="use .nq, .trig, .nt or .ttl",
        )


def write_graph(graph: LiveGraph, out: Path | None) -> None:
    """Write all quads to a file, or as N-Quads to standard output."""
    lines = sorted(
        (str(s), str(p), str(o), None if g is None else str(g)) for s, p, o, g in graph.quads()
    )
    batch = ChangeBatch.of((0, 0, 1, *line) for line in lines)
    if out is not None:
        write_quads(batch, out)
        return
    sys.stdout.flush()
    write_quads(batch, sys.stdout.buffer, format="nq")


# --- results formats ---


@dataclass(frozen=True, slots=True)
class ResultRows:
    """The answer of SELECT: names of variables, and rows in order."""

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


def rows_text(answer: ResultRows, form: ResultFormat, query: str) -> str:
    r"""The answer of SELECT; a table shortens IRIs by the prefixes of the query.

    >>> rows_text(ResultRows(("x",), [(NamedNode("ex:a"),), (None,)]), "csv", "")
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


def _table(answer: ResultRows, query: str) -> str:
    short = shortener(query)
    header = [f"?{name}" for name in answer.variables]
    cells = [["" if t is None else short(t) for t in row] for row in answer.rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    lines = [header, ["─" * width for width in widths], *cells]
    padded = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)


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
    return str(term) if isinstance(term, BlankNode) else term.value


def _tsv(answer: ResultRows) -> str:
    lines = [[f"?{name}" for name in answer.variables]]
    lines += [["" if term is None else str(term) for term in row] for row in answer.rows]
    return "".join("\t".join(line) + "\n" for line in lines)


def _json(answer: ResultRows) -> str:
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

"""`graphtide query` and `graphtide update`: evaluate a query, or run an update, once on files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.queries import AskQuery, as_select
from graphtide.cli import options as opt
from graphtide.cli.inputs import load_data, open_graph, read_any_query, read_text
from graphtide.cli.output import counted, shortener
from graphtide.engine.services import Services
from graphtide.errors import DataError, GraphtideError, QueryError
from graphtide.graph import LiveGraph
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats import results
from graphtide.rdf.formats.read import write_quads
from graphtide.rdf.formats.registry import find_format
from graphtide.rdf.terms import parse_term

ResultFormat = Literal["table", "csv", "tsv", "json", "xml", "nt", "ttl"]

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
    service_allow: opt.ServiceAllowOption = (),
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
        graph = LiveGraph(limits=limits.limits(), services=service_allow)
    elif data:
        raise GraphtideError(
            "--store and --data exclude each other: a query changes no store",
            hint="load the data into the store with graphtide update or watch",
        )
    else:
        graph = LiveGraph.open(store, read_only=True, limits=limits.limits())
        graph.services.settings = Services(service_allow)
    load_data(graph, data or ())
    table = graph.query(as_select(parsed), terms=True)
    rows = [
        tuple(None if text is None else parse_term(text) for text in row.values())
        for row in table.to_pylist()
    ]
    if isinstance(parsed, AskQuery):
        ((truth,),) = rows
        is_true = str(truth).startswith('"true"')
        form = format if format == "json" or format == "xml" else "csv"  # noqa: PLR1714 - for types
        sys.stdout.write(results.truth_text(is_true, form))
    elif isinstance(parsed, SelectQuery):
        names = tuple(variable.name for variable in parsed.variables)
        sys.stdout.write(rows_text(results.ResultRows(names, rows), format or "table", text))
    else:
        sys.stdout.write(results.graph_text(rows, "ttl" if format == "ttl" else "nt"))


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
    service_allow: opt.ServiceAllowOption = (),
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
        graph.services.settings = Services(service_allow)
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


# --- tables ---


def rows_text(answer: results.ResultRows, form: ResultFormat, query: str) -> str:
    """The answer of SELECT; a table shortens IRIs by the prefixes of the query."""
    match form:
        case "table":
            return _table(answer, query)
        case "nt" | "ttl":
            raise GraphtideError(f"rows cannot be written as {form}", hint="CONSTRUCT triples")
        case _:
            return results.rows_text(answer, form)


def _table(answer: results.ResultRows, query: str) -> str:
    short = shortener(query)
    header = [f"?{name}" for name in answer.variables]
    cells = [["" if t is None else short(t) for t in row] for row in answer.rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    lines = [header, ["─" * width for width in widths], *cells]
    padded = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)

"""`graphtide query`: a question answered once, in any of the SPARQL results formats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.queries import AskQuery, as_select
from graphtide.cli.files import load_data, read_any_query
from graphtide.cli.results import ResultFormat, Rows, graph_text, rows_text, truth_text
from graphtide.engine.live_graph import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import DIFF, VALUES

if TYPE_CHECKING:
    from graphtide.algebra.queries import Query
    from graphtide.cli.results import Row


def query(
    query: Path,
    *,
    data: list[Path] | None = None,
    format: ResultFormat | None = None,  # noqa: A002 - the name of the option
) -> None:
    """Answer a query once.

    Parameters
    ----------
    query
        A file with a SPARQL query: SELECT, ASK, CONSTRUCT or DESCRIBE.
    data
        RDF to ask; change logs are applied. Repeat the option for several files.
    format
        table, csv, tsv, json or xml for rows; nt or ttl for the triples of CONSTRUCT and
        DESCRIBE. By default a table, or N-Triples.
    """
    parsed, text = read_any_query(query)
    rows_asked = isinstance(parsed, SelectQuery | AskQuery)
    if format in ("nt", "ttl") and rows_asked:
        raise GraphtideError(
            f"--format {format} is for triples, and this query asks for rows",
            hint="use table, csv, tsv, json or xml",
        )
    if format is not None and format not in ("nt", "ttl") and not rows_asked:
        raise GraphtideError(
            f"--format {format} is for rows, and this query asks for triples",
            hint="use nt or ttl",
        )
    graph = LiveGraph()
    load_data(graph, data or ())
    sys.stdout.write(_answer(graph, parsed, text, format))


def _answer(graph: LiveGraph, parsed: Query, text: str, form: ResultFormat | None) -> str:
    rows = _rows(graph, as_select(parsed))
    if isinstance(parsed, AskQuery):
        ((truth,),) = rows
        return truth_text(truth is not None and truth.value == "true", form or "table")
    if not isinstance(parsed, SelectQuery):
        return graph_text(rows, "ttl" if form == "ttl" else "nt")
    names = tuple(variable.name for variable in parsed.variables)
    return rows_text(Rows(names, rows), form or "table", text)


def _rows(graph: LiveGraph, select: SelectQuery) -> list[Row]:
    decode = graph.terms.decode
    return [
        tuple(decode(i) if i else None for i in row[VALUES:])
        for row in graph.rows_once(select).tolist()
        for _ in range(row[DIFF])
    ]

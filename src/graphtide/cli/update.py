"""`graphtide update`: a SPARQL Update request carried out on files."""

from __future__ import annotations

import sys
from pathlib import Path

from graphtide.cli.files import load_data, read_text
from graphtide.cli.output import counted
from graphtide.engine.live_graph import LiveGraph
from graphtide.errors import DataError, QueryError
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.read import write_quads
from graphtide.rdf.formats.registry import find_format


def update(
    request: Path,
    *,
    data: list[Path] | None = None,
    out: Path | None = None,
    load_from: Path | None = None,
) -> None:
    """Carry out a SPARQL Update request.

    Parameters
    ----------
    request
        A file with the request.
    data
        RDF to change; it is read, never written. Repeat the option for several files.
    out
        Where to write the quads that are there afterwards, in the format that the suffix tells;
        by default N-Quads to standard output.
    load_from
        The folder whose files LOAD may read.
    """
    check_out(out)
    text = read_text(request)
    graph = LiveGraph()
    load_data(graph, data or ())
    try:
        changed = graph.update(text, load_from=load_from)
    except QueryError as error:
        error.source = error.source or str(request)
        raise
    write_graph(graph, out)
    there = counted(len(graph), "quad")
    print(f"{counted(changed, 'change')}, {there} now", file=sys.stderr)


def check_out(out: Path | None) -> None:
    """Refuse a file whose format is not one of graphs."""
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

"""Between pyoxigraph's quads and columns of N-Triples texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from pyoxigraph import DefaultGraph, Quad

from graphtide.errors import TermError
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.term import BlankNode, NamedNode, type_of_term
from graphtide.rdf.term_text import parse_term

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.rdf.text_column import Strings

QuadText: TypeAlias = tuple[str, str, str, str | None]
"""The texts of s, p, o and g; None is the default graph."""


def quad_texts(quad: Quad) -> QuadText:
    """Return the texts of a quad's terms.

    >>> quad_texts(Quad(NamedNode("ex:a"), NamedNode("ex:p"), NamedNode("ex:b")))
    ('<ex:a>', '<ex:p>', '<ex:b>', None)
    """
    if not isinstance(quad.object, type_of_term):
        raise TermError("a triple as object is not supported", hint="reify it as four triples")
    graph = None if isinstance(quad.graph_name, DefaultGraph) else str(quad.graph_name)
    return str(quad.subject), str(quad.predicate), str(quad.object), graph


def inserts(columns: Sequence[Strings]) -> ChangeBatch:
    """Return columns s, p, o, g as inserts of transaction (0, 0).

    >>> import pyarrow as pa
    >>> columns = [pa.array([text], pa.string()) for text in ("<ex:a>", "<ex:p>", '"x"', None)]
    >>> inserts(columns).diff.tolist()
    [1]
    """
    count = len(columns[0])
    zeros = np.zeros(count, np.int64)
    s, p, o, g = columns
    return ChangeBatch(zeros, zeros, np.ones(count, np.int8), s, p, o, g)


def batch_quads(batch: ChangeBatch) -> Iterator[Quad]:
    """Return the quads of a batch, whatever their diffs.

    >>> batch = ChangeBatch.of([(0, 0, 1, "<ex:a>", "<ex:p>", '"x"', None)])
    >>> str(next(batch_quads(batch)))
    '<ex:a> <ex:p> "x"'
    """
    columns: list[list[Any]] = [c.to_pylist() for c in (batch.s, batch.p, batch.o, batch.g)]
    for s, p, o, g in zip(*columns, strict=True):
        subject, predicate, graph = parse_term(s), parse_term(p), parse_term(g) if g else None
        if not (
            isinstance(subject, NamedNode | BlankNode)
            and isinstance(predicate, NamedNode)
            and isinstance(graph, NamedNode | BlankNode | None)
        ):
            raise TermError(f"not a quad: {s} {p} {o} {g or ''}")
        yield Quad(subject, predicate, parse_term(o), graph)

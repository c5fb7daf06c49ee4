"""Transactions in tests: a time and signed N-Quads lines; and pools of terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyoxigraph as ox

from graphtide.errors import DataError
from graphtide.rdf.terms import TripleTerm, from_pyoxigraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphtide.rdf.terms import Term

Change = tuple[int, ox.Quad]


@dataclass(frozen=True, slots=True)
class StreamTransaction:
    """The changes of one transaction in order; `diff` is +1 or -1."""

    time: int
    changes: tuple[Change, ...]

    def lines(self) -> tuple[str, ...]:
        """The changes as signed N-Quads lines, the input of `transaction`.

        >>> transaction(3, "- <a:a> <a:p> _:x <a:g>").lines()
        ('- <a:a> <a:p> _:x <a:g>',)
        """
        return tuple(f"{'+' if diff > 0 else '-'} {quad_text(quad)}" for diff, quad in self.changes)


def quad_text(quad: ox.Quad) -> str:
    """One quad in N-Quads syntax, without the final dot.

    >>> a = ox.NamedNode("a:a")
    >>> quad_text(ox.Quad(a, a, a))
    '<a:a> <a:a> <a:a>'
    """
    return " ".join(str(term) for term in terms_of(quad) if term is not None)


def terms_of(quad: ox.Quad) -> tuple[Term, Term, Term, Term | None]:
    """The four terms of a quad; None for the default graph.

    >>> a = ox.NamedNode("a:a")
    >>> terms_of(ox.Quad(a, a, a))[3] is None
    True
    """
    graph = None if isinstance(quad.graph_name, ox.DefaultGraph) else quad.graph_name
    return from_pyoxigraph(quad.subject), quad.predicate, from_pyoxigraph(quad.object), graph


def transaction(time: int, *lines: str) -> StreamTransaction:
    """A transaction from signed N-Quads lines.

    >>> both = transaction(7, "+ <a:a> <a:p> 'x'", "- <a:b> <a:p> <a:c> <a:g>")
    Traceback (most recent call last):
    ...
    graphtide.errors.DataError: ...
    >>> both = transaction(7, '+ <a:a> <a:p> "x"', "- <a:b> <a:p> <a:c> <a:g>")
    >>> [(diff, str(quad.object)) for diff, quad in both.changes]
    [(1, '"x"'), (-1, '<a:c>')]
    """
    return StreamTransaction(
        time, tuple(_change(number, line) for number, line in enumerate(lines, 1))
    )


def _change(number: int, line: str) -> Change:
    sign, _, rest = line.partition(" ")
    hint = "write '+ <s> <p> <o>' or '- <s> <p> <o> <g>', in N-Quads syntax"
    if sign not in {"+", "-"}:
        raise DataError(f"missing + or - in {line!r}", line=number, hint=hint)
    try:
        (quad,) = ox.parse(f"{rest} .", ox.RdfFormat.N_QUADS)
    except (SyntaxError, ValueError) as problem:
        raise DataError(f"not a quad: {line!r}: {problem}", line=number, hint=hint) from problem
    return (1 if sign == "+" else -1), quad


def apply_to_store(store: ox.Store, changes: Iterable[Change]) -> None:
    """Apply changes to a pyoxigraph Store, which is a set of quads like a live graph.

    >>> store = ox.Store()
    >>> apply_to_store(store, transaction(0, "+ <a:a> <a:p> <a:b>", "+ <a:a> <a:p> <a:b>").changes)
    >>> len(store)
    1
    """
    for diff, quad in changes:
        if diff > 0:
            store.add(quad)
        else:
            store.remove(quad)


def in_a_row(streams: Iterable[Sequence[StreamTransaction]]) -> list[StreamTransaction]:
    """Streams one after the other; between two of them, a transaction deletes what is left.

    >>> one = [transaction(3, "+ <a:a> <a:p> <a:b>")]
    >>> [(each.time, *each.lines()) for each in in_a_row([one, one])]
    [(3, '+ <a:a> <a:p> <a:b>'), (3, '- <a:a> <a:p> <a:b>'), (6, '+ <a:a> <a:p> <a:b>')]
    """
    row: list[StreamTransaction] = []
    for stream in streams:
        start = row[-1].time if row else 0
        if row:
            there: dict[ox.Quad, bool] = {q: diff > 0 for tx in row for diff, q in tx.changes}
            left = tuple((-1, quad) for quad, present in there.items() if present)
            row.append(StreamTransaction(start, left))
        row += [StreamTransaction(start + tx.time, tx.changes) for tx in stream]
    return row


# --- pools of terms: small, so that random joins have results ---
#
# `LITERALS` are terms that the Store of pyoxigraph returns unchanged, of many datatypes, some with
# equal values. `TWINS` are other lexical forms of the same values, which that Store normalises
# (`"01"^^xsd:integer` becomes `"1"`), so that it is no oracle for them.

NAMESPACE: Final = "http://example.org/"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
REIFIES: Final = ox.NamedNode(f"{RDF}reifies")


def iri(name: str) -> ox.NamedNode:
    """An IRI of the pool's namespace.

    >>> str(iri("a"))
    '<http://example.org/a>'
    """
    return ox.NamedNode(NAMESPACE + name)


def typed(text: str, datatype: str) -> ox.Literal:
    """A literal of an XSD datatype.

    >>> str(typed("1", "integer"))
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    return ox.Literal(text, datatype=ox.NamedNode(XSD + datatype))


IRIS: Final = tuple(iri(name) for name in "abcd")
PREDICATES: Final = tuple(iri(name) for name in "pqr")
GRAPH_NAMES: Final = (iri("g1"), iri("g2"))
BLANKS: Final = (ox.BlankNode("x"), ox.BlankNode("y"))

NUMBERS: Final = (
    typed("1", "integer"),
    typed("2", "integer"),
    typed("-4", "integer"),
    typed("1", "decimal"),
    typed("2.5", "decimal"),
    typed("1", "double"),
    typed("2.5", "double"),
    typed("1", "float"),
)
STRINGS: Final = (
    ox.Literal("a"),
    ox.Literal("ab"),
    ox.Literal("1"),
    ox.Literal(""),
    ox.Literal("a", language="en"),
    ox.Literal("ab", language="en-gb"),
    ox.Literal("a", language="fr"),
    ox.Literal("a", language="en", direction=ox.BaseDirection.LTR),
)
OTHERS: Final = (
    typed("true", "boolean"),
    typed("false", "boolean"),
    typed("2024-01-01T00:00:00Z", "dateTime"),
    typed("2024-01-01T01:00:00+01:00", "dateTime"),
    typed("2025-06-01T00:00:00Z", "dateTime"),
    typed("INF", "double"),
    typed("NaN", "double"),
    typed("one", "integer"),
    ox.Literal("1", datatype=iri("unit")),
)
LITERALS: Final = NUMBERS + STRINGS + OTHERS
TRIPLES: Final = (
    TripleTerm(IRIS[0], PREDICATES[0], IRIS[1]),
    TripleTerm(IRIS[1], PREDICATES[0], IRIS[0]),
    TripleTerm(IRIS[0], PREDICATES[1], NUMBERS[0]),
    TripleTerm(IRIS[0], PREDICATES[1], NUMBERS[3]),
    TripleTerm(IRIS[0], PREDICATES[0], TripleTerm(IRIS[0], PREDICATES[0], IRIS[1])),
)

TWINS: Final = (
    typed("01", "integer"),
    typed("+1", "integer"),
    typed("1", "int"),
    typed("1.0", "decimal"),
    typed("2.50", "decimal"),
    typed("1.0E0", "double"),
    typed("25e-1", "double"),
    typed("1", "boolean"),
    typed("2024-01-01T00:00:00.000Z", "dateTime"),
)

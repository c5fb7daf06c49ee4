"""A small vocabulary, so that tests of the engine read like the changes they make."""

from __future__ import annotations

from collections import Counter

from graphtide import ChangeBatch

PREFIX = "PREFIX : <http://example.org/> "
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"

KNOWS = "SELECT ?a ?b { ?a :knows ?b }"
KNOWN = "SELECT ?b { ?a :knows ?b }"
PATHS = "SELECT ?a ?c { ?a :knows ?b . ?b :knows ?c }"


def iri(name: str) -> str:
    return f"<http://example.org/{name}>"


def quad(text: str) -> tuple[str, ...]:
    """`"a knows b"` or `"a knows b g"` as IRIs."""
    return tuple(iri(word) for word in text.split())


def insert(graph, *texts: str, **options) -> None:
    for text in texts:
        graph.insert(*quad(text), **options)


def delete(graph, *texts: str, **options) -> None:
    for text in texts:
        graph.delete(*quad(text), **options)


def commit(graph, *lines: str, time: int | None = None) -> None:
    """One transaction of lines such as `"+ a knows b"` and `"- a knows b"`."""
    with graph.transaction(time=time) as tx:
        for line in lines:
            (tx.insert if line[0] == "+" else tx.delete)(*quad(line[2:]))


def batch(*rows: tuple[int, int, str]) -> ChangeBatch:
    """Rows `(time, tx, "+ a knows b")` as a change batch."""
    return ChangeBatch.of(
        (time, tx, 1 if line[0] == "+" else -1, *(*quad(line[2:]), None)[:4])
        for time, tx, line in rows
    )


def watch(graph, query: str = KNOWS, **options):
    return graph.watch(PREFIX + query, **options)


def local(term) -> str | None:
    """The last part of an IRI, the text of a literal, None for unbound."""
    return None if term is None else term.value.rpartition("/")[2]


def line(row) -> str:
    """A delta row as `"+1 a b"`; unbound is `-`."""
    return " ".join([f"{row.diff:+d}", *(local(term) or "-" for term in row.row.values())])


def lines(rows) -> list[str]:
    """Delta rows as sorted lines."""
    return sorted(line(row) for row in rows)


def answer(watch) -> Counter[str]:
    """The current answer as a bag of lines, from `table()`."""
    return Counter(
        " ".join("-" if text is None else text.strip("<>").rpartition("/")[2] for text in row)
        for row in zip(
            *(column.to_pylist() for column in watch.table(terms=True).columns), strict=True
        )
    )

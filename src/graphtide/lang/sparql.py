"""SPARQL text to algebra.

Two parsers read every query. Ours gives the algebra and messages with a place and a hint; then
pyoxigraph, which passes the W3C syntax suites, has to accept the text as well.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from pyoxigraph import Store

from graphtide.errors import QueryError
from graphtide.lang.scanner import excerpt
from graphtide.lang.select import SelectParser

if TYPE_CHECKING:
    from graphtide.algebra.nodes import SelectQuery

_PLACED = re.compile(r"error at (\d+):(\d+): (?:expected (?:one of )?)?(.*)", re.DOTALL)


def parse_query(text: str, *, base: str | None = None) -> SelectQuery:
    """Read a SELECT query. Equal texts give the same object.

    Raises `QueryError` for text that is not SPARQL, and `UnsupportedError` for SPARQL that cannot
    be maintained; both know their line and column.

    >>> query = parse_query("SELECT ?s WHERE { ?s a <http://example.org/Sensor> }")
    >>> [str(variable) for variable in query.variables]
    ['?s']
    """
    return _parse(text, base)


@lru_cache(maxsize=1024)
def _parse(text: str, base: str | None) -> SelectQuery:
    parser = SelectParser(text, base)
    try:
        query = parser.query()
    except RecursionError:
        parser.fail("brackets or groups are nested too deeply here")
    _second_opinion(parser.plain_text, base)
    return query


def _second_opinion(text: str, base: str | None) -> None:
    """Let pyoxigraph check the text. Its SELECT answers are lazy: nothing is evaluated here."""
    try:
        # A RuntimeError is no matter of syntax: it names a function that pyoxigraph lacks.
        with suppress(RuntimeError):
            Store().query(text, base_iri=base)
    except SyntaxError as error:
        raise _query_error(text, str(error)) from None


def _query_error(text: str, report: str) -> QueryError:
    match = _PLACED.search(report)
    if match is None:
        return QueryError(f"not valid SPARQL: {report}")
    line, column = int(match[1]), int(match[2])
    sentences = [part for part in match[3].split(", ") if re.match(r"[A-Z][a-z]+ \w+ ", part)]
    reason = sentences[0] if sentences else "not valid SPARQL here"
    return QueryError(f"{reason}\n{excerpt(text, line, column)}", line=line, column=column)

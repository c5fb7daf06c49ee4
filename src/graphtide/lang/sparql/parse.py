"""Parse SPARQL queries and updates into algebra: the entry points of the parser."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from graphtide.algebra.clock import misused
from graphtide.algebra.nodes import SelectQuery, Values
from graphtide.algebra.queries import Query, as_select
from graphtide.algebra.traverse import walk
from graphtide.algebra.windows import WindowedQuery
from graphtide.errors import QueryError, UnsupportedError
from graphtide.lang.sparql.forms import FormParser
from graphtide.lang.sparql.scanner import TOO_DEEP
from graphtide.lang.sparql.terms import TermParser
from graphtide.lang.sparql.update import UpdateParser

if TYPE_CHECKING:
    from graphtide.algebra.nodes import Dataset
    from graphtide.algebra.updates import Update
    from graphtide.rdf.terms import Term


_NOW_HINT = (
    "its value is another at every tick; compare with it in a FILTER, as in ?due < NOW() or"
    ' ?seen < NOW() - "PT1H"^^xsd:dayTimeDuration'
)
_WINDOW_HINT = "events are in a window by their time; leave the comparison out"


def parse_query(text: str, *, base: str | None = None) -> SelectQuery:
    """Parse a standing query; ASK, CONSTRUCT and DESCRIBE become SELECT queries.

    Results are cached by text.

    Raises `QueryError` for text that is not SPARQL, and `UnsupportedError` for SPARQL that cannot
    be maintained; both know their line and column.

    >>> query = parse_query("SELECT ?s WHERE { ?s a <http://example.org/Sensor> }")
    >>> [str(variable) for variable in query.variables]
    ['?s']
    """
    query = _parse_standing(text, base)
    if isinstance(query, SelectQuery):
        return query
    raise UnsupportedError(
        "a windowed query cannot be used here", hint="register it with LiveGraph.register"
    )


def parse_standing(text: str, *, base: str | None = None) -> SelectQuery | WindowedQuery:
    """Parse a standing query: SPARQL, or RSP-QL with windows.

    >>> window = "FROM NAMED WINDOW <a:w> ON <a:s> [RANGE 10 STEP 5]"
    >>> text = f"SELECT * {window} WHERE {{ WINDOW <a:w> {{ ?s ?p 1 }} }}"
    >>> parse_standing(text).windows[0].step
    5
    """
    return _parse_standing(text, base)


def parse_any_query(text: str, *, base: str | None = None) -> Query:
    """Parse a query for one evaluation: all of SPARQL 1.2.

    >>> type(parse_any_query("ASK { ?s <http://example.org/knows>+ ?o }")).__name__
    'AskQuery'
    """
    return _parse_any(text, base)


def parse_update(text: str, *, base: str | None = None, using: Dataset | None = None) -> Update:
    """Parse an update request; `using` is the dataset of operations that name none.

    >>> len(parse_update("CLEAR DEFAULT ; INSERT DATA { <ex:a> <ex:b> 1 }").operations)
    2
    """
    parser = UpdateParser(text, base, using)
    try:
        return parser.update()
    except RecursionError:
        parser.tokens.fail(TOO_DEEP)


def parse_value(text: str, query: str) -> Term | None:
    """A term as a query would write it, with the query's prefixes; UNDEF is None.

    >>> print(parse_value(":r5", "PREFIX : <http://example.org/> SELECT * {}"))
    <http://example.org/r5>
    """
    parser = TermParser(query)
    parser.prologue()
    prologue = " ".join(f"PREFIX {short}: <{space}>" for short, space in parser.prefixes.items())
    made = parse_query(f"{prologue} SELECT * {{ VALUES ?x {{ {text} }} }}")
    rows = next(part for part in walk(made.root) if isinstance(part, Values)).rows
    if len(rows) != 1:
        raise QueryError(f"{text!r} is not one term")
    return rows[0][0]


@lru_cache(maxsize=1024)
def _parse_standing(text: str, base: str | None) -> SelectQuery | WindowedQuery:
    parser = FormParser(text, base)
    query = as_select(_read(parser))
    if (at := parser.terms.now_at) is not None:
        if parser.windows.clauses:
            parser.tokens.refuse("NOW in a query over windows", _WINDOW_HINT, at=at)
        if misused(query.root):
            parser.tokens.refuse("NOW in this place", _NOW_HINT, at=at)
    if parser.windows.clauses:
        name = parser.windows.registered
        return WindowedQuery(
            query, tuple(parser.windows.clauses), parser.windows.output or "RSTREAM", name
        )
    if parser.windows.output is not None:
        parser.tokens.fail(
            "a registered query needs a window", hint="add FROM NAMED WINDOW … ON …", at=0
        )
    return query


@lru_cache(maxsize=1024)
def _parse_any(text: str, base: str | None) -> Query:
    parser = FormParser(text, base, standing=False)
    query = _read(parser)
    if parser.windows.clauses:
        hint = "use `graphtide watch` or LiveGraph.register"
        parser.tokens.fail("a windowed query cannot be evaluated once", hint=hint, at=0)
    return query


def _read(parser: FormParser) -> Query:
    try:
        return parser.query()
    except RecursionError:
        parser.tokens.fail(TOO_DEEP)

"""Terms for people to read: IRIs shortened by the prefixes of a query."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from pyoxigraph import Literal, NamedNode

from graphtide.lang.sparql.select import SelectParser

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.terms import Term

_LOCAL = re.compile(r"[\w-]*")

_XSD = "http://www.w3.org/2001/XMLSchema#"
_TYPE = re.compile(rf"\^\^<{re.escape(_XSD)}(\w+)>\Z")
_BARE = {f"{_XSD}{name}" for name in ("integer", "decimal", "boolean")}


def shortener(query: str) -> Callable[[Term], str]:
    """A function from terms to texts as this query would write them.

    >>> short = shortener("PREFIX ex: <http://example.org/> SELECT * { }")
    >>> short(NamedNode("http://example.org/a")), short(NamedNode("http://example.org/a/b"))
    ('ex:a', '<http://example.org/a/b>')
    >>> short(Literal(7)), short(Literal("x"))
    ('7', '"x"')
    """
    parser = SelectParser(query, None)
    parser.prologue()
    spaces = sorted(parser.prefixes.items(), key=lambda item: -len(item[1]))

    @lru_cache(maxsize=10_000)
    def short(term: Term) -> str:
        if isinstance(term, NamedNode):
            for prefix, space in spaces:
                local = term.value[len(space) :]
                if term.value.startswith(space) and _LOCAL.fullmatch(local):
                    return f"{prefix}:{local}"
        elif isinstance(term, Literal) and term.datatype.value in _BARE:
            return term.value
        elif isinstance(term, Literal):
            return _TYPE.sub(r"^^xsd:\1", str(term))
        return str(term)

    return short

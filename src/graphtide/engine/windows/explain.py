"""Explain: what a query over windows puts out and what it looks at, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.algebra.windows import WindowClause, WindowedQuery

SECOND = 1000


def explain_windows(query: WindowedQuery) -> str:
    """What is put out, and a line for each window.

    >>> from graphtide.lang.sparql import parse_standing
    >>> window = "FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE PT10S STEP PT0.5S]"
    >>> text = f"SELECT ?a {window} WHERE {{ WINDOW <ex:w> {{ ?a <ex:p> ?b }} }}"
    >>> print(explain_windows(parse_standing(text)))
    output RSTREAM
    window <ex:w> on <ex:s>: range 10 s, step 500 ms
    """
    lines = [f"window {w.iri} on {w.stream}: {_extent(w)}" for w in query.windows]
    return "\n".join([f"output {query.output}", *lines])


def _extent(window: WindowClause) -> str:
    length, step = (_length(n, in_time=window.in_time) for n in (window.length, window.step))
    return f"{window.kind.lower()} {length}, step {step}"


def _length(number: int, *, in_time: bool) -> str:
    if not in_time:
        return str(number)
    return f"{number // SECOND} s" if number % SECOND == 0 else f"{number} ms"

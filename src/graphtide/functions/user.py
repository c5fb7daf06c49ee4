"""Functions of the user, by IRI.

They are known to the process that registers them, and to all graphs in it. A standing query takes
those that are pure only: whatever else decides their result would change it without a delta.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from pyoxigraph import NamedNode

from graphtide.algebra.expressions import Call
from graphtide.algebra.traverse import walk
from graphtide.arguments import check_type, wrong_type
from graphtide.errors import ExpressionError, GraphtideError
from graphtide.functions import numbers as num
from graphtide.functions.values import Text, check_length, to_term
from graphtide.rdf.terms import TERM_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function with its number of arguments."""

    apply: Callable[..., Term]
    least: int
    most: int | None
    pure: bool
    origin: Callable[..., Any]


USER_FUNCTIONS: Final[dict[str, UserFunction]] = {}
"""By the name that they have in a call, `<iri>`."""


def function(iri: str, f: Callable[..., Any], *, pure: bool = True) -> None:
    """Register a function: queries call it as `<iri>(…)`, or by a prefixed name.

    `f` gets terms, and returns a term, or a text, number or boolean of Python, which becomes a
    literal. If it raises, or returns None, that is an error of the expression, for that row.
    `pure=True` is a promise: equal arguments give equal results, always. Without it, one-off
    queries and updates may call `f`, and standing queries may not.

    >>> from graphtide import LiveGraph
    >>> function("http://example.org/reverse", lambda text: text.value[::-1])
    >>> query = 'SELECT (<http://example.org/reverse>("edit") AS ?t) {}'
    >>> LiveGraph().watch(query).table()["t"].to_pylist()
    ['tide']
    """
    check_type(iri, "iri", str)
    check_type(pure, "pure", bool)
    if not callable(f):
        raise wrong_type(f, "f", "a function")
    try:
        name = str(NamedNode(iri))
    except ValueError as error:
        raise GraphtideError(f"{iri!r:.80} is no IRI of a function: {error}") from None
    known = USER_FUNCTIONS.get(name)
    if known is not None and (known.origin, known.pure) != (f, pure):
        raise GraphtideError(
            f"there is another function {name} already",
            hint="queries may use it: give the new one another IRI",
        )
    least, most = _arity(f)
    USER_FUNCTIONS[name] = UserFunction(_guarded(name, f), least, most, pure, f)


def called(node: object) -> list[str]:
    """The functions of the user that a query calls."""
    calls = (each.name for each in walk(node) if isinstance(each, Call))
    return sorted(USER_FUNCTIONS.keys() & calls)


def _arity(f: Callable[..., Any]) -> tuple[int, int | None]:
    """The least and the greatest number of arguments; any number, if Python does not know."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return 0, None
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in by_position)
    endless = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return least, None if endless else len(by_position)


def _guarded(name: str, f: Callable[..., Any]) -> Callable[..., Term]:
    def apply(*terms: Term) -> Term:
        try:
            return _as_term(f(*terms))
        except Exception as error:
            raise ExpressionError(f"{name} failed: {error!r}") from error

    return apply


def _as_term(found: Any) -> Term:  # noqa: ANN401 - whatever a user returns
    match found:
        case bool():
            return to_term(found)
        case str():
            return to_term(Text(found))
        case int():
            return to_term(num.integer(found))
        case float():
            return to_term(num.double(found))
        case Decimal():
            return to_term(num.decimal(found))
        case _ if isinstance(found, TERM_TYPES):
            check_length(len(str(found)))
            return found
        case _:
            raise ExpressionError(f"{found!r} is neither a term nor a text, number or boolean")

"""Checks of what users give: an argument of a wrong type is an error that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def check_type(value: object, name: str, *kinds: type | None) -> None:
    """Raise a TypeError that names an argument, unless it is of one of some types; None is None.

    >>> check_type(5, "query", str)
    Traceback (most recent call last):
        ...
    TypeError: query must be of type str, not int: 5
    """
    if value is None and None in kinds:
        return
    types = tuple(kind for kind in kinds if kind is not None)
    if not isinstance(value, types):
        known = " or ".join("None" if kind is None else kind.__name__ for kind in kinds)
        raise wrong_type(value, name, f"of type {known}")


def wrong_type(value: object, name: str, expected: str) -> TypeError:
    """Return the error for an argument that is not what is expected."""
    return TypeError(f"{name} must be {expected}, not {type(value).__name__}: {value!r:.60}")


def iterable(given: Iterable[Any], name: str, expected: str) -> Iterator[Any]:
    """Return an iterator over an argument; raise a TypeError that names it if there is none."""
    try:
        return iter(given)
    except TypeError:
        raise wrong_type(given, name, expected) from None


def each_of(given: Iterable[Any], name: str, kind: type) -> Iterator[Any]:
    """Yield what is in an argument; raise a TypeError if something is of another type."""
    for each in iterable(given, name, f"an iterable of {kind.__name__}"):
        check_type(each, f"each of {name}", kind)
        yield each


def listed_triples(given: Iterable[Any]) -> list[tuple[Any, Any, Any]]:
    """Return triples as a list; raise a TypeError if something else is among them.

    >>> listed_triples(["<ex:a>"])
    Traceback (most recent call last):
        ...
    TypeError: a triple must be a tuple (subject, predicate, object), not str: '<ex:a>'
    """
    expected = "an iterable of tuples (subject, predicate, object)"
    triples = list(iterable(given, "triples", expected))
    for each in triples:
        if not isinstance(each, (tuple, list)) or len(each) != 3:
            raise wrong_type(each, "a triple", "a tuple (subject, predicate, object)")
    return triples

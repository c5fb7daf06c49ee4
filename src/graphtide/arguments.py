"""Checks of what users give: an argument of a wrong type is an error that names it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.errors import GraphtideError

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


def check_choice(value: object, name: str, choices: Iterable[str]) -> None:
    """Raise unless an argument is one of some texts.

    >>> check_choice("fast", "store", ["all", "none"])
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: store='fast' is unknown
      hint: use "all" or "none"
    """
    check_type(value, name, str)
    *known, last = choices
    if value not in (*known, last):
        listed = ", ".join(f'"{each}"' for each in known)
        hint = f'use {listed} or "{last}"'
        raise GraphtideError(f"{name}={value!r:.80} is unknown", hint=hint)


def whole(value: object, name: str, least: int | None = None) -> int:
    """Return a whole number as an int; raise a TypeError for anything else, also a bool.

    >>> whole(np.int32(5), "retries")
    5
    >>> whole(-1, "retries", 0)
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: retries=-1 is not possible
      hint: give 0 or more
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise wrong_type(value, name, "a whole number")
    number = int(value)
    if (least is not None and number < least) or abs(number) >= 2**63:
        hint = f"give {least} or more" if abs(number) < 2**63 else "give a number of 63 bits"
        raise GraphtideError(f"{name}={str(number)[:80]} is not possible", hint=hint)
    return number


def number_or_none(value: object, name: str) -> float | None:
    """Return a number as one of Python; raise a TypeError for anything else, also a bool."""
    if value is None or type(value) in (int, float):
        return value  # type: ignore[return-value] # as was just asked
    if isinstance(value, (np.bool_, bool)) or not isinstance(value, (int, float, np.number)):
        raise wrong_type(value, name, "a number or None")
    if isinstance(value, np.complexfloating):
        raise wrong_type(value, name, "a number or None")
    return int(value) if isinstance(value, (int, np.integer)) else float(value)


def check_path(value: object, name: str) -> None:
    """Raise a TypeError unless an argument is a path that a file system can have."""
    check_type(value, name, str, Path)
    try:
        found = os.fsencode(value)  # type: ignore[arg-type] # see above
    except UnicodeEncodeError:
        found = b"\0"
    if b"\0" in found:
        raise wrong_type(value, name, "a path of characters that files can have")


def iterable(given: Iterable[Any], name: str, expected: str) -> Iterator[Any]:
    """Return an iterator over an argument; raise a TypeError that names it if there is none."""
    try:
        return iter(given)
    except TypeError:
        raise wrong_type(given, name, expected) from None


def each_of(given: Iterable[Any], name: str, kind: type) -> Iterator[Any]:
    """Yield what is in an argument; raise a TypeError if something is of another type."""
    expected = f"an iterable of {kind.__name__}"
    if isinstance(given, str):  # whose characters are texts, too
        raise wrong_type(given, name, expected)
    for each in iterable(given, name, expected):
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

"""Equality of results up to the names of blank nodes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyoxigraph import BlankNode

from graphtide.rdf.terms import TripleTerm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from w3c.expected import Row


def same_bag(found: Sequence[Row], expected: Sequence[Row]) -> bool:
    """Whether a one-to-one renaming of blank nodes makes the two bags of rows equal."""
    if Counter(map(_shape, found)) != Counter(map(_shape, expected)):
        return False
    # Rows with few partners first: a wrong guess is noticed soon.
    partners = Counter(map(_shape, expected))
    ordered = sorted(found, key=lambda row: partners[_shape(row)])
    return _match(ordered, list(expected), {}, {})


def same_set(found: Sequence[Row], expected: Sequence[Row]) -> bool:
    """For REDUCED: every row often enough to be there, and not oftener than expected."""
    counts = Counter(found)
    return same_bag(list(counts), list(dict.fromkeys(expected))) and all(
        count <= Counter(expected).get(row, count) for row, count in counts.items()
    )


def _shape(row: Row) -> tuple[object, ...]:
    """The row with its blank nodes numbered in order of appearance."""
    numbers: dict[BlankNode, int] = {}
    return tuple(
        numbers.setdefault(term, len(numbers)) if isinstance(term, BlankNode) else term
        for term in _flat(row)
    )


def _flat(row: Row) -> Row:
    """The row with the parts of its triple terms in their places, between marks."""
    found: list[object] = []
    for term in row:
        if isinstance(term, TripleTerm):
            found += ("<<(", *_flat((term.subject, term.predicate, term.object)), ")>>")
        else:
            found.append(term)
    return tuple(found)


def _match(
    rows: list[Row],
    candidates: list[Row],
    forward: dict[BlankNode, BlankNode],
    backward: dict[BlankNode, BlankNode],
) -> bool:
    if not rows:
        return True
    row, *rest = rows
    tried: set[Row] = set()
    for index, candidate in enumerate(candidates):
        if candidate in tried:
            continue
        tried.add(candidate)
        there, back = dict(forward), dict(backward)
        if _unify(row, candidate, there, back) and _match(
            rest, candidates[:index] + candidates[index + 1 :], there, back
        ):
            return True
    return False


def _unify(
    row: Row,
    candidate: Row,
    forward: dict[BlankNode, BlankNode],
    backward: dict[BlankNode, BlankNode],
) -> bool:
    one, two = _flat(row), _flat(candidate)
    if len(one) != len(two):
        return False
    for term, other in zip(one, two, strict=True):
        if isinstance(term, BlankNode) and isinstance(other, BlankNode):
            if forward.setdefault(term, other) != other or backward.setdefault(other, term) != term:
                return False
        elif term != other:
            return False
    return True

"""Happening: an event that has come, and how it matches the types that rules ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.model import EventCondition, EventType
    from graphtide.rules.temporal import Span

Ids = tuple[int, int, int]
Binding = dict[Var, int]
"""Variables and the ids of their values."""


@dataclass(frozen=True, slots=True, eq=False)
class Happening:
    """An event: its triples, when it was, and what the graph was like when it came.

    `order` counts events as they come. `since` is the number of transactions that were before it:
    a fact is older if its own number is less.
    """

    triples: tuple[Ids, ...]
    span: Span
    order: int
    since: int


class TypeMatcher:
    """Finds the ways in which the triples of an event match a type."""

    def __init__(self, type_: EventType, terms: TermDictionary) -> None:
        self._patterns = [_ids_of(pattern, terms) for pattern in type_.pattern]
        self._parameters = type_.parameters

    def matches(self, event: Happening) -> list[tuple[int, ...]]:
        """The values of the parameters, each way once."""
        found = {
            tuple(binding[v] for v in self._parameters)
            for binding in self._extended({}, 0, event.triples)
        }
        return sorted(found)

    def _extended(self, binding: Binding, at: int, triples: Sequence[Ids]) -> Iterator[Binding]:
        if at == len(self._patterns):
            yield binding
            return
        for triple in triples:
            more = _unified(self._patterns[at], triple, binding)
            if more is not None:
                yield from self._extended(more, at + 1, triples)


def _ids_of(pattern: TriplePattern, terms: TermDictionary) -> tuple[Var | int, ...]:
    parts = (pattern.subject, pattern.predicate, pattern.object)
    return tuple(part if isinstance(part, Var) else terms.encode(part) for part in parts)


def _unified(pattern: tuple[Var | int, ...], triple: Ids, binding: Binding) -> Binding | None:
    more = dict(binding)
    for part, value in zip(pattern, triple, strict=True):
        known = more.setdefault(part, value) if isinstance(part, Var) else part
        if known != value:
            return None
    return more


def bound_by(
    condition: EventCondition, values: tuple[int, ...], terms: TermDictionary
) -> Binding | None:
    """What a condition's variables are when its event has these parameters; None if it does not."""
    binding: Binding = {}
    for argument, value in zip(condition.arguments, values, strict=True):
        if isinstance(argument, Var):
            known = binding.setdefault(argument, value)
        else:
            known = terms.encode(argument)
        if known != value:
            return None
    return binding

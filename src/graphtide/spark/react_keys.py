"""Keys: the values by which events and facts find the cell of a rule or a pattern.

All that a match is made of has the same value of a variable that stands in every condition. So
matches are found in the cell of that value, and in no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.patterns.tables import key_of
from graphtide.spark.hashing import text_hashes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from graphtide.algebra.expressions import Var
    from graphtide.kernel.batch import Longs
    from graphtide.patterns.automaton import Automaton
    from graphtide.rules.model import EventType, Rule


@dataclass(frozen=True, slots=True)
class Keyed:
    """How rows find their cell: by some columns, or all go to one cell, `home`.

    `places` has for each type of event the columns of the key, once for each condition in which
    they stand elsewhere; types that are not there are not sent at all.
    """

    variables: tuple[Var, ...]
    home: int
    places: Mapping[int, tuple[tuple[int, ...], ...]]
    facts: tuple[int, ...] = ()


def rule_key(rule: Rule, home: int, types: Mapping[EventType, int]) -> Keyed:
    """The variables that stand in every event and in the facts of a rule."""
    groups = [set(condition.variables) for condition in rule.events]
    if rule.facts is not None:
        groups.append(set(rule.facts.variables))
    shared = tuple(sorted(set.intersection(*groups), key=lambda v: v.name))
    places: dict[int, list[tuple[int, ...]]] = {}
    for condition in rule.events:
        columns = tuple(condition.arguments.index(v) for v in shared)
        places.setdefault(types[condition.type], []).append(columns)
    facts = () if rule.facts is None else tuple(rule.facts.variables.index(v) for v in shared)
    found = {type_: tuple(dict.fromkeys(each)) for type_, each in places.items()}
    return Keyed(shared, home, found, facts)


def pattern_key(automaton: Automaton, home: int) -> Keyed:
    """The parameters that stand in every event of a pattern; none, if it has to see all events."""
    slots, columns = key_of(automaton)
    sees_all = automaton.context != "CHRONICLE" and not automaton.per
    if sees_all or not set(automaton.per) <= set(slots):
        slots = ()
    named = {letter.type for letter in automaton.letters()}
    if not slots:
        seen = range(len(automaton.types)) if automaton.context != "CHRONICLE" else sorted(named)
        return Keyed((), home, dict.fromkeys(seen, ((),)))
    places = {type_: (tuple(columns[type_].tolist()),) for type_ in sorted(named)}
    return Keyed(tuple(automaton.variables[slot] for slot in slots), home, places)


def key_cells(
    rows: pa.Array[Any], width: int, columns: Sequence[int], home: int, cells: int
) -> Longs:
    """The cell of each row of `width` values.

    >>> import pyarrow as pa
    >>> key_cells(pa.array([["a", "b"], ["c", "d"]]), 2, (), 1, 4).tolist()
    [1, 1]
    """
    if not columns or not len(rows):
        return np.full(len(rows), home, np.int64)
    flat: Any = rows
    values = text_hashes(flat.flatten()).reshape(len(rows), width)
    return mixed([values[:, column] for column in columns]) % cells


def mixed(hashes: Sequence[Longs]) -> Longs:
    """One hash of several."""
    state = np.zeros(len(hashes[0]), np.uint64)
    for column in hashes:
        state = (state ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        state ^= state >> np.uint64(29)
    return (state >> np.uint64(1)).astype(np.int64)

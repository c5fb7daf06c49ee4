"""Routing: to which partitions quads, answer rows, events and facts go.

A quad goes to all points of a query's grid that agree with its values. An answer row belongs to one
point, so that it comes out of one partition. Events and facts go to a rule or a pattern by a key:
all that a match consists of has the same values of the variables in every condition, so
it is found in the partition of these values and in no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph, MergedGraph, TriplePattern
from graphtide.patterns.tables import key_of
from graphtide.spark.partition.hashing import id_hashes, mixed_hashes, text_hashes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from graphtide.kernel.batch import Longs
    from graphtide.patterns.automaton import Automaton
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.model import EventType, Rule
    from graphtide.spark.partition.grids import Grid, Leaf


def route(
    quads: NDArray[np.int32], terms: TermDictionary, grids: Iterable[Grid]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (row, partition), each once and sorted by row: where each quad of ids has to go."""
    grids = tuple(grids)
    wanted = np.zeros((len(quads), max((grid.partitions for grid in grids), default=0)), np.bool_)
    for grid in grids:
        for leaf in grid.leaves:
            matched = matching_rows(quads, terms, leaf.pattern)
            for partition in _partitions(quads[matched], terms, grid, leaf):
                wanted[matched, partition] = True
    rows, partitions = np.nonzero(wanted)
    return rows, partitions


def matching_rows(
    quads: NDArray[np.int32], terms: TermDictionary, pattern: TriplePattern
) -> NDArray[np.int64]:
    """The rows that a pattern can match: constants and repeated variables agree."""
    mask = np.ones(len(quads), np.bool_)
    first: dict[Var, int] = {}
    positions = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
    for column, position in enumerate(positions):
        if isinstance(position, Var):
            mask &= quads[:, column] == quads[:, first.setdefault(position, column)]
            if column == 3:
                mask &= quads[:, 3] != 0
        elif isinstance(position, DefaultGraph):
            mask &= quads[:, column] == 0
        elif not isinstance(position, MergedGraph):  # a leaf is asked of one graph
            wanted = terms.lookup(position)
            mask &= (quads[:, column] == wanted) & (wanted != 0)
    return np.flatnonzero(mask)


def _partitions(
    quads: NDArray[np.int32], terms: TermDictionary, grid: Grid, leaf: Leaf
) -> Iterable[NDArray[np.int64]]:
    """Per copy that has to be sent, the partition of each quad."""
    pattern = leaf.pattern
    positions = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
    choices: list[list[NDArray[np.int64]]] = []
    for var, share in zip(grid.variables, grid.shares, strict=True):
        if var in leaf.divided_by:
            column = quads[:, positions.index(var)]
            choices.append([id_hashes(terms, column) % share])
        else:
            choices.append([np.full(len(quads), at, np.int64) for at in range(share)])
    for coordinates in product(*choices):
        partition = np.zeros(len(quads), np.int64)
        for coordinate, share in zip(coordinates, grid.shares, strict=True):
            partition = partition * share + coordinate
        yield partition


def owners(columns: NDArray[np.int32], terms: TermDictionary, grid: Grid) -> NDArray[np.int64]:
    """The partition of each row, from its values of the grid's variables."""
    partition = np.zeros(len(columns), np.int64)
    for i, share in enumerate(grid.shares):
        partition = partition * share + id_hashes(terms, columns[:, i]) % share
    return partition


@dataclass(frozen=True, slots=True)
class EventKey:
    """How rows find their partition: by a hash of some columns; without any, all go to `home`.

    `columns` has for each type of event the columns of the key, once for each condition in which
    they stand elsewhere; types that are missing are not sent. `facts` has the columns of the facts.
    """

    variables: tuple[Var, ...]
    home: int
    columns: Mapping[int, tuple[tuple[int, ...], ...]]
    facts: tuple[int, ...] = ()


def rule_key(rule: Rule, home: int, types: Mapping[EventType, int]) -> EventKey:
    """The variables in every event and in the facts of a rule."""
    groups = [set(condition.variables) for condition in rule.events]
    if rule.facts is not None:
        groups.append(set(rule.facts.variables))
    shared = tuple(sorted(set.intersection(*groups), key=lambda v: v.name))
    keys: dict[int, list[tuple[int, ...]]] = {}
    for condition in rule.events:
        columns = tuple(condition.arguments.index(v) for v in shared)
        keys.setdefault(types[condition.type], []).append(columns)
    facts = () if rule.facts is None else tuple(rule.facts.variables.index(v) for v in shared)
    found = {type_: tuple(dict.fromkeys(each)) for type_, each in keys.items()}
    return EventKey(shared, home, found, facts)


def pattern_key(automaton: Automaton, home: int) -> EventKey:
    """The parameters in every event of a pattern; none, if it has to see all events."""
    slots, columns = key_of(automaton)
    sees_all = automaton.context != "CHRONICLE" and not automaton.per
    if sees_all or not set(automaton.per) <= set(slots):
        slots = ()
    named = {letter.type for letter in automaton.letters()}
    if not slots:
        seen = range(len(automaton.types)) if automaton.context != "CHRONICLE" else sorted(named)
        return EventKey((), home, dict.fromkeys(seen, ((),)))
    keys = {type_: (tuple(columns[type_].tolist()),) for type_ in sorted(named)}
    return EventKey(tuple(automaton.variables[slot] for slot in slots), home, keys)


def key_partitions(
    rows: pa.Array[Any], width: int, columns: Sequence[int], home: int, partitions: int
) -> Longs:
    """The partition of each row of `width` values.

    >>> import pyarrow as pa
    >>> key_partitions(pa.array([["a", "b"], ["c", "d"]]), 2, (), 1, 4).tolist()
    [1, 1]
    """
    if not columns or not len(rows):
        return np.full(len(rows), home, np.int64)
    flat: Any = rows
    values = text_hashes(flat.flatten()).reshape(len(rows), width)
    return mixed_hashes([values[:, column] for column in columns], len(rows)) % partitions

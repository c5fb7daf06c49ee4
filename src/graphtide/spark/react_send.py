"""Send: events and facts on their way to the cells of the patterns and rules that look at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.spark.event_rows import change_events
from graphtide.spark.happened import RETRACTED
from graphtide.spark.react_keys import key_cells
from graphtide.spark.reaction import FRONTIER, MOST_TYPES, TO_FACTS, TO_PATTERN, TO_RULE, TYPES
from graphtide.spark.schemas import DELTAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.kernel.batch import Longs
    from graphtide.spark.react_keys import Keyed
    from graphtide.spark.reaction import Reaction

Sent = tuple[int, pa.Table]
"""A cell, and rows that go there."""


def send_matched(deltas: pa.Table, reaction: Reaction, cell: int) -> list[Sent]:
    """What leaves the match: public deltas stay where they are, the rest is addressed."""
    query = deltas["query"].to_numpy()
    typed = deltas.filter(pa.array((query >= TYPES) & (query < TYPES + MOST_TYPES)))
    events = pa.concat_tables([typed, change_events(deltas, reaction)])
    public = deltas.filter(pa.array((query >= 0) & (query < reaction.first)))
    return _gathered(
        [
            (cell, public),
            *_frontier(deltas, reaction.cells),
            *_facts(deltas, reaction),
            *_to_patterns(events, reaction),
            *_to_rules(events, reaction),
        ]
    )


def send_detected(deltas: pa.Table, reaction: Reaction, cell: int) -> list[Sent]:
    """What leaves the patterns: complex events, for rules and to be seen; others go on."""
    query = deltas["query"].to_numpy()
    complex_ = deltas.filter(pa.array((query >= TYPES) & (query < TYPES + MOST_TYPES)))
    return _gathered([(cell, deltas), *_to_rules(complex_, reaction)])


def _gathered(parts: list[Sent]) -> list[Sent]:
    """The rows of each cell together; cells to which nothing goes are left out."""
    by_cell: dict[int, list[pa.Table]] = {}
    for cell, table in parts:
        if len(table):
            by_cell.setdefault(cell, []).append(table)
    return [(cell, pa.concat_tables(tables)) for cell, tables in sorted(by_cell.items())]


def _frontier(deltas: pa.Table, cells: int) -> list[Sent]:
    """Every cell hears how far the stream is."""
    rows = deltas.take(np.flatnonzero(deltas["query"].to_numpy() == FRONTIER))
    return [(cell, rows) for cell in range(cells)]


def _facts(deltas: pa.Table, reaction: Reaction) -> Iterator[Sent]:
    for number, rule in reaction.facts.items():
        key = reaction.rule_keys[rule]
        facts = reaction.rules[rule].facts
        width = len(facts.variables) if facts else 0
        rows = _of(deltas, number)
        yield from _addressed(rows, TO_FACTS + rule, width, (key.facts,), key, reaction.cells)


def _to_patterns(events: pa.Table, reaction: Reaction) -> Iterator[Sent]:
    for pattern, key in enumerate(reaction.pattern_keys):
        for number, type_ in enumerate(reaction.named.values()):
            if number in key.places:
                rows = _of(events, TYPES + reaction.types[type_])
                to = TO_PATTERN + pattern * MOST_TYPES + number
                width, places = len(type_.parameters), key.places[number]
                yield from _addressed(rows, to, width, places, key, reaction.cells)


def _to_rules(events: pa.Table, reaction: Reaction) -> Iterator[Sent]:
    if not len(events):
        return
    for rule, key in enumerate(reaction.rule_keys):
        for type_, number in reaction.types.items():
            rows = _of(events, TYPES + number)
            to = TO_RULE + rule * MOST_TYPES + number
            if type_ == RETRACTED:  # it may be anywhere
                yield from ((cell, _numbered(rows, to)) for cell in range(reaction.cells))
            elif number in key.places:
                width, places = len(type_.parameters), key.places[number]
                yield from _addressed(rows, to, width, places, key, reaction.cells)


def _numbered(rows: pa.Table, to: int) -> pa.Table:
    numbers: Any = pa.array(np.full(len(rows), to, np.int32))
    return rows.set_column(0, DELTAS.field("query"), numbers)


def _of(rows: pa.Table, number: int) -> pa.Table:
    return rows.take(np.flatnonzero(rows["query"].to_numpy() == number))


def _addressed(
    rows: pa.Table, to: int, width: int, places: Sequence[tuple[int, ...]], key: Keyed, cells: int
) -> Iterator[Sent]:
    """Rows with another number, each in the cells of its keys."""
    if not len(rows):
        return
    values: Any = rows["row"].combine_chunks()
    wheres: list[Longs] = [key_cells(values, width, each, key.home, cells) for each in places]
    addressed = _numbered(rows, to)
    for cell in np.unique(np.concatenate(wheres)).tolist():
        here = np.logical_or.reduce([where == cell for where in wheres])
        yield cell, addressed.filter(pa.array(here))

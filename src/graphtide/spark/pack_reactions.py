"""Events for rules and patterns, as they are packed: a copy of each that goes to one cell.

All events of a transaction go to the same cell, which holds them until it is complete and then
matches them with the types that are declared. Their streams are marked, so that windows do not take
these copies for their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphtide.spark.react_keys import mixed
from graphtide.spark.schemas import EVENTS, table_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.rdf.dictionary import TermDictionary

MARK: Final = "\x1e"
"""What the stream of a copy for rules and patterns begins with."""


def reaction_rows(
    real: pa.Table, quads: NDArray[np.int32], good: NDArray[np.int64], terms: TermDictionary,
    cells: int,
) -> dict[int, pa.Table]:  # fmt: skip
    """By cell, the copies of events that go there."""
    events = good[real["stream"].take(good).is_valid().to_numpy()]
    stamps = [real[name].to_numpy()[events] for name in ("time", "tx", "seq", "diff")]
    where = mixed([stamps[0], stamps[1]]) % cells if len(events) else events
    marked: Any = pc.binary_join_element_wise(pa.scalar(MARK), real["stream"].take(events), "")  # type: ignore[call-overload]
    found = {}
    for cell in np.unique(where).tolist():
        at = np.flatnonzero(where == cell)
        texts = [terms.decode_column(quads[events[at], column]) for column in range(4)]
        home = np.ones(len(at), np.bool_)
        columns = [*(stamp[at] for stamp in stamps), home, *texts, marked.take(at)]
        found[cell] = table_of(EVENTS, columns)
    return found


def divided_events(changes: pa.Table, schema: pa.Schema) -> tuple[pa.Table, pa.Table]:
    """The copies for rules and patterns, with their streams' own names; and the other changes."""
    if "stream" not in changes.column_names:
        return EVENTS.empty_table(), changes
    marked = of_reactions(changes)
    if not marked.any():
        same = changes.schema.names == schema.names
        return EVENTS.empty_table(), changes if same else changes.select(schema.names)
    events = changes.filter(pa.array(marked))
    names: Any = pc.utf8_slice_codeunits(events["stream"], start=len(MARK))
    events = events.set_column(EVENTS.get_field_index("stream"), EVENTS.field("stream"), names)
    return events, changes.filter(pa.array(~marked)).select(schema.names)


def of_reactions(changes: pa.Table) -> NDArray[np.bool_]:
    """Which rows are copies for rules and patterns."""
    marked: Any = pc.starts_with(changes["stream"], MARK)
    found: NDArray[np.bool_] = marked.fill_null(False).to_numpy()
    return found

"""Snapshots: a graph, what runs on it and what that holds, as a file of four Arrow streams.

The first stream has the terms, the second the quads as places in them (as in a chunk). The others
have what streams, windows and programs hold: terms again, and arrays (`durable/state.py`). The
metadata of the first has everything else, as JSON. A snapshot is written beside its name and
renamed when it is on disk; its checksum is in the journal.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from graphtide.durable import chunks
from graphtide.durable.state import pack
from graphtide.durable.tables import FORMAT
from graphtide.engine.ingest import signed
from graphtide.engine.scheduler import NEVER
from graphtide.errors import GraphtideError, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from graphtide.engine.runtime import Runtime
    from graphtide.kernel.batch import Ints

QUADS: Final = pa.schema(dict.fromkeys("spog", pa.int32()))
BLOCK: Final = 1 << 22


@dataclass(slots=True)
class SnapshotState:
    """A graph without its quads: clock, numbers, and the entries that registered what runs."""

    clock: int
    last_tx: int
    done: int
    closes: int = 0
    registrations: list[dict[str, Any]] = field(default_factory=list)
    format: int = FORMAT
    raised: int = -NEVER


class SnapshotTables(NamedTuple):
    """The tables of a snapshot."""

    terms: pa.Table
    quads: pa.Table
    held_terms: pa.Table
    held: pa.Table


def tables_of(runtime: Runtime, state: SnapshotState, held: Mapping[str, Any]) -> SnapshotTables:
    """The tables of a snapshot of the graph as it is now, given what streams and programs hold."""
    codes, terms = chunks.coded(runtime.quad_ids(), runtime.terms.table())
    arrays: list[Any] = [pa.array(np.ascontiguousarray(column)) for column in codes.T]
    terms = terms.replace_schema_metadata({"state": json.dumps(asdict(state))})
    quads = pa.Table.from_arrays(arrays, schema=QUADS)
    return SnapshotTables(terms, quads, *pack(held, runtime.terms))


def write_snapshot(path: Path, tables: SnapshotTables) -> tuple[int, int]:
    """Write a snapshot that is either there as a whole or not at all; its size and checksum."""
    beside = path.with_suffix(".tmp")
    with beside.open("wb") as file:
        chunks.write_streams(file, *tables)
        file.flush()
        os.fsync(file.fileno())
    size, crc = _measured(beside)
    beside.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return size, crc


def _measured(path: Path) -> tuple[int, int]:
    size = crc = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            crc = zlib.crc32(block, crc)
            size += len(block)
    return size, crc


def check_snapshot(path: Path, size: int, crc: int) -> None:
    """Raise unless the file is there, as it was written."""
    try:
        found = _measured(path)
    except OSError as error:
        raise StoreError(path, f"the snapshot cannot be read: {error.strerror}") from None
    if found != (size, crc):
        raise StoreError(
            path,
            f"the snapshot is damaged: {found[0]:,} bytes of {size:,}"
            if found[0] != size
            else f"the snapshot is damaged: its checksum is not that of its {size:,} bytes",
        )


def read_snapshot(path: Path) -> tuple[SnapshotState, SnapshotTables]:
    """The state and the tables of a snapshot."""
    tables = chunks.from_bytes(pa.memory_map(str(path)).read_buffer())
    fields = json.loads((tables[0].schema.metadata or {})[b"state"])
    if fields["format"] != FORMAT:
        raise GraphtideError(
            f"{path} was written by another version of graphtide: format {fields['format']}",
            hint="open the store with that version",
        )
    return SnapshotState(**fields), SnapshotTables(*tables)


def restore_quads(
    runtime: Runtime, state: SnapshotState, tables: SnapshotTables, hidden: Ints
) -> None:
    """Let an empty graph begin with the quads of a snapshot, and the `hidden` ones of windows."""
    ids = chunks.interned(tables.terms, runtime.terms)
    many = len(tables.quads)
    rows: Ints = np.empty((many + len(hidden), 4), np.int32)
    for place, name in enumerate("spog"):
        column: Any = tables.quads[name]
        rows[:many, place] = ids[column.to_numpy()]
    rows[many:] = hidden
    runtime.store.apply(signed(rows, 1))
    runtime.schedule.clock, runtime.last_tx = state.clock, state.last_tx
    runtime.done, runtime.closes = state.done, state.closes
    runtime.schedule.raised = state.raised

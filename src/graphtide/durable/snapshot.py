"""Snapshots: the quads of a graph and what is registered on it, as a file of two Arrow streams.

The first stream has the terms, the second the quads as places in them (as in a chunk). The metadata
of the first has everything else, as JSON. A snapshot is written beside its name and renamed when it
is on disk; its checksum is in the journal.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from graphtide.durable import chunks
from graphtide.durable.journal import FORMAT
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from pathlib import Path

    from graphtide.engine.runtime import Runtime
    from graphtide.kernel.batch import Ints

QUADS: Final = pa.schema(dict.fromkeys("spog", pa.int32()))
BLOCK: Final = 1 << 22


@dataclass(slots=True)
class SnapshotState:
    """A graph without its quads: clock, numbers, and the entries that registered what runs on it.

    `counters` has numbers that go on where they were, by program and stream.
    """

    clock: int
    last_tx: int
    done: int
    registrations: list[dict[str, Any]] = field(default_factory=list)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    format: int = FORMAT


def tables_of(runtime: Runtime, state: SnapshotState) -> tuple[pa.Table, pa.Table]:
    """The tables of a snapshot of the graph as it is now."""
    codes, terms = chunks.coded(runtime.quad_ids(), runtime.terms)
    arrays: list[Any] = [pa.array(np.ascontiguousarray(column)) for column in codes.T]
    terms = terms.replace_schema_metadata({"state": json.dumps(asdict(state))})
    return terms, pa.Table.from_arrays(arrays, schema=QUADS)


def write_snapshot(path: Path, tables: tuple[pa.Table, pa.Table]) -> tuple[int, int]:
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
        raise GraphtideError(f"{path}: the snapshot cannot be read: {error.strerror}") from None
    if found != (size, crc):
        raise GraphtideError(
            f"{path}: the snapshot is damaged: {found[0]:,} bytes of {size:,}"
            if found[0] != size
            else f"{path}: the snapshot is damaged: its checksum is not that of its {size:,} bytes",
        )


def read_snapshot(path: Path) -> tuple[SnapshotState, pa.Table, pa.Table]:
    """The state, the terms and the quads of a snapshot."""
    terms, quads = chunks.from_bytes(pa.memory_map(str(path)).read_buffer())
    fields = json.loads((terms.schema.metadata or {})[b"state"])
    if fields["format"] > FORMAT:
        raise GraphtideError(
            f"{path} was written by a newer version of graphtide: format {fields['format']}",
            hint="open the store with that version",
        )
    return SnapshotState(**fields), terms, quads


def restore_quads(runtime: Runtime, state: SnapshotState, terms: pa.Table, quads: pa.Table) -> None:
    """Let an empty graph begin with the quads of a snapshot."""
    ids = chunks.interned(terms, runtime.terms)
    rows: Ints = np.empty((len(quads), 4), np.int32)
    for place, name in enumerate("spog"):
        column: Any = quads[name]
        rows[:, place] = ids[column.to_numpy()]
    runtime.restore(rows, state.clock, state.last_tx, state.done)

"""Snapshots: a graph, what runs on it and what that holds, as a file in the packed form.

The header is JSON: the numbers of the graph, what registered all that runs on it, and what streams,
windows and programs hold but for its arrays (`durable.state`). The columns are the quads (all s,
all p, all o, all g) and the arrays of ids, as places among the terms (as in a chunk), the arrays of
numbers, and the terms. A snapshot is written beside its name and renamed when it is on disk; its
checksum is in the journal.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from graphtide.durable import chunks, packed
from graphtide.durable.state import HeldArrays, with_arrays
from graphtide.durable.tables import FORMAT
from graphtide.engine.ingest import signed
from graphtide.engine.scheduler import NEVER
from graphtide.errors import GraphtideError, StoreError
from graphtide.rdf.holders import HeldIds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from graphtide.engine.runtime import Runtime
    from graphtide.kernel.batch import Ints

BLOCK: Final = 1 << 22
COLUMNS: Final = 5


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


class Snapshot(NamedTuple):
    """A snapshot: the graph without its quads, what parts hold without its arrays, and columns.

    These are quads, ids, numbers, the lengths of terms, and their texts.
    """

    state: SnapshotState
    held: Any
    columns: list[NDArray[Any]]


def snapshot_of(runtime: Runtime, state: SnapshotState, held: Mapping[str, Any]) -> Snapshot:
    """Return a snapshot of the graph as it is now, given what streams and programs hold."""
    arrays, quads = HeldArrays(), runtime.quad_ids()
    plain = arrays.taken_from(held)
    ids = np.concatenate([quads.T.reshape(-1), arrays.ids])
    codes, lengths, texts = chunks.coded(ids, runtime.terms.table())
    own, others = codes[: quads.size], codes[quads.size :]
    return Snapshot(state, plain, [own, others, arrays.numbers, lengths, texts])


def write_snapshot(path: Path, snapshot: Snapshot) -> tuple[int, int]:
    """Write a snapshot that is either there as a whole or not at all; its size and checksum."""
    beside = path.with_suffix(".tmp")
    with beside.open("wb") as file:
        header = {"state": asdict(snapshot.state), "held": snapshot.held}
        packed.write(file, json.dumps(header).encode(), snapshot.columns)
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


def read_snapshot(path: Path) -> Snapshot:
    """Return the snapshot of a file that is as it was written."""
    data = memoryview(pa.memory_map(str(path)).read_buffer()).cast("B")
    header, columns = packed.read(data, COLUMNS)
    found = json.loads(header)
    if found["state"]["format"] != FORMAT:
        raise GraphtideError(
            f"{path} was written by another version of graphtide: format "
            f"{found['state']['format']}",
            hint="open the store with that version",
        )
    return Snapshot(SnapshotState(**found["state"]), found["held"], columns)


def restored(snapshot: Snapshot, runtime: Runtime) -> tuple[Ints, Any, HeldIds]:
    """Return the quads of a snapshot, what parts hold, and what holds the ids until these do."""
    quads, ids, numbers, lengths, texts = snapshot.columns
    known = chunks.interned(lengths, texts, runtime.terms)
    holder = HeldIds([known])
    runtime.terms.holders.add(holder)
    columns = {"ids": known[ids], "numbers": numbers.astype(np.int64)}
    rows = np.ascontiguousarray(known[quads].reshape(4, -1).T)
    return rows, with_arrays(snapshot.held, columns), holder


def restore_quads(runtime: Runtime, state: SnapshotState, quads: Ints, hidden: Ints) -> None:
    """Let an empty graph begin with the quads of a snapshot, and the `hidden` ones of windows."""
    runtime.store.apply(signed(np.concatenate([quads, hidden]), 1))
    runtime.schedule.clock, runtime.last_tx = state.clock, state.last_tx
    runtime.done, runtime.closes = state.done, state.closes
    runtime.schedule.raised = state.raised

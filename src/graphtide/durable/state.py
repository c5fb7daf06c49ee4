"""What streams, windows and programs hold, for snapshots.

Each of them has `dump()`, which gives dictionaries and lists of what JSON can hold, and of arrays:
an array of 32 bits has ids of terms, one of 64 bits has numbers. `load()` takes the same. In a file
these are a table of arrays, whose metadata has the rest as JSON, and a table of the terms.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from graphtide.durable import chunks
from graphtide.rdf.holders import HeldIds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphtide.durable.replay import ReplayTarget
    from graphtide.engine.runtime import Runtime
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.streams.registry import Streams

_ARRAY_COLUMNS: Any = {"ids": pa.large_list(pa.int32()), "numbers": pa.large_list(pa.int64())}
ARRAYS: Final = pa.schema(_ARRAY_COLUMNS)
ARRAY: Final = "array of"
"""Marks the place of an array among JSON: its row in the table, and its shape."""


def obstacle(runtime: Runtime, streams: Streams) -> str | None:
    """What keeps a graph from having a snapshot now, in words; None if nothing is under way."""
    if not runtime.schedule.is_idle():
        return "an input is under way"
    return "closes of windows were interrupted" if streams.interrupted else None


def dump_all(graph: ReplayTarget, streams: Streams) -> dict[str, Any]:
    """What all streams, windows and programs hold."""
    programs = {program.name: program.dump() for program in graph.programs}
    return {"streams": streams.dump(), "programs": programs}


def load_all(graph: ReplayTarget, streams: Streams, held: Mapping[str, Any]) -> None:
    """Let streams, windows and programs go on with what they held, when they are registered."""
    streams.load(held["streams"])
    for program in graph.programs:
        program.load(held["programs"][program.name])


def pack(held: Mapping[str, Any], terms: TermDictionary) -> tuple[pa.Table, pa.Table]:
    """Dumped state as tables: its terms, its arrays."""
    arrays: list[Ints | Longs] = []
    text = json.dumps(_without_arrays(held, arrays))
    flat = [array.reshape(-1) for array in arrays]
    ids = [each if each.dtype == np.int32 else each[:0].astype(np.int32) for each in flat]
    codes, texts = chunks.coded(np.concatenate([np.empty(0, np.int32), *ids]), terms.table())
    numbers = [each if each.dtype != np.int32 else each[:0].astype(np.int64) for each in flat]
    columns: list[Any] = [
        _lists([len(each) for each in ids], codes, pa.int32()),
        _lists(
            [len(each) for each in numbers],
            np.concatenate([np.empty(0, np.int64), *numbers]),
            pa.int64(),
        ),
    ]
    schema = ARRAYS.with_metadata({"held": text})
    return texts, pa.Table.from_arrays(columns, schema=schema)


def _lists(sizes: Sequence[int], values: Ints | Longs, kind: pa.DataType) -> Any:  # noqa: ANN401 - an Arrow array
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values, kind))


def unpack(
    texts: pa.Table, table: pa.Table, terms: TermDictionary
) -> tuple[dict[str, Any], HeldIds]:
    """Dumped state from tables, and what holds its ids until it is loaded."""
    ids = chunks.interned(texts, terms)
    held = HeldIds([ids])
    terms.holders.add(held)
    arrays: list[Any] = []
    for own, numbers in zip(table["ids"], table["numbers"], strict=True):
        codes: Any = own.values.to_numpy()
        arrays.append(ids[codes] if len(codes) else numbers.values.to_numpy())
    metadata = table.schema.metadata or {}
    found: dict[str, Any] = _with_arrays(json.loads(metadata[b"held"]), arrays)
    return found, held


def _without_arrays(part: Any, arrays: list[Ints | Longs]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(part, np.ndarray):
        arrays.append(part)
        kind = "ids" if part.dtype == np.int32 else "numbers"
        return {ARRAY: kind, "row": len(arrays) - 1, "shape": part.shape}
    if isinstance(part, dict):
        return {key: _without_arrays(value, arrays) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_without_arrays(each, arrays) for each in part]
    return part


def _with_arrays(part: Any, arrays: Sequence[Any]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(part, dict) and ARRAY in part:
        kind = np.int32 if part[ARRAY] == "ids" else np.int64
        return arrays[part["row"]].astype(kind).reshape(part["shape"])
    if isinstance(part, dict):
        return {key: _with_arrays(value, arrays) for key, value in part.items()}
    if isinstance(part, list):
        return [_with_arrays(each, arrays) for each in part]
    return part

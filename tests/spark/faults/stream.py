"""The stream that the faults happen to: its files, its queries, and what has to come out."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from graphtide import LiveGraph
from graphtide.datasets.railway import PREFIX, QUERIES, change_stream

ONE_STAGE = {name: QUERIES[name] for name in ("RouteSensor", "SwitchSet")}

TWO_STAGES = ONE_STAGE | {
    # rows of several partitions meet, and are counted: a second stateful stage
    "Sensors": PREFIX + "SELECT DISTINCT ?sensor { ?sw a :Switch ; :monitoredBy ?sensor }",
}

SCHEMA = pa.schema(
    {
        "time": pa.int64(),
        "tx": pa.int64(),
        "diff": pa.int32(),
        "seq": pa.int64(),
        **dict.fromkeys("spog", pa.string()),
    }
)

END = (2**62, 0, 0, 0, None, None, None, None)


def write_stream(
    folder: Path, queries: dict[str, str], *, files: int, seed: int, routes: int = 12
) -> Counter:
    """Write a railway's changes as so many files, cut anywhere; the deltas they must lead to."""
    batches = list(change_stream(2 * files, seed=seed, routes=routes))
    rows = [row for batch in batches for row in batch.to_arrow().to_pylist()]
    table = [
        (r["time"], r["tx"], r["diff"], i, r["s"], r["p"], r["o"], r["g"])
        for i, r in enumerate(rows)
    ]
    network = len(batches[0])  # the first transaction, cut in a few places only
    random = Random(seed)
    cuts = [
        *sorted(random.sample(range(1, network), 2)),
        *sorted(random.sample(range(network + 1, len(table)), files - 3)),
    ]
    write_cut(folder, [*table, END], cuts)
    return in_process(queries, batches)


def write_cut(folder: Path, table: list[tuple], cuts: list[int]) -> None:
    """Write rows as files, cut at some places."""
    folder.mkdir()
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, None], strict=True)):
        part = table[start:stop]
        columns = [
            pa.array(c, f.type) for c, f in zip(zip(*part, strict=True), SCHEMA, strict=True)
        ]
        path = folder / f"{number:05}.parquet"
        pq.write_table(pa.Table.from_arrays(columns, schema=SCHEMA), path)
        os.utime(path, (1_700_000_000 + number,) * 2)  # Spark takes the oldest file first


def in_process(queries, batches) -> Counter:
    """Every delta row of an uninterrupted run in this process."""
    graph = LiveGraph()
    watches = {name: graph.watch(text, name=name) for name, text in queries.items()}
    graph.apply(batches)
    return Counter(
        (name, row.time, row.tx, row.diff, frozenset((v, str(t)) for v, t in row.row.items()))
        for name, watch in watches.items()
        for row in watch.rows()
    )


def read_output(out: Path) -> Counter:
    """Every row that the file sink has committed, as its readers see them."""
    found = Counter()
    for path in committed_files(out):
        for row in pq.read_table(path).to_pylist():
            values = frozenset(row["row"])
            found[row["query"], row["time"], row["tx"], row["diff"], values] += 1
    return found


def committed_files(out: Path) -> list[Path]:
    """The files named by the sink's log: the last compact batch, and those after it."""
    batches = {int(p.name.split(".")[0]): p for p in (out / "_spark_metadata").glob("[0-9]*")}
    compact = [number for number, path in batches.items() if path.suffix == ".compact"]
    first = max(compact, default=0)
    entries = [
        json.loads(line)
        for number in sorted(batches)
        if number >= first
        for line in batches[number].read_text(encoding="utf-8").splitlines()[1:]
    ]
    return [Path(entry["path"].removeprefix("file://")) for entry in entries]


def assert_exact(assault, expected: Counter) -> None:
    """Compare the whole output of a job with what it has to be."""
    found = read_output(assault.folder / "out")
    assert len(expected) > 5, "the stream must have something to lose"
    assert not expected - found, "lost"
    assert not found - expected, "double, or never true"

"""Both layouts on skewed data, with the real router and without Spark: copies and balance.

    python -m graphtide.bench.spark.layouts --partitions 64,1024 --changes 20000

Objects are drawn from a Zipf distribution, so that some are hubs. The changes are routed as the
pack stage does it. In the Rete layout they also run through the stages, on one partition, to see
which rows are exchanged; then these rows are sent by their keys. What is shown is the load of the
busiest partition: the rows that it gets in all stages, and how many times an even share that is.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from graphtide.spark.job import JobSpec, Layout
from graphtide.spark.partition.columns import read_quads
from graphtide.spark.partition.grids import key_partitions, route
from graphtide.spark.partition.hubs import HubCounts, frequent, hub_counts
from graphtide.spark.stages.pack import pack_rows
from graphtide.spark.state.messages import MESSAGES, MessageKind, from_chunks, of_kind
from graphtide.spark.topology import stages_of
from oracles.partitions import PartitionRun, record_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from oracles.partitions import ChangeRow

QUERIES: Final = {
    "star": "SELECT * { ?a <ex:p> ?b . ?c <ex:q> ?b . ?d <ex:r> ?b }",
    "chain": "SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?d . ?d <ex:s> ?e }",
    "antijoin": (
        "SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?d FILTER NOT EXISTS { ?a <ex:s> ?d } }"
    ),
}
PREDICATES: Final = "pqrs"


class Measured(NamedTuple):
    """A query in a layout, on so many partitions; `busiest` is rows of a partition per change."""

    query: str
    layout: Layout
    hubs: int
    partitions: int
    copies: float
    shuffled: float
    busiest: float
    imbalance: float

    def text(self) -> str:
        """A row of the table."""
        return (
            f"| {self.query} | {self.layout} | {self.hubs} | {self.partitions:,} | "
            f"{self.copies:.2f} | {self.shuffled:.2f} | {self.busiest:.2%} | {self.imbalance:.1f} |"
        )


HEADING: Final = """\
| query | layout | hubs | partitions | copies | shuffled rows | busiest partition | even shares |
|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True)
class SkewedChanges:
    """Inserts between nodes; the objects are skewed by a Zipf exponent."""

    changes: int = 20_000
    nodes: int = 5_000
    exponent: float = 1.3
    seed: int = 1

    def rows(self) -> list[ChangeRow]:
        """The changes, each a transaction."""
        rng = np.random.default_rng(self.seed)
        subjects = rng.integers(self.nodes, size=self.changes)
        objects = rng.zipf(self.exponent, self.changes) % self.nodes
        predicates = rng.integers(len(PREDICATES), size=self.changes)
        columns = zip(subjects.tolist(), predicates.tolist(), objects.tolist(), strict=True)
        return [
            (1, tx, 1, f"<ex:n{s}>", f"<ex:{PREDICATES[p]}>", f"<ex:n{o}>", None)
            for tx, (s, p, o) in enumerate(columns)
        ]

    def hubs(self, partitions: int) -> HubCounts:
        """The nodes of more than an even share of the changes."""
        counts: dict[str, Counter[str]] = {}
        for _, _, _, subject, predicate, object_, _ in self.rows():
            for node, place in ((subject, "s"), (object_, "o")):
                counts.setdefault(str(node), Counter())[f"{predicate} {place}"] += 1
        return hub_counts(frequent(counts, self.changes, partitions))


def simulate(
    name: str, layout: Layout, data: SkewedChanges, partitions: int, hubs: HubCounts = ()
) -> Measured:
    """A query in a layout: where the changes go, and in the Rete layout the rows of each stage."""
    queries, layouts = ((name, QUERIES[name]),), ((name, layout),)
    job = JobSpec(queries, partitions, layouts=layouts, hubs=hubs)
    rows = data.rows()
    quads, _ = read_quads(
        [pa.array(column, pa.string()) for column in list(zip(*rows, strict=True))[3:]]
    )
    _, where = route(quads, job.routes[None])
    loads = np.bincount(where, minlength=partitions)
    copies = len(where) / len(rows)
    for sent in exchanged(job, rows) if job.rete else ():
        loads = loads + np.bincount(sent, minlength=partitions)
    total = int(loads.sum())
    return Measured(
        name,
        layout,
        len(hubs),
        partitions,
        copies,
        total / len(rows),
        float(loads.max() / len(rows)),
        float(loads.max() * partitions / total),
    )


def exchanged(job: JobSpec, rows: Sequence[ChangeRow]) -> Iterator[NDArray[np.int64]]:
    """Per exchange, the partition of each row, from a run of the stages on one partition."""
    alone = JobSpec(job.queries, 1, layouts=job.layouts)
    run = PartitionRun.of(dict(job.queries), 1, layout=dict(job.layouts))
    end: ChangeRow = (2**62, 0, 0, None, None, None, None)
    sent = pack_rows(record_batches([*rows, end]), alone, 0)
    for number, stage in enumerate(stages_of(alone)):
        if number:
            messages = from_chunks((row.chunk for row in sent), MESSAGES)
            for query in job.rete:
                for exchange, id_ in query.exchanges.items():
                    found = of_kind(messages, MessageKind.DELTA, id_)
                    values = found["values"].combine_chunks()
                    schema = exchange.source.schema
                    columns = [schema.index(var) for var in exchange.key]
                    yield key_partitions(values, len(schema), columns, query.home, job.partitions)
        sent = run.run_stage(stage, sent)


def report(partitions: Sequence[int], data: SkewedChanges) -> Iterator[str]:
    """A table of all queries in both layouts, without and with hubs."""
    yield HEADING
    layouts: tuple[Layout, ...] = ("grid", "rete")
    for name in QUERIES:
        for count in partitions:
            for layout in layouts:
                for hubs in dict.fromkeys(((), data.hubs(count))):
                    yield simulate(name, layout, data, count, hubs).text()


def main() -> None:
    """Print the table."""
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--partitions", default="64,256,1024,4096")
    parser.add_argument("--changes", type=int, default=SkewedChanges().changes)
    parser.add_argument("--exponent", type=float, default=SkewedChanges().exponent)
    given = parser.parse_args()
    data = SkewedChanges(given.changes, exponent=given.exponent)
    for line in report([int(text) for text in given.partitions.split(",")], data):
        print(line, flush=True)


if __name__ == "__main__":
    main()

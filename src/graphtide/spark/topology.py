"""Topology: the keyed stages of a job, as data.

A job is a chain. Two stateless steps come first: `stages.prune` drops what no query can match, and
`stages.pack` checks changes and routes them to partitions. Then come the stages of this module,
each on the same number of partitions, and `stages.unpack` makes rows of their output:

    changes -> prune -> pack -> match -> [join 1, 2…] -> [consolidate] -> [patterns] -> [rules]
            -> unpack -> deltas

Spark runs them (`stages.processor`), and so does one process (`tests/oracles/partitions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from graphtide.limits import Allowance, Limits
from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.stages.consolidate import consolidate_batch, counted
from graphtide.spark.stages.joins import join_batch
from graphtide.spark.stages.match import match_batch
from graphtide.spark.stages.parts import write_parts
from graphtide.spark.stages.patterns import detect_batch
from graphtide.spark.stages.rules import rules_batch
from graphtide.spark.state import messages as msg

if TYPE_CHECKING:
    import pyarrow as pa

    from graphtide.spark.job import JobSpec
    from graphtide.spark.state.cache import PartitionState

StageName = str
"""`match`, `join 1`, `join 2`…, `consolidate`, `patterns` or `rules`."""

Step = Callable[["PartitionState", msg.StageInput], msg.StageOutput]
Emit = Callable[[int, list[msg.StageRow]], list[msg.StageRow]]


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A stage: its input and output, and what one partition does in a micro-batch.

    A partition sends at least its frontier, to the same partition of the next stage. In the last
    stage, `emit` may write what a partition sends to files. If `timed`, a partition also runs
    without input, as time passes. `limits` are those of expressions.
    """

    name: StageName
    input: pa.Schema
    output: pa.Schema
    step: Step
    stateful: bool = True
    emit: Emit | None = None
    timed: bool = False
    limits: Limits = field(default_factory=Limits)


def stages_of(job: JobSpec) -> tuple[StageSpec, ...]:
    """The stages of a job, in order.

    The key of the match is the point of a query's grid that a quad is routed to; of a join, the
    values that it compares; of consolidation, those of an answer row; of patterns, the parameters
    in all events; of rules, the variables in all conditions.
    """
    spec = job.program
    matched = StageSpec(
        "match",
        job.changes_schema,
        msg.MESSAGES,
        partial(match_batch, job),
        timed=job.clock.idle_seconds is not None,
        limits=job.limits,
    )
    found = [matched]

    def add(name: StageName, step: Step, *, stateful: bool = True) -> None:
        found.append(
            replace(
                matched,
                name=name,
                input=msg.MESSAGES,
                step=step,
                stateful=stateful,
                timed=False,
            )
        )

    for stage in range(1, job.join_stages + 1):
        add(f"join {stage}", partial(join_batch, job, stage))
    if job.consolidates:
        step = partial(consolidate_batch, job)
        add("consolidate", step, stateful=bool(counted(job)))
    if spec is not None and spec.source.patterns:
        add("patterns", partial(detect_batch, job))
    if spec is not None and spec.source.rules:
        add("rules", partial(rules_batch, job))
    if job.output is not None:
        found[-1] = replace(found[-1], emit=partial(write_parts, job))
    return tuple(found)


def run_partition(
    stage: StageSpec,
    state: PartitionState,
    rows: Sequence[msg.StageRow],
    partitions: int,
    *,
    bounded: bool = False,
    now: int | None = None,
) -> list[msg.StageRow]:
    """One partition's part of a micro-batch: from the rows it gets to the rows it sends."""
    with Allowance(stage.limits):
        output = stage.step(state, msg.StageInput.of(rows, bounded=bounded, now=now))
    keys, own = partition_keys(partitions), state.partition
    rejected = [row.rejected for row in rows if row.rejected is not None]
    if output.rejected is not None and len(output.rejected):
        rejected.append(msg.to_chunk(output.rejected))
    sent = [
        *(
            msg.StageRow(keys[to], own, *output.frontier, msg.to_chunk(table))
            for to, table in output.sent
        ),
        *(msg.StageRow(keys[own], own, *output.frontier, None, chunk) for chunk in rejected),
    ]
    if all(row.partition != keys[own] for row in sent):
        sent.append(msg.StageRow(keys[own], own, *output.frontier))
    return sent if stage.emit is None else stage.emit(own, sent)

"""Restoration: the logs of all stages of a job, from the saved logs of another.

The match begins with the live quads, patterns and rules with their tokens, facts and events, all
routed again. Join stages and counts follow from the quads: the match emits its whole answers, as
one transaction, through the stages that are between. So it does not matter by which stages, grids
and layouts the old job maintained them. What comes out at the end is the whole answer of every
query; that of new queries is their first output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide.errors import GraphtideError
from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.restore import changes, events, kept
from graphtide.spark.stages import consolidate, joins, match
from graphtide.spark.stages.events import first_facts
from graphtide.spark.state import cache, saved
from graphtide.spark.state import messages as msg
from graphtide.spark.state.log import Head, MemoryLog
from graphtide.spark.topology import StageSpec, run_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.spark.job import JobSpec

MATCH, PATTERNS, RULES = "match", "patterns", "rules"
EVENT_KINDS = (msg.MessageKind.PATTERN_EVENT, msg.MessageKind.RULE_EVENT)
SAVED_STAGES = (MATCH, PATTERNS, RULES)
"""The stages whose old logs are needed; those of the others follow from the match."""


@dataclass(frozen=True)
class Restoration:
    """A job that goes on where another stopped.

    The old one had so many `partitions`, these `queries` by name, and state as `notes` say.
    """

    job: JobSpec
    partitions: int
    old_queries: tuple[tuple[str, str], ...]
    notes: kept.Notes

    @classmethod
    def of(cls, job: JobSpec, old: JobSpec) -> Restoration:
        """A job that goes on from another one."""
        return cls(job, old.partitions, old.queries, kept.job_notes(old))

    @cached_property
    def queries(self) -> dict[int, int]:
        """The old queries that go on, with the same name and text: ids, old to new."""
        new = {query: number for number, query in enumerate(self.job.queries)}
        return {n: new[old] for n, old in enumerate(self.old_queries) if old in new}

    @cached_property
    def _new_notes(self) -> kept.Notes:
        return kept.job_notes(self.job)

    def same(self, what: str) -> dict[int, int]:
        """Which `patterns`, `rules` or types of events go on: ids, old to new."""
        return kept.same_places(self.notes.get(what, ()), self._new_notes.get(what, ()))

    @cached_property
    def new_queries(self) -> list[int]:
        """The queries whose whole answers are their first output."""
        plain = (n for n, query in enumerate(self.job.shown_queries) if query.windowed is None)
        return [n for n in plain if n not in self.queries.values()]

    def first_answers(self, rows: Sequence[msg.StageRow]) -> pa.Table:
        """Of the output of the last stage, the answers of new queries."""
        messages = msg.from_chunks((row.chunk for row in rows if row.task >= 0), msg.MESSAGES)
        deltas = msg.of_kind(messages, msg.MessageKind.DELTA)
        return deltas.filter(pa.array(np.isin(deltas["id"].to_numpy(), self.new_queries)))

    # --- from an old partition ---

    def split(self, stage: str, old: int, log: MemoryLog) -> list[msg.StageRow]:
        """What an old partition of a stage sends to each new one: a part of its log."""
        head = log.current or Head()
        if stage == MATCH:
            parts = changes.split_changes(self.job, log, old, self.queries)
        else:
            spec = self.job.program
            assert spec is not None  # noqa: S101 - only programs have these stages
            rows = self._renumbered(stage, saved.logged_rows(log, msg.MESSAGES))
            divide = events.split_tokens if stage == PATTERNS else events.split_rules
            parts = divide(spec, head, rows)
        keys = partition_keys(self.job.partitions)
        return [
            msg.StageRow(keys[at], -1 - old, *head.frontier, saved.save_log(part))
            for at, part in enumerate(parts)
        ]

    def _renumbered(self, stage: str, rows: pa.Table) -> pa.Table:
        """The messages of patterns or rules that go on, with their new ids and types."""
        of_patterns = stage == PATTERNS
        ids, types = rows["id"].to_numpy().copy(), rows["type"].to_numpy().copy()
        places = self.same("patterns" if of_patterns else "rules")
        going_on = np.isin(ids, list(places))
        events = np.isin(rows["kind"].to_numpy(), EVENT_KINDS) & (types >= 0)
        changed = ids.copy(), types.copy()
        for old, new in places.items():
            changed[0][ids == old] = new
        for old, new in self.same("named" if of_patterns else "types").items():
            changed[1][events & (types == old)] = new
        rows = msg.replaced(msg.replaced(rows, "id", changed[0]), "type", changed[1])
        return rows.filter(pa.array(going_on))

    # --- to a new partition ---

    def restore(
        self, stage: StageSpec, partition: int, rows: Sequence[msg.StageRow]
    ) -> tuple[MemoryLog, list[msg.StageRow]]:
        """The log of a partition, and what it sends to the next stage.

        Rows are parts of old logs, whose task is negative, and messages of the stage before.
        """
        parts = [saved.load_log(row.chunk) for row in _sorted(rows) if row.task < 0 and row.chunk]
        sent = [row for row in rows if row.task >= 0]
        if stage.name == MATCH:
            return self._match(partition, parts)
        if stage.name in SAVED_STAGES:
            return self._events(stage.name, parts, sent), sent
        log = MemoryLog()
        key = cache.EngineKey("", stage.name, partition)
        state = cache.PartitionState(log, cache.EngineCache(), key)
        return log, run_partition(replace(stage, emit=None), state, sent, self.job.partitions)

    def _match(
        self, partition: int, parts: Sequence[MemoryLog]
    ) -> tuple[MemoryLog, list[msg.StageRow]]:
        head, rows = changes.merge_changes(self.job, parts)
        self._check_unreported(head)
        engine = match.QueriesPartition(self.job, partition)
        first = joins.before_all(engine.first(), self.job)
        if self.job.program is not None:
            first = first_facts(first, self.job.program)
        deltas = engine.apply(rows, head.frontier.time)
        messages = self._answers(pa.concat_tables([first, deltas]), head)
        sent = match.send_messages(messages, self.job, partition)
        keys = partition_keys(self.job.partitions)
        found = [
            msg.StageRow(keys[to], partition, *head.frontier, msg.to_chunk(table))
            for to, table in sent
        ]
        found.append(msg.StageRow(keys[partition], partition, *head.frontier))
        return saved.new_log(head, rows), found

    def _answers(self, deltas: pa.Table, head: Head) -> pa.Table:
        """The answers now; of queries over windows, those that were reported and are counted."""
        queries = enumerate(self.job.partition_queries)
        windowed = [n for n, query in queries if query.windowed is not None]
        reported = [n for n in windowed if n in consolidate.counted(self.job)]
        if not windowed:
            return deltas
        ids = deltas["id"].to_numpy()
        plain = deltas.filter(pa.array(~np.isin(ids, windowed)))
        now = deltas.filter(pa.array(np.isin(ids, reported)))
        since = msg.from_chunk(head.unreported) if head.unreported else now.slice(0, 0)
        since = since.filter(pa.array(np.isin(since["id"].to_numpy(), reported)))
        since = msg.replaced(since, "diff", -since["diff"].to_numpy())
        counts = pa.concat_tables([now, since])
        for name in ("time", "tx"):
            counts = msg.replaced(counts, name, np.zeros(len(counts), np.int64))
        return pa.concat_tables([plain, counts])

    def _check_unreported(self, head: Head) -> None:
        """Changes of a DISTINCT answer cannot go on if another stage is to count them."""
        rows = msg.from_chunk(head.unreported) if head.unreported else msg.empty(msg.MESSAGES)
        before = replace(self.job, partitions=self.partitions)
        for number in np.unique(rows["id"].to_numpy()).tolist():
            old, new = (each.partition_queries[number] for each in (before, self.job))
            if new.distinct and old.needs_consolidation != new.needs_consolidation:
                raise GraphtideError(
                    f"the query {new.name} has changes that no window has reported yet, and "
                    f"{self.job.partitions} partitions count them in another way than "
                    f"{self.partitions}",
                    hint="rescale to another number; the one before works, too",
                )

    def _events(
        self, stage: str, parts: Sequence[MemoryLog], sent: Sequence[msg.StageRow]
    ) -> MemoryLog:
        spec = self.job.program
        assert spec is not None  # noqa: S101 - only programs have these stages
        if stage == PATTERNS:
            return events.merge_tokens(spec, parts)
        messages = msg.from_chunks((row.chunk for row in sent), msg.MESSAGES)
        facts = msg.of_kind(messages, msg.MessageKind.FACT)
        known = list(self.same("rules").values())
        facts = facts.filter(pa.array(~np.isin(facts["id"].to_numpy(), known)))
        return events.merge_rules(spec, parts, events.facts_now(facts))


def _sorted(rows: Sequence[msg.StageRow]) -> list[msg.StageRow]:
    return sorted(rows, key=lambda row: -row.task)


def beginning(matched: MemoryLog) -> MemoryLog:
    """The log of a stage that the old job lacked: empty, and as far as its match."""
    return saved.new_log(
        Head(frontier=(matched.current or Head()).frontier), msg.empty(msg.MESSAGES)
    )

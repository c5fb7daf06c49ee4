"""The logs of patterns and rules for another division: tokens, facts and events, by their keys.

All that belongs to a match has one key, so it was in one old partition and goes to one new one.
What comes from different old partitions never meets in a match: any order of them will do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from graphtide.kernel.tokens.token_table import SavedTokens
from graphtide.patterns.detector import AnyDetector, KernelDetector
from graphtide.patterns.general import SavedDetector
from graphtide.patterns.saved import save_tokens
from graphtide.rdf.dictionary import TermDictionary
from graphtide.spark.partition import program
from graphtide.spark.partition.hashing import TermHashes, mixed_hashes
from graphtide.spark.restore.changes import distinct_rows, merge_heads, occurrences
from graphtide.spark.stages import patterns, rules
from graphtide.spark.stages.events import by_key, in_order
from graphtide.spark.state import messages as msg
from graphtide.spark.state.saved import logged_rows, new_log

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from graphtide.kernel.batch import Longs
    from graphtide.spark.partition.grids import EventKey
    from graphtide.spark.state.log import Head, MemoryLog

    Saved = SavedTokens | SavedDetector

# --- patterns ---


def split_tokens(spec: program.ProgramSpec, head: Head, rows: pa.Table) -> list[MemoryLog]:
    """What each partition gets from the patterns of an old partition: the tokens of its keys."""
    terms = TermDictionary()
    detectors = _replayed(spec, head, rows, terms)
    states: list[list[bytes]] = [[] for _ in range(spec.partitions)]
    for key, detector in zip(spec.pattern_keys, detectors, strict=True):
        saved = detector.save()
        where = _partitions_of(saved, detector, key, terms, spec.partitions)
        for partition, found in enumerate(states):
            _load(detector, _chosen(saved, where == partition))
            found.append(save_tokens(detector, terms))
    return [new_log(head, msg.token_messages(each)) for each in states]


def merge_tokens(spec: program.ProgramSpec, parts: Sequence[MemoryLog]) -> MemoryLog:
    """The tokens of a partition, from what the old partitions have sent."""
    terms, head = TermDictionary(), merge_heads(parts, msg.MESSAGES)
    found = [_replayed(spec, head, logged_rows(part, msg.MESSAGES), terms) for part in parts]
    states = []
    for detector, *others in zip(*found, strict=True):
        _load(detector, _together([detector, *others]))
        states.append(save_tokens(detector, terms))
    return new_log(head, msg.token_messages(states))


def _replayed(
    spec: program.ProgramSpec, head: Head, rows: pa.Table, terms: TermDictionary
) -> list[AnyDetector]:
    """The detectors of all patterns after the events and tokens of a log."""
    engine = patterns.PatternsPartition(spec, terms)
    engine.replay(rows, head.frontier.time)
    for detector in engine.detectors:
        if isinstance(detector, KernelDetector):
            detector.table.sweep()
    return engine.detectors


def _load(detector: AnyDetector, saved: Saved) -> None:
    """Replace the tokens of a detector; only the kernel's has tokens of the kernel."""
    if isinstance(detector, KernelDetector) or isinstance(saved, SavedDetector):
        cast("KernelDetector", detector).load(saved)


def _partitions_of(
    saved: Saved, detector: AnyDetector, key: EventKey, terms: TermDictionary, partitions: int
) -> Longs:
    """The partition of each token, by its values of the variables in all events."""
    count = len(saved.tokens)
    if not key.variables:
        return np.full(count, key.home, np.int64)
    variables = detector.automaton.variables
    slots = [variables.index(variable) for variable in key.variables]
    if isinstance(saved, SavedTokens):
        values = saved.tokens[:, saved.tokens.shape[1] - len(variables) :]
    else:
        first = [token.configurations[0].values for token in saved.tokens]
        values = np.array(first, np.int64).reshape(count, len(variables))
    known = TermHashes(terms)
    hashes = [known.of(values[:, slot].astype(np.int32)) for slot in slots]
    return mixed_hashes(hashes, count) % partitions


def _chosen(saved: Saved, mask: NDArray[np.bool_]) -> Saved:
    """Some of the saved tokens."""
    at = np.flatnonzero(mask).tolist()
    if isinstance(saved, SavedDetector):
        return saved._replace(tokens=[saved.tokens[n] for n in at])
    starts = np.append(0, saved.used_to)
    used = [saved.used[starts[n] : starts[n + 1]] for n in at]
    return SavedTokens(
        saved.tokens[at],
        np.cumsum([len(each) for each in used], dtype=np.int64),
        np.concatenate([np.empty(0, np.int64), *used]),
        saved.counts,
    )


def _together(detectors: Sequence[AnyDetector]) -> Saved:
    """The tokens of several detectors of one pattern, in order of age."""
    saved = [detector.save() for detector in detectors]
    kernel = [each for each in saved if isinstance(each, SavedTokens)]
    if len(kernel) < len(saved):
        return _in_general(detectors, saved)
    starts = [np.append(0, each.used_to) for each in kernel]
    used = [
        each.used[begin[n] : begin[n + 1]]
        for each, begin in zip(kernel, starts, strict=True)
        for n in range(len(each.tokens))
    ]
    tokens = np.concatenate([each.tokens for each in kernel])
    order = np.argsort(tokens[:, 0], kind="stable")
    tokens = tokens[order]
    tokens[:, 0] = np.arange(len(tokens))
    counts = np.max([each.counts for each in kernel], axis=0)
    counts[2] = max(counts[2], len(tokens))
    return SavedTokens(
        tokens,
        np.cumsum([len(used[n]) for n in order], dtype=np.int64),
        np.concatenate([np.empty(0, np.int64), *(used[n] for n in order)]),
        counts,
    )


def _in_general(detectors: Sequence[AnyDetector], saved: Sequence[Saved]) -> SavedDetector:
    """The same in the form of the general detector, which some of them have."""
    tokens = sorted((t for each in detectors for t in each.tokens()), key=lambda t: t.order)
    born = (each.born if isinstance(each, SavedDetector) else each.counts[2] for each in saved)
    return SavedDetector(
        [replace(token, order=n) for n, token in enumerate(tokens)],
        max((each.now for each in detectors if each.now is not None), default=None),
        max(each.events for each in detectors),
        max(len(tokens), *map(int, born)),
    )


# --- rules ---

_ROW = "row"

_COPY = 1 << 42
"""More ticks than an event lasts."""


def split_rules(spec: program.ProgramSpec, head: Head, rows: pa.Table) -> list[MemoryLog]:
    """What each partition gets from the rules of an old partition: facts, and young events."""
    terms = TermDictionary()
    places: Any = pa.array(np.arange(len(rows)))
    numbered = _with_copies(rows).append_column(_ROW, places)
    tables: list[list[pa.Table]] = [[numbered.slice(0, 0)] for _ in range(spec.partitions)]
    for number in range(len(spec.rules)):
        mine = numbered.take(np.flatnonzero(rows["id"].to_numpy() == number))
        needed = rules.PartitionRule(spec, number, 0, terms).needed(mine, head.frontier.time)
        for sent in _by_rule(spec, number, mine.filter(pa.array(needed))):
            tables[sent.partition].append(sent.table)
    return [
        new_log(head, pa.concat_tables(each).sort_by(_ROW).drop_columns(_ROW)) for each in tables
    ]


def facts_now(deltas: pa.Table) -> pa.Table:
    """The facts that deltas lead to, as facts that were there before all events."""
    ids = msg.TextIds().encode_column(_texts(deltas))
    keys = np.column_stack([deltas["id"].to_numpy(), ids])
    _, firsts, groups = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    counts = np.bincount(groups.reshape(-1), deltas["diff"].to_numpy(), len(firsts))
    facts = deltas.take(np.sort(firsts[counts > 0]))
    facts = msg.replaced(facts, "time", np.full(len(facts), program.BEFORE_ALL))
    return msg.replaced(facts, "diff", np.ones(len(facts), np.int64))


def merge_rules(
    spec: program.ProgramSpec, parts: Sequence[MemoryLog], facts: pa.Table
) -> MemoryLog:
    """The facts and events of a partition, from what the old partitions have sent.

    `facts` are those of rules that are new. An event can have been in several old partitions.
    """
    logged = [logged_rows(part, msg.MESSAGES) for part in parts]
    rows = pa.concat_tables([facts, *logged])
    own: Any = pa.array(np.where(_facts(rows), np.arange(len(rows)), -1))
    keyed = rows.append_column("text", _texts(rows)).append_column("own", own)
    keyed = distinct_rows(keyed, ["id", "type", "time", "tx", "seq", "diff", "text", "own"])
    rows = keyed.select(msg.MESSAGES.names)
    diff = rows["diff"].to_numpy()
    merged = msg.replaced(rows, "diff", np.where(_facts(rows), diff, diff % _COPY))
    if spec.feeds_back:
        # Transactions of actions come after others of their time that were complete before.
        at = np.argsort(merged["time"].to_numpy(), kind="stable")
        merged = merged.take(at)
    else:
        merged = in_order(merged)
    return new_log(merge_heads(parts, msg.MESSAGES), merged)


def _by_rule(spec: program.ProgramSpec, number: int, rows: pa.Table) -> Iterator[msg.Sent]:
    """The rows of a rule by the partitions of their keys."""
    key, facts = spec.rule_keys[number], spec.rules[number].facts
    old, events = msg.divided(rows, _facts(rows))
    width = 0 if facts is None else len(facts.variables)
    yield from by_key(old, width, (key.facts,), key, spec.partitions)
    types = events["type"].to_numpy()
    for type_, index in spec.types.items():
        mine = events.take(np.flatnonzero(types == index))
        if type_ == program.RETRACTED:
            yield from (msg.Sent(partition, mine) for partition in range(spec.partitions))
        elif index in key.columns:
            columns = key.columns[index]
            yield from by_key(mine, len(type_.parameters), columns, key, spec.partitions)


def _facts(rows: pa.Table) -> NDArray[np.bool_]:
    return np.asarray(rows["kind"].to_numpy() == msg.MessageKind.FACT)


def _texts(rows: pa.Table) -> Any:  # noqa: ANN401 - an array of Arrow's
    """The values of messages as one text each."""
    values: Any = rows["values"].to_pylist()
    return pa.array(["\0".join(text or "" for text in each or ()) for each in values], pa.string())


def _with_copies(rows: pa.Table) -> pa.Table:
    """Messages; the `diff` of an event also has how many equal ones came before it."""
    names = ("id", "type", "time", "tx", "seq", "diff")
    texts = msg.TextIds().encode_column(_texts(rows))
    copies = occurrences(np.column_stack([*(rows[name].to_numpy() for name in names), texts]))
    return msg.replaced(
        rows, "diff", rows["diff"].to_numpy() + np.where(_facts(rows), 0, _COPY * copies)
    )

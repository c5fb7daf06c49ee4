"""Firings: what rules fired in a micro-batch, in order and each with an id that stays the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from graphtide.algebra.expressions import Var
from graphtide.spark.happened import event_time
from graphtide.spark.reaction import FIRED, LAST

if TYPE_CHECKING:
    from graphtide.lang.tide.ast import RuleDeclaration
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.spark.reaction import Reaction

_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("rule", pa.string()),
    ("id", pa.string()),
    ("values", pa.map_(pa.string(), pa.string())),
    ("events", pa.map_(pa.string(), pa.int64())),
]
FIRINGS: Final = pa.schema(_COLUMNS)
"""When a rule fired, at which transaction (none, if time alone did it), its values, its events."""


@dataclass(frozen=True, slots=True)
class FiredRule:
    """A rule that fired. `id` is the same whenever and however often the batch is run.

    `events` has the names of its events (`happened`), or just their times if nothing is retracted.
    """

    rule: RuleDeclaration
    time: int
    tx: int
    id: str
    values: dict[str, str]
    events: dict[str, str]

    def row(self, terms: TermDictionary) -> dict[Var, Term]:
        """The values by variable."""
        return {Var(n): terms.decode(terms.encode(text)) for n, text in self.values.items()}

    def words(self) -> str:
        """The rule, when, and with which values."""
        values = ", ".join(f"?{name}={text}" for name, text in self.values.items())
        return f"the rule {self.rule.name} at {self.time} with {values or 'no values'}"


def read_firings(rows: pa.Table, reaction: Reaction) -> list[FiredRule]:
    """By time, transaction, event, priority, declaration and values: as in one process."""
    query = rows["query"].to_numpy()
    mine = (query >= FIRED) & (query < FIRED + len(reaction.rules))
    lines: list[dict[str, Any]] = rows.take(np.flatnonzero(mine)).to_pylist()
    lines.sort(key=lambda line: _place(line, reaction))
    seen: Counter[tuple[object, ...]] = Counter()
    return [_fired(line, reaction, seen) for line in lines]


def _place(line: dict[str, Any], reaction: Reaction) -> tuple[object, ...]:
    number = line["query"] - FIRED
    rule = reaction.rules[number]
    width = len(line["row"]) - len(rule.positive)
    values = tuple(text or "" for text in line["row"][:width])
    ends = tuple(event_time(name) for name in line["row"][width:])
    stamps = line["time"], line["tx"], line["diff"]
    return *stamps, -rule.priority, number, values, ends


def _fired(
    line: dict[str, Any], reaction: Reaction, seen: Counter[tuple[object, ...]]
) -> FiredRule:
    number = line["query"] - FIRED
    rule, names = reaction.rules[number], reaction.rule_variables[number]
    values = dict(zip(names, line["row"], strict=False))
    events = line["row"][len(names) :]
    key = rule.name, line["time"], line["tx"], *(text or "" for text in values.values())
    made = "\0".join(map(str, (*key, seen[key])))
    seen[key] += 1
    return FiredRule(
        reaction.program.rules[number],
        line["time"],
        line["tx"],
        sha256(made.encode()).hexdigest()[:32],
        {name: text for name, text in values.items() if text is not None},
        {c.name: event for c, event in zip(rule.positive, events, strict=True)},
    )


def firings_table(fired: list[FiredRule]) -> pa.Table:
    """Firings as they are written."""
    rows = [
        {
            "time": each.time,
            "tx": None if each.tx == LAST else each.tx,
            "rule": each.rule.name,
            "id": each.id,
            "values": list(each.values.items()),
            "events": [(name, event_time(event)) for name, event in each.events.items()],
        }
        for each in fired
    ]
    return pa.Table.from_pylist(rows, schema=FIRINGS)

"""RuleCell: the rules of a program at work in one cell, on the facts and events sent to it.

What the rules know follows from the facts that hold, with the moment since when, and from the
events that are young enough to be needed. So a snapshot is just these rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide.rdf.dictionary import TermDictionary
from graphtide.spark.cell_engine import SMALL_LOG
from graphtide.spark.cell_rule import CellRule
from graphtide.spark.frontier import START
from graphtide.spark.reaction import MOST_TYPES, TO_FACTS, TO_RULE
from graphtide.spark.schemas import DELTAS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphtide.spark.reaction import Reaction


class RuleCell:
    """All rules of a program; each sees the rows that are addressed to it."""

    def __init__(self, reaction: Reaction, cell: int) -> None:
        terms = TermDictionary()
        self.rules = [CellRule(reaction, n, cell, terms) for n in range(len(reaction.rules))]
        self._rows: list[pa.Table] = []
        self._logged = 0
        self._left = 0
        self._now = START.time

    def first(self) -> pa.Table:
        """Nothing: all rows come from other stages."""
        return DELTAS.empty_table()

    def apply(self, changes: pa.Table, time: int) -> pa.Table:
        """Take in rows in their order, then let time pass; the firings."""
        self._logged += len(changes)
        self._rows.append(changes)
        self._now = max(self._now, time)
        rules = rule_numbers(changes["query"].to_numpy())
        parts = [DELTAS.empty_table()]
        for number, rule in enumerate(self.rules):
            mine = np.flatnonzero(rules == number)
            parts += rule.take(changes.take(mine), time)
        return pa.concat_tables(parts)

    def replay(self, changes: pa.Table, time: int) -> None:
        """Rows whose firings went out when they first came."""
        self.apply(changes, time)

    @property
    def kept(self) -> int:
        """How many events the rules keep."""
        return sum(rule.kept for rule in self.rules)

    @property
    def overgrown(self) -> bool:
        """Whether the log is worth replacing by the facts and events that are still needed."""
        return self._logged > SMALL_LOG + 2 * self._left

    def snapshot(self) -> pa.Table:
        """The facts that hold and the events that may be needed, in the order they came in."""
        rows = pa.concat_tables([DELTAS.empty_table(), *self._rows]).combine_chunks()
        rules = rule_numbers(rows["query"].to_numpy())
        kept = np.zeros(len(rows), np.bool_)
        for number, rule in enumerate(self.rules):
            mine = np.flatnonzero(rules == number)
            kept[mine] = rule.needed(rows.take(mine), self._now)
        left = rows.filter(pa.array(kept))
        self._rows = [left]
        self._logged = self._left = len(left)
        return left


def rule_numbers(query: NDArray[np.int32]) -> NDArray[np.int64]:
    """The rule to which each row is addressed; -1 for others.

    >>> rule_numbers(np.array([TO_FACTS + 1, TO_RULE + 2 * MOST_TYPES + 7, 3])).tolist()
    [1, 2, -1]
    """
    numbers = np.full(len(query), -1, np.int64)
    facts = (query >= TO_FACTS) & (query < TO_FACTS + MOST_TYPES)
    numbers[facts] = query[facts] - TO_FACTS
    events = (query >= TO_RULE) & (query < 2 * TO_RULE)
    numbers[events] = (query[events] - TO_RULE) // MOST_TYPES
    return numbers

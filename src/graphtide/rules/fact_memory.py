"""FactMemory: the rows of a rule's fact conditions, and since when each has held."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from graphtide.kernel.batch import DIFF, TX
from graphtide.kernel.net import NET_BEFORE, NET_VALUES

if TYPE_CHECKING:
    from collections.abc import Collection

    from graphtide.algebra.expressions import Var
    from graphtide.engine.watch import Watch

Row = tuple[int, ...]


class FactMemory:
    """Follows a standing query; rows are looked up by the variables that events share with it."""

    def __init__(self, watch: Watch, variables: tuple[Var, ...], shared: tuple[Var, ...]) -> None:
        self._watch = watch
        self.variables = variables
        self.shared = shared
        self._at = [variables.index(v) for v in shared]
        self._rows: dict[Row, dict[Row, int]] = defaultdict(dict)

    def catch_up(self) -> None:
        """Take in what has changed since last time: a row that went and came back is a new one."""
        for net, stamps in self._watch.drain():
            for line in net.tolist():
                row = tuple(line[NET_VALUES:])
                key = tuple(row[i] for i in self._at)
                before, after = line[NET_BEFORE], line[NET_BEFORE] + line[DIFF]
                if before <= 0 < after:
                    self._rows[key][row] = stamps.first + line[TX]
                elif after <= 0 < before:
                    del self._rows[key][row]
                    if not self._rows[key]:
                        del self._rows[key]

    def older(self, key: Row, since: int) -> Collection[Row]:
        """The rows for some shared values that have held since before a number of transactions."""
        return [row for row, number in self._rows.get(key, {}).items() if number < since]

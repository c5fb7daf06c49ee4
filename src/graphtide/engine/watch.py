"""Watch: one standing query on a live graph, its current answer and what changes in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from sys import maxsize
from typing import TYPE_CHECKING, overload

import numpy as np
import pyarrow as pa

from graphtide.engine.runtime import TransactionTimes
from graphtide.errors import GraphtideError
from graphtide.kernel import Answer
from graphtide.kernel.batch import DIFF, TX, Ints
from graphtide.kernel.counts import NET_BEFORE, NET_VALUES
from graphtide.plan.explain import ExplainFormat, explain

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.engine.dataflow.network import Places
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.plan.patterns import Strategy
    from graphtide.plan.physical import QueryPlan
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term


# --- Delta: the rows that one or more transactions added to an answer and took from it.


@dataclass(frozen=True, slots=True)
class DeltaRow:
    """One row of a delta: `diff` more (or, negative, fewer) copies of `row` in the answer.

    >>> from pyoxigraph import Literal
    >>> print(DeltaRow(time=17, tx=0, diff=-1, row={"x": Literal("a"), "y": None}))
    - x="a"
    """

    time: int
    tx: int
    diff: int
    row: dict[str, Term | None]

    def __str__(self) -> str:
        sign = "+" if self.diff > 0 else "-"
        times = f"{abs(self.diff)}× " if abs(self.diff) > 1 else ""
        values = " ".join(f"{name}={term}" for name, term in self.row.items() if term is not None)
        return f"{sign} {times}{values}".rstrip()


class Delta(Sequence[DeltaRow]):
    """Delta rows, turned into terms only when they are looked at."""

    __slots__ = ("_net", "_stamps", "_terms", "_variables")

    def __init__(
        self, net: Ints, stamps: TransactionTimes, variables: tuple[str, ...], terms: TermDictionary
    ) -> None:
        self._net = net
        self._stamps = stamps
        self._variables = variables
        self._terms = terms

    def __len__(self) -> int:
        return len(self._net)

    def __iter__(self) -> Iterator[DeltaRow]:
        return (self._row(line) for line in self._net.tolist())

    @overload
    def __getitem__(self, index: int) -> DeltaRow: ...
    @overload
    def __getitem__(self, index: slice) -> Delta: ...
    def __getitem__(self, index: int | slice) -> DeltaRow | Delta:
        """One row, or a slice of the delta."""
        if isinstance(index, slice):
            return Delta(self._net[index], self._stamps, self._variables, self._terms)
        return self._row(self._net[index].tolist())

    def appeared(self) -> Delta:
        """The rows whose count rose from 0."""
        net = self._net
        rows = net[(net[:, NET_BEFORE] == 0) & (net[:, DIFF] > 0)]
        return Delta(rows, self._stamps, self._variables, self._terms)

    def disappeared(self) -> Delta:
        """The rows whose count fell to 0."""
        net = self._net
        rows = net[(net[:, DIFF] < 0) & (net[:, NET_BEFORE] + net[:, DIFF] == 0)]
        return Delta(rows, self._stamps, self._variables, self._terms)

    def _row(self, line: list[int]) -> DeltaRow:
        time, tx = self._stamps.stamp(line[TX])
        values = {
            name: self._terms.decode(i) if i else None
            for name, i in zip(self._variables, line[NET_VALUES:], strict=True)
        }
        return DeltaRow(time, tx, line[DIFF], values)

    def __repr__(self) -> str:
        return "\n".join(str(row) for row in self) or "(no change)"


if TYPE_CHECKING:
    RowCallback = Callable[[DeltaRow], object]


LARGE = 1000
"""A history of more rows than this drops a quarter of them at a time."""


MOST_COUNTED = 200_000
"""Quads of a graph up to which explain counts the rows of every node unasked."""

_NUMBERS = count()


@dataclass(frozen=True, slots=True)
class CacheSize:
    """What a query keeps in memory besides the shared quads: entries in its nodes, and bytes."""

    entries: int
    bytes: int


class Watch:
    """A standing query. Made by `LiveGraph.watch`; ends with `LiveGraph.unwatch`.

    >>> from graphtide import LiveGraph
    >>> graph = LiveGraph()
    >>> watch = graph.watch("SELECT ?who WHERE { ?who <http://example.org/knows> ?whom }")
    >>> graph.insert("<http://example.org/a>", "<http://example.org/knows>", '"b"')
    >>> print(watch.delta())
    + who=<http://example.org/a>
    """

    def __init__(self, graph: LiveGraph, plan: QueryPlan, name: str, history: int | None) -> None:
        self.name = name
        self.plan = plan
        self.variables = tuple(v.name for v in plan.variables)
        self.number = next(_NUMBERS)
        self.places: Places = {}
        self.replans: tuple[SelectQuery, Strategy | None] | None = None
        self.forgotten = 0
        self._graph = graph
        self._net = Answer(len(self.variables))
        self._most = maxsize if history is None else history
        self._count = 0
        self._held = 0
        self._history: deque[tuple[Ints, TransactionTimes]] = deque()
        nothing = np.empty((0, NET_VALUES + len(self.variables)), np.int32)
        self._no_change = self._delta(nothing, TransactionTimes((), (), 0))
        self._appear: list[RowCallback] = []
        self._disappear: list[RowCallback] = []

    @property
    def text(self) -> str:
        """The query as it was registered."""
        return self.plan.text

    @property
    def strategy(self) -> str:
        """The strategy that its patterns are matched with."""
        return self.plan.strategy

    def delta(self) -> Delta:
        """The rows that the last transaction added and took away.

        Right after `watch(...)` on a graph that already holds quads: the whole answer.
        """
        self._graph.settle()
        if not self._history:
            return self._no_change
        net, stamps = self._history[-1]
        last = self._graph.transactions - 1 - stamps.first
        if last >= len(stamps.times) or net[-1, TX] != last:
            return self._no_change
        if last > 0:
            net = net[np.searchsorted(net[:, TX], last) :]
        return self._delta(net, stamps)

    def changes(self) -> Iterator[DeltaRow]:
        """The delta rows of all transactions so far, oldest first, the first answer included.

        The buffer is bounded: of more than `history` rows, the oldest transactions are dropped, and
        `forgotten` counts their rows. The last transaction is always there.
        """
        self._graph.settle()
        for net, stamps in list(self._history):
            yield from self._delta(net, stamps)

    def drain(self) -> list[tuple[Ints, TransactionTimes]]:
        """Take the history out of its buffer, as it lies there: net rows of ids, and their stamps.

        For consumers that forward deltas in bulk. A row is transaction index, diff, count before,
        and one id per variable.
        """
        self._graph.settle()
        taken = list(self._history)
        self._history.clear()
        self._held = 0
        return taken

    def table(self) -> pa.Table:
        """The current answer as an Arrow table of N-Triples texts; duplicates are repeated."""
        self._graph.settle()
        rows = self._net.rows()
        repeated = np.repeat(rows[:, :-1], np.maximum(rows[:, -1], 0), axis=0)
        columns = [self._graph.terms.decode_column(column) for column in repeated.T]
        return pa.table(dict(zip(self.variables, columns, strict=True)))

    def count(self) -> int:
        """How many rows the current answer has, duplicates counted."""
        self._graph.settle()
        return self._count

    def answer(self) -> bool:
        """The answer of an ASK query now."""
        if self.plan.form != "ASK":
            raise GraphtideError(
                f"{self.name} is a {self.plan.form} query and has no yes or no",
                hint="use table() or count()",
            )
        return bool(self.table()["answer"][0].as_py().startswith('"true"'))

    def on_appear(self, callback: RowCallback) -> RowCallback:
        """Call back with each row that was not in the answer and now is. Usable as a decorator."""
        self._graph.settle()
        self._graph.callbacks += 1
        self._appear.append(callback)
        return callback

    def on_disappear(self, callback: RowCallback) -> RowCallback:
        """Call back with each row that was in the answer and no longer is."""
        self._graph.settle()
        self._graph.callbacks += 1
        self._disappear.append(callback)
        return callback

    @property
    def callbacks(self) -> int:
        """How many want to hear of changes as they happen."""
        return len(self._appear) + len(self._disappear)

    def replan(self) -> bool:
        """Plan the query anew by the statistics of now; whether that gave another plan."""
        return self._graph.replan(self)

    def cache_size(self) -> CacheSize:
        """What the query's nodes keep beside the shared quads.

        `search` keeps nothing, `rete` the memories of its joins, `decomposed` its instances.
        """
        self._graph.settle()
        network = self._graph.standing.network
        entries = sum(sum(held.values()) for held in network.sizes(self.places).values())
        return CacheSize(entries, network.bytes_of(self.places))

    @property
    def nbytes(self) -> int:
        """Bytes held for this query: its memories, shared ones too, and its answer."""
        return self._graph.standing.network.bytes_of(self.places) + self._net.nbytes

    @property
    def answer_bytes(self) -> int:
        """Bytes of the current answer."""
        return self._net.nbytes

    def explain(
        self,
        format: ExplainFormat = "text",  # noqa: A002 - the user's word
        *,
        actual: bool | None = None,
    ) -> str:
        """The plan with the rows that each node is expected to have, has and holds now.

        Counting the `actual` rows of every node evaluates the query once more: unless told, it is
        left out for large graphs.
        """
        count_rows = len(self._graph) <= MOST_COUNTED if actual is None else actual
        standing = self._graph.standing
        facts = standing.facts(self.plan, self.places, self._count, actual=count_rows)
        return explain(self.plan, format, facts)

    def start(self, root: Ints, stamps: TransactionTimes) -> None:
        """Take in the first answer (called by the graph)."""
        self._record(root, stamps)

    def advance(self, root: Ints, stamps: TransactionTimes) -> Delta | None:
        """Take in the changes of a batch of transactions; the delta, if somebody waits for it."""
        return self._record(root, stamps)

    def notify(self, delta: Delta) -> None:
        """Run the callbacks for a delta."""
        if self._disappear:
            for row in delta.disappeared():
                for callback in self._disappear:
                    callback(row)
        if self._appear:
            for row in delta.appeared():
                for callback in self._appear:
                    callback(row)

    def _record(self, root: Ints, stamps: TransactionTimes) -> Delta | None:
        if not len(root):
            return None
        net = self._net.step(root)
        if not len(net):
            return None
        self._count += int(net[0, DIFF] if len(net) == 1 else net[:, DIFF].sum())
        self._history.append((net, stamps))
        self._held += len(net)
        while self._held > self._most and self._forget():
            pass
        return self._delta(net, stamps) if self.callbacks else None

    def _forget(self) -> bool:
        """Drop the oldest transactions, as many as need be, but never the last one."""
        net, stamps = self._history.popleft()
        starts = np.flatnonzero(np.diff(net[:, TX], prepend=-1))
        begins = starts if not self._history else np.append(starts, len(net))
        # A large buffer makes room for many rows at once, so that forgetting costs little per row.
        wanted = max(self._held - self._most, self._most // 4 if self._most > LARGE else 0)
        place = min(int(np.searchsorted(begins, wanted)), len(begins) - 1)
        end = int(begins[place])
        if end < len(net):
            self._history.appendleft((net[end:].copy(), stamps))
        self._held -= end
        self.forgotten += end
        return end > 0

    def _delta(self, net: Ints, stamps: TransactionTimes) -> Delta:
        return Delta(net, stamps, self.variables, self._graph.terms)

    def __repr__(self) -> str:
        return f"<Watch {self.name} ({self.strategy}): {', '.join(self.variables)}>"

"""Ways to run one query over one change stream, which must give the same deltas; and oracles.

Each run returns one consolidated delta per transaction, a Counter of rows, and checks what needs no
oracle: deltas are consolidated, and the answer is the sum of the deltas.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from pyoxigraph import Quad, Store

from graphtide.engine import queries
from graphtide.errors import UnsupportedError
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_prepared, prepared
from graphtide.plan.patterns import STRATEGIES, Choices, Strategy
from graphtide.rdf.changes import ChangeBatch
from oracles import answers
from oracles.transactions import StreamTransaction, apply_to_store, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.engine.results import DeltaRow
    from graphtide.engine.watch import Query
    from graphtide.graph import LiveGraph
    from graphtide.plan.estimate import Statistics
    from graphtide.plan.physical import QueryPlan

if TYPE_CHECKING:
    MakeGraph = Callable[..., LiveGraph]
    Stream = Sequence[StreamTransaction]

DECOY = "SELECT ?s WHERE { ?s ?p ?o FILTER NOT EXISTS { ?o ?p ?s } }"


REDUCTIONS: Final[tuple[Mapping[str, Any], ...]] = tuple(
    {"strategy": strategy, "reduced": True, "pushed": pushed}
    for strategy in ("search", "rete")
    for pushed in (False, True)
)
"""Plans of (NOT) EXISTS that the planner takes only where statistics speak for them."""


class Disagreement(AssertionError):  # noqa: N818 - a finding, not an error of the caller
    """A wrong result; the message says which, and after which transaction."""


def net_delta(rows: Iterable[DeltaRow], where: str) -> answers.Bag:
    """The rows of the delta of one transaction; each row must occur once, with a non-zero diff."""
    bag: answers.Bag = Counter()
    for delta_row in rows:
        row = answers.row_of(delta_row.row)
        if row in bag or delta_row.diff == 0:
            raise Disagreement(
                f"{where}: the delta is not consolidated: {delta_row} (diff {delta_row.diff})"
            )
        bag[row] = delta_row.diff
    return bag


def answer_of(watch: Query) -> answers.Bag:
    """The current answer by `watch.table(terms=True)`; `watch.count()` must agree with it."""
    table, count = watch.table(terms=True), watch.count()
    if count != table.num_rows:
        raise Disagreement(f"count() is {count}, table() has {table.num_rows} rows")
    if not watch.variables:
        return Counter({(): count})
    names = sorted(table.column_names)  # columns are far cheaper to convert than rows
    return Counter(
        tuple((name, text) for name, text in zip(names, row, strict=True) if text is not None)
        for row in zip(*(table.column(name).to_pylist() for name in names), strict=True)
    )


def one_by_one(query: str, stream: Stream, make: MakeGraph) -> dict[str, list[answers.Bag]]:
    """Query with every strategy on one empty graph, then apply transaction by transaction.

    The first delta of each list is the answer on the empty graph.
    """
    graph = make()
    watches = {"default": graph.watch(query)}
    for strategy in STRATEGIES:
        watches.update((strategy, watch) for watch in _accepted(graph, query, strategy))
    if "EXISTS" in query:
        for reduction in REDUCTIONS:
            with planned_with(reduction):
                watches[str(reduction)] = graph.watch(query)
    return follow(graph, watches, stream)


@contextmanager
def planned_with(reduction: Mapping[str, Any]) -> Iterator[None]:
    """Queries that are registered inside have a plan of that kind, whatever it would cost."""

    def chosen(
        query: SelectQuery, statistics: Statistics, *, union: bool = False, **_: object
    ) -> QueryPlan:
        choices = Choices(statistics=statistics, union=union, **reduction)
        return build_prepared(prepared(query, choices), choices)

    with patch.object(queries, "choose_plan", chosen):
        yield


def _accepted(graph: LiveGraph, query: str, strategy: Strategy) -> list[Query]:
    """A watch with a strategy; none if the strategy does not support the query."""
    try:
        return [graph.watch(query, strategy=strategy)]
    except UnsupportedError:
        return []


def follow(
    graph: LiveGraph, watches: dict[str, Query], stream: Stream
) -> dict[str, list[answers.Bag]]:
    """Apply a stream transaction by transaction; the deltas of each watch, first answer first."""
    deltas = {
        way: [net_delta(watch.rows(), f"{way}, first answer")] for way, watch in watches.items()
    }
    totals = {way: Counter(first) for way, (first,) in deltas.items()}
    for number, each in enumerate(stream):
        apply_one(graph, each)
        for way, watch in watches.items():
            where = f"{way}, transaction {number}"
            deltas[way].append(net_delta(watch.delta(), where))
            totals[way].update(deltas[way][-1])
            expect_answer(watch, totals[way], where)
    return deltas


def expect_answer(watch: Query, total: answers.Bag, where: str) -> None:
    """Check that the current answer is the sum of the deltas, without negative counts."""
    answer = answer_of(watch)
    if any(count < 0 for count in total.values()) or answer != +total:
        raise Disagreement(f"{where}: table() has {answer}, the deltas add up to {total}")


def apply_one(graph: LiveGraph, each: StreamTransaction) -> None:
    """Apply one transaction through the public API."""
    if len(each.changes) == 1:
        ((diff, quad),) = each.changes
        s, p, o, g = terms_of(quad)
        (graph.insert if diff > 0 else graph.delete)(s, p, o, g, time=each.time)
        return
    with graph.transaction(time=each.time) as tx:
        for diff, quad in each.changes:
            (tx.insert if diff > 0 else tx.delete)(*terms_of(quad))


def in_batches(query: str, stream: Stream, make: MakeGraph, *, batches: int) -> list[answers.Bag]:
    """Query an empty graph with store="matched", then apply a few large batches."""
    way = f"in {batches} batches"
    graph = make(store="matched")
    watch = graph.watch(query)
    before = list(watch.rows())
    deltas = [net_delta(before, f"{way}, first answer")]
    size = max(1, -(-len(stream) // batches))
    starts = range(0, len(stream), size)
    graph.apply(batch_of(stream[start : start + size], first_tx=start) for start in starts)
    by_tx: dict[int, list[DeltaRow]] = {number: [] for number in range(len(stream))}
    for row in list(watch.rows())[len(before) :]:
        by_tx[row.tx].append(row)
    deltas += [net_delta(rows, f"{way}, transaction {tx}") for tx, rows in by_tx.items()]
    total: answers.Bag = Counter()
    for delta in deltas:
        total.update(delta)
    expect_answer(watch, total, f"{way}, at the end")
    return deltas


def batch_of(stream: Stream, *, first_tx: int = 0) -> ChangeBatch:
    """A stream as one `ChangeBatch`; transactions are numbered from `first_tx`."""
    return ChangeBatch.of(
        (each.time, tx, diff, str(s), str(p), str(o), None if g is None else str(g))
        for tx, each in enumerate(stream, first_tx)
        for diff, quad in each.changes
        for s, p, o, g in [terms_of(quad)]
    )


def registered_late(query: str, stream: Stream, make: MakeGraph) -> tuple[int, list[answers.Bag]]:
    """Query after half of the stream, beside other queries that end soon after.

    Returns the number of transactions before, and the deltas; the first one is the answer then.
    """
    graph = make()
    decoys = [graph.watch(DECOY), *_accepted(graph, query, "search")]
    half = len(stream) // 2
    graph.apply(batch_of(stream[:half]))
    way = "registered late"
    watch = graph.watch(query)
    for decoy in decoys:
        decoy.close()
    return half, follow(graph, {way: watch}, stream[half:])[way]


def heard(query: str, stream: Stream, make: MakeGraph) -> list[answers.Bag]:
    """The rows that `on_appear` and `on_disappear` get per transaction, for one batch."""
    graph = make()
    watch = graph.watch(query)
    reported: list[answers.Bag] = [Counter() for _ in stream]
    watch.on_appear(lambda row: reported[row.tx].update({answers.row_of(row.row): 1}))
    watch.on_disappear(lambda row: reported[row.tx].update({answers.row_of(row.row): -1}))
    graph.apply(batch_of(stream))
    return reported


# --- oracles for every snapshot of a change stream ---


def snapshots(transactions: Sequence[StreamTransaction]) -> Iterator[frozenset[Quad]]:
    """The set of quads after each transaction.

    >>> from oracles.transactions import transaction
    >>> stream = [transaction(0, "+ <a:a> <a:p> <a:b>"), transaction(1, "- <a:a> <a:p> <a:b>")]
    >>> [len(snapshot) for snapshot in snapshots(stream)]
    [1, 0]
    """
    quads: set[Quad] = set()
    for each in transactions:
        for diff, quad in each.changes:
            if diff > 0:
                quads.add(quad)
            else:
                quads.discard(quad)
        yield frozenset(quads)


class SnapshotOracle:
    """The answer of one query after every transaction of one stream.

    `answers[i]` is the answer of pyoxigraph after transaction `i`, with numbers in canonical form;
    None where it is no oracle, because its Store normalised a literal, or because of the query (see
    `oxigraph_agrees`). `exact[i]` is the answer of the reference evaluator, for these transactions
    and the last one.
    """

    def __init__(
        self, query: str, transactions: Sequence[StreamTransaction], *, max_rows: int
    ) -> None:
        self.too_big = False
        self.answers: list[answers.Bag | None] = []
        self.exact: dict[int, answers.Bag] = {}
        store = Store()
        trusted = answers.oxigraph_agrees(parse_query(query))
        by_store: dict[frozenset[Quad], answers.Bag] = {}  # many transactions change nothing
        by_reference: dict[frozenset[Quad], answers.Bag] = {}
        for number, (each, quads) in enumerate(
            zip(transactions, snapshots(transactions), strict=True)
        ):
            apply_to_store(store, each.changes)
            _forget_empty_graphs(store)
            stored = frozenset(store)
            if stored not in by_store:
                answer = answers.oxigraph_answer(query, store, limit=max_rows)
                if answer is None:
                    self.too_big = True
                    return
                by_store[stored] = spelled_by_value(answer)
            fit = trusted and stored == quads
            self.answers.append(by_store[stored] if fit else None)
            if not fit or number == len(transactions) - 1:
                if quads not in by_reference:
                    by_reference[quads] = answers.reference_answer(query, quads)
                self.exact[number] = by_reference[quads]


def spelled_by_value(bag: answers.Bag) -> answers.Bag:
    """The bag with numbers in canonical form."""
    respelled: answers.Bag = Counter()
    for row, count in bag.items():
        respelled[answers.by_value(row)] += count
    return respelled


def _forget_empty_graphs(store: Store) -> None:
    """Remove empty named graphs, which a Store keeps and a live graph does not."""
    for name in list(store.named_graphs()):
        if next(iter(store.quads_for_pattern(None, None, None, name)), None) is None:
            store.remove_graph(name)

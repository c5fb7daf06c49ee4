"""What every snapshot of a change stream should answer, according to oracles."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyoxigraph import Store

from graphtide.lang.sparql import parse_query
from graphtide.testing.agreement import oxigraph_agrees
from graphtide.testing.answers import Bag, by_value, oxigraph_answer, reference_answer
from graphtide.testing.transactions import apply_to_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyoxigraph import Quad

    from graphtide.testing.transactions import StreamTransaction


def snapshots(transactions: Sequence[StreamTransaction]) -> Iterator[frozenset[Quad]]:
    """The set of quads after each transaction.

    >>> from graphtide.testing.transactions import transaction
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


class Oracle:
    """Knows the answer of one query after every transaction of one stream.

    `answers[i]` is pyoxigraph's answer after transaction `i`, with numbers spelled by value; None
    where it is no oracle, because its Store has respelled a literal of the data, or because it
    reads the query otherwise (see `agreement`). `exact[i]` is the reference evaluator's answer:
    there, and after the last transaction.
    """

    def __init__(
        self, query: str, transactions: Sequence[StreamTransaction], *, most_rows: int
    ) -> None:
        self.too_big = False
        self.answers: list[Bag | None] = []
        self.exact: dict[int, Bag] = {}
        store = Store()
        trusted = oxigraph_agrees(parse_query(query))
        for number, (each, quads) in enumerate(
            zip(transactions, snapshots(transactions), strict=True)
        ):
            apply_to_store(store, each.changes)
            _forget_empty_graphs(store)
            answer = oxigraph_answer(query, store, limit=most_rows)
            if answer is None:
                self.too_big = True
                return
            fit = trusted and frozenset(store) == quads
            self.answers.append(spelled_by_value(answer) if fit else None)
            if not fit or number == len(transactions) - 1:
                self.exact[number] = reference_answer(query, quads)


def spelled_by_value(bag: Bag) -> Bag:
    """The bag with every number in one spelling of its value."""
    respelled: Bag = Counter()
    for row, count in bag.items():
        respelled[by_value(row)] += count
    return respelled


def _forget_empty_graphs(store: Store) -> None:
    """A live graph's named graphs are those that hold a quad; a Store remembers emptied ones."""
    for name in list(store.named_graphs()):
        if next(iter(store.quads_for_pattern(None, None, None, name)), None) is None:
            store.remove_graph(name)

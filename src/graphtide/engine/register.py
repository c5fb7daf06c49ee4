"""Register: the standing queries of a graph by name, and who reads which node of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.engine.standing import Standing
from graphtide.errors import GraphtideError
from graphtide.plan.choose import choose_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphtide.engine.delta import Delta
    from graphtide.engine.stamps import Stamps
    from graphtide.engine.watch import Watch
    from graphtide.kernel import QuadStore
    from graphtide.kernel.batch import Ints
    from graphtide.rdf.dictionary import TermDictionary

FIRST_REPLAN = 10_000
"""Quads at which plans that were made for an emptier graph are looked at for the first time."""

GROWTH = 4
"""They are looked at again whenever the graph has grown by this factor: over all changes, that
costs a constant per change."""


class Register:
    """Watches, oldest first, wired to the nodes of their plans."""

    def __init__(self, store: QuadStore, terms: TermDictionary, *, union: bool) -> None:
        self.standing = Standing(store, terms)
        self.union = union
        self._store = store
        self._watches: dict[str, Watch] = {}
        self._readers: dict[int, list[Watch]] = {}
        self._replan_at = FIRST_REPLAN

    def __iter__(self) -> Iterator[Watch]:
        return iter(self._watches.values())

    def __len__(self) -> int:
        return len(self._watches)

    def free_name(self, name: str | None) -> str:
        """A name that no other query has: the one asked for, or a new one."""
        if name is None:
            number = len(self._watches) + 1
            while f"query{number}" in self._watches:
                number += 1
            return f"query{number}"
        if name in self._watches:
            raise GraphtideError(f"a query named {name!r} already watches this graph")
        return name

    def add(self, watch: Watch, stamps: Stamps) -> None:
        """Put a query to work; it starts with the whole answer of now."""
        if not self._watches:  # no plan is older than the graph of now
            self._replan_at = max(FIRST_REPLAN, GROWTH * len(self._store))
        watch.start(self._attach(watch), stamps)
        self._watches[watch.name] = watch

    def remove(self, watch: Watch) -> None:
        """Let a query go, with what only it needed."""
        self.check(watch)
        del self._watches[watch.name]
        self._detach(watch)

    def check(self, watch: Watch) -> None:
        """Refuse a query that is not, or no longer, registered here."""
        if self._watches.get(watch.name) is not watch:
            raise GraphtideError(f"{watch!r} does not watch this graph (any more)")

    def replan(self, watch: Watch) -> bool:
        """Plan a query anew by the statistics of now; whether that gave another plan.

        Its memories are filled from the quads; its answer and its deltas do not notice.
        """
        if watch.replans is None:
            return False
        query, strategy = watch.replans
        known = self.standing.statistics()
        chosen = choose_plan(query, known, strategy=strategy, union=self.union)
        if chosen == watch.plan:
            return False
        self._detach(watch)
        watch.plan = chosen
        self._attach(watch)
        return True

    def tell(self, outputs: Mapping[int, Ints], stamps: Stamps) -> None:
        """Let the queries take in what changed at their nodes, then call back."""
        heard: list[tuple[Watch, Delta]] = []
        for place in self._readers.keys() & outputs.keys():
            for watch in self._readers[place]:
                delta = watch.advance(outputs[place], stamps)
                if delta is not None:
                    heard.append((watch, delta))
        if len(self._store) >= self._replan_at:
            self._replan_at = GROWTH * len(self._store)
            for watch in self:
                self.replan(watch)
        heard.sort(key=lambda each: each[0].number)
        for watch, delta in heard:
            watch.notify(delta)

    def _attach(self, watch: Watch) -> Ints:
        watch.places, rows = self.standing.attach(watch.plan)
        self._readers.setdefault(watch.places[watch.plan.root], []).append(watch)
        return rows

    def _detach(self, watch: Watch) -> None:
        root = watch.places[watch.plan.root]
        self._readers[root].remove(watch)
        if not self._readers[root]:
            del self._readers[root]
        self.standing.detach(watch.places)

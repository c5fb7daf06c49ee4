"""QueryRegistry: the standing queries of a graph by name, and who reads which node of the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.engine.dataflow.network import Network, Places, actual_rows
from graphtide.engine.dataflow.programs import SharedPrograms, to_program
from graphtide.engine.evaluate import evaluate_once, measure
from graphtide.errors import GraphtideError
from graphtide.plan.choose import choose_plan
from graphtide.plan.estimate import Estimator, Statistics
from graphtide.plan.explain import NodeFacts
from graphtide.plan.physical import Search, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphtide.engine.runtime import TransactionTimes
    from graphtide.engine.watch import Delta, Watch
    from graphtide.kernel import QuadStore
    from graphtide.kernel.batch import Ints
    from graphtide.plan.physical import QueryPlan
    from graphtide.rdf.dictionary import TermDictionary


# --- RunningPlans: the plans of a graph's queries at work, on one quad store and one network.

DRIFT = 1.2
"""Statistics are measured anew when the number of quads has changed by this factor: a plan hardly
depends on less, and over all changes the measuring costs a constant per change."""


class RunningPlans:
    """Connects plans to the store: searches as programs, everything above them as the network."""

    def __init__(self, store: QuadStore, terms: TermDictionary) -> None:
        self.network = Network(terms)
        self.programs = SharedPrograms(store)
        self._store = store
        self._terms = terms
        self._leaves: dict[int, int] = {}
        self._statistics = Statistics()

    def attach(self, plan: QueryPlan) -> tuple[Places, Ints]:
        """Put a plan to work: the places of its nodes, and its whole answer now."""
        searches = [node for node in nodes(plan.root) if isinstance(node, Search)]
        programs = [to_program(node, self._terms) for node in searches]
        numbers = dict(zip(searches, map(self.programs.acquire, programs), strict=True))
        try:
            places, rows = self.network.attach(plan.root, self._rows_of)
        except BaseException:
            for number in numbers.values():
                self.programs.release(number)
            raise
        self._leaves.update((number, places[node]) for node, number in numbers.items())
        return places, rows

    def detach(self, places: Places) -> None:
        """Let a plan go, with what only it needed."""
        for node in places:
            if isinstance(node, Search):
                self.programs.release(self.programs.number(to_program(node, self._terms)))
        self.network.detach(places)
        self._leaves = {n: place for n, place in self._leaves.items() if place in self.network}

    def evaluate(self, plan: QueryPlan) -> Ints:
        """The rows of a plan now, as a batch; nothing of it stays."""
        numbers = [
            self.programs.acquire(to_program(node, self._terms))
            for node in nodes(plan.root)
            if isinstance(node, Search)
        ]
        try:
            return evaluate_once(plan.root, self._rows_of, self._terms)
        finally:
            for number in numbers:
                self.programs.release(number)

    def advance(self, batches: Mapping[int, Ints]) -> dict[int, Ints]:
        """What changes at each place of the network for what changed in the searches."""
        return self.network.step({self._leaves[n]: batch for n, batch in batches.items()})

    def facts(self, plan: QueryPlan, places: Places, answer: int, *, actual: bool) -> NodeFacts:
        """What explain tells of a plan at work; counting actual rows costs as much as an answer."""
        statistics = self.statistics()
        expect = Estimator(statistics)
        expected = {node: expect(node).rows for node in places} if statistics.known else None
        known = actual and self._store.stores
        counted = actual_rows(plan.root, self._rows_of, self._terms) if known else None
        return NodeFacts(self.network.sizes(places), expected, counted, answer)

    def _rows_of(self, node: Search) -> Ints:
        return self._store.evaluate(self.programs.number(to_program(node, self._terms)))

    def statistics(self, *, exact: bool = False) -> Statistics:
        """What the planner knows of the data; exact now, or as of when it was much the same."""
        before, now = self._statistics.quads, len(self._store)
        if exact or not before / DRIFT <= now <= before * DRIFT:
            self._statistics = measure(self._store.quads(), self._terms)
        return self._statistics


FIRST_REPLAN = 10_000
"""Quads at which plans that were made for an emptier graph are looked at for the first time."""

GROWTH = 4
"""They are looked at again whenever the graph has grown by this factor: over all changes, that
costs a constant per change."""


class QueryRegistry:
    """Watches, oldest first, wired to the nodes of their plans."""

    def __init__(self, store: QuadStore, terms: TermDictionary, *, union: bool) -> None:
        self.standing = RunningPlans(store, terms)
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

    def add(self, watch: Watch, stamps: TransactionTimes) -> None:
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

    def tell(self, outputs: Mapping[int, Ints], stamps: TransactionTimes) -> None:
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

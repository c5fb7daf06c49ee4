"""Standing: the plans of a graph's queries at work, on one quad store and one network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.engine.measure import measure
from graphtide.engine.network import Network, Places, actual_rows
from graphtide.engine.once import evaluate_once
from graphtide.engine.programs import SharedPrograms, to_program
from graphtide.plan.estimate import Estimator
from graphtide.plan.explain import Facts
from graphtide.plan.physical import Search, nodes
from graphtide.plan.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.kernel import QuadStore
    from graphtide.kernel.batch import Ints
    from graphtide.plan.physical import QueryPlan
    from graphtide.rdf.dictionary import TermDictionary

DRIFT = 1.2
"""Statistics are measured anew when the number of quads has changed by this factor: a plan hardly
depends on less, and over all changes the measuring costs a constant per change."""


class Standing:
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

    def facts(self, plan: QueryPlan, places: Places, answer: int, *, actual: bool) -> Facts:
        """What explain tells of a plan at work; counting actual rows costs as much as an answer."""
        statistics = self.statistics()
        expect = Estimator(statistics)
        expected = {node: expect(node).rows for node in places} if statistics.known else None
        known = actual and self._store.stores
        counted = actual_rows(plan.root, self._rows_of, self._terms) if known else None
        return Facts(self.network.sizes(places), expected, counted, answer)

    def _rows_of(self, node: Search) -> Ints:
        return self._store.evaluate(self.programs.number(to_program(node, self._terms)))

    def statistics(self, *, exact: bool = False) -> Statistics:
        """What the planner knows of the data; exact now, or as of when it was much the same."""
        before, now = self._statistics.quads, len(self._store)
        if exact or not before / DRIFT <= now <= before * DRIFT:
            self._statistics = measure(self._store.quads(), self._terms)
        return self._statistics

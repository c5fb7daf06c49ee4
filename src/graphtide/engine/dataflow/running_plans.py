"""RunningPlans: the plans of all queries at work, and what planning needs to know of the data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from graphtide.algebra.expressions import Var
from graphtide.engine.dataflow.attachment import Attachment
from graphtide.engine.dataflow.due_rows import Now
from graphtide.engine.dataflow.network import Network, NodeIds, actual_rows
from graphtide.engine.dataflow.programs import SharedPrograms, to_program
from graphtide.engine.evaluate import ChangeRates, evaluate_once, measure
from graphtide.limits import Allowance
from graphtide.plan.estimate import Estimator, Statistics
from graphtide.plan.explain import NodeFacts
from graphtide.plan.physical import Search, predicates, searches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from graphtide.kernel import QuadStore
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.limits import Limits
    from graphtide.plan.physical import QueryPlan
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term

STALE, FRESH = 5, 100
"""Statistics are measured anew after as many changes as this part of the quads: for one-off
queries a fifth, so that over all changes measuring costs a constant per change; for queries that
stay a hundredth: they read all quads anyway when they start."""


class StartingPlan(NamedTuple):
    """A plan that is added node by node, and the programs of its searches."""

    plan: QueryPlan
    numbers: dict[Search, int]
    added: Attachment


class RunningPlans:
    """The plans of all queries at work: searches on the quad store, other nodes in one network."""

    def __init__(
        self, store: QuadStore, terms: TermDictionary, limits: Limits, now: Now | None = None
    ) -> None:
        self.now = now or Now()
        self.network = Network(terms, limits, self.now)
        self.programs = SharedPrograms(store)
        self._store = store
        self.terms = terms
        self.limits = limits
        self._leaves: dict[int, int] = {}
        self._statistics = Statistics()
        self._measured_at = 0
        self._measured: frozenset[Term] | None = None  # the predicates, if not all
        self.rates = ChangeRates()

    def attach(self, plan: QueryPlan) -> tuple[NodeIds, Ints]:
        """Start a plan: the ids of its nodes in the network, and its current answer."""
        numbers = dict(zip(searches(plan.root), self.hold(plan), strict=True))
        try:
            node_ids, rows = self.network.attach(
                plan.root, lambda node: self._store.evaluate(numbers[node])
            )
        except BaseException:
            self.let_go(numbers.values())
            raise
        self._leaves.update((number, node_ids[node]) for node, number in numbers.items())
        return node_ids, rows

    def begin(self, plan: QueryPlan) -> StartingPlan:
        """Start a plan node by node, while another one goes on."""
        numbers = dict(zip(searches(plan.root), self.hold(plan), strict=True))
        added = Attachment(
            self.network, plan.root, lambda node: self._store.evaluate(numbers[node])
        )
        self.network.starting = added
        return StartingPlan(plan, numbers, added)

    def go_on(self, starting: StartingPlan) -> bool:
        """Add the next node; whether the plan is complete."""
        added = starting.added
        with Allowance(self.limits, "query") as left:
            left.spend(added.step().nbytes)
        for node, number in starting.numbers.items():
            if node in added.node_ids:
                self._leaves[number] = added.node_ids[node]
        if added.is_done:
            self.network.starting = None
        return added.is_done

    def abandon(self, starting: StartingPlan) -> None:
        """Stop a plan that is not complete."""
        self.network.starting = None
        self.let_go(starting.numbers.values())
        self._remove(starting.added.node_ids)

    def detach(self, node_ids: NodeIds) -> None:
        """Stop a plan and free what only it needed."""
        self.let_go([self.number_of(node) for node in node_ids if isinstance(node, Search)])
        self._remove(node_ids)

    def _remove(self, node_ids: NodeIds) -> None:
        self.network.detach(node_ids)
        self._leaves = {
            n: node_id for n, node_id in self._leaves.items() if node_id in self.network
        }

    def hold(self, plan: QueryPlan) -> list[int]:
        """Install the programs of a plan that is evaluated, and with them its indexes."""
        programs = [to_program(node, self.terms) for node in searches(plan.root)]
        return list(map(self.programs.acquire, programs))

    def let_go(self, numbers: Iterable[int], *, for_now: bool = False) -> None:
        """The programs that `hold` installed are needed no more, or not `for_now`."""
        for number in numbers:
            self.programs.release(number, for_now=for_now)

    def evaluate(self, plan: QueryPlan) -> Ints:
        """Evaluate a plan whose programs are held: its current rows as a batch."""
        return evaluate_once(plan.root, self._rows_of, self.terms, self.limits)

    def advance(
        self, batches: Mapping[int, Ints], left: Allowance | None = None
    ) -> dict[int, Ints]:
        """The output of each node of the network, by node id, for the output of the searches.

        That is a part of the work of an allowance, or a flush of its own. Programs of plans that
        are only evaluated find rows as well, which nobody reads.
        """
        leaves = self._leaves
        outputs = {leaves[n]: batch for n, batch in batches.items() if n in leaves}
        if left is not None:
            return self.network.step(outputs, left)
        with Allowance(self.limits, "flush") as own:
            return self.network.step(outputs, own)

    def leaf(self, number: int) -> int | None:
        """The node of the network that passes on the rows of a program, if there is one."""
        return self._leaves.get(number)

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids that the nodes of all plans store."""
        return self.network.held_ids()

    def facts(self, plan: QueryPlan, node_ids: NodeIds, answer: int, *, actual: bool) -> NodeFacts:
        """What explain shows of a plan at work; counting actual rows costs as much as an answer."""
        statistics = self.statistics(of=predicates(plan.root))
        expect = Estimator(statistics)
        expected = {node: expect(node).rows for node in node_ids} if statistics.known else None
        known = actual and self._store.stores
        counted = actual_rows(plan.root, self._rows_of, self.terms, self.now) if known else None
        statistics = self.with_indexes(statistics, plan)
        return NodeFacts(self.network.sizes(node_ids), expected, counted, answer, statistics)

    def with_indexes(self, known: Statistics, own: QueryPlan | None = None) -> Statistics:
        """Statistics with the indexes that there are anyway, if a plan that is running were not."""
        leaves = () if own is None else map(self.number_of, searches(own.root))
        return replace(known, indexes=self.programs.indexes(list(leaves)))

    def number_of(self, node: Search) -> int:
        """The number of the program of a search that is installed."""
        return self.programs.number(to_program(node, self.terms))

    def _rows_of(self, node: Search) -> Ints:
        return self._store.evaluate(self.number_of(node))

    def statistics(
        self, *, fresh: bool = False, exact: bool = False, of: Collection[Term | Var] = ()
    ) -> Statistics:
        """Statistics of the data for the planner: at most a fifth of the quads has changed since.

        If `fresh`, a hundredth; if `exact`, none. `of` are the predicates in question: on a large
        graph, to measure them all takes longer than most queries. Once others are asked for, all
        are measured.
        """
        if not self._store.stores:
            return self._statistics
        since = self._store.changed - self._measured_at
        allowed = 0 if exact else len(self._store) // (FRESH if fresh else STALE)
        stale = since > allowed or since < 0
        known = self._measured
        if stale or (known is not None and (exact or not known.issuperset(of))):
            wanted = frozenset(each for each in of if not isinstance(each, Var))
            few = stale and not exact and 0 < len(wanted) == len(of)
            self._measured = wanted if few else None
            found = measure(self._store.quads(), self.terms, self._measured)
            self._statistics = replace(found, rates=self.rates.of(found.predicates, self.terms))
            self._measured_at = self._store.changed
        return self._statistics

"""QueryRegistry: the standing queries of a graph by name, and their plans at work.

Queries share quads, indexes and equal plan nodes; the registry knows which query reads which node.
"""

from __future__ import annotations

from dataclasses import replace
from logging import getLogger
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from graphtide.algebra.clock import reads_clock
from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import SelectQuery, Slice
from graphtide.algebra.variables import predicates_of, schema
from graphtide.engine.dataflow.due_rows import Now
from graphtide.engine.dataflow.network import SMALL, Network, NodeIds, actual_rows
from graphtide.engine.dataflow.operators import KeepColumns
from graphtide.engine.dataflow.programs import SharedPrograms, to_program
from graphtide.engine.evaluate import FIRST_REPLAN, ChangeRates, evaluate_once, in_order, measure
from graphtide.engine.services import load_services
from graphtide.errors import GraphtideError
from graphtide.limits import Allowance
from graphtide.plan.choose import choose_plan, depends_on_data
from graphtide.plan.estimate import NOTHING_KNOWN, Estimator, Statistics
from graphtide.plan.explain import NodeFacts
from graphtide.plan.physical import QueryPlan, Search, predicates, searches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from graphtide.engine.dataflow.network import Node
    from graphtide.engine.results import Delta, TransactionTimes
    from graphtide.engine.services import ServiceTables
    from graphtide.engine.watch import Query
    from graphtide.kernel import QuadStore
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.limits import Limits
    from graphtide.plan.order import Pin
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term

log = getLogger(__name__)

STALE, FRESH = 5, 100
"""Statistics are measured anew after as many changes as this part of the quads: for one-off
queries a fifth, so that over all changes measuring costs a constant per change; for queries that
stay a hundredth: they read all quads anyway when they start."""

LOOK_SHARE = 20
"""Looking at plans takes at most one in so many parts of the time: measuring a large graph and
planning a large query take longer than many changes."""

SAMPLED = 64
"""Changes after which some are counted by predicate."""

UNOBSERVED = 16
"""Changes with an effect on answers that may pass before somebody looks whether it is time to."""


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
        leaves = searches(plan.root)
        programs = [to_program(node, self.terms) for node in leaves]
        numbers = dict(zip(leaves, map(self.programs.acquire, programs), strict=True))
        try:
            for number in numbers.values():
                self._store.follow(number)
            node_ids, rows = self.network.attach(
                plan.root, lambda node: self._store.evaluate(numbers[node])
            )
        except BaseException:
            for number in numbers.values():
                self.programs.release(number)
            raise
        self._leaves.update((number, node_ids[node]) for node, number in numbers.items())
        return node_ids, rows

    def detach(self, node_ids: NodeIds) -> None:
        """Stop a plan and free what only it needed."""
        for node in node_ids:
            if isinstance(node, Search):
                self.programs.release(self.number_of(node))
        self.network.detach(node_ids)
        self._leaves = {
            n: node_id for n, node_id in self._leaves.items() if node_id in self.network
        }

    def hold(self, plan: QueryPlan) -> list[int]:
        """Install the programs of a plan that is evaluated, and with them its indexes."""
        programs = [to_program(node, self.terms) for node in searches(plan.root)]
        return list(map(self.programs.acquire, programs))

    def let_go(self, numbers: list[int]) -> None:
        """The programs that `hold` installed are needed no more."""
        for number in numbers:
            self.programs.release(number)

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


class PreparedQuery:
    """A query that is evaluated again and again: its plan and its indexes are kept in between.

    It calls no function that a standing query may not call. As long as the quads are the same, its
    rows are, too, unless it reads the clock.
    """

    def __init__(self, registry: QueryRegistry, select: SelectQuery) -> None:
        self._registry = registry
        self._reads_clock = reads_clock(select.root)
        self._as_of: tuple[QuadStore, int, int] | None = None
        self._rows: Ints | None = None
        self._order = select.root if isinstance(select.root, Slice) else None
        if self._order is not None:
            child = self._order.child
            select = replace(select, root=child, variables=schema(child))
        self._plan = registry.plan(select, "search", fresh=False)
        self._numbers = registry.plans.hold(self._plan)

    def rows(self) -> Ints:
        """The rows now, as a batch of ids; in their order, if the query has one."""
        plans, order, as_of = self._registry.plans, self._order, self._registry.as_of()
        if self._rows is None or self._reads_clock or as_of != self._as_of:
            rows = plans.evaluate(self._plan)
            if order is not None:
                rows = in_order(rows, self._plan.root, order, plans.terms)
            self._rows, self._as_of = rows, as_of
        return self._rows

    def move_to(self, plans: RunningPlans) -> None:
        """Hold the programs among other plans at work."""
        self._numbers = plans.hold(self._plan)

    def close(self) -> None:
        """Free what only it needed."""
        self._registry.plans.let_go(self._numbers)


class DirectReader(NamedTuple):
    """The one query that reads a search, through a chain of nodes: its rows need no network.

    A projection at the end of the chain is no step: the query takes some `columns`.
    """

    query: Query
    columns: Ints | None
    steps: tuple[Node, ...]
    passed: tuple[Node, ...]
    """The search, and a projection at the end: they count what passes."""


class QueryRegistry:
    """Queries, oldest first, wired to the nodes of their plans.

    `with_callbacks` are those whose callbacks want to be called transaction by transaction.
    """

    def __init__(
        self, store: QuadStore, terms: TermDictionary, limits: Limits, *, union: bool
    ) -> None:
        self.plans = RunningPlans(store, terms, limits)
        self.union = union
        self.services: ServiceTables | None = None
        self.with_callbacks: set[Query] = set()
        self._store = store
        self._queries: dict[str, Query] = {}
        self._readers: dict[int, list[Query]] = {}
        self._direct: dict[int, DirectReader | None] = {}  # by program; found when needed
        self._look_at = FIRST_REPLAN
        self._look_after = 0.0
        self._unobserved = 0
        self._planned: dict[str, Statistics] = {}  # by which each query was planned last
        self._to_plan: list[Query] = []  # whose estimates were off when they were last looked at
        self._prepared: list[PreparedQuery] = []
        self.replans, self.replan_seconds = 0, 0.0

    def __iter__(self) -> Iterator[Query]:
        return iter(self._queries.values())

    def __len__(self) -> int:
        return len(self._queries)

    def free_name(self, name: str | None) -> str:
        """The name asked for, if no other query has it; a new one, if none is asked for."""
        if name is None:
            number = len(self._queries) + 1
            while f"query{number}" in self._queries:
                number += 1
            return f"query{number}"
        if name in self._queries:
            raise GraphtideError(f"a query named {name!r} is already registered on this graph")
        return name

    def add(self, query: Query, stamps: TransactionTimes) -> None:
        """Register a query; its first delta is the current answer."""
        if not self._queries:  # no plan is older than the present graph
            self._look_later()
        query.take(self._attach(query), stamps)
        if depends_on_data(query.asked.select, union=self.union):
            self._planned[query.name] = self.plans.statistics()
        self._queries[query.name] = query
        log.debug("query %s is watched by %s", query.name, query.plan.strategy)

    def remove(self, query: Query) -> None:
        """Unregister a query and free what only it needed."""
        self.check(query)
        del self._queries[query.name]
        self._planned.pop(query.name, None)
        self.with_callbacks.discard(query)
        self._detach(query)

    def check(self, query: Query) -> None:
        """Reject a query that is not, or no longer, registered here."""
        if self._queries.get(query.name) is not query:
            raise GraphtideError(f"{query!r} does not watch this graph (any more)")

    def plan(
        self,
        select: SelectQuery,
        strategy: Strategy | None,
        pinned: Pin | None = None,
        *,
        fresh: bool = True,
        instead: QueryPlan | None = None,
    ) -> QueryPlan:
        """A plan for a query, by current statistics; for one that ends soon, they need not be.

        It may take the place of a plan, `instead`.
        """
        load_services(self.services, select)
        known = NOTHING_KNOWN
        if depends_on_data(select, union=self.union):
            known = self.plans.statistics(fresh=fresh, of=predicates_of(select.root))
            known = self.plans.with_indexes(known, instead)
        return choose_plan(
            select, known, strategy=strategy, pinned=pinned, union=self.union, once=not fresh
        )

    def evaluate(self, select: SelectQuery) -> Ints:
        """The rows of a query now, as a batch of ids; in its order, if it has one."""
        if self.services is not None:
            select = self.services.once(select)
        prepared = PreparedQuery(self, select)
        try:
            return prepared.rows()
        finally:
            prepared.close()

    def as_of(self) -> tuple[QuadStore, int, int]:
        """Equal while the quads are the same."""
        counts = self._store.counts()
        return self._store, counts["inserted"], counts["deleted"]

    def prepare(self, select: SelectQuery) -> PreparedQuery:
        """A query that will be evaluated often; `forget` it in the end."""
        prepared = PreparedQuery(self, select)
        self._prepared.append(prepared)
        return prepared

    def forget(self, prepared: PreparedQuery) -> None:
        """Free what only a prepared query needed."""
        self._prepared.remove(prepared)
        prepared.close()

    def replan(self, query: Query) -> bool:
        """Plan a query again by current statistics; whether that gave another plan.

        Its memories are filled from the quads; its answer and its deltas stay as they are.
        """
        start = perf_counter()
        try:
            self.plans.statistics(exact=True)
            return self._replan(query)
        finally:
            self.replan_seconds += perf_counter() - start

    def _replan(self, query: Query) -> bool:
        select, strategy, pinned = query.asked
        if pinned is not None:
            return False
        chosen = self.plan(select, strategy, instead=query.plan)
        self._planned[query.name] = self.plans.statistics()
        if chosen == query.plan:
            return False
        log.info(
            "query %s is planned again at %d quads: from %s to %s",
            query.name, len(self._store), query.plan.strategy, chosen.strategy,
        )  # fmt: skip
        self._detach(query)
        query.plan = chosen
        self._attach(query)
        self.replans += 1
        return True

    def react(
        self, batches: Mapping[int, Ints], stamps: TransactionTimes, changes: Ints
    ) -> list[tuple[Query, Delta]]:
        """Take in the rows that changes of quads caused, by program; the deltas to notify of."""
        if len(batches) == 1:
            [(number, batch)] = batches.items()
            direct = self._direct.get(number)
            if direct is None and number not in self._direct:
                direct = self._direct[number] = self._find_direct(number)
            if direct is not None and len(batch) <= SMALL:
                # As `take` and the network would do it, but in fewer steps.
                delta = self._take_direct(direct, batch, stamps)
                self._observe(changes)
                return [] if delta is None else [(direct.query, delta)]
        with Allowance(self.plans.limits, "flush") as left:
            return self.take(self.plans.advance(batches, left), stamps, changes)

    def _take_direct(
        self, direct: DirectReader, batch: Ints, stamps: TransactionTimes
    ) -> Delta | None:
        query, columns, steps, passed = direct
        passed[0].messages += len(batch)
        if steps:
            with Allowance(self.plans.limits, "flush") as left:
                for node in steps:
                    batch = node.operator.step(batch)
                    rows = len(batch)
                    if not rows:
                        return None
                    node.messages += rows
                    if rows > SMALL:
                        left.spend(batch.nbytes)
        if columns is not None:
            passed[1].messages += len(batch)
        return query.take(batch, stamps, columns)

    def _find_direct(self, number: int) -> DirectReader | None:
        leaf, network = self.plans.leaf(number), self.plans.network
        chain = [] if leaf is None else network.chain(leaf)
        if not chain:
            return None
        *before, last = chain
        readers = self._readers.get(last, [])
        if len(readers) != 1 or any(node_id in self._readers for node_id in before):
            return None
        nodes = list(map(network.node, (*before, last)))
        operator = nodes[-1].operator
        columns = operator.columns if isinstance(operator, KeepColumns) else None
        end = len(nodes) - (columns is not None)
        passed = (nodes[0], *nodes[end:])
        return DirectReader(readers[0], columns, tuple(nodes[1:end]), passed)

    def take(
        self, outputs: Mapping[int, Ints], stamps: TransactionTimes, changes: Ints | None = None
    ) -> list[tuple[Query, Delta]]:
        """Pass what nodes put out, by changes of quads or the clock, to queries; their deltas."""
        deltas = [
            (query, delta)
            for node_id, output in outputs.items()
            for query in self._readers.get(node_id, ())
            if (delta := query.take(output, stamps)) is not None
        ]
        self._observe(changes)
        return sorted(deltas, key=lambda each: each[0].order) if len(deltas) > 1 else deltas

    def _observe(self, changes: Ints | None) -> None:
        """Count some changes by predicate, and plan again where it is time to."""
        self._unobserved += 0 if changes is None else len(changes)
        if self._unobserved < UNOBSERVED and not self._to_plan:
            return
        self._unobserved = 0
        changed = self._store.changed
        if changes is not None and changed - self.plans.rates.counted >= SAMPLED:
            self.plans.rates.sample(changes, changed)
        if (self._to_plan or changed >= self._look_at) and perf_counter() >= self._look_after:
            self._look_again()

    def _look_again(self) -> None:
        """Find the queries whose estimates are off by a factor, or plan one of those found again.

        One at a time: no call waits for the memories of all queries. What is spent on it is a small
        share of the time.
        """
        start = perf_counter()
        if not self._to_plan:
            self._look_later()
            known = self.plans.statistics(exact=True)
            self._to_plan = [
                query
                for query in self
                if query.name in self._planned
                and known.differ(self._planned[query.name], predicates(query.plan.root))
            ]
            self.plans.rates.fade()
        while self._to_plan:
            query = self._to_plan.pop(0)
            if self._queries.get(query.name) is query and self._replan(query):
                break
        end = perf_counter()
        self.replan_seconds += end - start
        self._look_after = end + (end - start) * LOOK_SHARE

    def _look_later(self) -> None:
        self._look_at = self._store.changed + max(FIRST_REPLAN, len(self._store))

    def rebuild(self, store: QuadStore, first: int) -> None:
        """Start all plans anew on a store, as of before the transaction of a number.

        Nothing of the present state is used but the histories of deltas, and all is replaced at the
        end: if this is interrupted, it can be done again.
        """
        self._direct = {}
        plans = RunningPlans(store, self.plans.terms, self.plans.limits, self.plans.now)
        plans.rates = self.plans.rates
        started = [(query, *plans.attach(query.plan)) for query in self]
        answers = [query.fresh_answer(rows) for query, _, rows in started]
        for prepared in self._prepared:
            prepared.move_to(plans)
        readers: dict[int, list[Query]] = {}
        for query, node_ids, _ in started:
            readers.setdefault(node_ids[query.plan.root], []).append(query)
        for (query, node_ids, _), answer in zip(started, answers, strict=True):
            query.restore(node_ids, answer, first)
        self.plans, self._store, self._readers = plans, store, readers

    def _attach(self, query: Query) -> Ints:
        self._direct = {}
        query.node_ids, rows = self.plans.attach(query.plan)
        self._readers.setdefault(query.node_ids[query.plan.root], []).append(query)
        leaves = searches(query.plan.root)
        if len(leaves) == 1:  # no change has to wait for it
            number = self.plans.number_of(leaves[0])
            self._direct[number] = self._find_direct(number)
        return rows

    def _detach(self, query: Query) -> None:
        self._direct = {}
        root = query.node_ids[query.plan.root]
        self._readers[root].remove(query)
        if not self._readers[root]:
            del self._readers[root]
        self.plans.detach(query.node_ids)

"""QueryRegistry: the standing queries of a graph by name, and their plans at work.

Queries share quads, indexes and equal plan nodes; the registry knows which query reads which node.
"""

from __future__ import annotations

from logging import getLogger
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from graphtide.algebra.clock import reads_clock
from graphtide.algebra.expressions import Var
from graphtide.algebra.variables import predicates_of
from graphtide.engine.dataflow.network import SMALL
from graphtide.engine.dataflow.operators import KeepColumns
from graphtide.engine.dataflow.running_plans import RunningPlans, StartingPlan
from graphtide.engine.evaluate import FIRST_REPLAN, PreparedQuery
from graphtide.engine.services import load_services
from graphtide.errors import GraphtideError, LimitError
from graphtide.limits import Allowance
from graphtide.plan.choose import choose_plan, depends_on_data
from graphtide.plan.estimate import NOTHING_KNOWN, Statistics
from graphtide.plan.physical import QueryPlan, predicates, searches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.engine.dataflow.network import Node
    from graphtide.engine.results import Delta, TransactionTimes
    from graphtide.engine.services import ServiceTables
    from graphtide.engine.watch import Query
    from graphtide.kernel import QuadStore
    from graphtide.kernel.batch import Ints
    from graphtide.limits import Limits
    from graphtide.plan.order import Pin
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.dictionary import TermDictionary

log = getLogger(__name__)

LOOK_SHARE = 20
"""Looking at plans takes at most one in so many parts of the time: measuring a large graph and
planning a large query take longer than many changes."""

LOOKS, GROWN = 16, 3
"""How often in a period it is asked whether plans have to be looked at, and how many times its
quads a predicate must have grown by to do so at once: a plan for few quads may be a bad one."""

PIECE_SECONDS = 0.02
"""After so long, the next node of a plan that takes the place of another one waits for a later
call."""

SAMPLED = 64
"""Changes after which some are counted by predicate."""

SEVERAL = 16
"""Changes that may pass before somebody looks whether it is time to."""


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
        self._looked_at, self._look_at = 0, FIRST_REPLAN // LOOKS
        self._look_after = 0.0
        self._unobserved = 0
        self._planned: dict[str, Statistics] = {}  # by which each query was planned last
        self._to_plan: list[Query] = []  # whose estimates were off when they were last looked at
        self._replacing: tuple[Query, StartingPlan] | None = None
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
        if not self._queries:  # no plan is older than the present graph, and no change was observed
            self._look_later()
            self.plans.rates.counted = self._store.changed
        query.take(self._attach(query), stamps)
        if depends_on_data(query.asked.select, union=self.union):
            self._planned[query.name] = self.plans.statistics()
        self._queries[query.name] = query
        log.debug("query %s is watched by %s", query.name, query.plan.strategy)

    def remove(self, query: Query) -> None:
        """Unregister a query and free what only it needed."""
        self.check(query)
        self._keep_plan(query)
        del self._queries[query.name]
        self._planned.pop(query.name, None)
        self.with_callbacks.discard(query)
        self._detach(query)

    def registered(self) -> tuple[tuple[Query, ...], tuple[PreparedQuery, ...]]:
        """What is registered, for `restore`."""
        return tuple(self._queries.values()), tuple(self._prepared)

    def restore(
        self, queries: Collection[Query], prepared_queries: Collection[PreparedQuery]
    ) -> None:
        """Remove all queries but these: the call that has registered others has failed."""
        for query in [each for each in self if each not in queries]:
            self.remove(query)
            if query.windows is not None:
                query.windows.close()
        for prepared in [each for each in self._prepared if each not in prepared_queries]:
            self.forget(prepared)
        self._direct = {}
        for readers in self._readers.values():  # an interrupt may have come between the two
            readers[:] = [each for each in readers if self._queries.get(each.name) is each]

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
            prepared.close(for_now=True)

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

    @property
    def replanning(self) -> int:
        """The queries whose estimates were off, and whose plans were not replaced or kept yet."""
        return len(self._to_plan) + (self._replacing is not None)

    def replan(self, query: Query) -> bool:
        """Plan a query again by current statistics; whether that gave another plan.

        Its memories are filled from the quads; its answer and its deltas stay as they are.
        """
        start = perf_counter()
        try:
            self._keep_plan(query)
            self.plans.statistics(exact=True)
            chosen = self._chosen_now(query)
            if chosen is not None:
                self._replace(query, chosen)
            return chosen is not None
        finally:
            self.replan_seconds += perf_counter() - start

    def _chosen_now(self, query: Query) -> QueryPlan | None:
        """The plan that would be chosen for a query now, if that is another one."""
        select, strategy, pinned = query.asked
        if pinned is not None:
            return None
        chosen = self.plan(select, strategy, instead=query.plan)
        self._planned[query.name] = self.plans.statistics()
        if chosen == query.plan:
            return None
        log.info(
            "query %s is planned again at %d quads: from %s to %s",
            query.name, len(self._store), query.plan.strategy, chosen.strategy,
        )  # fmt: skip
        return chosen

    def _replace(self, query: Query, chosen: QueryPlan) -> None:
        """Let another plan take the place of a query's own at once."""
        self._detach(query)
        query.plan = chosen
        self._attach(query)
        self.replans += 1

    def begin_replacing(self, query: Query, chosen: QueryPlan) -> None:
        """Let another plan take the place of a query's own, when all of its nodes are filled."""
        self._direct = {}
        self._replacing = query, self.plans.begin(chosen)

    def _go_on_replacing(self, until: float) -> None:
        """Fill nodes of the plan that is to come, at least one; at the end, it takes over."""
        if self._replacing is None:
            return
        query, starting = self._replacing
        try:
            while not self.plans.go_on(starting):
                if perf_counter() >= until:
                    return
        except LimitError as problem:
            log.warning("query %s keeps its plan: %s", query.name, problem)
            self._keep_plan(query)
            return
        self._direct, self._replacing = {}, None
        self._detach(query)
        query.plan, query.node_ids = starting.plan, starting.added.node_ids
        self._readers.setdefault(query.node_ids[query.plan.root], []).append(query)
        self.replans += 1

    def _keep_plan(self, query: Query) -> None:
        """Give up the plan that was to take the place of a query's own, if there is one."""
        if self._replacing is not None and self._replacing[0] is query:
            (_, starting), self._replacing = self._replacing, None
            self._direct = {}
            self.plans.abandon(starting)

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
                self.observe(changes)
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
        if self._replacing is not None:  # what nodes put out is noted
            return None
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
        self.observe(changes)
        return sorted(deltas, key=lambda each: each[0].order) if len(deltas) > 1 else deltas

    def observe(self, changes: Ints | None) -> None:
        """Count some changes by predicate, and plan again where it is time to."""
        if not self._queries:
            return
        self._unobserved += 0 if changes is None else len(changes)
        planning = bool(self._to_plan) or self._replacing is not None
        if self._unobserved < SEVERAL and not planning:
            return
        self._unobserved = 0
        changed = self._store.changed
        if changes is not None and len(changes) and changed - self.plans.rates.counted >= SAMPLED:
            self.plans.rates.sample(changes, changed)
        if (planning or changed >= self._look_at) and perf_counter() >= self._look_after:
            self._look_again()

    def _look_again(self) -> None:
        """Find the queries whose estimates are off by a factor, or plan one of those found again.

        One at a time, and node by node: no call waits for all memories. What is spent on it is a
        small share of the time.
        """
        start = perf_counter()
        if not self._to_plan and self._replacing is None:
            if not self._is_due():
                self._look_at = self._store.changed + self._period() // LOOKS
                return
            self._look_later()
            known = self.plans.statistics(exact=True)
            self._to_plan = [
                query
                for query in self
                if query.name in self._planned
                and known.differ(self._planned[query.name], predicates(query.plan.root))
            ]
            self.plans.rates.fade()
        while self._to_plan and self._replacing is None:
            query = self._to_plan.pop(0)
            if self._queries.get(query.name) is query:
                chosen = self._chosen_now(query)
                if chosen is not None and reads_clock(query.asked.select.root):
                    self._replace(query, chosen)
                    break
                if chosen is not None:
                    self.begin_replacing(query, chosen)
        self._go_on_replacing(start + PIECE_SECONDS)
        end = perf_counter()
        self.replan_seconds += end - start
        self._look_after = end + (end - start) * LOOK_SHARE

    def _period(self) -> int:
        """Changes after which plans are looked at: over all changes, that costs a constant each."""
        return max(FIRST_REPLAN, len(self._store))

    def _is_due(self) -> bool:
        """Whether a period is over, or there is reason to look at plans before.

        After half a period, if a predicate of a plan has had as many changes as it had quads; at
        any time, if it has several times as many quads as the plan was chosen for.
        """
        since, period = self._store.changed - self._looked_at, self._period()
        if since >= period:
            return True
        return any(
            self.plans.rates.growth(predicate) >= GROWN * quads + period / LOOKS
            or (2 * since >= period and self.plans.rates.since_look(predicate) >= max(quads, 1))
            for predicate, quads in self._planned_for()
        )

    def _planned_for(self) -> Iterator[tuple[int, int]]:
        """The predicates of all plans, as ids, and the quads that they were planned for."""
        for name, known in self._planned.items():
            for each in predicates(self._queries[name].plan.root):
                if not isinstance(each, Var):
                    yield self.plans.terms.lookup(each), known.predicate(each).count

    def _look_later(self) -> None:
        self._looked_at = self._store.changed
        self._look_at = self._looked_at + self._period() // LOOKS

    def rebuild(self, store: QuadStore, first: int) -> None:
        """Start all plans anew on a store, as of before the transaction of a number.

        Nothing of the present state is used but the histories of deltas, and all is replaced at the
        end: if this is interrupted, it can be done again.
        """
        self._direct, self._replacing = {}, None
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

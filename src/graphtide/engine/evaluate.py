"""One-off evaluation of plans, and the statistics that plans are chosen by.

A one-off query runs on the same plans as a standing one, each node once. Unlike that it may call
non-deterministic functions: NOW, RAND, UUID, STRUUID, BNODE.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from graphtide.algebra.clock import reads_clock
from graphtide.algebra.expressions import Call, Expression, Var
from graphtide.algebra.nodes import SelectQuery, Slice
from graphtide.algebra.variables import schema
from graphtide.engine.dataflow.conditions import CHECKED_EVERY, intern_value
from graphtide.engine.dataflow.network import SearchRows, first_rows
from graphtide.engine.dataflow.operators import Operator, make_operator
from graphtide.engine.dataflow.top_rows import TopRows
from graphtide.engine.locking import GraphLock
from graphtide.errors import ExpressionError
from graphtide.functions.evaluate import compile_expression
from graphtide.functions.table import VOLATILE, entry_of
from graphtide.functions.terms import Volatile
from graphtide.functions.user import USER_FUNCTIONS
from graphtide.functions.values import effective_boolean
from graphtide.kernel import count_values
from graphtide.kernel.batch import DIFF, VALUES, Ints, Longs, make_batch
from graphtide.kernel.counts import consolidate
from graphtide.kernel.values import MAX_HUBS
from graphtide.limits import Allowance, allowance
from graphtide.plan import make
from graphtide.plan import physical as phys
from graphtide.plan.estimate import RDF_TYPE, PredicateStats, Statistics
from graphtide.plan.samples import StoredSample

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator

    from graphtide.algebra.variables import Schema
    from graphtide.engine.dataflow.running_plans import RunningPlans
    from graphtide.engine.queries import QueryRegistry
    from graphtide.kernel import QuadStore
    from graphtide.limits import Limits
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term


SETTLED = phys.Search | phys.Constant | phys.Select | phys.Compute | phys.Unique | phys.Closure
"""Nodes whose first output needs no consolidation."""


def evaluate_once(
    root: phys.Physical, search_rows: SearchRows, terms: TermDictionary, limits: Limits
) -> Ints:
    """The rows of a plan now, as a batch of one transaction; `LimitError` if that is too much.

    Where its limits are checked, queries of other threads may run.
    """
    lock = terms.lock
    pause = lock.run_waiting if isinstance(lock, GraphLock) else None
    volatile = RowVolatile()
    outputs: dict[phys.Physical, Ints] = {}
    with Allowance(limits, "query", pause) as left:
        for node in phys.nodes(root):
            operator = _operator(node, terms, volatile)
            inputs = [outputs[child] for child in phys.children(node)]
            rows = first_rows(node, operator, inputs, search_rows, terms)
            # Rows of the others are all there, and different if those of their inputs are.
            settled = node is not root and isinstance(node, SETTLED)
            outputs[node] = rows if settled else consolidate(rows)
            left.spend(outputs[node].nbytes)
        left.allow(_bytes_apart(outputs[root]))  # the answer has equal rows as often as they count
    return outputs[root]


def _bytes_apart(batch: Ints) -> int:
    """The bytes of a batch with each row as often as it counts."""
    copies = int(np.maximum(batch[:, DIFF], 0).sum(dtype=np.int64))
    return copies * batch.shape[1] * batch.itemsize


def in_order(rows: Ints, plan: phys.Physical, order: Slice, terms: TermDictionary) -> Ints:
    """The rows of a range of an order, from the first to the last."""
    top = make.top(plan, order)
    sorter = TopRows(top, terms)
    sorter.step(rows)
    return make_batch([(0, 1, *row) for row in sorter.in_order()], len(top.schema))


def _operator(node: phys.Physical, terms: TermDictionary, volatile: RowVolatile) -> Operator:
    match node:
        case phys.Compute(child, columns) if any(calls_volatile(each) for _, each in columns):
            width = len(child.schema)
            each = (
                FreshCompute(expression, node.schema[: width + i], terms, volatile)
                for i, (_, expression) in enumerate(columns)
            )
            return FreshColumns(tuple(each))
        case phys.Select(_, condition) if calls_volatile(condition):
            return FreshSelect(condition, node.child.schema, terms, volatile)
        case _:
            return make_operator(node, terms)


def calls_volatile(expression: Expression) -> bool:
    """Whether an expression calls a function that the standing ones may not call."""
    if not isinstance(expression, Call):
        return False
    own = USER_FUNCTIONS.get(expression.name)
    if own is not None and not own.pure:
        return True
    known = entry_of(expression.name) is not None and expression.name not in VOLATILE
    return not known or any(map(calls_volatile, expression.args))


class RowVolatile(Volatile):
    """BNODE("x") is one node in a row, wherever in the query that row calls it."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[frozenset[tuple[Var, Term]], dict[str, Term]] = {}
        self._made: set[Term] = set()

    def enter(self, row: dict[Var, Term]) -> None:
        """What is called now is called for this row, whatever was made for it before."""
        self._made.update(node for labels in (self._labels,) for node in labels.values())
        own = frozenset((var, term) for var, term in row.items() if term not in self._made)
        self._labels = self._rows.setdefault(own, {})  # type: ignore[assignment]


class FreshExpression:
    """Evaluates an expression for every row by itself, equal rows too."""

    nbytes = 0

    def __init__(
        self, expression: Expression, schema: Schema, terms: TermDictionary, volatile: RowVolatile
    ) -> None:
        self._schema = schema
        self._terms = terms
        self._volatile = volatile
        self._value = compile_expression(expression, None, volatile.functions)

    def held_ids(self) -> Iterator[Ints]:
        """Nothing is kept."""
        return iter(())

    def sizes(self) -> dict[str, int]:
        """Nothing is stored."""
        return {}

    def values(self, batch: Ints) -> Iterator[Term | None]:
        """The value for each row; None where there is none."""
        left = allowance()
        for number, ids in enumerate(batch[:, VALUES:].tolist()):
            if number % CHECKED_EVERY == 0:
                left.check_time()
            cells = zip(self._schema, ids, strict=True)
            row = {var: self._terms.decode(i) for var, i in cells if i}
            self._volatile.enter(row)
            try:
                yield self._value(row)
            except ExpressionError:
                yield None

    @staticmethod
    def apart(batch: Ints) -> Ints:
        """Each row as often as it counts."""
        allowance().allow(_bytes_apart(batch))
        apart = np.repeat(batch, np.maximum(batch[:, DIFF], 0), axis=0)
        apart[:, DIFF] = 1
        return apart


class FreshCompute(FreshExpression):
    """One more column."""

    def step(self, batch: Ints) -> Ints:
        """The rows with their values."""
        rows = self.apart(batch)
        ids = [
            0 if value is None else intern_value(self._terms, value) for value in self.values(rows)
        ]
        return np.concatenate([rows, np.array(ids, np.int32).reshape(-1, 1)], axis=1)


@dataclass(frozen=True, slots=True)
class FreshColumns:
    """Several more columns, one after the other."""

    columns: tuple[FreshCompute, ...]
    nbytes: int = 0

    def held_ids(self) -> Iterator[Ints]:
        """Nothing is kept."""
        return iter(())

    def sizes(self) -> dict[str, int]:
        """Nothing is kept."""
        return {}

    def step(self, batch: Ints) -> Ints:
        """The rows with their values."""
        for column in self.columns:
            batch = column.step(batch)
        return batch


class FreshSelect(FreshExpression):
    """The rows for which a condition holds."""

    def step(self, batch: Ints) -> Ints:
        """The rows that pass."""
        rows = self.apart(batch)
        return rows[[self._holds(value) for value in self.values(rows)]]

    @staticmethod
    def _holds(value: Term | None) -> bool:
        try:
            return value is not None and effective_boolean(value)
        except ExpressionError:
            return False


# --- statistics ---

PREDICATE, OBJECT = 1, 2


def measure(
    quads: Ints, terms: TermDictionary, predicates: Collection[Term] | None = None
) -> Statistics:
    """Statistics of quads given as rows of ids, of all predicates or of some.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> terms = TermDictionary()
    >>> a, b, c, knows = (terms.encode(f"<ex:{name}>") for name in ("a", "b", "c", "knows"))
    >>> quads = np.array([[a, knows, b, 0], [c, knows, b, 0]], np.int32)
    >>> next(iter(measure(quads, terms).predicates.values()))
    PredicateStats(count=2, subjects=2, objects=1, subject_hubs={}, object_hubs={})
    """
    if not len(quads):
        return Statistics()
    wanted = None if predicates is None else [terms.lookup(each) for each in predicates]
    counts, subjects, objects, *hubs, subject_rows, object_rows = count_values(quads, wanted)
    subject_hubs = _hubs(hubs[0], counts, subjects)
    object_hubs = _hubs(hubs[1], counts, objects)
    classified = predicates is None or RDF_TYPE in predicates
    typed = np.flatnonzero(quads[:, PREDICATE] == (terms.lookup(RDF_TYPE) if classified else -1))
    classes = np.stack([quads[:, column].take(typed) for column in (0, OBJECT, PREDICATE)], 1)
    sizes, instances, _, _, _, instance_rows, _ = count_values(classes)
    members = [(c, sizes.item(c), instances.item(c)) for c in np.flatnonzero(sizes).tolist()]
    return Statistics(
        len(quads),
        {
            terms.decode(p): PredicateStats(
                counts.item(p),
                subjects.item(p),
                objects.item(p),
                subject_hubs.get(p, {}),
                object_hubs.get(p, {}),
                StoredSample(subject_rows, p, subjects.item(p)),
                StoredSample(object_rows, p, objects.item(p)),
            )
            for p in np.flatnonzero(counts).tolist()
        },
        {c: size for c, size, _ in members},
        instances={c: StoredSample(instance_rows, c, distinct) for c, _, distinct in members},
        name=terms.lookup,
    )


SKEWED = 2.0
"""How many times the quads of a value that a quad has on average are as many with hubs as without:
a column with less is taken as even, since estimates with hubs take longer."""


def _hubs(rows: Ints, counts: Longs, distinct: Longs) -> dict[int, dict[Hashable, int]]:
    """The most frequent values of each predicate whose quads are not spread evenly.

    Rows `[predicate, value, degree]` are in the order of predicates.
    """
    found: dict[int, dict[Hashable, int]] = {}
    for predicate, own in groupby(rows.tolist(), itemgetter(0)):
        hubs = {value: degree for _, value, degree in nlargest(MAX_HUBS, own, itemgetter(2))}
        if _is_skewed(hubs.values(), counts.item(predicate), distinct.item(predicate)):
            found[predicate] = hubs
    return found


def _is_skewed(degrees: Collection[int], count: int, distinct: int) -> bool:
    """Whether some values have so many of the quads that estimates depend on it.

    >>> _is_skewed([20, 20], 100, 62), _is_skewed([3, 3], 100, 60)
    (True, False)
    """
    rest = count - sum(degrees)
    pairs = sum(n * n for n in degrees) + rest * rest / max(distinct - len(degrees), 1)
    return pairs * distinct > SKEWED * count * count


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

    def close(self, *, for_now: bool = False) -> None:
        """Free what only it needed; `for_now`, it may be prepared again."""
        self._registry.plans.let_go(self._numbers, for_now=for_now)


FIRST_REPLAN = 10_000
"""Changes after which plans are looked at, or as many as there are quads: over all changes, that
costs a constant per change."""

SAMPLED_SHARE, MIN_SAMPLED, MAX_SAMPLED = 32, 16, 512
"""Of a batch of changes, one in so many is counted by predicate, and so many at least and most."""


class ChangeRates:
    """How many changes of each predicate were observed, about; what was long ago counts less.

    Since the last look at the plans, also by how many quads each predicate has grown.
    """

    def __init__(self) -> None:
        self._changes: dict[int, float] = {}
        self._at_look: dict[int, float] = {}
        self._growth: dict[int, float] = {}
        self.counted = 0

    def sample(self, changes: Ints, counted: int) -> None:
        """Count the last changes by predicate, for all since the last sample."""
        # A predicate is negative if its quad is deleted: to count numbers takes less than pairs.
        if len(changes) == 1:  # which one call in many has to wait for
            observed = [changes.item(0, VALUES + PREDICATE) * changes.item(0, DIFF)]
        else:
            most = min(max(len(changes) // SAMPLED_SHARE, MIN_SAMPLED), MAX_SAMPLED)
            rows = changes[:: 1 + len(changes) // most]
            observed = (rows[:, VALUES + PREDICATE] * rows[:, DIFF]).tolist()
        each = (counted - self.counted) / max(len(observed), 1)
        for signed, n in Counter(observed).items():
            predicate, growth = abs(signed), n * each
            self._changes[predicate] = self._changes.get(predicate, 0.0) + growth
            growth = growth if signed > 0 else -growth
            self._growth[predicate] = self._growth.get(predicate, 0.0) + growth
        self.counted = counted

    def fade(self) -> None:
        """Let what was observed so far count half: plans are looked at."""
        self._changes = {p: n / 2 for p, n in self._changes.items()}
        self._at_look = self._changes.copy()
        self._growth.clear()

    def since_look(self, predicate: int) -> float:
        """The changes of a predicate, given by id, since the last look at the plans."""
        return self._changes.get(predicate, 0.0) - self._at_look.get(predicate, 0.0)

    def growth(self, predicate: int) -> float:
        """By how many quads a predicate, given by id, has grown since then, about."""
        return self._growth.get(predicate, 0.0)

    def of(self, predicates: Iterable[Term], terms: TermDictionary) -> dict[Term, float]:
        """The changes of some predicates; empty if all together are few."""
        if sum(self._changes.values()) < FIRST_REPLAN / 2:
            return {}
        # By term: the id of one that was freed may mean another.
        return {p: self._changes.get(terms.lookup(p), 0.0) for p in predicates}

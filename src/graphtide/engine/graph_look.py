"""ReadableGraph: what a live graph holds, asked once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from graphtide.algebra.nodes import SelectQuery, Slice
from graphtide.algebra.queries import as_select
from graphtide.algebra.variables import schema
from graphtide.engine.evaluate import Stats, in_order
from graphtide.engine.graph_apply import ApplyingGraph
from graphtide.engine.ingest import ObjectLike, as_term
from graphtide.kernel.batch import DIFF, VALUES
from graphtide.lang.sparql.parse import parse_any_query
from graphtide.plan.choose import choose_plan
from graphtide.rdf.dictionary import HIDDEN_GRAPHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphtide.engine.ingest import Ids
    from graphtide.kernel.batch import Ints
    from graphtide.plan.estimate import Statistics
    from graphtide.rdf.terms import Term


class ReadableGraph(ApplyingGraph):
    """A graph that can be looked at: every look carries out first what waits."""

    def query(self, query: str | SelectQuery) -> pa.Table:
        """Answer a query once, as an Arrow table of N-Triples texts; in its order, if it has one.

        Unlike a standing query it may call NOW, RAND and the like.
        """
        self.settle()
        parsed = as_select(parse_any_query(query)) if isinstance(query, str) else query
        rows = self.rows_once(parsed)
        repeated = np.repeat(rows[:, VALUES:], np.maximum(rows[:, DIFF], 0), axis=0)
        columns = [self.terms.decode_column(column) for column in repeated.T]
        names = [v.name for v in parsed.variables]
        return pa.table(dict(zip(names, columns, strict=True)))

    def rows_once(self, query: SelectQuery) -> Ints:
        """The rows of a query now, as a batch of ids; in its order, if it has one."""
        order = query.root if isinstance(query.root, Slice) else None
        if order is not None:
            query = replace(query, root=order.child, variables=schema(order.child))
        plan = choose_plan(
            query, self.standing.statistics(), strategy="search", union=self._register.union
        )
        rows = self.standing.evaluate(plan)
        return rows if order is None else in_order(rows, plan.root, order, self.terms)

    def __len__(self) -> int:
        self.settle()
        return len(self._store) - self._streams.held()

    def __contains__(self, quad: tuple[ObjectLike | None, ...]) -> bool:
        self.settle()
        *triple, graph = quad if len(quad) == 4 else (*quad, None)
        ids = [self.terms.lookup(as_term(term)) for term in triple]
        ids.append(0 if graph is None else self.terms.lookup(as_term(graph)))
        if 0 in ids[:3] or (graph is not None and ids[3] == 0):
            return False
        return bool(self._store.contains(np.array([ids], np.int32))[0])

    def present(self, quads: Sequence[Ids]) -> list[bool]:
        """Which of some quads, given as ids, are there now."""
        self.settle()
        found: list[bool] = self._store.contains(np.array(quads, np.int32)).tolist()
        return found

    def quads(self) -> Iterator[tuple[Term, Term, Term, Term | None]]:
        """The current quads, in no particular order; the last part is None in the default graph."""
        self.settle()
        decode = self.terms.decode
        for s, p, o, g in self.quad_ids().tolist():
            yield decode(s), decode(p), decode(o), decode(g) if g else None

    def quad_ids(self) -> Ints:
        """The current quads as rows of ids of `graph.terms`."""
        self.settle()
        return self.quad_ids_now()

    def quad_ids_now(self) -> Ints:
        """As `quad_ids`, in the middle of a transaction."""
        quads = self._store.quads()
        if not self._streams:
            return quads
        own: Ints = quads[quads[:, 3] < HIDDEN_GRAPHS]
        return own

    @property
    def transactions(self) -> int:
        """How many transactions there were."""
        self.settle()
        return self._done

    def statistics(self, *, exact: bool = False) -> Statistics:
        """Counts per predicate and class, as the planner sees them: at most a fifth out of date."""
        if exact:
            self.settle()
        return self.standing.statistics(exact=exact)

    def stats(self) -> Stats:
        """What the graph holds and has done."""
        self.settle()
        counts = self._store.counts()
        counts["dropped"] += self._streams.pruned()
        return Stats(
            quads=len(self._store),
            terms=len(self.terms),
            watches=len(self._register),
            searches=len(self.standing.programs),
            indexes=self._store.index_count,
            transactions=self._done,
            clock=self.clock,
            quad_bytes=self._store.nbytes,
            term_bytes=self.terms.nbytes,
            watch_bytes=self.standing.network.nbytes
            + sum(watch.answer_bytes for watch in self._register),
            **counts,
        )

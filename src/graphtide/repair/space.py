"""Space: a private graph that goes from state to state, and what fixes can do there.

To go from one state to another, the quads that differ are changed in one transaction. The queries
of goals and fixes stand on the graph, so a step costs what its changes do to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.functions.templates import fill_template
from graphtide.graph import LiveGraph
from graphtide.kernel.batch import DIFF
from graphtide.kernel.counts import DELTA_VALUES
from graphtide.lang.tide.ast import Insert
from graphtide.repair.state import GraphState, Net, first_state, marked, merge, net_changes, way

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.algebra.expressions import Var
    from graphtide.engine.ingest import Ids
    from graphtide.kernel.batch import Ints
    from graphtide.rdf.terms import Term
    from graphtide.repair.model import Fix, RepairTask
    from graphtide.repair.state import Change, Row


# --- Fork: a private copy of a live graph, on which fixes are tried and taken back.
#
# Nobody who watches the original can notice: the copy has quads, terms and queries of its own. It
# costs a pass over the quads, once; each step on it then costs what its changes cost.


def fork(graph: LiveGraph) -> LiveGraph:
    """A graph with the same quads under the same ids, without windows and standing queries.

    >>> graph = LiveGraph()
    >>> graph.insert("<ex:a>", "<ex:p>", 1)
    >>> copy = fork(graph)
    >>> copy.insert("<ex:a>", "<ex:p>", 2)
    >>> len(graph), len(copy)
    (1, 2)
    """
    if graph.storage != "all":
        raise GraphtideError(
            "this graph does not keep all its quads, so there is nothing to try fixes on",
            hint='use LiveGraph(store="all")',
        )
    quads = graph.quad_ids()
    copy = LiveGraph(default_graph=graph.default_graph, tick_ms=graph.tick_ms)
    # Terms are numbered in the order they come: in order of their ids they get the same ones.
    ids = np.arange(1, len(graph.terms) + 1, dtype=np.int32)
    copy.terms.encode_column(graph.terms.decode_column(ids))
    s, p, o, g = quads.T
    copy.apply_ids(s, p, o, g, tx=np.zeros(len(quads), np.int64))
    copy.clock = graph.clock
    return copy


# --- FixMatches: the rows that a fix can be applied to, kept in step with the answer of its query.


class FixMatches:
    """Rows of a query seen through some of its columns, each once.

    >>> import numpy as np
    >>> matches = FixMatches((1,))
    >>> matches.take(np.array([[0, 1, 0, 7, 8], [0, 1, 0, 9, 8]], np.int32))
    >>> list(matches)
    [(8,)]
    >>> matches.take(np.array([[1, -1, 1, 7, 8], [1, -1, 1, 9, 8]], np.int32))
    >>> list(matches)
    []
    """

    def __init__(self, columns: tuple[int, ...]) -> None:
        self._places = [DELTA_VALUES + column for column in columns]
        self._counts: dict[Row, int] = {}

    def take(self, net: Ints) -> None:
        """Take in a delta, as a watch keeps it."""
        for line in net.tolist():
            row = tuple(line[place] for place in self._places)
            count = self._counts.get(row, 0) + line[DIFF]
            if count:
                self._counts[row] = count
            else:
                self._counts.pop(row, None)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._counts)

    def __contains__(self, row: Row) -> bool:
        return row in self._counts


Option = tuple[int, "Row"]
"""The number of a fix, and a row to which it can be applied."""

UNBOUNDED = 2**62
"""Deltas are taken out after every step: nothing must be forgotten before."""


class Space:
    """Where fixes lead from a graph. The graph itself is only read, once, at the start."""

    def __init__(self, graph: LiveGraph, task: RepairTask) -> None:
        self.graph = fork(graph)
        self.task = task
        self.start = first_state()
        self._here: GraphState | None = self.start
        self._net: Net = {}
        asked = [goal.query for goal in task.goals] + [fix.query for fix in task.fixes]
        watches = {
            query: self.graph.watch(query, history=UNBOUNDED) for query in dict.fromkeys(asked)
        }
        self._watches = list(watches.values())
        self._goals = [watches[goal.query] for goal in task.goals]
        self._fixes = [(watches[fix.query], FixMatches(_columns(fix))) for fix in task.fixes]
        self._wanted: dict[Option, dict[Ids, bool]] = {}
        self._at_start: dict[Ids, bool] = {}
        self._keys: dict[Option, tuple[str, ...]] = {}
        self._take_deltas()
        self.start.counts = self.counts()

    def counts(self) -> tuple[int, ...]:
        """How many rows the query of each goal has here."""
        return tuple(watch.count() for watch in self._goals)

    # --- what can be done here ---

    def options(self) -> list[Option]:
        """What fixes can be applied to here: by declaration, then by the texts of the rows."""
        found = [
            (number, row) for number, (_, matches) in enumerate(self._fixes) for row in matches
        ]
        return sorted(found, key=self._key)

    def can(self, option: Option) -> bool:
        """Whether this row is there to be fixed."""
        return option[1] in self._fixes[option[0]][1]

    def _key(self, option: Option) -> tuple[int, tuple[str, ...]]:
        texts = self._keys.get(option)
        if texts is None:
            text = self.graph.terms.text
            texts = self._keys[option] = tuple(text(i) if i else "" for i in option[1])
        return option[0], texts

    def step(self, state: GraphState, option: Option) -> GraphState | None:
        """Where a fix leads from a state, which must be here; None if it changes nothing."""
        changes = tuple(
            (1 if wanted else -1, quad)
            for quad, wanted in self._wanted_by(option).items()
            if wanted is not self._is_there(quad)
        )
        if not changes:
            return None
        number, row = option
        price = state.price + self.task.fixes[number].cost
        mark = marked(state.mark, changes)
        return GraphState(state, number, row, changes, mark, state.depth + 1, price)

    def bindings(self, option: Option) -> dict[Var, Term]:
        """The values of a row, by variable."""
        fix, decode = self.task.fixes[option[0]], self.graph.terms.decode
        return {v: decode(i) for v, i in zip(fix.variables, option[1], strict=True) if i}

    def _wanted_by(self, option: Option) -> dict[Ids, bool]:
        """Which quads a fix wants to be there, and which not; the last word counts."""
        found = self._wanted.get(option)
        if found is None:
            fix, row = self.task.fixes[option[0]], self.bindings(option)
            found = self._wanted[option] = _filled(fix, row, self.graph)
        return found

    def _is_there(self, quad: Ids) -> bool:
        """Whether a quad is in the graph here."""
        at_start = self._at_start.get(quad)
        if at_start is None:
            decode = self.graph.terms.decode
            *triple, graph = quad
            terms = *(decode(i) for i in triple), decode(graph) if graph else None
            at_start = self._at_start[quad] = (terms in self.graph) is not (quad in self._net)
        return at_start is not (quad in self._net)

    # --- from state to state ---

    def go(self, state: GraphState) -> None:
        """Let the graph be in a state."""
        if state is not self._here:
            ahead = state.parent is not None and state.parent is self._here
            self.change(state.changes if ahead else way(self._net, net_changes(state)))
            self._here = state

    def try_out(self, state: GraphState) -> tuple[int, ...]:
        """What the goals' queries have in a state one step from here; then it is taken back."""
        here = self._here
        self.change(state.changes)
        counts = self.counts()
        self.change([(-diff, quad) for diff, quad in reversed(state.changes)])
        self._here = here
        return counts

    def change(self, changes: Iterable[Change]) -> None:
        """Carry out changes that have an effect, as one transaction."""
        listed = list(changes)
        self._here = None
        if listed:
            self.graph.commit(listed, None)
            merge(self._net, listed)
            self._take_deltas()

    def _take_deltas(self) -> None:
        deltas = {watch.name: watch.drain() for watch in self._watches}
        for watch, matches in self._fixes:
            for net, _ in deltas[watch.name]:
                matches.take(net)


def _columns(fix: Fix) -> tuple[int, ...]:
    return tuple(fix.query.variables.index(variable) for variable in fix.variables)


def _filled(fix: Fix, row: dict[Var, Term], graph: LiveGraph) -> dict[Ids, bool]:
    encode = graph.terms.encode
    wanted: dict[Ids, bool] = {}
    for number, action in enumerate(fix.actions):
        # Blank nodes are named after the fix and the row: the same ones, whenever it is applied.
        for s, p, o, g in fill_template(action.template, row, scope=f"{fix.name} {number}"):
            quad = encode(s), encode(p), encode(o), 0 if g is None else encode(g)
            wanted[quad] = isinstance(action, Insert)
    return wanted

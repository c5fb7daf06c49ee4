"""The search space: a private copy of a graph, its state, and the fixes that apply in a state.

The copy moves between states by one transaction with the quads that differ. The queries of goals
and fixes are watched on it, so the cost of a step depends on its changes, not on the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphtide.engine.runtime import Runtime
from graphtide.errors import GraphtideError
from graphtide.functions.templates import fill_template
from graphtide.kernel.batch import DIFF, Ints
from graphtide.kernel.counts import DELTA_VALUES
from graphtide.lang.tide.ast import Insert
from graphtide.repair import state as states

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphtide.algebra.expressions import Var
    from graphtide.engine.ingest import Ids
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.repair.model import Fix, RepairTask


def fork(runtime: Runtime) -> Runtime:
    """A copy of a graph: same quads, own dictionary, no windows and standing queries."""
    if runtime.storage != "all":
        raise GraphtideError(
            "this graph does not store all quads, so it cannot be repaired",
            hint='use LiveGraph(store="all")',
        )
    runtime.flush()
    quads = runtime.quad_ids()
    copy = Runtime(
        default_graph=runtime.default_graph, tick_ms=runtime.tick_ms, limits=runtime.limits
    )
    used, places = np.unique(quads, return_inverse=True)
    ids = copy.terms.encode_column(runtime.terms.decode_column(used))
    s, p, o, g = ids[places.reshape(-1)].reshape(quads.shape).T
    copy.apply_ids(s, p, o, g, tx=np.zeros(len(quads), np.int64))
    copy.schedule.clock = runtime.clock
    return copy


class FixMatches:
    """The rows that a fix applies to: distinct rows of a query, projected to some columns.

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
        self._columns = [DELTA_VALUES + column for column in columns]
        self._counts: dict[states.Row, int] = {}

    def take(self, net: Ints) -> None:
        """Apply a delta of the query."""
        for line in net.tolist():
            row = tuple(line[column] for column in self._columns)
            count = self._counts.get(row, 0) + line[DIFF]
            if count:
                self._counts[row] = count
            else:
                self._counts.pop(row, None)

    def __iter__(self) -> Iterator[states.Row]:
        return iter(self._counts)

    def __contains__(self, row: states.Row) -> bool:
        return row in self._counts


class Option(NamedTuple):
    """A fix, given by index, and a row to which it applies."""

    fix: int
    row: states.Row


class SearchSpace:
    """States that fixes lead to from a graph. The graph itself is only copied."""

    def __init__(self, runtime: Runtime, task: RepairTask) -> None:
        self.graph = fork(runtime)
        self.task = task
        self.start = states.first_state()
        self._here: states.GraphState | None = self.start
        self._net: states.NetChanges = {}
        asked = [goal.query for goal in task.goals] + [fix.query for fix in task.fixes]
        watches = {query: self.graph.watch(query, history=None) for query in dict.fromkeys(asked)}
        self._watches = list(watches.values())
        self._goals = [watches[goal.query] for goal in task.goals]
        self._fixes = [(watches[fix.query], FixMatches(_columns(fix))) for fix in task.fixes]
        self._effects: dict[Option, dict[Ids, bool]] = {}
        self._at_start: dict[Ids, bool] = {}
        self._keys: dict[Option, tuple[str, ...]] = {}
        self._take_deltas()
        self.start.counts = self.counts()

    def counts(self) -> tuple[int, ...]:
        """The rows of each goal's query in the current state."""
        return tuple(watch.count() for watch in self._goals)

    # --- steps from the current state ---

    def options(self) -> list[Option]:
        """The applicable fixes, ordered by declaration and then by the texts of the rows."""
        found = [
            Option(fix, row) for fix, (_, matches) in enumerate(self._fixes) for row in matches
        ]
        return sorted(found, key=self._key)

    def can(self, option: Option) -> bool:
        """Whether an option is applicable."""
        return option.row in self._fixes[option.fix][1]

    def _key(self, option: Option) -> tuple[int, tuple[str, ...]]:
        texts = self._keys.get(option)
        if texts is None:
            text = self.graph.terms.text
            texts = self._keys[option] = tuple(text(i) if i else "" for i in option.row)
        return option.fix, texts

    def step(self, state: states.GraphState, option: Option) -> states.GraphState | None:
        """The state after a fix; `state` must be the current one. None if nothing changes."""
        changes = tuple(
            (1 if wanted else -1, quad)
            for quad, wanted in self._effects_of(option).items()
            if wanted is not self._contains(quad)
        )
        if not changes:
            return None
        fix, row = option
        price = state.price + self.task.fixes[fix].cost
        fingerprint = states.updated_fingerprint(state.fingerprint, changes)
        return states.GraphState(state, fix, row, changes, fingerprint, state.depth + 1, price)

    def bindings(self, option: Option) -> dict[Var, Term]:
        """The values of a row, by variable."""
        fix, decode = self.task.fixes[option.fix], self.graph.terms.decode
        return {v: decode(i) for v, i in zip(fix.variables, option.row, strict=True) if i}

    def _effects_of(self, option: Option) -> dict[Ids, bool]:
        """The quads that a fix inserts (True) or deletes (False); the last action wins."""
        found = self._effects.get(option)
        if found is None:
            fix, row = self.task.fixes[option.fix], self.bindings(option)
            found = self._effects[option] = _filled(fix, row, self.graph.terms)
        return found

    def _contains(self, quad: Ids) -> bool:
        """Whether a quad is in the graph in the current state."""
        at_start = self._at_start.get(quad)
        if at_start is None:
            present = self.graph.present([quad])[0]
            at_start = self._at_start[quad] = present is not (quad in self._net)
        return at_start is not (quad in self._net)

    # --- moves between states ---

    def move_to(self, state: states.GraphState) -> None:
        """Move the graph to a state."""
        if state is not self._here:
            ahead = state.parent is not None and state.parent is self._here
            self.change(
                state.changes
                if ahead
                else states.changes_between(self._net, states.net_changes(state))
            )
            self._here = state

    def evaluate(self, state: states.GraphState) -> tuple[int, ...]:
        """The rows of the goals' queries in a child of the current state, which stays current."""
        here = self._here
        self.change(state.changes)
        counts = self.counts()
        self.change([(-diff, quad) for diff, quad in reversed(state.changes)])
        self._here = here
        return counts

    def change(self, changes: Iterable[states.Change]) -> None:
        """Commit effective changes as one transaction."""
        listed = list(changes)
        self._here = None
        if listed:
            self.graph.commit(listed, None)
            states.merge(self._net, listed)
            self._take_deltas()

    def _take_deltas(self) -> None:
        deltas = {watch.name: watch.drain() for watch in self._watches}
        for watch, matches in self._fixes:
            for net, _ in deltas[watch.name]:
                matches.take(net)


def _columns(fix: Fix) -> tuple[int, ...]:
    return tuple(fix.query.variables.index(variable) for variable in fix.variables)


def _filled(fix: Fix, row: dict[Var, Term], terms: TermDictionary) -> dict[Ids, bool]:
    encode = terms.encode
    effects: dict[Ids, bool] = {}
    for number, action in enumerate(fix.actions):
        # Blank nodes are determined by the fix and the row: applying it twice gives the same ones.
        for s, p, o, g in fill_template(action.template, row, scope=f"{fix.name} {number}"):
            quad = encode(s), encode(p), encode(o), 0 if g is None else encode(g)
            effects[quad] = isinstance(action, Insert)
    return effects

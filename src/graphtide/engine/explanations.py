"""What a standing query can say about its rows: the quads for `graphtide.why`, from the store.

Nothing is recorded for this. The present quads are in the store; those before the last transactions
are found by undoing the changes that were applied last, which the runtime has until the next ones.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from pyoxigraph import NamedNode

from graphtide.algebra import nodes as alg
from graphtide.algebra.windows import WINDOW_SPACE
from graphtide.engine import ingest
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs
from graphtide.limits import Allowance
from graphtide.rdf.dictionary import HIDDEN_GRAPHS
from graphtide.rdf.terms import parse_term
from graphtide.why import missing, tree
from graphtide.why.explain import RowQuestion
from graphtide.why.render import brief

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from graphtide.engine.query_host import QueryPast
    from graphtide.engine.results import Place
    from graphtide.engine.transaction import Recent
    from graphtide.kernel import QuadStore
    from graphtide.limits import Limits
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term

MAX_DERIVATIONS = 100
"""Derivations of a row that are shown, unless another number is asked for."""


class ExplainingHost(Protocol):
    """The runtime, as far as explanations need it."""

    store: QuadStore
    terms: TermDictionary
    limits: Limits
    recent: Recent | None
    past: QueryPast | None

    @property
    def default_graph(self) -> str:
        """What queries see as their default graph."""

    def settle(self) -> None:
        """Apply buffered changes."""


class WindowEvents(NamedTuple):
    """What explanations need of a query's windows.

    The query as it was written, the graph of the store for each window in it, and the times of the
    events in such a graph that have a triple.
    """

    select: alg.SelectQuery
    graphs: Mapping[Term, Term]
    times: Callable[[int, tuple[int, ...]], tuple[int, ...]]


class StoreQuads:
    """The quads of a store, found by its indexes; where there is none, by one sort for all."""

    def __init__(
        self,
        store: QuadStore,
        terms: TermDictionary,
        windows: WindowEvents | None = None,
        undone: UndoneChanges | None = None,
    ) -> None:
        if not store.stores:
            raise GraphtideError(
                "this graph stores no quads, so its answers cannot be explained",
                hint='use LiveGraph(store="all")',
            )
        self._store = store
        self._terms = terms
        self._windows = windows
        self._undone = undone
        self._all: Ints | None = None
        self._sorted: dict[int, tuple[Longs, Ints]] = {}

    def find(
        self,
        subject: Term | None,
        predicate: Term | None,
        object_: Term | None,
        graph: tree.GraphChoice,
    ) -> Iterator[tree.Fact]:
        """The quads with these terms."""
        ids = [
            -1 if part is None else self._terms.lookup(part)
            for part in (subject, predicate, object_)
        ]
        if 0 in ids:
            return
        decode = self._terms.decode
        for name, wanted in self._graphs(graph):
            for s, p, o, g in self._rows((ids[0], ids[1], ids[2], wanted)).tolist():
                if wanted < 0 and (g >= HIDDEN_GRAPHS or (graph is None and g == 0)):
                    continue
                there = name if wanted >= 0 else (decode(g) if g else None)
                times = self._windows.times(g, (s, p, o)) if self._windows and g == wanted else ()
                yield tree.Fact(decode(s), decode(p), decode(o), there, times)

    def _graphs(self, graph: tree.GraphChoice) -> Iterator[tuple[Term | None, int]]:
        """Names and ids of the graphs to look in; -1 is all of them."""
        match graph:
            case alg.DefaultGraph():
                yield None, 0
            case None | alg.MergedGraph(None):
                yield None, -1
            case alg.MergedGraph(names):
                for name in dict.fromkeys(names or ()):
                    yield from self._graphs(name)
            case NamedNode(value=value) if value.startswith(WINDOW_SPACE):
                named = self._windows.graphs.get(graph, graph) if self._windows else graph
                yield graph, self._terms.hidden_graph(str(named)[1:-1])
            case _:
                found = self._terms.lookup(graph)
                if found:
                    yield graph, found

    def _rows(self, quad: tuple[int, int, int, int]) -> Ints:
        found = self._present(quad)
        return found if self._undone is None else self._undone.before(found, quad)

    def _present(self, quad: tuple[int, int, int, int]) -> Ints:
        if min(quad) >= 0:
            whole = np.array([quad], np.int32)
            return whole[self._store.contains(whole)]
        found = self._store.chain(quad)
        return self._scan(quad) if found is None else found

    def _scan(self, quad: tuple[int, int, int, int]) -> Ints:
        if self._all is None:
            self._all = self._store.quads()
        known = [k for k in (0, 2, 1, 3) if quad[k] >= 0]
        if not known:
            return self._all
        if known[0] not in self._sorted:
            order = np.argsort(self._all[:, known[0]], kind="stable").astype(np.int64)
            self._sorted[known[0]] = order, self._all[order, known[0]]
        by, keys = self._sorted[known[0]]
        begin, end = np.searchsorted(keys, [quad[known[0]], quad[known[0]] + 1]).tolist()
        rows: Ints = self._all[by[begin:end]]
        same: Ints = rows[(rows[:, known] == np.array(quad)[known]).all(axis=1)]
        return same


class UndoneChanges:
    """What restores the quads before some changes: the opposite of the first change of each.

    Changes are looked at as arrays of ids: a transaction may have very many.
    """

    def __init__(self, rows: Ints) -> None:
        quads = rows[:, VALUES:]
        order = np.lexsort(quads.T)  # it is stable: equal quads stay in the order of their changes
        first = np.ones(len(order), np.bool_)
        first[1:] = (quads[order[1:]] != quads[order[:-1]]).any(axis=1)
        self._quads = quads[order[first]]
        self._present = rows[order[first], DIFF] < 0

    def before(self, found: Ints, quad: tuple[int, int, int, int]) -> Ints:
        """The quads that there were, of those that match, given those that there are."""
        mine = _matching(self._quads, quad)
        if not mine.any():
            return found
        changed = set(map(tuple, self._quads[mine].tolist()))
        stays = [tuple(row) not in changed for row in found.tolist()]
        return np.concatenate([found[stays], self._quads[mine & self._present]])


def _matching(quads: Ints, wanted: tuple[int, int, int, int]) -> NDArray[np.bool_]:
    """Which quads have some ids; -1 is any."""
    mine = np.ones(len(quads), np.bool_)
    for column, value in enumerate(wanted):
        if value >= 0:
            mine &= quads[:, column] == value
    return mine


class TransactionChanges:
    """The changes of a transaction, without those that cancel out; decoded when asked for."""

    def __init__(self, rows: Ints, terms: TermDictionary, windows: WindowEvents | None) -> None:
        graphs = {} if windows is None else windows.graphs
        self._windows = {graph: window for window, graph in graphs.items()}
        quads, (which, many) = rows[:, VALUES:], _numbered(rows[:, VALUES:])
        totals = np.zeros(many, np.int64)
        np.add.at(totals, which, rows[:, DIFF])
        _, first = np.unique(which, return_index=True)
        own = np.sort(first[totals != 0])
        self._quads, self._diffs, self._terms = quads[own], totals[which[own]], terms

    def matching(self, patterns: Iterable[Sequence[Term | None]]) -> list[tree.FactChange]:
        """The changes of quads that have the terms of one of some patterns, None being any."""
        mine = np.zeros(len(self._quads), np.bool_)
        for pattern in patterns:
            ids = [-1 if part is None else self._terms.lookup(part) for part in pattern]
            if 0 not in ids:
                mine |= _matching(self._quads, (ids[0], ids[1], ids[2], -1))
        rows = zip(self._quads[mine].tolist(), self._diffs[mine].tolist(), strict=True)
        return [self._change(quad, diff) for quad, diff in rows]

    def _change(self, quad: Sequence[int], diff: int) -> tree.FactChange:
        decode = self._terms.decode
        s, p, o, g = quad
        name: Term | None = None
        if g >= HIDDEN_GRAPHS:
            hidden = NamedNode(self._terms.hidden_name(g))
            name = self._windows.get(hidden, hidden)
        elif g:
            name = decode(g)
        return tree.FactChange(diff, tree.Fact(decode(s), decode(p), decode(o), name))


def _numbered(quads: Ints) -> tuple[Longs, int]:
    """A number for each row, equal for equal ones; and how many numbers there are."""
    order = np.lexsort(quads.T)
    begins = np.zeros(len(order), np.int64)
    begins[1:] = (quads[order[1:]] != quads[order[:-1]]).any(axis=1)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(begins)
    return numbers, int(begins.sum()) + 1 if len(order) else 0


class Moment(NamedTuple):
    """The quads before and after a transaction, and what it changed."""

    before: tree.QuadSource
    after: tree.QuadSource
    changes: TransactionChanges


def moment_of(
    host: ExplainingHost, index: int, windows: WindowEvents | None = None
) -> Moment | None:
    """The graph around a transaction, given by its number; None if its changes are not at hand."""
    recent = host.recent
    applied, generation = recent or (None, 0)
    if applied is None or generation != host.terms.generation:
        return None
    piece, steps, first = applied
    if not first <= index < first + (len(piece[1]) if piece else 1):
        return None
    rows = host.store.effective(steps[0]) if piece else np.concatenate(steps)
    if rows is None:
        return None
    own = rows[:, TX] == index - first
    later = rows[:, TX] > index - first
    before, after = (
        StoreQuads(host.store, host.terms, windows, UndoneChanges(rows[undone]))
        for undone in (own | later, later)
    )
    return Moment(before, after, TransactionChanges(rows[own], host.terms, windows))


# --- questions ---


@contextmanager
def _bounded(limits: Limits) -> Iterator[None]:
    """Explain within the limits of a one-off query; its depth is that of nested generators."""
    try:
        with Allowance(limits, "query"):
            yield
    except RecursionError:
        raise GraphtideError(
            "the query is nested too deeply to be explained",
            hint="ask about a query of fewer nested groups",
        ) from None


def bindings_of(
    columns: tuple[str, ...], row: Mapping[str, object] | None, named: Mapping[str, object]
) -> dict[str, Term | None]:
    """Columns of a row as terms; texts are N-Triples, other values of Python become literals."""
    found: dict[str, Term | None] = {}
    for name, value in {**(row or {}), **named}.items():
        if name not in columns:
            raise GraphtideError(
                f"the query has no column {name!r}", hint=f"its columns are {', '.join(columns)}"
            )
        term = None if value is None else ingest.as_term(value)
        found[name] = parse_term(term) if isinstance(term, str) else term
    return found


def row_text(row: Mapping[str, Term | None]) -> str:
    """A row as text, with IRIs shortened."""
    return " ".join(f"{name}={brief(term)}" for name, term in row.items() if term is not None)


class Explainer:
    """Answers questions about the rows of one query, within the limits of its graph."""

    def __init__(
        self,
        host: ExplainingHost,
        name: str,
        select: alg.SelectQuery,
        windows: WindowEvents | None = None,
    ) -> None:
        host.settle()
        self._windows = windows
        self._host = host
        self._name = name
        self._select = select if windows is None else windows.select

    def _question(self, row: Mapping[str, Term | None]) -> RowQuestion:
        return RowQuestion(self._select, row, union=self._host.default_graph == "union")

    def why(self, row: dict[str, Term | None], *, every: bool, limit: int) -> tree.Explanation:
        """Why a row is in the answer now."""
        with _bounded(self._host.limits):
            whole = None if every else self._question(row).row(self.now())
            row = row if whole is None else whole
            found, more = self._derive(row, self.now(), every=every, limit=limit)
        if not found and self._windows is not None:
            left = self._left_window(row, every=every, limit=limit)
            if left is not None:
                return left
        if not found:
            raise GraphtideError(
                f"{row_text(row) or 'such a row'} is not in the answer of {self._name}",
                hint="why_not(…) says what is missing",
            )
        return self._explanation(row, f"{row_text(row) or 'a row'} is in {self._name}", found, more)

    def _left_window(
        self, row: dict[str, Term | None], *, every: bool, limit: int
    ) -> tree.Explanation | None:
        """Why a row was in the answer until the last closes, as DSTREAM puts it out; else None."""
        applied, _ = self._host.recent or (None, 0)
        if applied is None:
            return None
        piece, _, first = applied
        for index in reversed(range(first, first + (len(piece[1]) if piece else 1))):
            with _bounded(self._host.limits):
                moment = moment_of(self._host, index, self._windows)
                if moment is None or not self._question(row).copies(moment.before, 1):
                    continue
                found, more = self._derive(row, moment.before, every=every, limit=limit)
                changes = self._question(row).cause(*moment, -1)
            when = "" if piece is None else f" at {int(piece[1][index - first])}"
            title = f"{row_text(row) or 'a row'} left {self._name}{when}"
            by = "this was so before; it ended with"
            return self._explanation(row, title, found, more, changes, by)
        return None

    def why_not(self, row: dict[str, Term | None]) -> tree.Explanation:
        """Why a row is not in the answer now, and changes with which it would be."""
        question, now = self._question(row), self.now()
        asked = row_text(row) or "a row"
        with _bounded(self._host.limits):
            if question.copies(now, 1):
                found, _ = self._derive(row, now, every=False, limit=1)
                return self._explanation(row, f"{asked} is in {self._name}", found)
            failure = missing.root_failure(question, now)
            changes = missing.counter_change(question, now, failure)
        notes = () if changes else ("no change of a few quads was found with which it would be",)
        title = f"{asked} is not in {self._name}"
        steps = [failure.step]
        return self._explanation(row, title, steps, False, changes, "it would be with", notes)

    def now(self) -> tree.QuadSource:
        """The present quads."""
        return StoreQuads(self._host.store, self._host.terms, self._windows)

    def why_moved(
        self,
        row: dict[str, Term | None],
        diff: int,
        place: Place,
        time: int,
        *,
        every: bool,
        limit: int,
    ) -> tree.Explanation:
        """Why a row came with a transaction, or went."""
        moment = moment_of(self._host, place.position) or self._past_moment(place)
        with _bounded(self._host.limits):
            verb = "came into" if diff > 0 else "left"
            title = f"{row_text(row) or 'a row'} {verb} {self._name} at {time}"
            if moment is None:
                found, more = self._derive(row, self.now(), every=every, limit=limit)
                note = "the changes of that transaction are not retained: this is the graph now"
                if not found:
                    note += ", in which the row is not in the answer"
                return self._explanation(row, title, found, more, notes=(note,))
            state = moment.after if diff > 0 else moment.before
            found, more = self._derive(row, state, every=every, limit=limit)
            changes = self._question(row).cause(*moment, diff)
        notes = () if changes else ("no change of that transaction: the row was there before",)
        by = "because of" if diff > 0 else "this was so before; it ended with"
        return self._explanation(row, title, found, more, changes, by, notes)

    def _past_moment(self, place: Place) -> Moment | None:
        """The graph around an older transaction, if a store has it, and by itself.

        What rules derive from an input is replayed at once: only the last such transaction is.
        """
        try:
            past = self._host.past
            if past is None:
                return None
            return moment_of(past.host_after(place.seq + 1), place.position)
        except GraphtideError:  # it is older than what the store retains
            return None

    def _derive(
        self, row: dict[str, Term | None], source: tree.QuadSource, *, every: bool, limit: int
    ) -> tuple[list[tree.WhyStep], bool]:
        found, more = self._question(row).derivations(source, limit if every else 1, each=every)
        return found, more and every

    def _explanation(
        self,
        row: dict[str, Term | None],
        title: str,
        found: list[tree.WhyStep],
        more: bool = False,  # noqa: FBT001, FBT002 - whether there are more derivations
        changes: Iterable[tree.FactChange] = (),
        by: str = "",
        notes: tuple[str, ...] = (),
    ) -> tree.Explanation:
        stopped = (f"stopped after {len(found)} derivations",) if more else ()
        return tree.Explanation(
            self._name, row, title, tuple(found), tuple(changes), (*notes, *stopped), by
        )

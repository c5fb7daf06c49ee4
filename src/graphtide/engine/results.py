"""What queries give back: deltas, results of windows, and Arrow tables of answers.

Rows are stored as ids; they become terms when somebody looks at them, and not before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast, overload

import numpy as np
import pyarrow as pa

from graphtide.engine.explanations import MAX_DERIVATIONS
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import DIFF, TX, Ints, Longs
from graphtide.kernel.counts import COUNT_BEFORE, DELTA_VALUES
from graphtide.rdf.holders import flat_ids
from graphtide.rdf.terms import Term, unescape

if TYPE_CHECKING:
    from graphtide.engine.runtime import Runtime
    from graphtide.engine.watch import Query
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.why.tree import Explanation

SHOWN_ROWS: Final = 20
"""Rows of a table that a notebook shows."""


class TransactionTimes(NamedTuple):
    """Time and transaction number of each transaction of a batch.

    `first` is the position of the first of them among all that the graph has applied: transactions,
    and closes of windows, of which there were `closes` before. Closes have no sequence numbers, so
    the numbers of transactions do not depend on which windows there are.

    >>> times = TransactionTimes([17, 18], [0, 1], first=5, closes=2)
    >>> times.stamp(1), times.seq(1)
    ((18, 1), 4)
    """

    times: Sequence[int] | Longs
    txs: Sequence[int] | Longs
    first: int
    closes: int = 0

    def seq(self, index: int) -> int:
        """Returns the sequence number of one transaction of the batch."""
        return self.first - self.closes + index

    def stamp(self, index: int) -> tuple[int, int]:
        """The time and number of one transaction of the batch."""
        return int(self.times[index]), int(self.txs[index])


# --- deltas ---


class Place(NamedTuple):
    """A transaction: its position among all that was applied, and its sequence number."""

    position: int
    seq: int


class Explaining(Protocol):
    """A query, as far as a row needs it to explain itself."""

    def why_moved(self, row: DeltaRow, place: Place, *, every: bool, limit: int) -> Explanation:
        """Why a row came or went with a transaction."""


@dataclass(frozen=True, slots=True)
class DeltaRow:
    """One row of a delta: `diff` more (or, negative, fewer) copies of `row` in the answer.

    `why()` says which quads and which change of the transaction made it come or go.

    >>> from pyoxigraph import Literal
    >>> print(DeltaRow(time=17, tx=0, diff=-1, row={"x": Literal("a"), "y": None}))
    - x="a"
    """

    time: int
    tx: int
    diff: int
    row: dict[str, Term | None]
    _query: Explaining | None = field(default=None, repr=False, compare=False)
    _place: Place = field(default=Place(-1, -1), repr=False, compare=False)

    def why(
        self,
        *,
        all: bool = False,  # noqa: A002 - the user's word
        limit: int = MAX_DERIVATIONS,
    ) -> Explanation:
        """Why the row came or went; with `all`, every derivation of it, up to `limit`.

        The changes of the last transactions are at hand until others are applied; those of older
        ones are in the journal of a durable graph. Else the explanation is that of the graph now,
        and says so.
        """
        if self._query is None:
            raise GraphtideError(
                "this row is not of a query in this process, so its quads are not known",
                hint="ask a row of query.delta(), query.deltas() or query.rows()",
            )
        return self._query.why_moved(self, self._place, every=all, limit=limit)

    def __str__(self) -> str:
        sign = "+" if self.diff > 0 else "-"
        times = f"{abs(self.diff)}× " if abs(self.diff) > 1 else ""
        values = " ".join(f"{name}={term}" for name, term in self.row.items() if term is not None)
        return f"{sign} {times}{values}".rstrip()


class Delta(Sequence[DeltaRow]):
    """The rows that one or more transactions added to an answer and removed from it.

    They are decoded when somebody looks at them: who makes one registers it with `terms.holders`.
    """

    __slots__ = ("__weakref__", "_net", "_query", "_stamps", "_terms", "_variables")

    def __init__(
        self,
        net: Ints,
        stamps: TransactionTimes,
        variables: tuple[str, ...],
        terms: TermDictionary,
        query: Explaining | None = None,
    ) -> None:
        self._query = query
        self._net = net
        self._stamps = stamps
        self._variables = variables
        self._terms = terms

    def held_ids(self) -> Iterator[Ints]:
        """The ids of the rows."""
        yield self._net[:, DELTA_VALUES:]

    @property
    def time(self) -> int | None:
        """The time of its (first) transaction; None if there is no row."""
        return self._stamps.stamp(self._net[0, TX])[0] if len(self._net) else None

    @property
    def tx(self) -> int | None:
        """The number of its (first) transaction; None if there is no row."""
        return self._stamps.stamp(self._net[0, TX])[1] if len(self._net) else None

    @property
    def seq(self) -> int:
        """The number of its (last) transaction among all of the graph; -1 if there is no row."""
        return self._stamps.seq(int(self._net[-1, TX])) if len(self._net) else -1

    def __len__(self) -> int:
        return len(self._net)

    def __iter__(self) -> Iterator[DeltaRow]:
        return (self._row(line) for line in self._net.tolist())

    @overload
    def __getitem__(self, index: int) -> DeltaRow: ...
    @overload
    def __getitem__(self, index: slice) -> Delta: ...
    def __getitem__(self, index: int | slice) -> DeltaRow | Delta:
        """One row, or a slice of the delta."""
        if isinstance(index, slice):
            return self._part(self._net[index])
        return self._row(self._net[index].tolist())

    def added(self) -> Delta:
        """The rows with more copies than before."""
        return self._part(self._net[self._net[:, DIFF] > 0])

    def removed(self) -> Delta:
        """The rows with fewer copies than before."""
        return self._part(self._net[self._net[:, DIFF] < 0])

    def appeared(self) -> Delta:
        """The rows whose count rose from 0."""
        net = self._net
        return self._part(net[(net[:, COUNT_BEFORE] == 0) & (net[:, DIFF] > 0)])

    def disappeared(self) -> Delta:
        """The rows whose count fell to 0."""
        net = self._net
        return self._part(net[(net[:, DIFF] < 0) & (net[:, COUNT_BEFORE] + net[:, DIFF] == 0)])

    def by_transaction(self) -> Iterator[Delta]:
        """The delta of each transaction, oldest first."""
        starts = np.flatnonzero(np.diff(self._net[:, TX], prepend=-1)).tolist()
        for begin, end in zip(starts, [*starts[1:], len(self._net)], strict=True):
            yield self._part(self._net[begin:end])

    def _part(self, net: Ints) -> Delta:
        part = Delta(net, self._stamps, self._variables, self._terms, self._query)
        self._terms.holders.add(part)
        return part

    def _row(self, line: list[int]) -> DeltaRow:
        time, tx = self._stamps.stamp(line[TX])
        values = {
            name: self._terms.decode(i) if i else None
            for name, i in zip(self._variables, line[DELTA_VALUES:], strict=True)
        }
        place = Place(self._stamps.first + line[TX], self._stamps.seq(line[TX]))
        return DeltaRow(time, tx, line[DIFF], values, self._query, place)

    def __repr__(self) -> str:
        return "\n".join(str(row) for row in self) or "(no change)"

    def _repr_html_(self) -> str:
        rows = [
            (f"{row.diff:+d}", *("" if v is None else str(v) for v in row.row.values()))
            for row in self[:SHOWN_ROWS]
        ]
        return html_table(("±", *self._variables), rows, len(self))


# --- results of windows ---


class WindowResult(Sequence["dict[str, Term | None]"]):
    """What a windowed query reports when a window closes: a time and rows of terms."""

    __slots__ = ("__weakref__", "_rows", "_terms", "_variables", "time")

    def __init__(
        self,
        time: int,
        rows: list[tuple[int, ...]],
        variables: tuple[str, ...],
        terms: TermDictionary,
    ) -> None:
        self.time = time
        self._rows = rows
        self._variables = variables
        self._terms = terms
        terms.holders.add(self)

    def held_ids(self) -> Iterator[Longs]:
        """The ids of the rows."""
        yield flat_ids(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Term | None]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Term | None]]: ...
    def __getitem__(
        self, index: int | slice
    ) -> dict[str, Term | None] | list[dict[str, Term | None]]:
        """One row by variable names, or some of them."""
        if isinstance(index, slice):
            return [self._row(row) for row in self._rows[index]]
        return self._row(self._rows[index])

    def __iter__(self) -> Iterator[dict[str, Term | None]]:
        return map(self._row, self._rows)

    def _row(self, row: tuple[int, ...]) -> dict[str, Term | None]:
        decode = self._terms.decode
        return {v: decode(i) if i else None for v, i in zip(self._variables, row, strict=True)}

    def __str__(self) -> str:
        bound = ({v: term for v, term in row.items() if term is not None} for row in self)
        lines = [" ".join(f"{name}={term}" for name, term in row.items()) for row in bound]
        return "\n".join([f"at {self.time}", *(f"  {line}" for line in lines)])

    def __repr__(self) -> str:
        return f"<WindowResult at {self.time}: {len(self)} rows>"


class ResultRun(NamedTuple):
    """Consecutive results in columns: their times, where the rows of each begin, and all rows."""

    times: Longs
    starts: Longs
    rows: Ints

    def last(self, count: int) -> ResultRun:
        """The last `count` of them, at least one."""
        if count >= len(self.times):
            return self
        starts = self.starts[-count - 1 :]
        rows = self.rows[starts[0] :].copy()
        return ResultRun(self.times[-count:].copy(), starts - starts[0], rows)


MAX_RESULTS: Final = 10_000
"""Results that a log retains; those without a row cost something, too."""

LARGE_LOG: Final = 1000
"""A log of more rows than this evicts a quarter of them at a time."""


class ResultLog:
    """The last results of a query, oldest first, in columns: most are never looked at.

    At most `limit` results, with at most so many `rows` together; None is no bound on either. The
    last result is always there. `gone` counts the rows of those that are not: the `evicted` ones,
    and those that are left to be evicted together.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> log = ResultLog(("x",), TermDictionary(), rows=2)
    >>> rows = np.array([[7], [8], [9]], np.int32)
    >>> log.add(ResultRun(np.array([1, 2, 3]), np.array([0, 1, 1, 3]), rows))
    >>> list(log), log.gone
    ([<WindowResult at 2: 0 rows>, <WindowResult at 3: 2 rows>], 1)
    """

    def __init__(
        self,
        variables: tuple[str, ...],
        terms: TermDictionary,
        *,
        rows: int | None,
    ) -> None:
        self.evicted = 0
        self._limit = MAX_RESULTS if rows is not None else None
        self._rows = rows
        self._variables = variables
        self._terms = terms
        self._runs: deque[ResultRun] = deque()
        self._results = 0
        self._held = 0

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all rows."""
        for run in self._runs:
            yield run.rows

    def savepoint(self) -> tuple[Any, ...]:
        """What `roll_back` needs."""
        return tuple(self._runs), self._results, self._held, self.evicted

    def roll_back(self, to: tuple[Any, ...]) -> None:
        """Go back to a savepoint."""
        runs, self._results, self._held, self.evicted = to
        self._runs = deque(runs)

    @property
    def gone(self) -> int:
        """The rows of all results that are not there any more."""
        surplus, rows = self._results - len(self), self.evicted
        for run in self._runs:
            if not surplus:
                break
            many = min(surplus, len(run.times))
            surplus, rows = surplus - many, rows + int(run.starts[many])
        return rows

    @property
    def is_bounded(self) -> bool:
        """True if not all results are retained."""
        return self._limit is not None

    def most(self, rows: int) -> int:
        """Return how many results with this many rows evict all that came before them."""
        most = MAX_RESULTS + MAX_RESULTS // 4 + 1
        return most if not rows or self._rows is None else min(most, self._rows // rows + 2)

    def add(self, run: ResultRun) -> None:
        """Append results and evict the oldest."""
        if not len(run.times):
            return
        self._runs.append(run)
        self._results += len(run.times)
        self._held += len(run.rows)
        if self._rows is not None and self._held > self._rows:
            spare = self._rows // 4 if self._rows > LARGE_LOG else 0
            self._evict(self._results, max(self._rows - spare, 0))
        if self._limit is not None and self._results > self._limit + self._limit // 4:
            self._evict(self._limit, self._held)

    def _evict(self, results: int, rows: int) -> None:
        """Drop the oldest results until so many results and rows are left; never the last one."""
        while self._results > 1 and (self._results > results or self._held > rows):
            run = self._runs.popleft()
            size = len(run.times)
            for_rows = int(run.starts.searchsorted(self._held - rows))
            many = min(max(self._results - results, for_rows), size, self._results - 1)
            dropped = int(run.starts[many])
            if many < size:
                self._runs.appendleft(run.last(size - many))
            self._results -= many
            self._held -= dropped
            self.evicted += dropped

    def newest(self, many: int) -> list[WindowResult]:
        """The last of them, oldest first."""
        return (
            list(self)[-many:]
            if many > 1
            else [last for last in (self.last(),) if last is not None]
        )

    def __len__(self) -> int:
        return self._results if self._limit is None else min(self._results, self._limit)

    def __iter__(self) -> Iterator[WindowResult]:
        surplus = self._results - len(self)
        for run in list(self._runs):
            for index in range(min(surplus, len(run.times)), len(run.times)):
                yield self._result(run, index)
            surplus = max(0, surplus - len(run.times))

    def last(self) -> WindowResult | None:
        """The last result, if there is one."""
        return self._result(self._runs[-1], len(self._runs[-1].times) - 1) if self._runs else None

    def _result(self, run: ResultRun, index: int) -> WindowResult:
        rows = run.rows[run.starts[index] : run.starts[index + 1]]
        found = [tuple(row) for row in rows.tolist()]
        return WindowResult(int(run.times[index]), found, self._variables, self._terms)


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts since the graph was made, and sizes now. Bytes include reserved space."""

    quads: int
    terms: int
    queries: int
    searches: int
    indexes: int
    transactions: int
    inserted: int
    deleted: int
    redundant: int
    dropped: int
    clock: int
    quad_bytes: int
    term_bytes: int
    query_bytes: int
    bytes_per_quad: float
    bytes_per_term: float
    replans: int
    replanning: int
    replan_seconds: float


# --- tables ---

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_ARROW: Final[Mapping[str, tuple[str, tuple[pa.DataType, ...]]]] = {
    "integer": (r"[+-]?[0-9]+", (pa.int64(),)),
    "double": (
        r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN",
        (pa.float64(),),
    ),
    "boolean": (r"true|false|1|0", (pa.bool_(),)),
    "dateTime": (
        r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}(\.[0-9]+)?(Z|[+-]((0\d|1[0-3]):[0-5]\d|14:00))?",
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
    ),
    "date": (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", (pa.date32(),)),
}
"""By XSD type, the form of its values, as Arrow reads more than these; and the Arrow types that are
tried, in order."""


def answer_table(
    variables: Sequence[str], rows: Ints, terms: TermDictionary, *, texts: bool
) -> pa.Table:
    """Rows of ids as an Arrow table: typed columns, or N-Triples `texts`."""
    if not variables:  # without a column, `pa.table` has no row
        empty = cast("pa.StructArray", pa.array([{}] * len(rows), pa.struct([])))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(empty)])
    columns = [terms.decode_column(np.ascontiguousarray(column)) for column in rows.T]
    return pa.table(
        {
            name: column if texts else typed_column(column)
            for name, column in zip(variables, columns, strict=True)
        }
    )


def typed_column(texts: pa.Array[Any]) -> pa.Array[Any]:
    """N-Triples texts as values, if all are literals of one XSD type; else as they are.

    Integers become int64, doubles float64, booleans bool, dateTimes timestamps, dates dates and
    plain strings their characters. A value that the Arrow type cannot hold, or a literal that is
    ill-typed, keeps the column as it is: text.

    >>> typed_column(pa.array(['"7"^^<http://www.w3.org/2001/XMLSchema#integer>', None])).type
    DataType(int64)
    >>> typed_column(pa.array(['"a"', '"b"'])).to_pylist(), typed_column(pa.array(["<ex:a>"]))[0]
    (['a', 'b'], <pyarrow.StringScalar: '<ex:a>'>)
    """
    kernels: Any = import_module("pyarrow.compute")  # which a start need not wait for
    bound = texts.drop_null()
    first = bound[0].as_py() if len(bound) else ""
    lexical, _, datatype = first.rpartition('"^^')
    if lexical.startswith('"') and datatype.startswith(f"<{_XSD}"):
        suffix = f'"^^{datatype}'
        if not kernels.all(kernels.ends_with(texts, suffix)).as_py():
            return texts
        lexicals = kernels.utf8_slice_codeunits(texts, 1, -len(suffix))
        return _cast(lexicals, datatype[len(_XSD) + 1 : -1], texts)
    if first.startswith('"') and first.endswith('"'):
        plain = kernels.and_(kernels.starts_with(texts, '"'), kernels.ends_with(texts, '"'))
        if not kernels.all(plain).as_py():
            return texts
        values: pa.Array[Any] = kernels.utf8_slice_codeunits(texts, 1, -1)
        escaped = kernels.any(kernels.match_substring(values, "\\")).as_py()
        if escaped:
            plain_texts = [v if v is None else unescape(v) for v in values.to_pylist()]
            return pa.array(plain_texts, pa.string())
        return values
    return texts


def _cast(values: pa.Array[Any], name: str, texts: pa.Array[Any]) -> pa.Array[Any]:
    kernels: Any = import_module("pyarrow.compute")  # which a start need not wait for
    form, types = _ARROW.get(name, ("", ()))
    if not types or not kernels.all(kernels.match_substring_regex(values, f"^({form})$")).as_py():
        return texts
    for kind in types:
        try:
            bare = kernels.replace_substring_regex(values, r"^\+", "")
            cast: pa.Array[Any] = kernels.cast(bare, kind)
        except pa.ArrowInvalid:
            continue
        return cast
    return texts


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]], total: int) -> str:
    """A table for notebooks, every text escaped; says so if it does not show all rows.

    >>> html_table(["x"], [["<a>"]], 1)
    '<table><tr><th>x</th></tr><tr><td>&lt;a&gt;</td></tr></table>'
    """
    shown = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    more = f"<p>{len(shown)} of {total:,} rows</p>" if total > len(shown) else ""
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in shown)}</table>{more}"


def html_queries(queries: Sequence[Query]) -> str:
    """The first queries of a graph as a table."""
    rows: list[list[Any]] = [
        [query.name, query.strategy, ", ".join(query.variables), f"{query.count():,}"]
        for query in queries[:SHOWN_ROWS]
    ]
    return html_table(["query", "strategy", "variables", "rows"], rows, len(queries))


def graph_stats(runtime: Runtime, dropped: int) -> Stats:
    """What a graph holds and has done; streams have `dropped` so many triples."""
    plans, counts = runtime.queries.plans, runtime.store.counts()
    counts["dropped"] += dropped
    quads, terms = len(runtime.store), len(runtime.terms)
    return Stats(
        quads=quads,
        terms=terms,
        queries=len(runtime.queries),
        searches=len(plans.programs),
        indexes=runtime.store.index_count,
        transactions=runtime.transactions,
        clock=runtime.clock,
        quad_bytes=runtime.store.nbytes,
        term_bytes=runtime.terms.nbytes,
        query_bytes=plans.network.nbytes + sum(q.answer_bytes for q in runtime.queries),
        bytes_per_quad=round(runtime.store.nbytes / max(quads, 1), 1),
        bytes_per_term=round(runtime.terms.nbytes / max(terms, 1), 1),
        replans=runtime.queries.replans,
        replanning=runtime.queries.replanning,
        replan_seconds=runtime.queries.replan_seconds,
        **counts,
    )

"""QueryWindows: the windows of a standing query, and what it puts out each time they close.

ISTREAM   the rows added since the close before
DSTREAM   the rows removed
RSTREAM   all rows
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from graphtide.algebra.nodes import SelectQuery, Values
from graphtide.engine.explanations import WindowEvents
from graphtide.engine.results import ResultLog, ResultRun, WindowResult
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs, make_batch
from graphtide.kernel.counts import DELTA_VALUES, consolidate
from graphtide.rdf.holders import flat_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from graphtide.algebra.windows import WindowClause, WindowedQuery
    from graphtide.engine.evaluate import PreparedQuery
    from graphtide.engine.results import TransactionTimes
    from graphtide.engine.runtime import Runtime
    from graphtide.engine.watch import Query
    from graphtide.streams.pruning import Asked
    from graphtide.streams.stream import Stream

Row = tuple[int, ...]
History = tuple["Ints", "TransactionTimes"]
"""Deltas of a query in bulk."""

NO_STARTS: Final[Longs] = np.zeros(2, np.int64)
"""Where the rows of a result without rows begin and end."""

NO_ROWS: Final = SelectQuery((), Values((), ()))
"""Stands in for a query that is evaluated again at every close: it has a name and costs nothing."""


class QueryWindows:
    """Connects a standing query to its windows: collects its changes, puts out results.

    With `reevaluated`, the answer is not maintained but evaluated at every close, to compare. Its
    plan and its indexes are kept in between.
    """

    def __init__(
        self,
        runtime: Runtime,
        windowed: WindowedQuery,
        query: Query,
        windows: Mapping[int, tuple[Stream, Asked]],
        closed: Callable[[QueryWindows], None],
        history: int | None,
        reevaluated: SelectQuery | None = None,
    ) -> None:
        self.windowed = windowed
        self.query = query
        self.windows = {graph: asked for graph, (_, asked) in windows.items()}
        self.reevaluated = reevaluated
        select = reevaluated or query.plan
        self.variables = tuple(v.name for v in select.variables)
        self.events = WindowEvents(windowed.select, {}, lambda _graph, _triple: ())
        self._runtime = runtime
        self._closed = closed
        self._results = ResultLog(self.variables, runtime.terms, rows=history)
        self._pending: Counter[Row] = Counter()
        self._answer: Counter[Row] = Counter()
        self._prepared = None if reevaluated is None else runtime.queries.prepare(reevaluated)
        self._evaluated: Ints = make_batch([], len(self.variables))
        self._nothing: Ints = np.empty((0, len(self.variables)), np.int32)
        self._callbacks: list[Callable[[WindowResult], object]] = []
        runtime.terms.holders.add(self)

    def held_ids(self) -> Iterator[Ints | Longs]:
        """The ids of the answer, of changes that wait for a close, and of the results."""
        yield flat_ids(self._pending)
        yield flat_ids(self._answer)
        yield np.ascontiguousarray(self._evaluated[:, VALUES:])
        yield from self._results.held_ids()

    @property
    def name(self) -> str:
        """The query's name."""
        return self.query.name

    # --- what the query handle asks for ---

    def results(self) -> list[WindowResult]:
        """The retained results, oldest first."""
        self._runtime.flush()
        return list(self._results)

    def last(self) -> WindowResult | None:
        """The last result, if there is one."""
        self._runtime.flush()
        return self._results.last()

    def on_result(self, callback: Callable[[WindowResult], object]) -> None:
        """Call back with every result."""
        self._runtime.flush()
        self._callbacks.append(callback)
        self._runtime.notify_each(self.query)

    @property
    def evicted(self) -> int:
        """How many rows of results are not retained any more."""
        return self._results.gone

    def count(self, rows: int) -> int:
        """How many rows the answer has, duplicates counted, whatever is put out of them."""
        return rows if self._prepared is None else int(self._evaluated[:, DIFF].sum())

    def explain(self, plan: str) -> str:
        """The windows, what is put out, and the plan."""
        if self._prepared is not None:
            return f"output {self.windowed.output}\nevaluated again at every close"
        return f"{explain_windows(self.windowed)}\n{plan}"

    def dump(self) -> dict[str, Any]:
        """Where its windows are, what it has to put out, and its answer of the last close."""
        nothing = np.empty(0, np.int64)
        self.take(nothing, nothing)  # changes since the last close wait for the next one
        answer = self._answer if self._prepared is None else _counted(self._evaluated)
        parts, width = (self._pending, answer), len(self.variables)
        return {
            "places": {str(w)[1:-1]: str(g)[1:-1] for w, g in self.events.graphs.items()},
            "rows": [np.array(list(p), np.int32).reshape(len(p), width) for p in parts],
            "counts": [np.array(list(p.values()), np.int64) for p in parts],
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with a saved state."""
        self._pending, self._answer = (
            Counter(dict(zip(map(tuple, rows.tolist()), counts.tolist(), strict=True)))
            for rows, counts in zip(saved["rows"], saved["counts"], strict=True)
        )
        lines = [(0, count, *row) for row, count in self._answer.items()]
        self._evaluated = make_batch(lines, len(self.variables))

    def close(self) -> None:
        """Free the windows that no other query needs."""
        self._closed(self)
        if self._prepared is not None:
            self._runtime.queries.forget(self._prepared)

    def savepoint(self) -> tuple[Any, ...]:
        """What `roll_back` needs."""
        rows = self._pending.copy(), self._answer.copy()
        return (*rows, self._evaluated, self._results.savepoint())

    def roll_back(self, to: tuple[Any, ...]) -> None:
        """A piece of input was interrupted: go back to before it."""
        pending, answer, self._evaluated, results = to
        self._pending, self._answer = pending.copy(), answer.copy()
        self._results.roll_back(results)

    # --- closes ---

    @property
    def is_settled(self) -> bool:
        """True if a close that changes nothing repeats the last result, which nobody else gets."""
        waits = self._pending or self.query.history() or self._callbacks
        return self._prepared is None and self._results.is_bounded and not waits

    def repeat(self, times: Longs, period: int, many: int) -> None:
        """Put out the same result at some times, and again in each of some periods."""
        repeated = self._answer.elements() if self.windowed.output == "RSTREAM" else ()
        rows = np.array(list(repeated), np.int32).reshape(-1, len(self.variables))
        total, size = many * len(times), len(rows)
        made = min(total, self._results.most(size))
        last = np.arange(max(0, many - made // len(times) - 1), many)
        every = (times + period * last[:, None]).reshape(-1)[-made:]
        starts = np.arange(made + 1, dtype=np.int64) * size
        self._results.evicted += (total - made) * size
        self._results.add(ResultRun(every, starts, np.tile(rows, (made, 1))))

    def take(self, numbers: Longs, times: Longs) -> None:
        """Put out results for closes, given as transaction numbers and times; all or none."""
        pending, answer, evaluated = dict(self._pending), dict(self._answer), self._evaluated
        history = self.query.history()
        try:
            run = self._results_of(numbers, times)
            self._results.add(run)
        except BaseException:
            self._pending, self._answer = Counter(pending), Counter(answer)
            self._evaluated = evaluated
            self.query.put_back(history)
            raise

    def call_back(self, many: int) -> None:
        """Let the callbacks run with the last results, so many, when the input is through."""
        if self._callbacks:
            results = self._results.newest(many)
            calls = [partial(call, result) for result in results for call in self._callbacks]
            self._runtime.schedule.notices.extend(calls)

    def _results_of(self, numbers: Longs, times: Longs) -> ResultRun:
        if self._prepared is not None:
            outputs = []
            for _ in times:
                self._reevaluate(self._prepared)
                outputs.append(self._output())
            return self._run_of(times, outputs)
        one_by_one = self._pending or self.windowed.output == "RSTREAM"
        sign, drained = 1 if self.windowed.output == "ISTREAM" else -1, self.query.drain()
        if len(times) == 1 and not one_by_one and _at_close(numbers.item(), drained):
            return self._at_one_close(times, sign, drained)
        changes = self._changes(drained)
        at = np.searchsorted(numbers, changes[:, TX])
        if one_by_one or not _only_at_closes(numbers, at, changes):
            return self._run_of(times, self._each_output(numbers, changes))
        counts = np.maximum(sign * changes[:, DIFF], 0)
        rows = np.repeat(changes[:, VALUES:], counts, axis=0).astype(np.int32)
        sizes = np.bincount(at, counts, minlength=len(times)).astype(np.int64)
        return ResultRun(times, np.concatenate([[0], np.cumsum(sizes)]), rows)

    def _at_one_close(self, times: Longs, sign: int, drained: list[History]) -> ResultRun:
        """The rows of one close, which had one transaction or none."""
        if not drained:
            return ResultRun(times, NO_STARTS, self._nothing)
        net = drained[0][0]
        rows = net[:, DELTA_VALUES:]
        if len(net) > 1 or net.item(0, DIFF) != sign:
            rows = np.repeat(rows, np.maximum(sign * net[:, DIFF], 0), axis=0)
        return ResultRun(times, np.array((0, len(rows)), np.int64), rows)

    def _run_of(self, times: Longs, outputs: Iterable[Counter[Row]]) -> ResultRun:
        """The rows of each close, one after the other."""
        parts = [[row for row, n in output.items() for _ in range(n)] for output in outputs]
        rows = [row for part in parts for row in part]
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
        listed = np.array(rows, np.int32).reshape(len(rows), len(self.variables))
        return ResultRun(times, starts, listed)

    def _each_output(self, numbers: Longs, changes: Longs) -> Iterator[Counter[Row]]:
        """The output close by close, for RSTREAM or if transactions lie between closes."""
        rows = iter(changes.tolist())
        row = next(rows, None)
        for number in numbers.tolist():
            while row is not None and row[TX] <= number:
                self._pending[tuple(row[VALUES:])] += row[DIFF]
                row = next(rows, None)
            yield Counter(self._output())
        while row is not None:
            self._pending[tuple(row[VALUES:])] += row[DIFF]
            row = next(rows, None)

    def _changes(self, drained: list[History]) -> Longs:
        """The rows of the answer that changed since last asked: transaction number, diff, row."""
        parts: list[Longs] = []
        for net, stamps in drained:
            part = np.empty((len(net), VALUES + len(self.variables)), np.int64)
            part[:, :VALUES], part[:, VALUES:] = net[:, :VALUES], net[:, DELTA_VALUES:]
            part[:, TX] += stamps.first
            parts.append(part)
        if len(parts) == 1:
            return parts[0]
        nothing = np.empty((0, VALUES + len(self.variables)), np.int64)
        return np.concatenate(parts) if parts else nothing

    def _reevaluate(self, prepared: PreparedQuery) -> None:
        """Evaluate the query; what changed since the close before is pending then."""
        before, now = self._evaluated, prepared.rows()
        self._evaluated = now
        if now is before or np.array_equal(before, now):
            return
        gone = before.copy()
        gone[:, DIFF] *= -1
        self._pending = _counted(consolidate(np.concatenate([now, gone])))

    def _output(self) -> Counter[Row]:
        pending, self._pending = self._pending, Counter()
        match self.windowed.output:
            case "ISTREAM":
                return +pending
            case "DSTREAM":
                return -pending
            case _:
                self._answer.update(pending)
                self._answer = +self._answer
                return self._answer


def _counted(batch: Ints) -> Counter[Row]:
    """The rows of a batch of one transaction, each with its diff."""
    return Counter({tuple(line[VALUES:]): line[DIFF] for line in batch.tolist()})


def _at_close(number: int, drained: list[History]) -> bool:
    """Whether all changes belong to the transaction of a number, and came at once."""
    if not drained:
        return True
    (net, stamps), *more = drained
    at = number - stamps.first
    return not more and net.item(0, TX) == at == net.item(-1, TX)


def _only_at_closes(numbers: Longs, at: Longs, changes: Longs) -> bool:
    """Whether all changes belong to transactions at which the query puts out a result."""
    if not len(changes):
        return True
    return bool(at[-1] < len(numbers) and (numbers[at] == changes[:, TX]).all())


# --- explain ---

SECOND = 1000


def explain_windows(query: WindowedQuery) -> str:
    """What is put out, and a line for each window.

    >>> from graphtide.lang.sparql.parse import parse_standing
    >>> window = "FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE PT10S STEP PT0.5S]"
    >>> text = f"SELECT ?a {window} WHERE {{ WINDOW <ex:w> {{ ?a <ex:p> ?b }} }}"
    >>> print(explain_windows(parse_standing(text)))
    output RSTREAM
    window <ex:w> on <ex:s>: range 10 s, step 500 ms
    """
    lines = [f"window {w.iri} on {w.stream}: {_extent(w)}" for w in query.windows]
    return "\n".join([f"output {query.output}", *lines])


def _extent(window: WindowClause) -> str:
    length, step = (_length(n, in_time=window.in_time) for n in (window.length, window.step))
    return f"{window.kind.lower()} {length}, step {step}"


def _length(number: int, *, in_time: bool) -> str:
    if not in_time:
        return str(number)
    return f"{number // SECOND} s" if number % SECOND == 0 else f"{number} ms"

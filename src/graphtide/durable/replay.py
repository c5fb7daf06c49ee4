"""Replay: applies recorded inputs to a graph, all of them or up to a time or transaction.

The runtime is deterministic: the same inputs in the same order give the same transactions, events
and firings. So a replay leads to the state that was, which each row of the journal confirms: it has
the number of transactions before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from graphtide.durable import chunks
from graphtide.durable.chunks import InputEntry
from graphtide.engine.events import EventBatch
from graphtide.errors import ActionError, CascadeError, GraphtideError
from graphtide.kernel.batch import TX, VALUES
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.program import Program
from graphtide.rdf.holders import HeldIds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from graphtide.durable.tables import JournalRow
    from graphtide.engine.runtime import Runtime
    from graphtide.engine.watch import Query
    from graphtide.rules.program import RunningProgram
    from graphtide.streams.stream import Stream

log = getLogger(__name__)


Named = TypeVar("Named", "Query", "RunningProgram")


class ReplayTarget(Protocol):
    """A live graph, as far as a replay needs it."""

    @property
    def queries(self) -> tuple[Query, ...]:
        """The registered queries."""

    @property
    def programs(self) -> tuple[RunningProgram, ...]:
        """The running programs."""

    @property
    def watch(self) -> Callable[..., Query]:
        """Registers a query."""

    @property
    def run(self) -> Callable[..., RunningProgram]:
        """Runs a program."""

    @property
    def stream(self) -> Callable[..., Stream]:
        """The stream of a name."""


class Until(NamedTuple):
    """Where a replay ends: after a time, or after a number of transactions."""

    time: int | None = None
    tx: int | None = None


END: Final = Until()
"""The end of the journal."""


MUST_SUCCEED: Final = ("changes", "watch", "run", "replace")
"""Inputs that are recorded when they are known to be accepted; others, before they are tried."""


@dataclass(slots=True)
class Replay:
    """Applies recorded inputs to a graph.

    Without `functions`, CALL calls nothing. With `only_data`, what was registered is left out:
    another program runs over the same inputs. With `keeps_all`, no delta is evicted.
    """

    graph: ReplayTarget
    runtime: Runtime
    functions: Mapping[str, Callable[..., object]] | None
    until: Until = END
    note: Callable[[InputEntry], None] | None = None
    only_data: bool = False
    keeps_all: bool = False
    joins: bool = True
    """Whether changes of several rows may be one input."""
    ended: bool = False
    number: int = 0
    """Of the last row that was read."""
    _source: Iterator[InputEntry] = field(default_factory=lambda: iter(()))
    _left: InputEntry | None = None
    _held: HeldIds = field(default_factory=HeldIds)

    def read(self, runs: Iterable[list[JournalRow]]) -> None:
        """Take the inputs from rows of the journal, which are read many at a time."""
        self._source = self._entries(runs)
        self.runtime.terms.holders.add(self._held)

    def steps(self) -> Iterator[None]:
        """Apply inputs one by one, until the replay has ended; what is left comes the next time."""
        self.ended = False
        while not self.ended:
            entry = self._left or next(self._source, None)
            self._left = None
            if entry is None:
                break
            self.apply(entry)
            yield
        self.runtime.settle()

    def go_on(self) -> None:
        """Apply inputs until the replay has ended."""
        for _ in self.steps():
            pass

    def _entries(self, runs: Iterable[list[JournalRow]]) -> Iterator[InputEntry]:
        """The entries of rows. Neighbouring changes of several rows become one entry.

        Not where programs or callbacks run: each change has effects, and each row is checked.
        """
        for run in runs:
            found = chunks.decoded([row.chunk for row in run], self.runtime.terms)
            self._held.arrays = [entry.rows[:, VALUES:] for own in found for entry in own]
            together: list[InputEntry] = []
            for row, entries in zip(run, found, strict=True):
                plain = all(entry.kind == "changes" for entry in entries)
                if together and not (plain and self.joins and not self.runtime.one_by_one):
                    yield from chunks.merged(together)
                    together = []
                self.number = row.number
                if not together:
                    self._check(row)
                if plain:
                    together += entries
                else:
                    yield from entries
            yield from chunks.merged(together)

    def _check(self, row: JournalRow) -> None:
        if not self.only_data and self.runtime.transactions != row.tx:
            raise GraphtideError(
                f"row {row.number} of the journal came after {row.tx:,} transactions, but its "
                f"replay after {self.runtime.transactions:,}",
                hint="functions of CALL and aggregates must depend on nothing but their arguments; "
                "otherwise please report this",
            )

    def apply(self, entry: InputEntry, *, again: bool = False) -> None:
        """Apply an input. What it raised when it first came, it raises again: that is no news.

        A program that is registered `again` does not see what there was before as new.
        """
        if self.until.tx is not None and self.runtime.transactions >= self.until.tx:
            self._end(entry)
            return
        if self.note is not None:
            self.note(entry)
        if again and entry.kind == "run":
            options = entry.fields["options"] | {"start": "latest"}
            entry = InputEntry(entry.kind, entry.fields | {"options": options})
        try:
            self._apply(entry)
        except GraphtideError as error:
            if entry.kind in MUST_SUCCEED and not isinstance(error, ActionError | CascadeError):
                raise
            log.info("replayed %s: %s", entry.kind, error)
        if self.keeps_all and entry.kind in ("watch", "run"):
            for query in self.graph.queries:
                query.retain(None)
        self.runtime.reclaim()

    def _apply(self, entry: InputEntry) -> None:
        fields = entry.fields
        match entry.kind:
            case "changes":
                self._changes(entry)
            case "clock":
                self._advance(entry)
            case "events":
                self._events(entry)
            case "push":
                self._push(entry)
            case "watermark":
                self.graph.stream(fields["name"]).advance(self._at_most(entry))
            case "stream":
                self.graph.stream(fields["name"], lateness=fields["lateness"])
            case "watch" if not self.only_data:
                self.graph.watch(fields["text"], name=fields["name"], **fields["options"])
            case "run" if not self.only_data:
                self._run(fields)
            case "unwatch" if not self.only_data:
                _named(self.graph.queries, fields["name"]).close()
            case "stop" if not self.only_data:
                self._program(fields["name"]).close()
            case "replace" if not self.only_data:
                program = program_of(fields)
                functions = self._functions_of(program, fields["name"])
                self._program(fields["name"]).become(program, fields["disabled"], functions)
            case "fire" if not self.only_data:
                running = self._program(fields["name"])
                waiting = [a for a in running.activations() if a.number == fields["number"]]
                if not waiting:
                    raise GraphtideError(f"there is no activation {fields['number']} to fire")
                running.fire(waiting[0])
            case _:
                pass

    def apply_caused(self, chunk: bytes) -> None:
        """Apply what a call has caused, at its place inside the input under way."""
        for entry in chunks.decoded([chunk], self.runtime.terms)[0]:
            if self.note is not None:
                self.note(entry)
            try:
                if entry.kind == "changes":
                    self.runtime.apply_piece(entry.piece())
                else:
                    self._apply(entry)
            except GraphtideError as error:
                if entry.kind in MUST_SUCCEED:
                    raise
                log.info("replayed %s of a call: %s", entry.kind, error)

    # --- the graph and its clock ---

    def _end(self, left: InputEntry) -> None:
        """End here; an input, or the rest of it, is left."""
        self.ended, self._left = True, left

    def _changes(self, entry: InputEntry) -> None:
        until, count = self.until, entry.transactions
        if until.time is not None and len(entry.times) and int(entry.times[-1]) > until.time:
            after = int(np.searchsorted(entry.times, until.time, side="right"))
            count = int(entry.rows[after, TX])
        one_by_one = until.tx is not None and self.runtime.one_by_one
        done = self._until_tx(entry, count, until.tx or 0) if one_by_one else 0
        if until.tx is not None:
            count = done if one_by_one else min(count, until.tx - self.runtime.transactions)
        if count < entry.transactions:
            self._end(entry.part(count, entry.transactions))
        if count > done:
            self.runtime.apply_piece(entry.part(0, count).piece())

    def _until_tx(self, entry: InputEntry, count: int, tx: int) -> int:
        """Apply transactions one by one, as each may cause others; how many of them."""
        for at in range(count):
            if self.runtime.transactions >= tx:
                return at
            self.runtime.apply_piece(entry.part(at, at + 1).piece())
        return count

    def _advance(self, entry: InputEntry) -> None:
        self.runtime.schedule.advance(max(self._at_most(entry), self.runtime.clock))

    def _at_most(self, entry: InputEntry) -> int:
        """The time that an input leads to, or that at which the replay ends."""
        time: int = entry.fields["to"]
        if self.until.time is not None and time > self.until.time:
            self._end(entry)
            return self.until.time
        return time

    # --- events ---

    def _events(self, entry: InputEntry) -> None:
        ends = np.array(entry.fields["ends"], np.int64)
        if self.until.time is not None and len(ends) and int(ends[-1]) > self.until.time:
            self._end(entry)
            return
        sizes = np.bincount(entry.rows[:, TX], minlength=len(ends))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        triples = np.ascontiguousarray(entry.rows[:, VALUES : VALUES + 3])
        starts = np.array(entry.fields["starts"], np.int64)
        events = EventBatch(triples, offsets, starts, ends, np.full(len(ends), -1, np.int64))
        names = entry.fields["programs"]
        followers = None
        if names is not None and not self.only_data:
            followers = tuple(self._program(name).follower for name in names)
        self.runtime.publish(events, followers)

    def _push(self, entry: InputEntry) -> None:
        fields, rows, times, numbers = entry.fields, entry.rows, entry.times, entry.txs
        if self.until.time is not None and len(times) and int(times.max()) > self.until.time:
            now = times <= self.until.time
            self._end(InputEntry("push", fields, rows[~now], times[~now], numbers[~now]))
            rows, times, numbers = rows[now], times[now], numbers[now]
            fields = fields | {"newest": self.until.time}
        quads = np.ascontiguousarray(rows[:, VALUES:])
        events = numbers if fields["numbered"] else None
        stream = self.graph.stream(fields["name"])
        stream.push_ids(times, quads, newest=fields["newest"], events=events)

    # --- programs ---

    def _run(self, fields: dict[str, Any]) -> None:
        program = program_of(fields)
        functions = self._functions_of(program, fields["name"])
        self.graph.run(program, functions=functions, name=fields["name"], **fields["options"])

    def _functions_of(self, program: Program, name: str) -> Mapping[str, Callable[..., object]]:
        """The functions that a program calls."""
        calls = {action.function for rule in program.rules for action in calls_of(rule)}
        functions = dict.fromkeys(calls, _nothing) if self.functions is None else self.functions
        missing = sorted(calls - set(functions))
        if missing:
            raise GraphtideError(
                f"the program {name} of the store calls {', '.join(missing)}, which was not given",
                hint="LiveGraph.open(…, functions={…})",
            )
        return functions

    def _program(self, name: str) -> RunningProgram:
        return _named(self.graph.programs, name)


def _named(registered: Iterable[Named], name: str) -> Named:
    """What has a name, of queries or programs."""
    for each in registered:
        if each.name == name:
            return each
    raise GraphtideError(f"nothing is registered by the name {name}")


def _nothing(*_: object, **__: object) -> None:
    """What CALL calls where nothing is to be called."""


def calls_of(rule: tide.RuleDeclaration) -> list[tide.CallFunction]:
    """The calls of a rule."""
    return [action for action in rule.actions if isinstance(action, tide.CallFunction)]


def program_fields(program: Program) -> dict[str, Any]:
    """The texts of a program, as its entry has them."""
    if program.sources:
        return {"sources": list(program.sources)}
    return {"queries": [[query.name, query.text] for query in program.queries]}


def program_of(fields: Mapping[str, Any]) -> Program:
    """The program of an entry."""
    if "sources" in fields:
        return Program.from_sources(fields["sources"])
    return Program(tuple(tide.NamedQuery(name, text, 1) for name, text in fields["queries"]))

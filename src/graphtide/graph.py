"""LiveGraph: a graph that changes, and everything that can be registered on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, cast, get_args
from weakref import ref

import numpy as np
import pyarrow as pa

from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.queries import as_select
from graphtide.algebra.updates import Update
from graphtide.algebra.windows import WindowedQuery
from graphtide.arguments import (
    check_choice,
    check_path,
    check_type,
    each_of,
    listed_triples,
    whole,
    wrong_type,
)
from graphtide.engine.events import event_end, make_events
from graphtide.engine.ingest import ObjectLike, TermLike, known_ids, pieces, quad_ids
from graphtide.engine.locking import synchronized
from graphtide.engine.results import Stats, answer_table, graph_stats, html_queries
from graphtide.engine.runtime import Runtime
from graphtide.engine.services import Services, ServiceTables
from graphtide.engine.storage import DefaultGraphMode, Storage
from graphtide.engine.transaction import Transaction, is_unsettled
from graphtide.engine.update import run_update
from graphtide.engine.watch import DEFAULT_HISTORY, Query
from graphtide.errors import GraphtideError
from graphtide.kernel.batch import DIFF, VALUES, Ints, Longs
from graphtide.lang.sparql.parse import parse_any_query, parse_standing
from graphtide.limits import MAX_FIRINGS, MAX_PLANS, MAX_SECONDS, MAX_STATES, Limits
from graphtide.plan.order import Pin, check_pin
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import read_changes
from graphtide.rdf.formats.registry import find_format
from graphtide.rdf.holders import HeldIds
from graphtide.streams.feed import Feed
from graphtide.streams.registry import ReportPolicy, Streams
from graphtide.streams.windows import Alignment
from graphtide.ticks import ticks, ticks_or_none

if TYPE_CHECKING:
    from graphtide.durable.handle import DurableGraph
    from graphtide.durable.recorder import Durability
    from graphtide.lang.tide.program import Program
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.terms import Term
    from graphtide.repair import Candidate, Fix, Goal, RepairPlan, Repairs
    from graphtide.repair.search import RepairStrategy
    from graphtide.rules.actions import OnError
    from graphtide.rules.conflicts import Resolver
    from graphtide.rules.program import FiringMode, RunningProgram, StartAt
    from graphtide.streams.stream import Stream

# ruff: noqa: PLC0415 - programs, repair and stores take long to import, and few graphs have them.

Changes = ChangeBatch | Iterable[ChangeBatch] | pa.Table | str | Path
"""Changes as `LiveGraph.apply` takes them."""

_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "strict": lambda given: check_type(given, "strict", bool),
    "store": lambda given: check_choice(given, "store", get_args(Storage)),
    "default_graph": lambda given: check_choice(given, "default_graph", get_args(DefaultGraphMode)),
    "tick_ms": lambda given: whole(given, "tick_ms", 1),
    "window_origin": lambda given: ticks(given, "window_origin"),
    "window_alignment": lambda given: check_choice(given, "window_alignment", get_args(Alignment)),
    "services": lambda given: given if isinstance(given, Services) else _addresses(given),
    "limits": lambda given: check_type(given, "limits", Limits, None),
}
"""What raises for an option that a graph cannot have, and returns numbers as those of Python."""


def _addresses(given: Iterable[str] | None) -> list[str] | None:
    if isinstance(given, str):
        raise GraphtideError("services= is a list of endpoints", hint=f"write [{given!r:.80}]")
    return None if given is None else list(each_of(given, "services", str))


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of the constructor: they go to a store, where a wrong one would stay."""
    converted = {name: _CHECKS[name](each) for name, each in options.items() if name in _CHECKS}
    return {**options, **{name: each for name, each in converted.items() if each is not None}}


class LiveGraph:
    """The current set of quads, maintained with every change, and what is registered on it.

    With `strict`, an insert of a present quad and a delete of an absent one are errors; otherwise
    they have no effect and are counted. `store="matched"` stores only what a registered query can
    match: less memory, but queries must then be registered before the data comes. So it is with
    `store="none"`, which stores no quad at all: the strategy is `decomposed`, and the caller
    promises that no change is redundant. With `default_graph="union"`, queries see the union of all
    graphs as their default graph.

    `limits` bounds the time and memory of queries and changes, and the size of what files hold.
    SERVICE asks the endpoints in `services` only. Times are whole ticks of `tick_ms` milliseconds;
    windows are aligned to `window_origin` in one of the ways of `graphtide.streams.windows`.

    >>> graph = LiveGraph()
    >>> query = graph.watch("SELECT ?a ?c { ?a <ex:knows> ?b . ?b <ex:knows> ?c }")
    >>> graph.insert("<ex:ann>", "<ex:knows>", "<ex:bob>")
    >>> graph.insert("<ex:bob>", "<ex:knows>", "<ex:cat>")
    >>> print(query.delta())
    + a=<ex:ann> c=<ex:cat>
    >>> graph.delete("<ex:ann>", "<ex:knows>", "<ex:bob>")
    >>> print(query.delta())
    - a=<ex:ann> c=<ex:cat>
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        store: Storage = "all",
        default_graph: DefaultGraphMode = "own",
        tick_ms: int = 1000,
        window_origin: int = 0,
        window_alignment: Alignment = "close",
        limits: Limits | None = None,
        services: Services | Iterable[str] | None = None,
    ) -> None:
        options: dict[str, Any] = {"strict": strict, "default_graph": default_graph}
        options |= {"store": store, "tick_ms": tick_ms, "limits": limits}
        options = _checked(options)
        given = _checked({"window_origin": window_origin, "window_alignment": window_alignment})
        self._runtime = runtime = Runtime(**options)
        runtime.facade = ref(self)
        runtime.reclaimer.enabled = True
        self.lock: Final = runtime.lock
        """Held by every call; hold it to make several calls without those of other threads."""
        self.limits: Final = runtime.limits
        """What queries, changes and files may take; `limits.exceeded` counts values over them."""
        self._streams = Streams(runtime, given["window_origin"], given["window_alignment"])
        self.services: Final = ServiceTables(runtime, services)
        """The tables of SERVICE; `services.refresh()` fetches them again."""
        self.terms: Final = runtime.terms
        """The dictionary of terms and ids, for `apply_ids` and `push_ids`. What it encodes stays
        valid until `terms.release(ids)`; other terms are freed when nothing uses them any more."""
        self._write, self._quad_ids = runtime.write, runtime.quad_ids_of
        self._programs: list[RunningProgram] = []
        self._durable: DurableGraph | None = None

    # --- durable graphs ---

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        durability: Durability = "batch",
        retain: str | None = None,
        functions: Mapping[str, Callable[..., object]] | None = None,
        read_only: bool = False,
        limits: Limits | None = None,
        **options: Any,  # noqa: ANN401 - those of the constructor
    ) -> Self:
        """Open the store in a directory, or make one: the graph comes back as it was.

        So do its queries, programs and streams; CALL finds its functions in `functions`. A change
        is on disk when the call returns (`durability="transaction"`), normally within 50 ms and at
        most 10,000 changes later ("batch"), or at some time ("none"). Of the past, `retain` keeps a
        time ("30d"), a size ("10GB"), or everything. Further `options` are those of the
        constructor, for a new store. A `read_only` graph may be open beside the one that writes;
        `follow()` brings it up to date.
        """
        from graphtide.durable import handle, store

        check_type(functions, "functions", Mapping, None)
        check_type(limits, "limits", Limits, None)
        options = _checked(options)  # before they are in the store
        if isinstance(options.get("services"), Services):
            raise GraphtideError(
                "a store keeps addresses of services only", hint="give services=[…] a list of them"
            )
        opened = store.Store(path, durability=durability, retain=retain, read_only=read_only)
        return cast("Self", handle.open_graph(cls, opened, functions or {}, limits, options))

    @property
    def store(self) -> DurableGraph:
        """The store of a durable graph: cursors, the past, checkpoints."""
        if self._durable is None:
            raise GraphtideError("this graph is in memory only", hint="use LiveGraph.open(path)")
        return self._durable

    def flush(self) -> None:
        """Wait until everything so far is on disk."""
        self.store.flush()

    def checkpoint(self) -> bool:
        """Write a snapshot to open from; whether it could."""
        return self.store.checkpoint()

    def follow(self) -> bool:
        """Bring a read-only graph up to date with its store; whether there was anything new."""
        return self.store.follow()

    def at(self, *, time: int | None = None, tx: int | None = None) -> LiveGraph:
        """The graph as it was after a time, or after so many transactions; it cannot be changed."""
        time, tx = ticks_or_none(time), ticks_or_none(tx, "tx")
        return cast("LiveGraph", self.store.at(time, tx))

    def close(self) -> None:
        """Write what is left to the store and let others open it; end timers."""
        self.services.close()
        if self._durable is not None:
            self._durable.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- changes ---

    def insert(
        self,
        s: TermLike,
        p: TermLike,
        o: ObjectLike,
        g: TermLike | None = None,
        *,
        time: int | None = None,
    ) -> None:
        """Insert one quad, as a transaction of its own."""
        if time is not None:
            time = ticks(time)
        with self.lock:
            self._write(1, self._quad_ids(self.terms, s, p, o, g), time)

    def delete(
        self,
        s: TermLike,
        p: TermLike,
        o: ObjectLike,
        g: TermLike | None = None,
        *,
        time: int | None = None,
    ) -> None:
        """Delete one quad, as a transaction of its own."""
        if time is not None:
            time = ticks(time)
        with self.lock:
            self._write(-1, self._quad_ids(self.terms, s, p, o, g), time)

    def transaction(self, *, time: int | None = None) -> Transaction:
        """Begin a transaction: its changes take effect together at the end of a `with` block."""
        return Transaction(self._runtime, ticks_or_none(time))

    @synchronized
    def update(
        self, text: str | Update, *, time: int | None = None, load_from: str | Path | None = None
    ) -> int:
        """Run a SPARQL Update request, text or parsed, as one transaction; how many quads change.

        Each operation sees what those before it did. If one fails, none has happened. LOAD reads
        files inside the folder `load_from` only.
        """
        check_type(text, "text", str, Update)
        if load_from is not None:
            check_path(load_from, "load_from")
        changed = run_update(self._runtime, text, ticks_or_none(time), load_from)
        self._runtime.reclaim()
        return changed

    @synchronized
    def load(self, path: str | Path, *, time: int | None = None) -> None:
        """Insert the quads of an RDF file as one transaction."""
        time = ticks_or_none(time)
        check_path(path, "path")
        if find_format(path).rdf is None:
            raise GraphtideError(
                f"{path} is a log of changes, not data", hint="use apply() for changes"
            )
        self._runtime.apply(read_changes(path, limits=self.limits), time, plain=True)

    @synchronized
    def apply(self, changes: Changes, *, time: int | None = None) -> None:
        """Apply changes: a batch, several, an Arrow table, or the path of a file of changes.

        Rows that share one `(time, tx)` are one transaction. With `time`, everything is one
        transaction at that time; so is a file of plain RDF, at the current time if none is given.

        An insert into a graph with the name of one of this graph's streams is an event of that
        stream. One batch is applied whole or, if something is wrong with it, not at all. Of
        several, of a file, and where there are streams, the transactions before an error are
        applied.
        """
        time = ticks_or_none(time)
        if isinstance(changes, (str, Path)):
            check_path(changes, "changes")
        plain = isinstance(changes, (str, Path)) and find_format(changes).rdf is not None
        if isinstance(changes, (str, Path, pa.Table)):
            changes = read_changes(changes, limits=self.limits)
        elif not isinstance(changes, ChangeBatch):
            changes = each_of(changes, "changes", ChangeBatch)
        if not self._streams:
            self._runtime.apply(changes, time, plain=plain)
            return
        schedule = self._runtime.schedule
        if schedule.calling_back and (plain or time is not None):  # one input
            schedule.defer_to_next(lambda: self.apply(changes, time=time))
            return
        self._runtime.flush()
        feed = Feed(self._streams)
        with schedule, schedule.one_call:
            for piece in pieces(self._runtime, changes, time, plain=plain):
                feed.apply(piece)
                self._runtime.reclaim(in_call=True)
        self._runtime.reclaim()

    def feed(self, *, on_error: Literal["raise", "skip"] = "raise") -> Feed:
        """Apply a log of changes and events step by step, to look at the output in between.

        A delete from a stream is an error; with `on_error="skip"` it is left out and counted.
        """
        return Feed(self._streams, on_error=on_error)

    @synchronized
    def apply_ids(
        self,
        s: Ints,
        p: Ints,
        o: Ints,
        g: Ints | None = None,
        *,
        diff: Ints | None = None,
        time: Longs | None = None,
        tx: Longs | None = None,
    ) -> None:
        """Apply changes given as ids of `graph.terms`; without `tx`, each is a transaction.

        All are applied or, if something is wrong with one of them, none.
        """
        self._runtime.apply_ids(s, p, o, g, diff=diff, time=time, tx=tx)
        self._runtime.reclaim()

    # --- time, streams and events ---

    @property
    @synchronized
    def clock(self) -> int:
        """The current time, in ticks."""
        if not self._runtime.schedule.running and is_unsettled(self._runtime):
            self._runtime.flush()
        return self._runtime.clock

    @property
    @synchronized
    def transactions(self) -> int:
        """How many transactions have been applied; the next delta has this as its `seq`."""
        return self._runtime.transactions

    @synchronized
    def advance(self, to: int) -> None:
        """Let the clock go on to a time; windows close and timers fire up to then."""
        to = ticks(to, "to")
        self._runtime.tick(to)
        self._runtime.reclaim()

    @synchronized
    def stream(self, name: TermLike, *, lateness: int | None = None) -> Stream:
        """The stream of that name, for pushing events; windowed queries read it.

        Events may come out of order by up to `lateness` ticks (0 by default).
        """
        lateness = ticks_or_none(lateness, "lateness")
        return self._runtime.schedule.take_input(
            lambda: self._streams.stream(name, lateness), "stream", str(name), lateness
        )

    def publish(
        self,
        triples: Iterable[tuple[TermLike, TermLike, ObjectLike]],
        *,
        time: int | None = None,
        start: int | None = None,
        end: int | None = None,
        duration: int = 0,
    ) -> None:
        """Publish one event to all running programs; the graph does not store it.

        It is at a `time`, by default now; or lasts from `start` to `end`, one of which a `duration`
        may replace; with a duration, `time` is the end, when the event comes.
        Rules that it completes have fired when this returns, or else before anybody looks.
        """
        time = ticks_or_none(time)
        with self.lock:
            listed = listed_triples(triples)  # computing them may use the graph
            if start is not None or end is not None or type(duration) is not int or duration:
                time, duration = event_end(time, start, end, duration)
            schedule = self._runtime.schedule
            if schedule.calling_back:
                schedule.defer_to_next(
                    lambda: self.publish(listed, time=time, end=time, duration=duration)
                )
            elif duration or not self._streams.publisher.defer(listed, time):
                self._runtime.flush()
                stamp = self._runtime.clock if time is None else time
                ids = [quad_ids(self.terms, *triple, None)[:3] for triple in listed]
                self._runtime.publish(make_events([ids], [stamp], duration))
                self._runtime.reclaim()

    # --- standing queries ---

    @synchronized
    def watch(
        self,
        query: str | SelectQuery | WindowedQuery,
        *,
        strategy: Strategy | None = None,
        plan: Pin | None = None,
        name: str | None = None,
        history: int | None = DEFAULT_HISTORY,
        report: ReportPolicy = "close",
        reevaluate: bool = False,
    ) -> Query:
        """Register a SPARQL or RSP-QL query, as text or parsed.

        Its first delta is the whole current answer. The rows of an ASK are one `?answer`, those of
        CONSTRUCT and DESCRIBE are triples `?subject ?predicate ?object`.

        The planner chooses a `strategy` and a join order unless they are given. `plan` pins the
        join tree of `rete`: pairs of pattern indexes such as `((0, 1), 2)`, or `"written"` for a
        query whose algebra already is the tree. `history` bounds the rows it retains (None: all).

        A query over windows puts out a result whenever one of them closes (`query.results()`,
        `query.on_result(f)`); with `report="change"` at every time at which events come. With
        `reevaluate` its answer is not maintained but evaluated again every time, to compare.
        """
        history = ticks_or_none(history, "history")
        check_type(query, "query", str, SelectQuery, WindowedQuery)
        check_type(name, "name", str, None)
        check_type(strategy, "strategy", str, None)
        check_type(report, "report", str)
        check_type(reevaluate, "reevaluate", bool)
        check_pin(plan)
        parsed = parse_standing(query) if isinstance(query, str) else query

        options = {"strategy": strategy, "plan": plan, "history": history, "report": report}
        options |= {"reevaluate": reevaluate}
        is_recorded = False

        def register() -> Query:
            if isinstance(parsed, SelectQuery):
                found = self._runtime.watch(
                    parsed, strategy=strategy, plan=plan, name=name, history=history
                )
            else:
                found = self._streams.watch(
                    parsed, strategy, name, report, reevaluate=reevaluate, history=history
                )
            # Recorded afterwards: only a query that is accepted is in the journal.
            schedule = self._runtime.schedule
            schedule.take_input(recorded, "watch", found.name, parsed, options)
            return found

        def recorded() -> None:
            nonlocal is_recorded
            is_recorded = True

        return self._runtime.registering(register, lambda: is_recorded)

    @synchronized
    def run(
        self,
        program: Program,
        *,
        functions: Mapping[str, Callable[..., object]] | None = None,
        on_error: OnError = "raise",
        retries: int = 0,
        max_firings: int = MAX_FIRINGS,
        max_event_duration: int = 0,
        start: StartAt = "latest",
        firing: FiringMode = "events",
        resolver: Resolver = "priority",
        seed: int = 0,
        disabled: Collection[str] = (),
        name: str | None = None,
    ) -> RunningProgram:
        """Run a program: its queries, rules and patterns follow the graph until `close()`.

        CALL finds its functions in `functions`, and nowhere else. An action that fails is tried
        again `retries` times; then its error is raised, or with `on_error="skip"` collected in
        `program.problems`. With `start="earliest"`, the rows that queries have already count as
        appearing now. No event may last longer than `max_event_duration` ticks.

        `firing` says when matches fire: all that an event completes, one after the other
        ("events"); one at a time, if its row is still there when its turn comes ("agenda"); or only
        when `program.fire()` is called ("manual"). For the last two, `resolver` chooses the next
        one: "priority", "oldest", "newest", "random" (by `seed`), or a function that gives an
        activation its rank. Rules of the groups that are `disabled` do not run until
        `program.enable(group)`. The `name` of the program is part of the ids of its firings. A
        function that has parameters `firing_id` and `graph` gets this id, and the graph, to change.

        >>> from graphtide import Program
        >>> graph = LiveGraph()
        >>> program = graph.run(
        ...     Program.parse(
        ...         '''PREFIX : <http://example.org/>
        ...         QUERY Hot AS SELECT ?room { ?room :temperature ?t FILTER (?t > 30) }
        ...         RULE Warn ON APPEAR OF Hot THEN CALL warn(?room)'''
        ...     ),
        ...     functions={"warn": print},
        ... )
        >>> graph.insert("<http://example.org/kitchen>", "<http://example.org/temperature>", 31)
        <http://example.org/kitchen>
        """
        from graphtide.lang.tide.program import Program
        from graphtide.rules.actions import given_graph
        from graphtide.rules.program import free_name, run

        check_type(program, "program", Program)
        check_type(functions, "functions", Mapping, None)
        check_type(name, "name", str, None)
        names = {each.name for each in self.programs}
        if name in names:  # firings and what a snapshot has of programs are known by it
            raise GraphtideError(f"a program named {name!r} is already running on this graph")
        for value, of in ((on_error, "on_error"), (start, "start"), (firing, "firing")):
            check_type(value, of, str)
        if not callable(resolver):
            check_type(resolver, "resolver", str)
        retries, seed = whole(retries, "retries", 0), whole(seed, "seed")
        disabled = list(each_of(disabled, "disabled", str))
        max_firings = ticks(max_firings, "max_firings")
        max_event_duration = ticks(max_event_duration, "max_event_duration")

        def recorded(running: RunningProgram) -> None:
            self._programs = [*self.programs, running]

        return run(
            program, self._streams, functions=given_graph(functions or {}, self),
            on_error=on_error, retries=retries, max_firings=max_firings,
            max_event_duration=max_event_duration, start=start, firing=firing, resolver=resolver,
            seed=seed, disabled=disabled,
            name=name or free_name(names, self._runtime.done), recorded=recorded,
        )  # fmt: skip

    @property
    @synchronized
    def programs(self) -> tuple[RunningProgram, ...]:
        """The programs that run on this graph, oldest first."""
        return tuple(program for program in self._programs if not program.closed)

    @property
    @synchronized
    def queries(self) -> tuple[Query, ...]:
        """The registered queries, oldest first."""
        return tuple(self._runtime.queries)

    @synchronized
    def repairs(
        self,
        program: Program | Iterable[Goal],
        fixes: Iterable[Fix] | None = None,
        *,
        strategy: RepairStrategy = "best-first",
        max_steps: int | None = None,
        max_seconds: float = MAX_SECONDS,
        max_states: int = MAX_STATES,
        max_plans: int = MAX_PLANS,
        cost: Callable[[Candidate], float] | None = None,
        seed: int = 0,
    ) -> Repairs:
        """Search for plans that make the graph meet all hard goals, cheapest first.

        Goals and fixes are those of a program, or given directly. The search works on a copy:
        `plan.apply()` changes the graph itself. The cost of a plan is the cost of its fixes, plus
        the weighted rows of soft goals, plus the result of the function `cost`. The search is
        limited by `max_steps` of a plan, `max_seconds`, `max_states` visited, and `max_plans`
        found; with a soft goal or a cost function it does not stop at `max_plans`, but returns the
        best ones.
        """
        from graphtide.repair.search import find_repairs

        return find_repairs(
            self._runtime, program, fixes, strategy=strategy, max_steps=max_steps,
            max_seconds=max_seconds, max_states=max_states, max_plans=max_plans, cost=cost,
            seed=seed,
        )  # fmt: skip

    @synchronized
    def repair(self, plan: RepairPlan, *, time: int | None = None) -> int:
        """Apply a repair plan, also one that was made for another graph; how many quads change.

        It is tried on a copy first, and rejected unless each step still has its effect.
        """
        from graphtide.repair import RepairPlan

        check_type(plan, "plan", RepairPlan)
        return plan.apply_to(self._runtime, ticks_or_none(time))

    # --- the graph now ---

    def query(self, query: str | SelectQuery, *, terms: bool = False) -> pa.Table:
        """Answer a query once, as an Arrow table; in its order, if it has one.

        The table is like that of `Query.table`. Unlike a standing query, this one may call NOW,
        RAND and other non-deterministic functions. It does not wait for the end of another one that
        takes long, in another thread.
        """
        check_type(query, "query", str, SelectQuery)
        check_type(terms, "terms", bool)
        runtime = self._runtime
        parsed = as_select(parse_any_query(query)) if isinstance(query, str) else query

        def answer() -> pa.Table:
            rows = runtime.queries.evaluate(parsed)
            repeated = np.repeat(rows[:, VALUES:], np.maximum(rows[:, DIFF], 0), axis=0)
            names = [v.name for v in parsed.variables]
            return answer_table(names, repeated, runtime.terms, texts=terms)

        return self.lock.read(runtime.settle, answer)

    def __len__(self) -> int:
        runtime = self._runtime
        return self.lock.read(
            runtime.flush, lambda: len(runtime.store) - self._streams.held() - self.services.held
        )

    @synchronized
    def __contains__(self, quad: tuple[ObjectLike | None, ...]) -> bool:
        given: object = quad
        if not (isinstance(given, (tuple, list)) and len(given) in (3, 4)):
            raise wrong_type(quad, "a quad", "a tuple of three or four terms")
        ids = known_ids(self.terms, quad)
        return ids is not None and self._runtime.present([ids])[0]

    def quads(self) -> Iterator[tuple[Term, Term, Term, Term | None]]:
        """The current quads, in no particular order; the last part is None in the default graph."""
        decode = self.terms.decode
        held = self.lock.read(self._runtime.settle, self._held_quads)
        for s, p, o, g in held.arrays[0].tolist():
            yield decode(s), decode(p), decode(o), decode(g) if g else None

    def _held_quads(self) -> HeldIds:
        held = HeldIds([self._runtime.quad_ids()])  # it may be changed between two quads
        self.terms.holders.add(held)
        return held

    @synchronized
    def quad_ids(self) -> Ints:
        """The current quads as rows of ids of `graph.terms`, which are pinned."""
        self._runtime.settle()
        quads = self._runtime.quad_ids()
        self.terms.pin(quads)
        return quads

    def stats(self) -> Stats:
        """What the graph holds and has done."""
        return self.lock.read(
            self._runtime.settle, lambda: graph_stats(self._runtime, self._streams.pruned())
        )

    def __repr__(self) -> str:
        return f"<LiveGraph: {len(self):,} quads, {len(self.queries)} queries, time {self.clock}>"

    def _repr_html_(self) -> str:
        return f"<p>{len(self):,} quads at time {self.clock}</p>{html_queries(self.queries)}"

"""The law of the scheduler: one at a time = any batches = any steps of the clock.

A `Schedule` is programs and the input they get. `run_one_by_one` is the reference: each input item
in a call of its own, and the clock advanced tick by tick before a change, and where an item
advances it. (Not before an event: that raises the watermark of its own stream only.) The other ways
give items in batches, let the clock jump, read answers in between, run beside something that only
listens, or are interrupted. All of them must fire, emit and answer the same, in the same order
(`check_schedule`). What they have in common is compared with the definitions (`schedule_model.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program
from graphtide.rdf.changes import ChangeBatch
from oracles.schedule_model import model_difference
from oracles.transactions import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from graphtide.engine.results import DeltaRow
    from graphtide.engine.watch import Query
    from graphtide.rules.actions import OnError
    from graphtide.rules.conflicts import Resolver
    from graphtide.rules.program import FiringMode, RunningProgram
    from graphtide.streams.stream import Stream
    from graphtide.streams.windows import Alignment

ItemKind = Literal["change", "push", "publish", "advance"]
How = Literal["feed", "ids", "single"]
Triple = tuple[str, str, str]

PREFIX: Final = f"PREFIX : <{NAMESPACE}>\n"
STREAMS: Final = ("s", "t")
BEFORE: Final = "before that: "
"""So begins the note of an interrupt about an error that came before it."""

MAX_REACTIONS: Final = 8
"""Callbacks of one run that write."""

MAX_FIRINGS: Final = 25
"""Firings that actions of one cascade may cause; few, so that endless ones end soon."""


# --- input ---


@dataclass(frozen=True, slots=True)
class Item:
    """One input item, written as a line: a time, what is done, and triples of short names.

    >>> Item.parse("5 change +a p b, -a q b").changes
    ((1, ('a', 'p', 'b')), (-1, ('a', 'q', 'b')))
    >>> str(Item.parse("7 push s a ea b, b ea c"))
    '7 push s a ea b, b ea c'
    >>> Item.parse("9 advance")
    Item(time=9, kind='advance', changes=(), stream='')
    """

    time: int
    kind: ItemKind
    changes: tuple[tuple[int, Triple], ...] = ()
    stream: str = ""

    @classmethod
    def parse(cls, line: str) -> Item:
        """Read a line."""
        time, kind, *rest = line.split(" ", 2)
        text = rest[0] if rest else ""
        stream = ""
        if kind == "push":
            stream, _, text = text.partition(" ")
        elif kind not in ("change", "publish", "advance"):
            raise GraphtideError(f"{kind!r} is no kind of input: {line!r}", hint="use push …")
        changes = [_signed(part.split()) for part in text.split(",") if part.strip()]
        return cls(int(time), kind, tuple(changes), stream)  # type: ignore[arg-type] # seen above

    def __str__(self) -> str:
        signs = {1: "+" if self.kind == "change" else "", -1: "-"}
        triples = ", ".join(signs[diff] + " ".join(triple) for diff, triple in self.changes)
        return " ".join(str(p) for p in (self.time, self.kind, self.stream, triples) if p != "")

    def triples(self) -> list[Triple]:
        """The triples of an event, as N-Triples texts."""
        return [_texts(triple) for _, triple in self.changes]

    def rows(
        self, tx: int, graph: str | None = None
    ) -> list[tuple[int, int, int, str, str, str, str | None]]:
        """The rows of a change log."""
        return [(self.time, tx, diff, *_texts(triple), graph) for diff, triple in self.changes]


def _signed(words: list[str]) -> tuple[int, Triple]:
    s, p, o = words
    return (-1 if s.startswith("-") else 1), (s.lstrip("+-"), p, o)


def text_of(name: str) -> str:
    """The IRI of a short name, as N-Triples text.

    >>> text_of("a")
    '<http://example.org/a>'
    """
    return f"<{NAMESPACE}{name}>"


def _texts(triple: Triple) -> Triple:
    s, p, o = triple
    return text_of(s), text_of(p), text_of(o)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Programs, given as their declarations, and what they get.

    Items are in order of time, but for events of streams that have a lateness.
    """

    programs: tuple[tuple[str, ...], ...]
    items: tuple[Item, ...]
    end: int
    firing: FiringMode = "events"
    resolver: Resolver = "priority"
    streams: tuple[str, ...] = STREAMS
    alignment: Alignment = "close"
    failing: str = ""
    """CALL fails if it gets this name."""
    on_error: OnError = "raise"
    lateness: tuple[tuple[str, int], ...] = ()
    reacting: bool = False
    """Callbacks look at the graph, and write; a step of the clock is an input then."""

    def __str__(self) -> str:
        texts = ["\n".join(program) for program in self.programs]
        return "\n".join([*texts, *map(str, self.items), *self.options()])

    def options(self) -> list[str]:
        """All else, as keyword arguments."""
        names = (
            *("end", "firing", "resolver", "streams", "alignment", "failing", "on_error"),
            *("lateness", "reacting"),
        )
        return [f"{name}={getattr(self, name)!r}," for name in names]


# --- one run ---

Lines = list[str]


@dataclass(slots=True)
class Outcome:
    """All that can be seen of a run, as lines in order, by what they are."""

    sections: dict[str, Lines] = field(default_factory=dict)

    def difference(self, other: Outcome) -> str:
        """The first line of each section in which another run differs; empty if none does."""
        found = []
        for name in dict.fromkeys([*self.sections, *other.sections]):
            ours, theirs = self.sections.get(name, []), other.sections.get(name, [])
            if ours != theirs:
                found += _first_difference(name, ours, theirs)
        return "\n".join(found)


def _first_difference(name: str, ours: Lines, theirs: Lines) -> Lines:
    at = next((at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
    at = min(len(ours), len(theirs)) if at is None else at
    shown = [f"{name}, from line {at} of {len(ours)}:"]
    for way, lines in (("one by one", ours), ("otherwise", theirs)):
        part = lines[at : at + 3] or ["(nothing)"]
        shown += [f"  {way + ':':11} {part[0]}", *(f"{'':14}{line}" for line in part[1:])]
    return shown


_parse = lru_cache(maxsize=16)(Program.parse)  # all runs of a schedule share its programs


class ScheduledRun:
    """The programs of a schedule on a graph of their own."""

    def __init__(
        self, schedule: Schedule, *, beside: bool = False, interrupts: Random | None = None
    ) -> None:
        self.schedule = schedule
        self._interrupts = interrupts
        self.interrupted = 0
        self.graph = LiveGraph(window_alignment=schedule.alignment)
        self.calls: Lines = []
        self.errors: Lines = []
        self.heard: Lines = []
        for name, lateness in schedule.lateness:
            self.graph.stream(text_of(name), lateness=lateness)
        self.programs = [
            self.graph.run(
                _parse(PREFIX + "\n".join(text)),
                functions={"f": self._called, "g": self._called_to_write},
                max_firings=MAX_FIRINGS,
                on_error=schedule.on_error,
                firing=schedule.firing,
                resolver=schedule.resolver,
            )
            for text in schedule.programs
        ]
        self.queries: list[Query] = [
            query for program in self.programs for query in program.queries.values()
        ]
        for name in schedule.streams:
            self.graph.stream(text_of(name))
        if schedule.reacting:
            for query in self.queries:
                (query.on_delta if query.windows is None else query.on_result)(
                    partial(self._react, query.name)
                )
        if beside:
            self._listen_beside()

    def _react(self, name: str, news: object) -> None:
        """A callback: notes what the graph is like, and mostly writes."""
        graph, at = self.graph, len(self.heard)
        self.heard.append(f"{name} at {news.time}: {len(graph)} quads at {graph.clock}")  # type: ignore[attr-defined]
        if at >= MAX_REACTIONS:
            return
        match at % 3:
            case 0:
                graph.insert(*_texts(("a", "q", "b")))
            case 1:
                graph.stream(text_of(STREAMS[0])).push([_texts(("b", "ea", "b"))], time=graph.clock)
            case _:
                graph.publish([_texts(("a", "eb", "a"))])
                graph.delete(*_texts(("a", "q", "b")))

    def steps_are_inputs(self, item: Item) -> bool:
        """Whether a step of the clock is one that callbacks tell from two."""
        return self.schedule.reacting and item.kind == "advance"

    def _called_to_write(self, *terms: object, graph: LiveGraph) -> None:
        graph.insert(str(terms[0]), *_texts(("g", "p", "b"))[1:])
        self._note_call("g", *terms)

    def _called(self, *terms: object) -> None:
        self._note_call("f", *terms)

    def _note_call(self, function: str, *terms: object) -> None:
        rng = self._interrupts if self.interrupted < MAX_INTERRUPTS else None
        if rng is not None and rng.random() < INTERRUPTED:
            self.interrupted += 1
            raise KeyboardInterrupt
        names = [_short(term) for term in terms]
        self.calls.append(f"{function}({', '.join(names)}) at {self.graph.clock}")
        if self.schedule.failing in names:
            raise ValueError(f"{self.schedule.failing} fails")

    def _listen_beside(self) -> None:
        """A program, a standing query and a callback that change nothing."""
        text = "EVENT Other(?x) AS { ?x :unrelated ?y } RULE Never ON Other(?x) THEN CALL f(?x)"
        self.graph.run(_parse(PREFIX + text), functions={"f": lambda _: None})
        query = self.graph.watch(PREFIX + "SELECT ?x ?y { ?x :p ?y . ?y :q ?z }")
        query.on_delta(lambda _: None)

    # --- input ---

    def advance(self, to: int) -> None:
        """Advance the clock; an error is noted."""
        self._noting(lambda: self.graph.advance(to))

    def give(self, items: Sequence[Item], how: How) -> None:
        """Give items of one kind, and of one stream, in one call of the API; errors are noted.

        A call does all that it can do, and raises the first of its errors then.
        """
        self._noting(lambda: self._give(items, how))

    def _noting(self, call: Callable[[], None]) -> None:
        try:
            call()
        except KeyboardInterrupt as interrupt:
            if self._interrupts is None:
                raise
            notes = getattr(interrupt, "__notes__", ())
            self.errors += [f"{BEFORE}{note.removeprefix(BEFORE)}" for note in notes]
        except Exception as problem:  # noqa: BLE001 - it is compared, whatever it is
            self.errors.append(f"{type(problem).__name__}: {problem}")

    def _give(self, items: Sequence[Item], how: How) -> None:
        first, graph = items[0], self.graph
        match first.kind:
            case "advance":
                graph.advance(items[-1].time)
            case "publish":
                graph.publish(first.triples(), time=first.time)
            case "change" if how == "single":
                with graph.transaction(time=first.time) as tx:
                    for diff, triple in first.changes:
                        (tx.insert if diff > 0 else tx.delete)(*_texts(triple))
            case "change":
                graph.apply(batch_of(items))
            case "push" if how == "single":
                graph.stream(text_of(first.stream)).push(first.triples(), time=first.time)
            case "push" if how == "feed" and _sorted(items):
                graph.stream(text_of(first.stream)).feed(batch_of(items))
            case _:
                self._push_ids(items)

    def _push_ids(self, items: Sequence[Item]) -> None:
        encode = self.graph.terms.encode
        rows = [(at, [*map(encode, t), 0]) for at, i in enumerate(items) for t in i.triples()]
        times = np.array([items[at].time for at, _ in rows], np.int64)
        quads = np.array([quad for _, quad in rows], np.int32)
        stream = self.graph.stream(text_of(items[0].stream))
        stream.push_ids(times, quads, events=np.array([at for at, _ in rows], np.int64))

    def give_log(self, items: Sequence[Item]) -> None:
        """Give changes of the graph and events of all streams as one log of changes."""
        self._noting(lambda: self._give_log(items))

    def _give_log(self, items: Sequence[Item]) -> None:
        for name in {item.stream for item in items if item.kind == "push"}:
            self.graph.stream(text_of(name))  # else it is a named graph like any other
        rows = []
        for tx, item in enumerate(items, self.graph.stats().transactions + 1):
            rows += item.rows(tx, text_of(item.stream) if item.kind == "push" else None)
        self.graph.apply(ChangeBatch.of(rows))

    def read(self, rng: Random) -> None:
        """Look at some answers."""
        for query in self.queries:
            match rng.randrange(5):
                case 0:
                    query.count()
                case 1:
                    query.delta()
                case 2:
                    query.table()
                case 3:
                    len(self.graph)
                case _:
                    pass

    # --- output ---

    def outcome(self) -> Outcome:
        """All that can be seen of it now."""
        graph = self.graph
        sections: dict[str, Lines] = {"first error": self.errors[:1]}
        for number, program in enumerate(self.programs):
            sections[f"firings of program {number}"] = _fired(program)
            sections[f"skipped errors of program {number}"] = list(map(str, program.problems))
            for pattern in program.program.patterns:
                found = program.matches(pattern.name)
                sections[f"complex events {pattern.name} of program {number}"] = [
                    f"{_values(each.values)} from {each.start} to {each.time}" for each in found
                ]
        sections["calls"], sections["heard"] = self.calls, self.heard
        for query in self.queries:
            if query.windows is not None:
                sections[f"results of {query.name}"] = [
                    f"at {result.time}: {sorted(map(_values, result))}"
                    for result in query.results()
                ]
            else:
                sections[f"deltas of {query.name}"] = [
                    f"at {delta.time}: {sorted(map(_signed_values, delta))}"
                    for delta in query.deltas()
                ]
        sections["graph"] = sorted(" ".join(map(_short, q[:3])) for q in graph.quads())
        streams = [graph.stream(text_of(name)) for name in self.schedule.streams]
        sections["streams"] = [_counted(stream) for stream in streams]
        sections["numbers"] = self._numbers()
        sections["clock"] = [str(graph.clock), *(str(program.clock) for program in self.programs)]
        return Outcome(sections)

    def _numbers(self) -> Lines:
        """How many transactions there were, and the numbers of those that changed answers."""
        plain = [query for query in self.queries if query.windows is None]
        return [
            f"transactions: {self.graph.transactions}",
            *(f"{query.name}: {[delta.seq for delta in query.deltas()]}" for query in plain),
        ]


def _sorted(items: Sequence[Item]) -> bool:
    """True if items are in order of time, as those of a log are."""
    return all(one.time <= two.time for one, two in pairwise(items))


def batch_of(items: Sequence[Item]) -> ChangeBatch:
    """Items as a batch of changes, each with a transaction of its own."""
    return ChangeBatch.of([row for tx, item in enumerate(items) for row in item.rows(tx)])


def _short(term: object) -> str:
    return str(term).removeprefix("<").removesuffix(">").removeprefix(NAMESPACE)


def _values(row: Mapping[str, object]) -> str:
    return " ".join(f"{name}={_short(term)}" for name, term in row.items() if term is not None)


def _signed_values(row: DeltaRow) -> str:
    return f"{row.diff:+d} {_values(row.row)}"


def _counted(stream: Stream) -> str:
    counts = f"{stream.received} received, {stream.late_count} late"
    return f"{stream.name}: {counts}, {stream.unpublished} unpublished"


def _fired(program: RunningProgram) -> Lines:
    return [
        f"{each.number}: {each.rule} at {each.time} {_values(each.values)} {each.events}"
        for each in program.firings()
    ]


# --- ways to run a schedule ---

WAYS: Final = (
    *("jumps", "batches", "ids", "log", "reads", "beside", "mixed"),
    *("interrupts", "definitions"),
)
"""Ways to run a schedule that must not make a difference.

jumps     the clock is not advanced between items
batches   so, and consecutive items of a kind in one call: `feed`, `apply`
ids       so, with `push_ids`
log       so, and changes and events of all streams in one call of `apply`; the reference is that
          of a schedule in which the clock is advanced before each event
reads     one by one, but answers are read in between
beside    jumps, beside a program and a callback that do nothing
mixed     batches, jumps, reads and listeners at random
interrupts   as `log`, item by item, or events of a stream together, and functions of CALL are
             interrupted: the next call goes on from where the interrupted one began
definitions  not run: what the definitions say of single items (see `schedule_model.py`)
"""

INPUTS_ALIKE: Final = ("jumps", "batches", "ids")
"""Ways in which the inputs are the same, without further steps of the clock."""


def run_one_by_one(schedule: Schedule) -> ScheduledRun:
    """The reference: each item in a call of its own, and the clock tick by tick before changes."""
    run = ScheduledRun(schedule)
    _give_each(run)
    return run


def run_as_log(schedule: Schedule) -> ScheduledRun:
    """The reference of the way `log`: with a line of a log, all before its time are there."""
    items = [[Item(i.time, "advance"), i] if i.kind == "push" else [i] for i in schedule.items]
    return run_one_by_one(replace(schedule, items=tuple(one for each in items for one in each)))


def run_interrupted(schedule: Schedule) -> ScheduledRun:
    """The reference of the way `interrupts`: each item finds its time reached."""
    items = [[Item(i.time, "advance"), i] for i in schedule.items]
    return run_one_by_one(replace(schedule, items=tuple(one for each in items for one in each)))


def run_otherwise(schedule: Schedule, way: str, seed: int = 0) -> ScheduledRun:
    """The same in another way (see `WAYS`)."""
    rng = Random(f"{way} {seed}")
    beside = way == "beside" or (way == "mixed" and rng.random() < MIXED_BESIDE)
    interrupts = rng if way == "interrupts" else None
    run, most = ScheduledRun(schedule, beside=beside, interrupts=interrupts), len(schedule.items)
    match way:
        case "jumps" | "beside":
            _give_groups(run, 1, "single")
        case "batches":
            _give_groups(run, most, "feed")
        case "ids":
            _give_groups(run, most, "ids")
        case "log":
            _give_logs(run)
        case "reads":
            _give_each(run, rng)
        case "mixed":
            _give_mixed(run, rng)
        case "interrupts":
            _give_interrupted(run, rng)
        case _:
            raise GraphtideError(f"{way!r} is no way to run", hint=f"use one of {', '.join(WAYS)}")
    return run


MAX_INTERRUPTS: Final = 5
"""Interrupts of one run."""

INTERRUPTED: Final = 0.4
"""How often a call of a function is interrupted."""

MIXED_BESIDE: Final = 0.3
MIXED_ADVANCES: Final = 0.3
MIXED_READS: Final = 0.5
"""How often the way `mixed` does these."""


def _give_each(run: ScheduledRun, reads: Random | None = None) -> None:
    for item in (*run.schedule.items, Item(run.schedule.end, "advance")):
        if item.kind in ("change", "advance"):
            for time in range(run.graph.clock, item.time + 1):
                run.advance(time)
        if item.kind != "advance":
            run.give([item], "single")
        if reads is not None and reads.random() < MIXED_READS:
            run.read(reads)


def _give_groups(run: ScheduledRun, most: int, how: How) -> None:
    items, at = run.schedule.items, 0
    while at < len(items):
        end = _end_of_group(items, at, 1 if run.steps_are_inputs(items[at]) else most)
        run.give(items[at:end], how)
        at = end
    run.advance(run.schedule.end)


def _give_mixed(run: ScheduledRun, rng: Random) -> None:
    items, at = run.schedule.items, 0
    while at < len(items):
        end = _end_of_group(items, at, rng.randint(1, 4))
        if items[at].kind in ("change", "advance") and rng.random() < MIXED_ADVANCES:
            run.advance(rng.randint(run.graph.clock, max(run.graph.clock, items[at].time)))
        how: How = rng.choice(("feed", "ids"))
        run.give(items[at:end], how)
        if rng.random() < MIXED_READS:
            run.read(rng)
        at = end
    run.advance(run.schedule.end)


def _end_of_group(items: Sequence[Item], at: int, most: int) -> int:
    """Up to where items can be given in one call."""
    kind, stream = items[at].kind, items[at].stream
    most = 1 if kind == "publish" else most
    for end in range(at + 1, min(len(items), at + most)):
        if (items[end].kind, items[end].stream) != (kind, stream):
            return end
    return min(len(items), at + most)


def _give_logs(run: ScheduledRun) -> None:
    """Give everything between two published events as one log."""
    part: list[Item] = []
    for item in (*run.schedule.items, Item(run.schedule.end, "advance")):
        if item.kind in ("change", "push"):
            part.append(item)
            continue
        if part:
            run.give_log(part)
        part = []
        run.give([item], "single")


def _give_interrupted(run: ScheduledRun, rng: Random) -> None:
    """Give items, or events that come together; first the clock goes there, so none is left out.

    What is due before an item may be interrupted when the item is not taken in yet.
    """
    items, at = run.schedule.items, 0
    has_windows = any(query.windows is not None for query in run.queries)
    while at < len(items):
        most = rng.randint(1, 4) if items[at].kind == "push" else 1
        end = _end_of_group(items, at, most)
        if has_windows:  # of other streams, which close when the clock goes to the next time
            end = next((n for n in range(at, end) if items[n].time > items[at].time), end)
        _reach(run, items[at].time)
        if items[at].kind != "advance":
            run.give(items[at:end], "single" if end == at + 1 else "ids")
        at = end
    _reach(run, run.schedule.end)


def _reach(run: ScheduledRun, time: int) -> None:
    """Advance the clock until that is not interrupted."""
    for _ in range(MAX_INTERRUPTS + 1):
        before = run.interrupted
        run.advance(time)
        if run.interrupted == before:
            return


# --- checking ---


class ScheduleFailure(AssertionError):  # noqa: N818 - a finding, not an error of the caller
    """A schedule whose outcome depends on how it was given. The message is a script."""

    def __init__(self, schedule: Schedule, way: str, seed: int, problem: str) -> None:
        super().__init__(schedule_script(schedule, way, seed, problem))
        self.schedule, self.way, self.seed, self.problem = schedule, way, seed, problem


def find_difference(schedule: Schedule, way: str, seed: int = 0) -> str:
    """What differs if a schedule is run in another way; empty if nothing does."""
    if way == "definitions":
        outcome = run_as_reference(schedule).outcome()
        return model_difference(schedule, outcome.sections, MAX_FIRINGS)
    references = {"log": run_as_log, "interrupts": run_interrupted}
    expected = references.get(way, run_as_reference)(schedule).outcome()
    found = run_otherwise(schedule, way, seed).outcome()
    if way == "interrupts":
        for sections in (expected.sections, found.sections):
            # What a function has written is undone, and it is called again.
            sections["calls"] = [call for call in sections["calls"] if call[0] != "g"]
            sections["first error"] = [e.partition(": ")[2] for e in sections["first error"]]
    return expected.difference(found)


def run_as_reference(schedule: Schedule) -> ScheduledRun:
    """Run it one by one; without further steps of the clock if callbacks see these as inputs."""
    return run_otherwise(schedule, "jumps") if schedule.reacting else run_one_by_one(schedule)


def _differs(schedule: Schedule, way: str, seed: int) -> bool:
    return bool(find_difference(schedule, way, seed))


def check_schedule(schedule: Schedule, ways: Sequence[str] = WAYS, seed: int = 0) -> None:
    """Run a schedule in all ways; raise `ScheduleFailure` with a minimised one if two differ."""
    way, _ = differing_way(schedule, ways, seed)
    if way:
        small = shrink(schedule, partial(_differs, way=way, seed=seed))
        raise ScheduleFailure(small, way, seed, find_difference(small, way, seed))


def differing_way(schedule: Schedule, ways: Sequence[str] = WAYS, seed: int = 0) -> tuple[str, str]:
    """Return the first way in which the outcome differs, and what; both empty if there is none."""
    expected = run_as_reference(schedule).outcome()
    for way in ways:
        if schedule.reacting and way not in INPUTS_ALIKE:
            continue
        if way in ("log", "interrupts"):
            if schedule.lateness:  # a log is in order of time
                continue
            wrong = find_difference(schedule, way, seed)
        elif way == "definitions":
            wrong = model_difference(schedule, expected.sections, MAX_FIRINGS)
        else:
            wrong = expected.difference(run_otherwise(schedule, way, seed).outcome())
        if wrong:
            return way, wrong
    return "", ""


def shrink(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """A smaller schedule that still fails: without items, declarations, programs, time."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(schedule):
            if _still(candidate, fails):
                schedule, smaller = candidate, True
                break
    return schedule


def _still(candidate: Schedule, fails: Callable[[Schedule], bool]) -> bool:
    try:
        return fails(candidate)
    except GraphtideError:  # a declaration is missing that another one needs
        return False


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    for at in range(len(schedule.programs)):
        rest = schedule.programs[:at] + schedule.programs[at + 1 :]
        if rest:
            yield replace(schedule, programs=rest)
    for at in range(len(schedule.items)):
        yield replace(schedule, items=schedule.items[:at] + schedule.items[at + 1 :])
    for number, program in enumerate(schedule.programs):
        for at in range(len(program)):
            shorter = program[:at] + program[at + 1 :]
            programs = (*schedule.programs[:number], shorter, *schedule.programs[number + 1 :])
            yield replace(schedule, programs=programs)
    for at in range(len(schedule.streams)):
        yield replace(schedule, streams=schedule.streams[:at] + schedule.streams[at + 1 :])
    for at, item in enumerate(schedule.items):
        for change in range(len(item.changes) if len(item.changes) > 1 else 0):
            fewer = replace(item, changes=item.changes[:change] + item.changes[change + 1 :])
            yield replace(schedule, items=(*schedule.items[:at], fewer, *schedule.items[at + 1 :]))
    last = max((item.time for item in schedule.items), default=0)
    for end in (last, (last + schedule.end) // 2, schedule.end - 1):
        if last <= end < schedule.end:
            yield replace(schedule, end=end)
    for at, item in enumerate(schedule.items):
        before = schedule.items[at - 1].time if at else 0
        if item.time > before:
            moved = tuple(replace(i, time=i.time - 1) for i in schedule.items[at:])
            yield replace(schedule, items=schedule.items[:at] + moved)
    for at in range(len(schedule.lateness)):
        on_time = schedule.lateness[:at] + schedule.lateness[at + 1 :]
        yield replace(schedule, lateness=on_time)
    if schedule.reacting:
        yield replace(schedule, reacting=False)
    if schedule.firing != "events":
        yield replace(schedule, firing="events", resolver="priority")
    if schedule.alignment != "close" or schedule.failing:
        yield replace(schedule, alignment="close", failing="", on_error="raise")


def schedule_script(schedule: Schedule, way: str, seed: int, problem: str) -> str:
    """A Python script that shows the difference."""
    lines = [f"# {line}" for line in problem.splitlines()]
    lines += ["from oracles.schedules import Item, Schedule, find_difference", ""]
    lines += ["PROGRAMS = ("]
    for program in schedule.programs:
        lines += ["    (", *(f"        {text!r}," for text in program), "    ),"]
    lines += [")", "ITEMS = '''", *map(str, schedule.items), "'''", "SCHEDULE = Schedule("]
    lines += ["    PROGRAMS,", "    tuple(map(Item.parse, ITEMS.strip().splitlines())),"]
    lines += [*(f"    {option}" for option in schedule.options()), ")"]
    lines += [f"print(find_difference(SCHEDULE, {way!r}, {seed}) or 'no difference')"]
    return "\n".join(lines)

"""`DividedStore`: a quad store that divides the work of its programs among threads.

One store, the whole, has all quads and answers what is asked of them. For each thread there is a
part: a store of its own with all programs that are followed, and of the quads those that its share
of their rows can depend on. So threads share nothing that changes.

The division is that of `spark/partition/grids.py`, by one variable per program. A row belongs to
the part that its value of the variable is hashed to. A quad that a pattern with this variable can
match goes to the part of its value; what a pattern without it can match goes to every part. Then
each part finds its own rows exactly: all quads of an own row are there, and of each of its checks
all quads that agree with the row; and no part has a quad that the whole lacks. Rows of other parts
that it finds besides are left out.
"""

from __future__ import annotations

from functools import cache, partial
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np

from graphtide.jit import compiled, inlined
from graphtide.kernel import QuadStore
from graphtide.kernel.batch import DIFF, TX, VALUES, Ints, Longs
from graphtide.kernel.search.program import SearchProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from graphtide.kernel.batch import Int
    from graphtide.kernel.workers import Workers
    from graphtide.limits import Limits

Result = TypeVar("Result")

NEVER: Final = Event()
"""Nothing stops what the calling thread does alone."""

BUCKETS = 64
"""Values are hashed to buckets, and buckets are divided among the parts."""

WHOLE = 8
"""Buckets that the whole store costs as much as: the part of the calling thread has fewer."""

ANY = -1
"""In place of a predicate: all that no pattern names."""

EVERYWHERE = 16
"""A bit beside those of the four columns of a quad: its quads are in every part."""

SLICE = 1 << 15
"""Changes that a part takes in before it looks whether it may stop."""


@inlined
def bucket_of(value: Int) -> Int:
    """The bucket of an id."""
    wide = np.int64(value)
    return ((wide ^ (wide >> 16)) * 40503 >> 10) & (BUCKETS - 1)


@compiled
def find_parts(
    quads: Ints, first: Int, predicates: Ints, routes: Ints, owners: Longs, found: Longs
) -> None:
    """The set of parts, as bits, that each quad belongs to.

    `predicates` is a hash table from predicate + 1 to a line of `routes`; the last line is that of
    all others. `owners` has the part of each bucket, as a bit.
    """
    mask = len(predicates) - 1
    for i in range(len(quads)):
        key = quads[i, first + 1] + 1
        slot = (np.int64(key) * 40503) & mask
        while predicates[slot] != 0 and predicates[slot] != key:
            slot = (slot + 1) & mask
        route = routes[slot] if predicates[slot] == key else routes[len(predicates)]
        parts = np.int64(0)
        if route & EVERYWHERE:
            for k in range(len(owners)):
                parts |= owners[k]
        else:
            for k in range(4):
                if route >> k & 1:
                    parts |= owners[bucket_of(quads[i, first + k])]
        found[i] = parts


def divide(program: SearchProgram, sizes: dict[int, int], parts: int) -> int:
    """The variable by which a program is divided: the one with the least quads in a part.

    Of several, one that is a subject more often: objects are more often hubs.

    >>> divide(SearchProgram(((-1, 7, -2, 0), (-1, 8, -3, 0)), 3), {}, 2)
    0
    """
    patterns = program.all_patterns()

    def load(variable: int) -> tuple[float, int, int]:
        own = -1 - variable
        quads = [sizes.get(max(p[1], ANY), 1) / (parts if own in p else 1) for p in patterns]
        return sum(quads), -sum(p[0] == own for p in patterns), variable

    return min(range(program.outputs), key=load)


def routes_of(program: SearchProgram, variable: int) -> Iterator[tuple[int, int]]:
    """For each pattern its predicate, and by which column its quads go to a part.

    >>> list(routes_of(SearchProgram(((-1, 7, -2, 0), (-2, 8, -3, 0)), 3), 0))
    [(7, 1), (8, 16)]
    """
    own = -1 - variable
    for pattern in program.all_patterns():
        route = 1 << pattern.index(own) if own in pattern else EVERYWHERE
        yield max(pattern[1], ANY), route


class Routes:
    """To which parts quads go, by predicate. Routes are only added: a part may have more quads."""

    def __init__(self, parts: int) -> None:
        share = (BUCKETS + WHOLE) // parts
        borders = [max(1, share - WHOLE) + share * k for k in range(parts)]
        owned = np.searchsorted(borders[:-1], np.arange(BUCKETS), side="right")
        self.owners: Longs = np.left_shift(np.int64(1), owned)
        self._by: dict[int, int] = {}
        self._predicates: Ints = np.zeros(2, np.int32)
        self._lines: Ints = np.zeros(3, np.int32)

    def add(self, routes: Sequence[tuple[int, int]]) -> None:
        """Add routes, by predicate."""
        for predicate, route in routes:
            self._by[predicate] = self._by.get(predicate, 0) | route
        anywhere = self._by.get(ANY, 0)
        named = [predicate for predicate in self._by if predicate != ANY]
        size = 2
        while size < 2 * len(named) + 1:
            size *= 2
        self._predicates = np.zeros(size, np.int32)
        self._lines = np.zeros(size + 1, np.int32)
        self._lines[size] = anywhere
        for predicate in named:
            slot = (predicate + 1) * 40503 & size - 1
            while self._predicates[slot]:
                slot = slot + 1 & size - 1
            self._predicates[slot] = predicate + 1
            self._lines[slot] = self._by[predicate] | anywhere

    def parts(self, quads: Ints, first: int = 0) -> Longs:
        """The parts of quads that begin at a column, as bits."""
        found = np.empty(len(quads), np.int64)
        find_parts(quads, first, self._predicates, self._lines, self.owners, found)
        return found

    def own(self, values: Ints) -> Longs:
        """The part of each value, as a bit."""
        wide = values.astype(np.int64)
        return self.owners[((wide ^ (wide >> 16)) * 40503 >> 10) & (BUCKETS - 1)]


class DividedStore:
    """A `QuadStore` whose followed programs react to changes in several threads.

    Programs that are installed but not followed are evaluated on the whole store. While a part is
    being changed, `_is_whole` is False: if that fails, all parts are made anew.

    >>> from graphtide.kernel.workers import Workers
    >>> store = DividedStore(Workers(2))
    >>> pairs = store.install(SearchProgram(((-1, 7, -2, 0), (-2, 8, -3, 0)), outputs=3))
    >>> store.follow(pairs)
    >>> changes = [[0, 1, 1, 7, 2, 0], [1, 1, 2, 8, 3, 0], [2, -1, 1, 7, 2, 0]]
    >>> store.apply(np.array(changes, np.int32))[pairs].tolist()
    [[1, 1, 1, 2, 3], [2, -1, 1, 2, 3]]
    """

    stores = True

    def __init__(self, workers: Workers, whole: QuadStore | None = None) -> None:
        self._workers = workers
        self._whole = QuadStore() if whole is None else whole
        self._followed: dict[int, SearchProgram] = {}
        self._settled: dict[int, tuple[int, int]] = {}  # number in the parts, column of a row
        self._is_settled = self._is_whole = True
        self._parts: list[QuadStore] = []
        self._routes = Routes(workers.threads)
        self._renew()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of `QuadStore`
        """What only reads quads is asked of the whole store."""
        return getattr(self._whole, name)

    def __len__(self) -> int:
        return len(self._whole)

    @property
    def limits(self) -> Limits:
        """What changes may take; each part may take as much time."""
        return self._whole.limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        for store in (self._whole, *self._parts):
            store.limits = limits

    @property
    def nbytes(self) -> int:
        """Bytes of the quads and their indexes, copies included."""
        return self._whole.nbytes + sum(part.nbytes for part in self._parts)

    @property
    def index_count(self) -> int:
        """How many indexes there are of the quads; those of the parts are counted once."""
        self._settle()
        return self._whole.index_count + self._parts[0].index_count

    def follow(self, number: int) -> None:
        """Let a program react to changes, and let the parts evaluate it."""
        program = None if number in self._followed else self._program(number)
        if program is not None and program.outputs:  # without variables nothing can be divided
            self._followed[number] = program
            self._is_settled = False
            self._whole.remove(number)

    def _program(self, number: int) -> SearchProgram:
        return self._whole._programs[number]  # noqa: SLF001

    def remove(self, number: int, *, for_now: bool = False) -> None:
        """Remove a program; `for_now`, it may come again."""
        if self._followed.pop(number, None) is None:
            self._whole.remove(number, for_now=for_now)
        else:
            self._is_settled = False

    def held_ids(self) -> Iterator[Ints]:
        """The ids of all quads, and the constants of the programs."""
        yield from self._whole.held_ids()
        for program in self._followed.values():
            yield np.array(program.all_patterns(), np.int32)

    def rebuilt(self, undone: Ints) -> QuadStore:
        """Another store with the same quads, some changes undone, and without programs."""
        other = DividedStore(self._workers, self._whole.rebuilt(undone))
        return cast("QuadStore", other)

    # --- changes ---

    def apply(self, changes: Ints) -> dict[int, Ints]:
        """Apply changes `[tx, diff, s, p, o, g]` in order; per program, the batch they cause."""
        self._settle()
        if not self._settled:
            return self._whole.apply(changes)
        self._is_whole = False
        wanted = self._routes.parts(changes, VALUES)

        def step(part: int, stop: Event) -> tuple[dict[int, Ints], dict[int, list[Ints]]]:
            whole = {} if part else self._whole.apply(changes)
            return whole, self._react(part, changes, wanted, stop)

        results = self._each(len(changes), step)
        merged: dict[int, Ints] = {}
        for number in self._settled:
            if batches := [batch for _, rows in results for batch in rows.get(number, ())]:
                merged[number] = _merged(batches)
        merged.update((n, rows) for n, rows in results[0][0].items() if n not in self._settled)
        self._is_whole = True
        return merged

    def _react(self, part: int, changes: Ints, wanted: Longs, stop: Event) -> dict[int, list[Ints]]:
        """The rows of one part that changes cause, by program."""
        store, bit = self._parts[part], 1 << part
        own = changes[(wanted & bit) != 0]
        numbers = {at: (number, column) for number, (at, column) in self._settled.items()}
        found: dict[int, list[Ints]] = {}
        for first in range(0, len(own), SLICE):
            if stop.is_set():
                break
            for at, batch in store.apply(own[first : first + SLICE]).items():
                number, column = numbers[at]
                if len(rows := self._own_rows(batch, column, bit)):
                    found.setdefault(number, []).append(rows)
        return found

    def _own_rows(self, batch: Ints, column: int, bit: int) -> Ints:
        own = self._routes.own(batch[:, VALUES + column]) == bit
        return batch if own.all() else batch[own]

    def evaluate(self, number: int) -> Ints:
        """All matches of one program now, as a batch of one transaction."""
        if number not in self._followed:
            return self._whole.evaluate(number)
        self._settle()
        at, column = self._settled[number]

        def rows(part: int, _: Event) -> Ints:
            return self._own_rows(self._parts[part].evaluate(at), column, 1 << part)

        return np.concatenate(self._each(len(self), rows))

    def _each(self, size: int, work: Callable[[int, Event], Result]) -> list[Result]:
        """Do something for each part; in several threads, if it is worth that."""
        tasks = [partial(work, part) for part in range(len(self._parts))]
        if size < self._workers.worth:
            return [task(NEVER) for task in tasks]
        compile_first()
        return self._workers.run(tasks)

    # --- programs ---

    def _renew(self) -> None:
        """Begin with empty parts."""
        self._parts = [QuadStore() for _ in range(self._workers.threads)]
        self._routes = Routes(self._workers.threads)
        self._settled = {}
        self.limits = self._whole.limits
        self._is_settled = not self._followed
        self._is_whole = True

    def _settle(self) -> None:
        """Let the parts have the programs that are followed now, and the quads these need."""
        if self._is_whole and self._is_settled:
            return
        if not (self._is_whole and self._followed):
            self._renew()
        self._is_whole = False
        for number in [each for each in self._settled if each not in self._followed]:
            at, _ = self._settled.pop(number)
            for part in self._parts:
                part.remove(at)
        new = {n: each for n, each in self._followed.items() if n not in self._settled}
        if new:
            self._add(new)
        self._is_settled = self._is_whole = True

    def _add(self, programs: dict[int, SearchProgram]) -> None:
        """Add programs to the parts, and the quads of the whole store that they match."""
        quads = np.ascontiguousarray(self._whole.quads())
        named, counts = np.unique(quads[:, 1], return_counts=True)
        sizes = dict(zip(named.tolist(), counts.tolist(), strict=True))
        sizes[ANY] = len(quads)
        before = self._routes.parts(quads)
        columns: dict[int, int] = {}
        for number, program in programs.items():
            columns[number] = divide(program, sizes, len(self._parts))
            self._routes.add(list(routes_of(program, columns[number])))
        added = self._routes.parts(quads) & ~before

        def fill(part: int, stop: Event) -> None:
            own = quads[(added >> part & 1) == 1]
            changes = np.zeros((len(own), VALUES + 4), np.int32)
            changes[:, DIFF], changes[:, VALUES:] = 1, own
            for first in range(0, len(own), SLICE):
                if not stop.is_set():
                    self._parts[part].apply(changes[first : first + SLICE])

        self._each(len(quads), fill)
        # Installed afterwards: what the quads are to a new program is evaluated at once.
        for number, program in programs.items():
            at = [part.install(program) for part in self._parts]
            self._settled[number] = at[0], columns[number]


def _merged(batches: list[Ints]) -> Ints:
    """The rows of several batches, in transaction order."""
    if len(batches) == 1:
        return batches[0]
    rows = np.concatenate(batches)
    return rows[np.argsort(rows[:, TX], kind="stable")]


@cache
def compile_first() -> None:
    """Load the loops of a store in one thread, before several of them need it."""
    store = QuadStore()
    number = store.install(SearchProgram(((-1, 1, -2, 0),), 2))
    store.apply(np.array([[0, 1, 1, 1, 1, 0]], np.int32))
    store.evaluate(number)

"""Compilation of programs to the arrays that the search loops read.

Each program becomes a piece: its lines of every array, with numbers that begin at 0. Programs come
and go all the time, those of one-off queries among them. So the lines before the first program that
is another one are copied from the arrays that were there, and later pieces are used again, as long
as the indexes that they are looked up by are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import compress, count
from math import inf
from operator import is_not, ne, or_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphtide.jit import compiled
from graphtide.kernel.search.arrays import (
    AHEAD_CELLS,
    BEST,
    BLOCK,
    CHECK_FIRST,
    FIRST,
    FIRST_CHECK,
    KEY,
    LINKS,
    PATTERNS,
    PROBE_KEY,
    SCAN,
    SEED_CHECK,
    SEED_PATTERN,
    SEED_PROGRAM,
    SEEDS,
    SEEDS_FROM,
    UNIQUE,
    SearchArrays,
)
from graphtide.kernel.search.program import MAX_PATTERNS, needed_indexes, walks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from graphtide.arrays import Ints2
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.kernel.search.program import Columns, SearchProgram

    Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

Line = tuple[int, ...]

ANY = -1
"""Stands for all predicates that no pattern names."""

MAX_GONE, KEPT_SHARE, LEAST_KEPT = 4, 4, 1000
"""Programs that are gone and whose indexes are kept; until so many quads have changed, as a share
of all and at least."""

FEW_PREDICATES, FEW_PATTERNS = 32, 64
"""Lines of the dispatch table, and patterns, that are looked at in Python."""

COLUMNS = tuple(tuple(k for k in range(4) if number >> k & 1) for number in range(16))
"""Sets of columns: bit k of a number is set if it contains column k."""

MOST_PROBES = 8
"""Lookups of a seed that are made ahead."""

CONSTANT = 8
"""How much fewer quads match a pattern with one more constant: a guess."""


class ProgramShape(NamedTuple):
    """What does not depend on other programs. All but head and checks have a line per pattern."""

    head: Line
    checks: Ints
    patterns: Ints
    seeds: Ints
    walks: Longs
    wanted: Longs  # the indexes that are needed: a bit for each set of key columns


class Piece(NamedTuple):
    """The lines of a program, whose quads these indexes hold (by pattern, as bits)."""

    shape: ProgramShape
    held: tuple[int, ...]
    patterns: Ints
    probes: Ints
    probe_counts: list[int]


class ProgramLines(NamedTuple):
    """The lines of all programs, with the numbers that they have there."""

    heads: Ints
    checks: Ints
    patterns: Ints
    seeds: Ints
    walks: Longs
    wanted: Longs
    held: Longs
    probes: Ints
    probe_counts: Ints

    def first(self, programs: int) -> ProgramLines:
        """The lines of the first programs."""
        if programs == len(self.heads):
            return self
        many, checks = self.heads[programs, [FIRST, FIRST_CHECK]].tolist()
        probes = int(self.probe_counts[:many].sum())
        return ProgramLines(
            self.heads[:programs], self.checks[:checks], self.patterns[:many], self.seeds[:many],
            self.walks[:many], self.wanted[:many], self.held[:many], self.probes[:probes],
            self.probe_counts[:many],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """The arrays, the indexes they need, and which predicates' quads each index holds."""

    plan: SearchArrays
    keys: tuple[Columns, ...]
    links: dict[int, int]
    programs: Sequence[SearchProgram]
    pieces: list[Piece]
    parts: ProgramLines

    def extends(self, other: Compiled) -> bool:
        """Whether each index of another plan is also here, at the same number, with its quads."""
        everywhere, before = self.links.get(ANY, 0), other.links.get(ANY, 0)
        if self.keys[: len(other.keys)] != other.keys or before & ~everywhere:
            return False
        return other.links.items() <= self.links.items() or not any(
            bits & ~self.links.get(predicate, everywhere) for predicate, bits in other.links.items()
        )


class GonePrograms:
    """Programs that were removed for now. They come again if a one-off query is asked again.

    To build their indexes takes as long as many changes do: they are kept until so many were made.
    """

    def __init__(self) -> None:
        self.until: float = inf  # the number of changes up to which all of them are recent
        self._since: dict[SearchProgram, int] = {}

    def add(self, program: SearchProgram, changes: int) -> None:
        """Note a program that is removed after so many changes."""
        self._since.pop(program, None)
        self._since[program] = changes

    def recent(self, changes: int, quads: int) -> Iterable[SearchProgram]:
        """Those whose indexes are worth keeping after so many changes; the others are forgotten."""
        kept = max(quads // KEPT_SHARE, LEAST_KEPT)
        recent = [each for each in self._since.items() if each[1] + kept >= changes]
        self._since = dict(recent[-MAX_GONE:])
        self.until = min(self._since.values(), default=inf) + kept
        return self._since.keys()


def compile_programs(
    programs: Sequence[SearchProgram], before: Compiled, gone: Iterable[SearchProgram] = ()
) -> Compiled:
    """All programs as arrays, with indexes for some that are gone; uses what was there `before`.

    Indexes that were there and are still needed come first, in the same order.
    """
    kept = _common(programs, before.programs, is_not)
    others = dict(zip(map(id, before.programs[kept:]), before.pieces[kept:], strict=True))
    pieces = before.pieces[:kept]
    old = [others.get(id(program)) for program in programs[kept:]]
    shapes = [
        shape_of(program) if piece is None else piece.shape
        for program, piece in zip(programs[kept:], old, strict=True)
    ]
    parts = before.parts.first(kept)
    every = [*shapes, *map(shape_of, gone)]
    predicates = np.concatenate([parts.patterns[:, 1], *(each.patterns[:, 1] for each in every)])
    wanted = np.concatenate([parts.wanted, *(each.wanted for each in every)])
    keys, links, held = _indexes(np.maximum(predicates, ANY), wanted, before.keys)
    same = _common(keys, before.keys, ne)  # so many indexes have the numbers they had
    moved = (held[: len(parts.held)] != parts.held) | (parts.held >> same != 0)
    if moved.any():  # the first of these programs has to be looked up by other indexes
        first = int(np.searchsorted(parts.heads[:, FIRST], moved.argmax(), side="right")) - 1
        old = [*pieces[first:], *old]
        shapes = [*(piece.shape for piece in pieces[first:]), *shapes]
        pieces, parts = pieces[:first], parts.first(first)
    at = len(parts.patterns)
    fresh: list[Piece] = []
    for program, shape, piece in zip(programs[len(pieces) :], shapes, old, strict=True):
        own = tuple(held[at : at + len(shape.patterns)].tolist())
        at += len(own)
        if piece is None or piece.held != own or any(bits >> same for bits in own):
            piece = _make_piece(program, own, keys)
        fresh.append(piece)
    parts = _joined(parts, fresh)
    plan = _make_plan(parts, links)
    return Compiled(plan, keys, links, tuple(programs), pieces + fresh, parts)


def _common(
    one: Sequence[object], other: Sequence[object], differ: Callable[[object, object], bool]
) -> int:
    """How many elements at the beginning do not differ."""
    return next(compress(count(), map(differ, one, other)), min(len(one), len(other)))


# ---- single programs -----------------------------------------------------------------------------


@lru_cache(maxsize=256)
def shape_of(program: SearchProgram) -> ProgramShape:
    """What is known of a program by itself."""
    needed = needed_indexes(program)
    groups = [(-1, program.patterns), *((n, c.patterns) for n, c in enumerate(program.checks))]
    checks, first = [], len(program.patterns)
    for check in program.checks:
        checks.append((first, len(check.patterns), int(check.negated)))
        first += len(check.patterns)
    patterns = program.all_patterns()
    wanted = [sum(1 << _as_bits(columns) for columns in needed[pattern]) for pattern in patterns]
    many, variables = len(program.patterns), program.variables()
    return ProgramShape(
        (0, many, program.outputs, 0, len(checks), variables),
        _array(checks, 3),
        _array(patterns, 4),
        _array([(0, i, check) for check, group in groups for i in range(len(group))], 3),
        np.array(walks_of(program), np.int64),
        np.array(wanted, np.int64),
    )


def _array(rows: Sequence[Sequence[int]], width: int) -> Ints:
    return np.array(rows, np.int32).reshape(len(rows), width)


def _as_bits(columns: Iterable[int]) -> int:
    return sum(1 << column for column in columns)


@lru_cache(maxsize=256)  # a one-off query may come again and again
def _make_piece(program: SearchProgram, held: tuple[int, ...], keys: tuple[Columns, ...]) -> Piece:
    """The lines of a program that are looked up by these indexes."""
    shape = shape_of(program)
    patterns = shape.patterns.tolist()
    lines = [(*p, *_best(bits, keys)) for p, bits in zip(patterns, held, strict=True)]
    outer = range(shape.head[PATTERNS])
    inner = [at for first, many, _ in shape.checks.tolist() for at in range(first, first + many)]
    probes = [_probes(own, outer, inner, lines) for own in range(len(lines))]
    flat = [probe for each in probes for probe in each]
    return Piece(shape, held, _array(lines, 20), _array(flat, 7), [len(each) for each in probes])


@lru_cache(maxsize=1024)
def _best(held: int, keys: tuple[Columns, ...]) -> tuple[int, ...]:
    """For each set of known positions, the index with the most key columns that it can use.

    Only indexes that hold every quad the pattern can match: the set `held` of its predicate.
    """
    usable = [(_as_bits(key), i) for i, key in enumerate(keys) if held >> i & 1]
    usable.sort(key=lambda each: -len(keys[each[1]]))
    return tuple(
        [
            next((i for columns, i in usable if columns & known == columns), SCAN)
            for known in range(16)
        ]
    )


def _probes(
    own: int, outer: Iterable[int], inner: Iterable[int], lines: Sequence[Line]
) -> list[Line]:
    """Lookups of patterns by what is known from a quad of one of them, then of those in checks.

    First those by values of the changed quad, then by those of the rows that these find, and so on.
    Of one level, patterns with a known object come first: they fail more often.
    """
    columns = {value: -1 - k for k, value in enumerate(lines[own][:4]) if value < 0}
    left = [at for at in outer if at != own]
    found: list[Line] = []
    level = 0
    while known := [(at, probe) for at in left if (probe := _lookup(lines[at], columns))]:
        for at, probe in sorted(known, key=lambda each: each[1][PROBE_KEY + 2] >= 0):
            left.remove(at)
            found.append((*probe, level, 1))
            for k, value in enumerate(lines[at][:4]):
                if value < 0:
                    columns.setdefault(value, -1 - (4 * len(found) + k))
        level += 1
    looked_up = (_lookup(lines[at], columns) for at in inner if at != own)
    found += [(*probe, level, 0) for probe in looked_up if probe]
    return found[:MOST_PROBES]


def _lookup(line: Line, columns: dict[int, int]) -> Line:
    """The index for a pattern, and its key: ids, and columns of values; empty if there is none."""
    s, p, o, g = [value if value >= 0 else columns.get(value) for value in line[:4]]
    known = (s is not None) + 2 * (p is not None) + 4 * (o is not None) + 8 * (g is not None)
    index = UNIQUE if known == 15 else line[BEST + known]
    return () if index == SCAN else (index, s or 0, p or 0, o or 0, g or 0)


# ---- all programs --------------------------------------------------------------------------------


def _indexes(
    predicates: Ints, wanted: Longs, order: Sequence[Columns]
) -> tuple[tuple[Columns, ...], dict[int, int], Longs]:
    """The key columns of each index, and a bit for each that holds a predicate's quads.

    The bits are by predicate, and for each pattern, whose predicates are given.
    """
    sets = _by_predicate(predicates, wanted)
    anywhere, every = sets.get(ANY, 0), reduce(or_, sets.values(), 0)
    needed = {columns for number, columns in enumerate(COLUMNS) if every >> number & 1}
    keys = (*(key for key in order if key in needed), *sorted(needed.difference(order)))
    columns = [_as_bits(key) for key in keys]
    links = {
        predicate: sum([((own | anywhere) >> key & 1) << i for i, key in enumerate(columns)])
        for predicate, own in sets.items()
    }
    named, bits = np.fromiter(links, np.int64), np.fromiter(links.values(), np.int64)
    return keys, links, bits[np.searchsorted(named, predicates)]


def _by_predicate(predicates: Ints, wanted: Longs) -> dict[int, int]:
    """The indexes that patterns of each predicate want, in the order of predicates."""
    if len(predicates) <= FEW_PATTERNS:
        found: dict[int, int] = {}
        for predicate, columns in zip(predicates.tolist(), wanted.tolist(), strict=True):
            found[predicate] = found.get(predicate, 0) | columns
        return dict(sorted(found.items()))
    named, at = np.unique(predicates, return_inverse=True)
    sets = np.zeros(len(named), np.int64)
    np.bitwise_or.at(sets, at, wanted)
    return dict(zip(named.tolist(), sets.tolist(), strict=True))


def _joined(parts: ProgramLines, pieces: Sequence[Piece]) -> ProgramLines:
    """More lines, after those of other programs."""
    if not pieces:
        return parts
    shapes = [piece.shape for piece in pieces]
    if len(pieces) == 1 and not len(parts.heads):  # numbers begin at 0, as those of the piece do
        [(shape, own, patterns, probes, probe_counts)] = pieces
        return ProgramLines(
            _array([shape.head], 6), shape.checks, patterns, shape.seeds, shape.walks, shape.wanted,
            np.array(own, np.int64), probes, np.array(probe_counts, np.int32),
        )  # fmt: skip
    sizes, checks = np.array(
        [[len(each.patterns), len(each.checks)] for each in shapes], np.int32
    ).T
    at = (len(parts.patterns) + np.cumsum(sizes) - sizes).astype(np.int32)
    check_at = (len(parts.checks) + np.cumsum(checks) - checks).astype(np.int32)
    heads = _array([each.head for each in shapes], 6)
    heads[:, FIRST] += at
    heads[:, FIRST_CHECK] += check_at
    own_checks = np.concatenate([each.checks for each in shapes])
    own_checks[:, CHECK_FIRST] += np.repeat(at, checks)
    seeds = np.concatenate([each.seeds for each in shapes])
    numbers = np.arange(len(parts.heads), len(parts.heads) + len(pieces), dtype=np.int32)
    seeds[:, SEED_PROGRAM] = np.repeat(numbers, sizes)
    seeds[:, SEED_CHECK] += np.where(seeds[:, SEED_CHECK] < 0, 0, np.repeat(check_at, sizes))
    counts = np.array([n for piece in pieces for n in piece.probe_counts], np.int32)
    held = np.array([bits for piece in pieces for bits in piece.held], np.int64)
    more = ProgramLines(
        heads,
        own_checks,
        np.concatenate([piece.patterns for piece in pieces]),
        seeds,
        np.concatenate([each.walks for each in shapes]),
        np.concatenate([each.wanted for each in shapes]),
        held,
        np.concatenate([piece.probes for piece in pieces]),
        counts,
    )
    if not len(parts.heads):
        return more
    pairs: Any = zip(parts, more, strict=True)
    return ProgramLines(*map(np.concatenate, pairs))


def _make_plan(parts: ProgramLines, links: dict[int, int]) -> SearchArrays:
    """The arrays of all programs, with seeds and probes in the order of predicates."""
    dispatch, ordered = _dispatch(np.maximum(parts.patterns[:, 1], ANY), links)
    sizes = parts.probe_counts[ordered]
    ends = np.cumsum(sizes)
    begins = (np.cumsum(parts.probe_counts) - parts.probe_counts)[ordered]
    moved = np.repeat(begins - (ends - sizes), sizes)
    return SearchArrays(
        patterns=parts.patterns,
        programs=parts.heads,
        checks=parts.checks,
        seeds=parts.seeds[ordered],
        dispatch=dispatch,
        walks=parts.walks,
        probes=parts.probes[moved + np.arange(len(moved))],
        probes_from=np.concatenate([[0], ends]).astype(np.int32),
        bind=np.zeros(MAX_PATTERNS + 4, np.int32),
        walk_bind=np.zeros(MAX_PATTERNS + 4, np.int32),
        key=np.zeros((1, 4), np.int32),
        frames=np.zeros((MAX_PATTERNS + 2, 4), np.int64),
        inner=np.zeros((MAX_PATTERNS + 2, 4), np.int64),
        walk=np.zeros((MAX_PATTERNS + 2, 4), np.int64),
        ahead=np.zeros((BLOCK * AHEAD_CELLS, 2), np.int64),
    )


def _dispatch(predicates: Ints, links: dict[int, int]) -> tuple[Ints, Longs]:
    """A hash table from predicate to its seeds and links, and the seeds in order, by pattern.

    The last line is for all predicates that no pattern names. The seeds of variables are among
    those of every predicate.
    """
    if ANY not in links:
        links = {ANY: 0, **links}  # in order
    named = np.fromiter(links, np.int32, len(links))
    own, anywhere = np.flatnonzero(predicates != ANY), np.flatnonzero(predicates == ANY)
    line = np.searchsorted(named, predicates[own])
    line = np.concatenate([line, np.repeat(np.arange(len(named)), len(anywhere))])
    seeds = np.concatenate([own, np.tile(anywhere, len(named))])
    sizes = np.bincount(line, minlength=len(named))
    bits = np.fromiter(links.values(), np.int32, len(links))
    lines: Ints = np.empty((len(named), 4), np.int32)
    lines[:, KEY], lines[:, SEEDS], lines[:, LINKS] = named + 1, sizes, bits
    lines[:, SEEDS_FROM] = sizes.cumsum() - sizes
    size = 2
    while size < 2 * len(named):
        size *= 2
    table: Ints = np.zeros((size + 1, 4), np.int32)
    table[size] = lines[0]
    if len(named) > 1:
        few = len(named) <= FEW_PREDICATES  # the loop may have to be loaded first
        (getattr(fill_dispatch, "py_func", fill_dispatch) if few else fill_dispatch)(table, lines)
    return table, seeds[np.lexsort((seeds, line))]


@compiled
def fill_dispatch(table: Ints2, lines: Ints2) -> None:
    """Put all lines but the first one into a hash table by their predicates."""
    mask = len(table) - 2
    for line in range(1, len(lines)):
        slot = ((np.int64(lines[line, KEY]) - 1) * 40503) & mask
        while table[slot, KEY] != 0:
            slot = (slot + 1) & mask
        for k in range(4):
            table[slot, k] = lines[line, k]


def restricted(plan: SearchArrays, chosen: Flags) -> SearchArrays:
    """The same plan with some of its seeds only."""
    own = np.flatnonzero(chosen)
    dispatch = plan.dispatch.copy()
    first = plan.dispatch[:, SEEDS_FROM]
    dispatch[:, SEEDS_FROM] = np.searchsorted(own, first)
    dispatch[:, SEEDS] = np.searchsorted(own, first + plan.dispatch[:, SEEDS])
    dispatch[:, SEEDS] -= dispatch[:, SEEDS_FROM]
    sizes = np.diff(plan.probes_from)
    return plan._replace(
        seeds=plan.seeds[own],
        dispatch=dispatch,
        probes=plan.probes[np.repeat(chosen, sizes)],
        probes_from=np.cumsum([0, *sizes[own]], dtype=np.int32),
    )


def cheapest_seeds(plan: SearchArrays, programs: Sequence[int], sizes: Longs) -> Flags:
    """Of each of some programs the seeds at one pattern: from these, all matches can be found.

    It is the pattern that fewest quads can match; `sizes` has the quads of each dispatch line.
    """
    keys = plan.dispatch[:-1, KEY]
    chosen = np.zeros(len(plan.seeds), np.bool_)
    for program in programs:
        first, many = plan.programs[program, :2].tolist()

        def cost(pattern: int, first: int = first) -> float:
            s, p, o, _ = plan.patterns[first + pattern, :4].tolist()
            quads = sizes.sum() if p < 0 else sizes[[*np.flatnonzero(keys == p + 1), -1][0]]
            return float(quads) / CONSTANT ** ((s >= 0) + (o >= 0))

        at = plan.seeds[:, SEED_CHECK] < 0, plan.seeds[:, SEED_PROGRAM] == program
        chosen |= at[0] & at[1] & (plan.seeds[:, SEED_PATTERN] == min(range(many), key=cost))
    return chosen


def _none() -> Compiled:
    """The arrays of no programs."""
    lines: Ints = np.zeros((0, 20), np.int32)
    longs: Longs = np.zeros(0, np.int64)
    parts = ProgramLines(
        lines[:, :6], lines[:, :3], lines, lines[:, :3], longs, longs, longs, lines[:, :7],
        np.zeros(0, np.int32),
    )  # fmt: skip
    return Compiled(_make_plan(parts, {}), (), {}, (), [], parts)


NO_PROGRAMS = _none()

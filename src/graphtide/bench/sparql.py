"""Cost of one change for each SPARQL operator, while its state grows.

An operator has a query that is little else, over a graph of `size` quads (pairs, for a path). A
round deletes some quads and inserts them again, one transaction each, so that the state keeps its
size. Costs are processor time.

What a change reads of a large state is not in the processor's caches. So each round is repeated at
once with the same quads: what they need is in the caches then, however large the state is. Beside
both costs is that of a plain random read in an array with a cache line for each quad.

For some operators, pyoxigraph evaluates the query on the same quads, which is what every change
costs without maintenance.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median
from time import process_time
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyoxigraph as ox

from graphtide.bench import report as tables
from graphtide.bench.harness import Benchmark
from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.jit import compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.random import Generator
    from rich.table import Table

    from graphtide.engine.watch import Query
    from graphtide.kernel.batch import Int, Ints
    from graphtide.plan.patterns import Strategy

compute: Any = pyarrow.compute

Growth = Literal["flat", "logarithmic", "affected region"]

MIN_SIZE: Final = 1000
ROUNDS: Final = 15
QUADS_PER_ROUND: Final = 500

REPEATED: Final = 2
"""How often a round is repeated with the same quads."""

MAX_SECONDS: Final = 10
"""Seconds after which no other round begins."""

ASKED_UP_TO: Final = 100_000
"""Quads up to which pyoxigraph evaluates the query: it takes longer than all rounds."""

READS: Final = 1_000_000
LINE: Final = 16
"""Integers of a cache line."""

RANDOM_READ: Final = "a random read"

ENCODED_AT_ONCE: Final = 1 << 20
"""Texts that are made and encoded at a time."""

CHAIN: Final = 10
"""Nodes of a chain."""

NEAR: Final = 100
"""Nodes at the end of a long chain that a path reaches."""

PAIRS_PER_CHAIN: Final = CHAIN * (CHAIN - 1) // 2
XSD_INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True, slots=True)
class OperatorData:
    """The quads of a graph as ids, and those that rounds change, from the last one on."""

    quads: Ints
    changing: Ints


@dataclass(frozen=True, slots=True)
class MeasuredOperator:
    """An operator, its query, its data, and how the cost of a change may grow with the state."""

    name: str
    growth: Growth
    query: str
    make: Callable[[LiveGraph, int, Generator], OperatorData]
    strategy: Strategy | None = None
    ask_again: bool = False


@dataclass(frozen=True, slots=True)
class OperatorTask:
    """An operator at a size of its state."""

    operator: str
    size: int
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.operator}, {self.size:,}"


@dataclass(frozen=True, slots=True)
class OperatorResult:
    """The cost of one change in microseconds: the least of the rounds.

    `cached` is that of the same changes again, `asked_again` the time in which pyoxigraph evaluates
    the query, if that is measured.
    """

    operator: str
    growth: str
    size: int
    rows: int
    load_s: float
    micros: float
    cached: float
    state_mb: float
    asked_again: float | None = None


# ---- the graphs ----------------------------------------------------------------------------------


def edges(graph: LiveGraph, size: int, random: Generator) -> OperatorData:
    """Half of the quads are `?a :p ?b`, half `?b :q ?c`; those of `:q` change."""
    half = size // 2
    a, b, c = (nodes(graph, name, half) for name in "abc")
    p, q = (np.full(half, graph.terms.encode(f"<ex:{name}>"), np.int32) for name in "pq")
    into = random.permutation(b)
    left, right = _quads(a, p, into), _quads(b, q, c)
    return OperatorData(np.concatenate([left, right]), random.permutation(right))


def doubled(graph: LiveGraph, size: int, random: Generator) -> OperatorData:
    """`?a :p ?b`, where half of the `?b` occur twice: they stay when one quad is deleted."""
    a = nodes(graph, "a", size)
    b = nodes(graph, "b", size * 3 // 4)
    p = np.full(size, graph.terms.encode("<ex:p>"), np.int32)
    quads = _quads(a, p, np.concatenate([b, b[: size - len(b)]]))
    return OperatorData(quads, random.permutation(quads))


def numbers(graph: LiveGraph, size: int, random: Generator) -> OperatorData:
    """`?a :p ?v` with distinct numbers; the least and the greatest change, and as many others."""
    a = nodes(graph, "a", size)
    p = np.full(size, graph.terms.encode("<ex:p>"), np.int32)
    quads = _quads(a, p, integers(graph, size))
    part = size // 8
    others = random.permutation(quads[part:-part])
    changing = np.empty((4 * part, 4), np.int32)
    changing[0::4], changing[2::4] = others[:part], others[part : 2 * part]
    changing[1::4], changing[3::4] = quads[part - 1 :: -1], quads[-part:]
    return OperatorData(quads, changing)


def chains(graph: LiveGraph, size: int, random: Generator) -> OperatorData:
    """Chains of ten nodes, as many as give `size` pairs."""
    count = max(size // PAIRS_PER_CHAIN, 1)
    node = nodes(graph, "n", count * CHAIN).reshape(count, CHAIN)
    p = np.full(count * (CHAIN - 1), graph.terms.encode("<ex:p>"), np.int32)
    quads = _quads(node[:, :-1].reshape(-1), p, node[:, 1:].reshape(-1))
    return OperatorData(quads, random.permutation(quads))


def rooted_chains(graph: LiveGraph, size: int, random: Generator) -> OperatorData:
    """Chains of ten edges that all begin at one node: a change cuts off at most ten nodes."""
    count = size // CHAIN
    node = nodes(graph, "n", count * CHAIN + 1)
    ends = node[1:].reshape(count, CHAIN)
    begins = np.column_stack([np.full(count, node[0]), ends[:, :-1]])
    p = np.full(count * CHAIN, graph.terms.encode("<ex:p>"), np.int32)
    quads = _quads(begins.reshape(-1), p, ends.reshape(-1))
    return OperatorData(quads, random.permutation(quads))


def long_chain(graph: LiveGraph, size: int, random: Generator) -> OperatorData:
    """One chain, and a node that leads to near its end; the edges from there change."""
    node = nodes(graph, "n", size)
    p, at = (
        np.full(size - 1, graph.terms.encode(f"<ex:{name}>"), np.int32) for name in ("p", "at")
    )
    quads = _quads(node[:-1], p, node[1:])
    start = np.array([graph.terms.encode("<ex:start>")], np.int32)
    mark = _quads(start, at[:1], node[-NEAR : 1 - NEAR])
    return OperatorData(np.concatenate([quads, mark]), random.permutation(quads[1 - NEAR :]))


def whole_chain(graph: LiveGraph, size: int, random: Generator) -> OperatorData:
    """One chain from its first node; edges anywhere change, half of it is cut off on average."""
    node = nodes(graph, "n", size)
    p = np.full(size - 1, graph.terms.encode("<ex:p>"), np.int32)
    quads = _quads(node[:-1], p, node[1:])
    return OperatorData(quads, random.permutation(quads))


def tree(graph: LiveGraph, size: int, random: Generator) -> OperatorData:
    """Each node hangs at an earlier one; edges anywhere change, with what hangs below them."""
    node = nodes(graph, "n", size)
    above = (random.random(size - 1) * np.arange(1, size)).astype(np.int64)
    p = np.full(size - 1, graph.terms.encode("<ex:p>"), np.int32)
    quads = _quads(node[above], p, node[1:])
    return OperatorData(random.permutation(quads), random.permutation(quads))


def random_edges(graph: LiveGraph, size: int, random: Generator) -> OperatorData:
    """Edges between random nodes, half as many as edges: most of them are connected."""
    node = nodes(graph, "n", size // 2)
    from_first = random.integers(0, len(node), CHAIN)  # the query starts from the first node
    pairs = _distinct_pairs(len(node), len(node), size, random)
    pairs = random.permutation(np.union1d(from_first, pairs))
    p = np.full(len(pairs), graph.terms.encode("<ex:p>"), np.int32)
    quads = _quads(node[pairs // len(node)], p, node[pairs % len(node)])
    return OperatorData(quads, random.permutation(quads))


def measurements(graph: LiveGraph, size: int, random: Generator) -> OperatorData:
    """`?k :p ?v`, about a hundred numbers for each `?k`."""
    keys = nodes(graph, "k", max(size // 100, 1))
    values = integers(graph, max(size // 100, 200))
    pairs = random.permutation(_distinct_pairs(len(keys), len(values), size, random))
    p = np.full(len(pairs), graph.terms.encode("<ex:p>"), np.int32)
    quads = _quads(keys[pairs // len(values)], p, values[pairs % len(values)])
    return OperatorData(quads, random.permutation(quads))


def nodes(graph: LiveGraph, name: str, count: int) -> Ints:
    """Ids of `count` IRIs."""
    return _numbered(graph, f"<ex:{name}", count, ">")


def integers(graph: LiveGraph, count: int) -> Ints:
    """Ids of the integers from 0."""
    return _numbered(graph, '"', count, f'"^^<{XSD_INTEGER}>')


def _numbered(graph: LiveGraph, before: str, count: int, after: str) -> Ints:
    parts = []
    for begin in range(0, count, ENCODED_AT_ONCE):
        numbers = pa.array(np.arange(begin, min(begin + ENCODED_AT_ONCE, count)))
        texts = compute.binary_join_element_wise(before, numbers.cast(pa.string()), after, "")
        parts.append(graph.terms.encode_column(texts))
    return np.concatenate(parts)


def _distinct_pairs(
    firsts: int, seconds: int, count: int, random: Generator
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """At most `count` pairs of numbers, each as `first * seconds + second`."""
    return np.unique(random.integers(0, firsts * seconds, count))


def _quads(s: Ints, p: Ints, o: Ints) -> Ints:
    quads: Ints = np.column_stack([s, p, o, np.zeros(len(s), np.int32)]).astype(np.int32)
    return quads


_JOIN: Final = "SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c }"
_ANTIJOIN: Final = "SELECT * { ?a <ex:p> ?b FILTER NOT EXISTS { ?b <ex:q> ?c } }"
_OPTIONAL: Final = "SELECT * { ?a <ex:p> ?b OPTIONAL { ?b <ex:q> ?c } }"
_UNION: Final = "SELECT * { { ?a <ex:p> ?b } UNION { ?a <ex:q> ?b } }"
_COUNTED: Final = "SELECT (COUNT(*) AS ?n) { ?a <ex:p> ?b . ?b <ex:q> ?c }"
_FILTER: Final = "SELECT * { ?a <ex:p> ?v FILTER (?v > 99) }"
_GROUPS: Final = "SELECT ?b (COUNT(*) AS ?n) { ?a <ex:p> ?b } GROUP BY ?b"
_BOUND_PATH: Final = "SELECT * { <ex:start> <ex:at> ?a . ?a <ex:p>+ ?b }"
_FROM_FIRST: Final = "SELECT * { <ex:n0> <ex:p>+ ?b }"
_REACHED: Final = "SELECT (COUNT(?b) AS ?n) { <ex:n0> <ex:p>+ ?b }"
_TOP: Final = "SELECT * { ?a <ex:p> ?v } ORDER BY DESC(?v) LIMIT 10"


def _aggregate(name: str) -> str:
    return f"SELECT ({name}(?v) AS ?n) {{ ?a <ex:p> ?v }}"


def _by_key(*calls: str) -> str:
    results = " ".join(f"({call} AS ?{at})" for call, at in zip(calls, "nm", strict=False))
    return f"SELECT ?k {results} {{ ?k <ex:p> ?v }} GROUP BY ?k"


_SUMS: Final = _by_key("COUNT(?v)", "SUM(?v)")
_EXTREMES: Final = _by_key("MIN(?v)", "MAX(?v)")
_DIFFERENT: Final = _by_key("COUNT(DISTINCT ?v)")

# Operators over the same graph stand together: it is made once for them.
OPERATORS: Final = (
    MeasuredOperator("join, search", "flat", _JOIN, edges, "search"),
    MeasuredOperator("join, rete", "flat", _JOIN, edges, "rete"),
    MeasuredOperator("join, counted", "flat", _COUNTED, edges, "counting"),
    MeasuredOperator("antijoin, search", "flat", _ANTIJOIN, edges, "search"),
    MeasuredOperator("antijoin, rete", "flat", _ANTIJOIN, edges, "rete"),
    MeasuredOperator("optional", "flat", _OPTIONAL, edges),
    MeasuredOperator("union", "flat", _UNION, edges),
    MeasuredOperator("distinct", "flat", "SELECT DISTINCT ?b { ?a <ex:p> ?b }", doubled),
    MeasuredOperator("COUNT in groups", "flat", _GROUPS, doubled),
    MeasuredOperator("filter", "flat", _FILTER, numbers),
    MeasuredOperator("COUNT", "flat", _aggregate("COUNT"), numbers),
    MeasuredOperator("SUM", "flat", _aggregate("SUM"), numbers),
    MeasuredOperator("AVG", "flat", _aggregate("AVG"), numbers),
    MeasuredOperator("MIN", "logarithmic", _aggregate("MIN"), numbers),
    MeasuredOperator("MAX", "logarithmic", _aggregate("MAX"), numbers),
    MeasuredOperator("top 10", "logarithmic", _TOP, numbers),
    MeasuredOperator("COUNT and SUM in groups", "flat", _SUMS, measurements, ask_again=True),
    MeasuredOperator("AVG in groups", "flat", _by_key("AVG(?v)"), measurements, ask_again=True),
    MeasuredOperator(
        "MIN and MAX in groups", "logarithmic", _EXTREMES, measurements, ask_again=True
    ),
    MeasuredOperator(
        "COUNT(DISTINCT) in groups", "logarithmic", _DIFFERENT, measurements, ask_again=True
    ),
    MeasuredOperator("path, chains", "flat", _FROM_FIRST, rooted_chains, ask_again=True),
    MeasuredOperator("path, all pairs", "flat", "SELECT * { ?a <ex:p>+ ?b }", chains),
    MeasuredOperator("path, bound", "flat", _BOUND_PATH, long_chain, ask_again=True),
    MeasuredOperator(
        "path, whole chain", "affected region", _FROM_FIRST, whole_chain, ask_again=True
    ),
    MeasuredOperator("path, tree", "affected region", _FROM_FIRST, tree, ask_again=True),
    MeasuredOperator("path, counted", "affected region", _REACHED, tree, ask_again=True),
    MeasuredOperator(
        "path, random graph", "affected region", _FROM_FIRST, random_edges, ask_again=True
    ),
)


def find_operators(names: Sequence[str]) -> list[MeasuredOperator]:
    """Operators by name; `all` stands for all of them.

    >>> [operator.name for operator in find_operators(["MIN", "union"])]
    ['MIN', 'union']
    """
    if "all" in names:
        return list(OPERATORS)
    known = {operator.name: operator for operator in OPERATORS}
    for name in names:
        if name not in known:
            hint = f"use all, or some of {'; '.join(known)}"
            raise GraphtideError(f"unknown operator {name!r}", hint=hint)
    return [known[name] for name in names]


def make_tasks(operators: Sequence[str], sizes: Sequence[int], seed: int) -> list[OperatorTask]:
    """Each operator at each size; those over the same graph one after the other.

    >>> len(make_tasks(["MIN", "union"], [1000, 2000], 0))
    4
    """
    by_graph: dict[object, list[MeasuredOperator]] = {}
    for operator in find_operators(operators):
        by_graph.setdefault(operator.make, []).append(operator)
    return [
        OperatorTask(operator.name, size, seed)
        for group in by_graph.values()
        for size in sorted(set(sizes))
        for operator in group
    ]


# ---- measuring -----------------------------------------------------------------------------------


class LoadedGraph(NamedTuple):
    """A graph, what it was made of, and the seconds that the load took."""

    graph: LiveGraph
    data: OperatorData
    load_s: float


@lru_cache(maxsize=2)  # that of the warm-up, and one of full size
def load_graph(
    make: Callable[[LiveGraph, int, Generator], OperatorData], size: int, seed: int
) -> LoadedGraph:
    """Make a graph and load it in one transaction."""
    graph = LiveGraph()
    data = make(graph, size, np.random.default_rng(seed))
    start = process_time()
    s, p, o, g = data.quads.T
    graph.apply_ids(s, p, o, g, tx=np.zeros(len(s), np.int64))
    len(graph)  # what waits is applied
    return LoadedGraph(graph, data, process_time() - start)


def measure(task: OperatorTask) -> OperatorResult:
    """Change a graph one transaction at a time, while the operator is watched.

    >>> [measure(OperatorTask(name, 450)).rows for name in ("COUNT", "path, all pairs")]
    [1, 450]
    """
    (operator,) = find_operators([task.operator])
    graph, data, load = load_graph(operator.make, task.size, task.seed)
    watch = graph.watch(operator.query, strategy=operator.strategy, history=0)
    rows = watch.count()
    gc.collect()
    first: list[float] = []
    again: list[float] = []
    end = process_time() + MAX_SECONDS
    for index in range(ROUNDS):
        if first and process_time() > end:
            break
        first.append(change_round(graph, watch, data, index))
        again += [change_round(graph, watch, data, index) for _ in range(REPEATED)]
    state = graph.stats().query_bytes / 1e6
    watch.close()
    asks = operator.ask_again and task.size <= ASKED_UP_TO
    asked = ask_again(graph, data.quads, operator.query, rows) if asks else None
    return OperatorResult(
        operator.name, operator.growth, task.size, rows, load,
        min(first), min(again), state, asked,
    )  # fmt: skip


@compiled
def read_at_random(following: Ints, reads: Int) -> Int:
    """Follow the numbers of an array, of which one in each cache line is used."""
    at = 0
    for _ in range(reads):
        at = following[at]
    return at


@lru_cache
def random_read(size: int) -> float:
    """Microseconds of a read that depends on the one before, of any of `size` cache lines."""
    order = np.random.default_rng(0).permutation(size).astype(np.int32) * LINE
    following = np.zeros(size * LINE, np.int32)
    following[order] = np.roll(order, 1)
    read_at_random(following, 1)
    start = process_time()
    read_at_random(following, READS)
    return (process_time() - start) / READS * 1e6


def ask_again(graph: LiveGraph, quads: Ints, query: str, rows: int) -> float:
    """Microseconds in which pyoxigraph evaluates a query, whose number of rows is known."""
    columns = (graph.terms.decode_column(quads[:, at]).to_pylist() for at in range(3))
    lines = "".join(f"{s} {p} {o} .\n" for s, p, o in zip(*columns, strict=True))
    store = ox.Store()
    store.bulk_load(lines.encode(), ox.RdfFormat.N_TRIPLES)
    times = []
    for _ in range(3):
        start = process_time()
        found = sum(1 for _ in store.query(query))  # type: ignore[union-attr, misc]
        times.append(process_time() - start)
        if found != rows:
            raise GraphtideError(f"{rows} rows are maintained, but pyoxigraph finds {found}")
    return median(times) * 1e6


def change_round(graph: LiveGraph, watch: Query, data: OperatorData, index: int) -> float:
    """Delete quads and insert them again; microseconds per change."""
    count = min(QUADS_PER_ROUND, len(data.changing) // 2)
    end = max(len(data.changing) - index * count, count)
    changing = data.changing[end - count : end]
    s, p, o, g = np.concatenate([changing[::-1], changing]).T
    diff = np.repeat(np.array([-1, 1], np.int32), count)
    start = process_time()
    graph.apply_ids(s, p, o, g, diff=diff)
    watch.delta()
    return (process_time() - start) / (2 * count) * 1e6


# ---- reporting -----------------------------------------------------------------------------------


def report(results: Sequence[OperatorResult]) -> tables.BenchReport:
    """A line for each operator, a column for each size; diagrams by expected growth."""
    growths = dict.fromkeys(result.growth for result in results)
    rows = [[_panel(results, g, cached=cached) for g in growths] for cached in (False, True)]
    plot = tables.Plot("SPARQL operators: cost of one change", rows, 6.4, 5.4)
    return tables.BenchReport(tables.to_objects(results), [_table(results)], plot)


def _table(results: Sequence[OperatorResult]) -> Table:
    sizes = sorted({result.size for result in results})
    lines: dict[str, dict[int, OperatorResult]] = {}
    for result in results:
        lines.setdefault(result.operator, {})[result.size] = result
    compared = any(result.asked_again is not None for result in results)
    rows = []
    for name, line in lines.items():
        found = [line[size] for size in sorted(line)]
        costs = [tables.number(line[size].micros if size in line else None) for size in sizes]
        ratios = _ratio([one.micros for one in found]), _ratio([one.cached for one in found])
        rows.append([name, *costs, *ratios, found[0].growth])
        if compared:
            asked = [one.asked_again for one in found if one.asked_again is not None]
            rows[-1].append(tables.number(asked[-1]) if asked else "")
    reads = [random_read(size) for size in sizes]
    rows.append([RANDOM_READ, *(f"{read:.3f}" for read in reads), _ratio(reads)])
    headers = ["operator", *(f"{size:,}" for size in sizes), "last : first", "in cache", "may grow"]
    headers += ["pyoxigraph asks again"] if compared else []
    return tables.make_table("µs per change by size of state", tables.text_columns(headers), rows)


def _ratio(costs: Sequence[float]) -> str:
    """What the last cost is of the first.

    >>> _ratio([2.0, 2.5, 3.0])
    '1.5'
    """
    return f"{costs[-1] / costs[0]:.1f}"


def _panel(results: Sequence[OperatorResult], growth: str, *, cached: bool) -> tables.Panel:
    points = [
        (r.operator, r.size, r.cached if cached else r.micros)
        for r in results
        if r.growth == growth
    ]
    if not cached:
        points += [(RANDOM_READ, r.size, random_read(r.size)) for r in results]
    title = f"may grow: {growth}" + (", in cache" if cached else "")
    lines = tables.group_points(dict.fromkeys(points))
    return tables.Panel(title, lines, "size of state", "µs per change")


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=OperatorTask,
    result=OperatorResult,
    measure=measure,
    report=report,
    warm_up=lambda task: [replace(task, size=MIN_SIZE)],
    own_process=False,
    garbage_collection=True,
)

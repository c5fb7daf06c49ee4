"""The Rete layout: the plan of a query cut into stages, and between them exchanges of rows.

In the grid layout one stage does the whole query, and a quad is copied to all partitions that may
need it. Here each join is divided by its own key: a stage's rows are shuffled to the partitions of
the next one, and a quad is sent to one partition per pattern that it matches.

The plan is that of a Rete network in one process, with the same operators. Its lowest parts are
*fragments*, which the match stage maintains: patterns around one variable, with their filters, by
that variable; and paths from or to a constant, each in one partition, which gets all its edges. The
nodes above are placed in join stages. A node with memory needs all rows with equal values of its
key in one partition. If its inputs are already divided by a part of that key it joins them where
they are; otherwise an `Exchange` sends them to the next stage. An input that is ready earlier is
passed on from stage to stage.

Why it is exact. An operator sees, in one partition, all rows of its inputs with the values of the
key that hash there, so its rows are its own share of the node's rows; shares are disjoint, and they
add up to the node's rows. Every partition emits a transaction in the same micro-batch, so that a
stage always has all deltas of the transactions it works off.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Var
from graphtide.algebra.trees import bottom_up, rebuilt
from graphtide.algebra.variables import Schema, merge, pattern_variables
from graphtide.plan import make
from graphtide.plan import physical as phys
from graphtide.plan.build import build_plan
from graphtide.plan.estimate import NOTHING_KNOWN, RDF_TYPE, PredicateStats, Statistics
from graphtide.plan.paths import plan_path
from graphtide.plan.patterns import Choices
from graphtide.plan.physical import Physical, children, nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

LARGEST_STAR = 8
"""How many patterns around one variable are one fragment."""


@dataclass(frozen=True, slots=True)
class Fragment:
    """A node that the match maintains, and its algebra; it is divided by a variable, or not."""

    node: Physical
    body: alg.Node
    by: Var | None

    @property
    def is_path(self) -> bool:
        """Whether it is a path, perhaps with conditions: one partition has all its edges."""
        return any(isinstance(node, alg.Path) for node in bottom_up(self.body))


@dataclass(frozen=True, slots=True)
class Exchange:
    """Rows of a node that are sent to a stage by a hash of `key`; without a key, to one place."""

    source: Physical
    key: Schema
    stage: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A node in a join stage, whose rows are divided by `key` (None: they may be anywhere).

    Each input comes by an exchange, or (None) from a node of the same stage.
    """

    node: Physical
    stage: int
    key: Schema | None
    inputs: tuple[Exchange | None, ...]


@dataclass(frozen=True, slots=True)
class RetePlan:
    """A query in stages: what the match maintains, and the nodes of the join stages, in order."""

    root: Physical
    fragments: tuple[Fragment, ...]
    placed: tuple[Placed, ...]

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All exchanges, each once."""
        return tuple(dict.fromkeys(each for at in self.placed for each in at.inputs if each))

    @property
    def stages(self) -> int:
        """How many join stages there are."""
        return self.placed[-1].stage

    @property
    def key(self) -> Schema | None:
        """By what the rows of the answer are divided."""
        return self.placed[-1].key

    @property
    def first_rows(self) -> bool:
        """Whether a join stage has rows before any input: groups without a key."""
        return any(isinstance(at.node, phys.GroupBy) and not at.node.keys for at in self.placed)


def rete_plan(query: alg.SelectQuery, statistics: Statistics = NOTHING_KNOWN) -> RetePlan | None:
    """A query cut into stages; None if it is one fragment, which the match does alone.

    >>> from graphtide.lang.sparql.parse import parse_standing
    >>> plan = rete_plan(parse_standing("SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?a }"))
    >>> [(each.stage, [str(v) for v in each.key]) for each in plan.exchanges]
    [(1, ['?b', '?c']), (1, ['?b', '?c'])]
    """
    root = build_plan(query, Choices("rete", statistics, groups=stars)).root
    root = rebuilt(root, _before_groups)
    paths = bound_paths(query, root)
    return None if _fragment(root, paths) else _placed(root, paths)


def bound_paths(query: alg.SelectQuery, root: Physical) -> dict[Physical, alg.Path]:
    """The paths from or to a constant, by their nodes in a plan.

    No other part of the query says where they are followed, so they need no stage of their own.
    """
    paths = [
        node
        for node in bottom_up(query.root)
        if isinstance(node, alg.Path)
        and not (isinstance(node.subject, Var) and isinstance(node.object, Var))
    ]
    if not paths:
        return {}
    every = set(nodes(root))
    starts = (each.schema[0].name for each in every if isinstance(each, phys.Closure))
    numbers = {int(name.removeprefix(".from")) for name in starts if name.startswith(".from")}
    planned = {plan_path(path, number): path for path in paths for number in numbers}
    return {node: path for node, path in planned.items() if node in every}


def statistics_of(
    patterns: Iterable[alg.TriplePattern], sizes: Mapping[str, int] | None
) -> Statistics:
    """Quads per predicate as statistics; half as many different values are assumed, and classes."""
    if not sizes:
        return NOTHING_KNOWN
    patterns = tuple(patterns)
    counts: dict[Any, int] = {p.predicate: sizes.get(str(p.predicate), 1) for p in patterns}
    halves = {term: max(n // 2, 1) for term, n in counts.items()}
    known = {t: PredicateStats(n, halves[t], halves[t]) for t, n in counts.items()}
    classes: dict[Any, int] = {
        p.object: halves[p.predicate] for p in patterns if p.predicate == RDF_TYPE
    }
    return Statistics(sum(counts.values()), known, classes)


def stars(patterns: Sequence[alg.TriplePattern]) -> list[list[alg.TriplePattern]]:
    """The patterns in groups around one variable each, few of them.

    A pattern that shares one variable with the others can only be in the group of that variable, so
    such groups come first; on a tree of patterns that gives the fewest.

    >>> from pyoxigraph import NamedNode
    >>> from graphtide.algebra.expressions import Var
    >>> chain = [
    ...     alg.TriplePattern(Var(a), NamedNode("ex:p"), Var(b)) for a, b in ("ab", "bc", "cd")
    ... ]
    >>> [len(group) for group in stars(chain)]
    [2, 1]
    """
    rest = list(patterns)
    groups: list[list[alg.TriplePattern]] = []
    while rest:
        counts = Counter(var for pattern in rest for var in pattern_variables(pattern))
        links = {p: [var for var in pattern_variables(p) if counts[var] > 1] for p in rest}
        leaves = [found[0] for found in links.values() if len(found) == 1]
        centres = leaves or [var for found in links.values() for var in found]
        if not centres:
            return [*groups, *([pattern] for pattern in rest)]
        ends = {p for pattern in rest for p in (pattern.subject, pattern.object)}
        # Few different predicates and graphs would divide the rows badly.
        centre = max(centres, key=lambda var: (var in ends, counts[var]))
        group = [p for p in rest if centre in pattern_variables(p)][:LARGEST_STAR]
        rest = [pattern for pattern in rest if pattern not in group]
        groups.append(group)
    return groups


def _before_groups(node: Physical) -> Physical:
    """GROUP BY over its own columns only.

    Rows that are equal in them are added up before they are shuffled: counts of values, from which
    every aggregate follows exactly.
    """
    if not isinstance(node, phys.GroupBy) or any(
        each.distinct and each.argument is None for each in node.aggregates
    ):
        return node
    arguments = tuple(each.argument for each in node.aggregates if each.argument is not None)
    return replace(node, child=make.keep(node.child, merge(node.keys, arguments)))


# --- fragments ---


def _fragment(node: Physical, paths: Mapping[Physical, alg.Path]) -> bool:
    """Whether the match can maintain a node: a search or path, conditions, columns, a choice."""
    if node in paths:
        return True
    match node:
        case phys.Search() | phys.Constant():
            return True
        case phys.Select(child) | phys.Compute(child):
            return not isinstance(child, phys.Keep) and _fragment(child, paths)
        case phys.Keep(child, sources):
            known = frozenset(child.schema)
            pairs = zip(sources, node.schema, strict=True)
            return (
                not isinstance(child, phys.Keep)
                and _fragment(child, paths)
                and all(source in (None, var) or var not in known for source, var in pairs)
            )
        case _:
            return False


def _body(node: Physical, paths: Mapping[Physical, alg.Path]) -> alg.Node:
    """The algebra of a fragment; its columns are chosen above."""
    if node in paths:
        return paths[node]
    match node:
        case phys.Search(patterns):
            return alg.Bgp(patterns)
        case phys.Constant(rows):
            return alg.Values(node.schema, rows)
        case phys.Select(child, condition):
            return alg.Filter(condition, _body(child, paths))
        case phys.Compute(child, columns):
            body = _body(child, paths)
            for var, expression in columns:
                body = alg.Extend(body, var, expression)
            return body
        case phys.Keep(child, sources):
            body = _body(child, paths)
            for var, source in zip(node.schema, sources, strict=True):
                if source is not None and source != var:
                    body = alg.Extend(body, var, source)
            return body
        case _:
            raise AssertionError(node)


def _centre(node: Physical, paths: Mapping[Physical, alg.Path]) -> Var | None:
    """The variable by which a fragment is divided: one that is in all of its patterns."""
    while not isinstance(node, phys.Search):
        if isinstance(node, phys.Constant) or node in paths:
            return None
        (node,) = children(node)
    first, *others = node.patterns
    shared = [
        var for var in pattern_variables(first) if all(var in pattern_variables(p) for p in others)
    ]
    ends = (first.subject, first.object)
    return max(shared, key=lambda var: var in ends, default=None)


# --- stages ---


def _placed(root: Physical, paths: Mapping[Physical, alg.Path]) -> RetePlan:
    """Place each node in the first stage that can have all rows of its key together."""
    fragments: dict[Physical, Fragment] = {}
    placed: dict[Physical, Placed] = {}
    for node in _above_paths(root, paths):
        if _fragment(node, paths):
            continue
        inputs = children(node)
        for each in inputs:
            if each not in placed:
                fragments[each] = Fragment(each, _body(each, paths), _centre(each, paths))
        stage, key = _site(node, [placed.get(each) for each in inputs])
        sources = tuple(
            None
            if each in placed and _is_local(placed[each], stage, key, node)
            else Exchange(each, each.schema if key is None else key, stage)
            for each in inputs
        )
        placed[node] = Placed(node, stage, _after(node, key), sources)
    return RetePlan(root, tuple(fragments.values()), tuple(placed.values()))


def _above_paths(root: Physical, paths: Mapping[Physical, alg.Path]) -> list[Physical]:
    """The nodes of a plan, inputs first; of paths that are fragments, only the last one."""
    wanted: set[Physical] = set()
    found = [root]
    while found:
        node = found.pop()
        if node not in wanted:
            wanted.add(node)
            found += () if node in paths else children(node)
    return [node for node in nodes(root) if node in wanted]


def _key_of(node: Physical) -> Schema | None:
    """The columns of rows that a node must have together; None if it looks at single rows."""
    match node:
        case phys.HashJoin(keys=keys) | phys.SemiJoin(keys=keys) | phys.GroupBy(keys=keys):
            return keys
        case phys.Unique():
            return node.schema
        case phys.TopK(per=per):
            return per
        case phys.Closure():
            return ()
        case _:
            return None


def _site(node: Physical, inputs: Sequence[Placed | None]) -> tuple[int, Schema | None]:
    """The stage of a node, and by what its inputs are divided there (None: as they are)."""
    last = max(0 if each is None else each.stage for each in inputs)
    latest = [each.key for each in inputs if each is not None and each.stage == last]
    keys = _key_of(node)
    if keys is None:
        return _stateless_site(node, last, latest, whole=len(latest) == len(inputs))
    divided_by = set(latest)
    if len(divided_by) == 1:
        (key,) = divided_by
        if key is not None and set(key) <= set(keys) and (key or not keys):
            return last, key
    return last + 1, tuple(sorted(keys, key=lambda var: var.name))


def _stateless_site(
    node: Physical, last: int, latest: Sequence[Schema | None], *, whole: bool
) -> tuple[int, Schema | None]:
    if not latest:  # above fragments only
        return 1, children(node)[0].schema
    if whole and len(set(latest)) == 1:
        return last, latest[0]
    return (last, None) if whole else (last, latest[0] or None)


def _is_local(source: Placed, stage: int, key: Schema | None, node: Physical) -> bool:
    """Whether rows that a node needs are already where it is."""
    return source.stage == stage and (_key_of(node) is None or source.key == key)


def _after(node: Physical, key: Schema | None) -> Schema | None:
    """By what the rows of a node are divided if its inputs are divided by a key."""
    if key is None:
        return None
    if isinstance(node, phys.Keep):
        names: dict[Var | None, Var] = {}
        for source, var in zip(node.sources, node.schema, strict=True):
            names.setdefault(source, var)
        return tuple(names[var] for var in key) if all(var in names for var in key) else None
    return key if set(key) <= set(node.schema) else None


def described(plan: RetePlan) -> Iterator[str]:
    """What the state of the join stages depends on, for fingerprints: the exchanges, in order."""
    for exchange in plan.exchanges:
        key, columns = (
            " ".join(var.name for var in each) for each in (exchange.key, exchange.source.schema)
        )
        searches = (each for each in nodes(exchange.source) if isinstance(each, phys.Search))
        patterns = (
            f"{each.subject} {each.predicate} {each.object}"
            for search in searches
            for each in search.patterns
        )
        yield f"{exchange.stage} by {key}: {columns} of {' . '.join(patterns)}"

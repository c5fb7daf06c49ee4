"""explain: how queries, patterns and rules are divided among partitions, and the plan in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.nodes import DefaultGraph, Path
from graphtide.lang.tide.ast import NOISY
from graphtide.lang.tide.program import Program
from graphtide.plan.build import build_plan
from graphtide.plan.describe import describe, names, patterns_text
from graphtide.plan.explain import explain as explain_plan
from graphtide.plan.patterns import DEFAULT_STRATEGY
from graphtide.plan.physical import Search, nodes
from graphtide.spark.job import PartitionQuery, pinned
from graphtide.spark.layouts import CHANGES_PER_BATCH, LayoutChoice, Layouts, layout_choice
from graphtide.spark.partition.hubs import Hubs, hub_counts
from graphtide.spark.partition.program import ProgramSpec, program_spec
from graphtide.spark.partition.windows import Clock, shape_text
from graphtide.spark.stages.rules import retention

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphtide.spark.partition.grids import EventKey, Grid, Leaf
    from graphtide.spark.partition.rete import Fragment, RetePlan


def explain(
    query: str | Mapping[str, str] | Program,
    partitions: int,
    *,
    sizes: Mapping[str, int] | None = None,
    tick_ms: int = 1000,
    layout: Layouts = None,
    changes_per_batch: int = CHANGES_PER_BATCH,
    hubs: Hubs = (),
) -> str:
    """How a query, several by name, or a program are divided among partitions.

    Per query its layout, and what both layouts would cost. In the grid layout the copies of each
    pattern's quads, the stages, and the plan in a partition; in the Rete layout the fragments of
    the match, and the keys and operators of each join stage. Per PATTERN and RULE the key of its
    partitions, and for how long events are retained there.

    >>> print(explain("SELECT ?a ?b { ?a <ex:p> ?b . ?b <ex:q> ?c }", partitions=4))
    query: 4 of 4 partitions, ?b in 4 parts
      a quad is sent to 1.00 partitions on average
      1 of 4 partitions  ?a <ex:p> ?b         by ?b
      1 of 4 partitions  ?b <ex:q> ?c         by ?b
      one stage: every row comes out of one partition
      layout grid: all patterns share a variable, so that one stage joins them without copies
        grid: 1.00 copies and 1.00 shuffled rows per change, 1 stage, 25.0% of the work in ...
      in each partition:
        ...
    >>> from graphtide.lang.tide.program import Program
    >>> program = Program.parse('''
    ... EVENT A(?x, ?y) AS { ?x <ex:a> ?y }
    ... EVENT B(?x) AS { ?x <ex:b> ?y }
    ... PATTERN P(?x) AS (A(?x, _) -> B(?x)) WITHIN 10s
    ... PATTERN Q(?x) AS A(?x, _) -> B(?x) CONTEXT STRICT
    ... RULE R WHEN EVENT a = A(?x, ?y) EVENT b = B(?x) AFTER[0,5] a THEN CALL f(?x)
    ... RULE S WHEN EVENT a = A(?x, ?y) EVENT b = B(?y) AFTER[0,5] a THEN CALL f(?x)
    ... ''')
    >>> print(explain(program, 4))
    PATTERN P: by ?x over 4 partitions
    PATTERN Q: in one partition, since all events may be noise (CONTEXT STRICT without PER)
    RULE R: by ?x over 4 partitions; events are retained for 5
    RULE S: by ?y over 4 partitions; events are retained for 5
    """
    lines: list[str] = []
    if isinstance(query, Program):
        named: Mapping[str, str] = query.texts
        spec = program_spec(query, partitions, tick_ms)
        lines = [] if spec is None else [*_patterns(spec), *_rules(spec)]
    else:
        named = {"query": query} if isinstance(query, str) else query
    clock, pins = Clock(tick_ms=tick_ms), dict(pinned(layout, named))
    choices = (
        layout_choice(
            name,
            text,
            partitions,
            sizes=sizes,
            clock=clock,
            changes=changes_per_batch,
            pin=pins.get(name),
            hubs=hub_counts(hubs),
        )
        for name, text in named.items()
    )
    parts = ["\n".join(_query_lines(choice)) for choice in choices]
    return "\n\n".join([*parts, "\n".join(lines)] if lines else parts)


def _query_lines(choice: LayoutChoice) -> Iterator[str]:
    if choice.layout == "rete" and choice.rete.rete is not None:
        yield from _rete_lines(choice, choice.rete.rete)
    else:
        yield from _grid_lines(choice)


def _rete_lines(choice: LayoutChoice, plan: RetePlan) -> Iterator[str]:
    last = choice.costs["rete"].stages
    yield f"{choice.rete.name}: {last} stages over {choice.partitions} partitions"
    yield from _costs(choice)
    for fragment in plan.fragments:
        where = "in one partition" if fragment.by is None else f"by {fragment.by}"
        yield f"  match {where}: {_fragment_text(fragment)}"
    for stage in range(1, plan.stages + 1):
        yield f"  join {stage}"
        for placed in plan.placed:
            if placed.stage == stage:
                keys = dict.fromkeys(e.key for e in placed.inputs if e is not None)
                by = " and ".join(f"by {names(key)}" if key else "in one partition" for key in keys)
                yield f"    {describe(placed.node)}{f': {by}' if by else ''}"
    if choice.rete.needs_consolidation:
        yield "  consolidate: equal rows of several partitions are added up"


def _fragment_text(fragment: Fragment) -> str:
    if isinstance(path := fragment.body, Path):
        return f"{path.subject} {path.path} {path.object}, a path that gets each edge once"
    searches = (each for each in nodes(fragment.node) if isinstance(each, Search))
    patterns = " . ".join(patterns_text(each.patterns) for each in searches)
    return patterns or describe(fragment.node)


def _costs(choice: LayoutChoice) -> Iterator[str]:
    yield f"  layout {choice.layout}: {choice.reason}"
    for name, cost in choice.costs.items():
        yield f"    {name}: {cost.text(choice.changes)}"


def _grid_lines(choice: LayoutChoice) -> Iterator[str]:
    query, partitions = choice.grid, choice.partitions
    grid = query.grid
    parts = _parts(grid)
    used = f"{grid.partitions} of {partitions} partitions"
    yield f"{query.name}: {used}, {parts or _undivided(query)}"
    yield from _windows(query)
    yield f"  a quad is sent to {grid.replication:.2f} partitions on average"
    texts = [_pattern(leaf, query) for leaf in grid.leaves]
    width = max(map(len, texts), default=0)
    for leaf, text in zip(grid.leaves, texts, strict=True):
        copies = f"{grid.copies(leaf)} of {grid.partitions} partitions"
        yield f"  {copies}  {text:<{width}}  {_division(leaf, grid)}"
    for hub in grid.hubs:
        yield f"  if {hub.variable} is the hub {hub.term}: {_parts(hub.grid)}"
    yield f"  {_stages(query)}"
    yield from _costs(choice)
    yield "  in each partition:"
    plan = build_plan(query.query, DEFAULT_STRATEGY)
    yield from (f"    {line}" for line in explain_plan(plan).splitlines())


def _parts(grid: Grid) -> str:
    divided = zip(grid.variables, grid.shares, strict=True)
    return " × ".join(f"{var} in {share} parts" for var, share in divided)


def _undivided(query: PartitionQuery) -> str:
    why = query.windowed.whole if query.windowed else None
    return f"cannot be divided: {why}" if why else "cannot be divided"


def _windows(query: PartitionQuery) -> Iterator[str]:
    """The windows, and what is emitted when one of them closes."""
    if query.windowed is None:
        return
    for clause, window in query.windowed.pairs:
        yield f"  window {clause.iri} on {clause.stream}: {shape_text(window.shape)}"
    yield f"  {query.windowed.output} when a window closes"


def _pattern(leaf: Leaf, query: PartitionQuery) -> str:
    pattern = leaf.pattern
    words = [str(w) for w in (pattern.subject, pattern.predicate, pattern.object)]
    if isinstance(pattern.graph, DefaultGraph):
        return " ".join(words)
    for clause, window in query.windowed.pairs if query.windowed else ():
        if window.graph == pattern.graph:
            return f"WINDOW {clause.iri} {{ {' '.join(words)} }}"
    return f"GRAPH {pattern.graph} {{ {' '.join(words)} }}"


def _division(leaf: Leaf, grid: Grid) -> str:
    by = [str(var) for var in grid.variables if var in leaf.divided_by]
    return f"by {', '.join(by)}" if by else "to all"


def _stages(query: PartitionQuery) -> str:
    if not query.needs_consolidation:
        return "one stage: every row comes out of one partition"
    hidden = ", ".join(map(str, query.query.variables[query.shown :]))
    does = "are added up and counted" if query.counted else "are added up"
    return (
        f"two stages: the answer does not show {hidden}, so equal rows of several partitions {does}"
    )


def _patterns(spec: ProgramSpec) -> Iterator[str]:
    for pattern, key in zip(spec.source.patterns, spec.pattern_keys, strict=True):
        why = "no parameter is in all of its events"
        if pattern.context in NOISY and not pattern.per:
            why = f"all events may be noise (CONTEXT {pattern.context} without PER)"
        yield f"PATTERN {pattern.name}: {_key_text(key, why, spec.partitions)}"


def _rules(spec: ProgramSpec) -> Iterator[str]:
    for rule, key in zip(spec.rules, spec.rule_keys, strict=True):
        where = _key_text(key, "no variable is in all of its conditions", spec.partitions)
        longest = max(retention(rule, spec.types, spec.longest).values(), default=None)
        retained = (
            "no event is retained" if longest is None else f"events are retained for {longest:g}"
        )
        if longest == float("inf"):
            retained = "events are retained for ever"
        yield f"RULE {rule.name}: {where}; {retained}"


def _key_text(key: EventKey, why: str, partitions: int) -> str:
    if not key.variables:
        return f"in one partition, since {why}"
    return f"by {' '.join(map(str, key.variables))} over {partitions} partitions"

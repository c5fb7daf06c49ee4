"""Explain: how queries are divided among cells, and the plan that runs in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.nodes import DefaultGraph
from graphtide.plan.build import build_plan
from graphtide.plan.explain import explain as explain_plan
from graphtide.plan.patterns import DEFAULT_STRATEGY
from graphtide.spark.task import CellQuery, Task
from graphtide.spark.windows import DEFAULT_CLOCK, Clock, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphtide.spark.partition import Leaf
    from graphtide.spark.shares import Grid


def explain(
    queries: str | Mapping[str, str],
    cells: int,
    sizes: Mapping[str, int] | None = None,
    clock: Clock = DEFAULT_CLOCK,
) -> str:
    """Per query its grid, the copies of each pattern's quads, the stages, and the plan in a cell.

    >>> print(explain("SELECT ?a ?b { ?a <ex:p> ?b . ?b <ex:q> ?c }", cells=4))
    query: 4 of 4 cells, ?b in 4 parts
      a quad is sent to 1.00 cells on average
      1 of 4 cells  ?a <ex:p> ?b         by ?b
      1 of 4 cells  ?b <ex:q> ?c         by ?b
      one stage: every row comes out of one cell
      in each cell:
        ...
    """
    named = {"query": queries} if isinstance(queries, str) else queries
    task = Task(tuple(named.items()), cells, tuple((sizes or {}).items()), clock)
    return "\n\n".join("\n".join(_lines(query, cells)) for query in task.cell_queries)


def _lines(query: CellQuery, cells: int) -> Iterator[str]:
    grid = query.grid
    divided = zip(grid.variables, grid.shares, strict=True)
    parts = " × ".join(f"{var} in {share} parts" for var, share in divided)
    yield f"{query.name}: {grid.cells} of {cells} cells, {parts or _undivided(query)}"
    yield from _windows(query)
    yield f"  a quad is sent to {grid.replication:.2f} cells on average"
    texts = [_pattern(leaf, query) for leaf in grid.leaves]
    width = max(map(len, texts), default=0)
    for leaf, text in zip(grid.leaves, texts, strict=True):
        copies = f"{grid.copies(leaf)} of {grid.cells} cells"
        yield f"  {copies}  {text:<{width}}  {_division(leaf, grid)}"
    yield f"  {_stages(query)}"
    yield "  in each cell:"
    plan = build_plan(query.query, DEFAULT_STRATEGY)
    yield from (f"    {line}" for line in explain_plan(plan).splitlines())


def _undivided(query: CellQuery) -> str:
    why = query.windowed.whole if query.windowed else None
    return f"cannot be divided: {why}" if why else "cannot be divided"


def _windows(query: CellQuery) -> Iterator[str]:
    """The windows, and what is put out when one of them closes."""
    if query.windowed is None:
        return
    for clause, window in query.windowed.pairs:
        yield f"  window {clause.iri} on {clause.stream}: {words_of(window.shape)}"
    yield f"  {query.windowed.output} when a window closes"


def _pattern(leaf: Leaf, query: CellQuery) -> str:
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


def _stages(query: CellQuery) -> str:
    if not query.meets:
        return "one stage: every row comes out of one cell"
    hidden = ", ".join(map(str, query.query.variables[query.shown :]))
    does = "are added up and counted" if query.counted else "are added up"
    return f"two stages: the answer does not show {hidden}, so equal rows of several cells {does}"

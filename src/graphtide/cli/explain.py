"""`graphtide explain`: what a query means, and how it is maintained."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from graphtide.algebra.nodes import SelectQuery
from graphtide.cli.files import load_data, read_query, refuse_query
from graphtide.engine import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.fixes.explain import explain_fixes
from graphtide.lang.program import PROGRAM_SUFFIX, read_program
from graphtide.lang.sparql import parse_standing
from graphtide.plan.build import build_plan
from graphtide.plan.explain import ExplainFormat
from graphtide.plan.explain import explain as explain_plan
from graphtide.plan.explain_logical import explain_logical
from graphtide.plan.patterns import DEFAULT_STRATEGY, Strategy
from graphtide.rules.explain import explain_rules


def explain(
    query: Path,
    *,
    data: list[Path] | None = None,
    changes: Path | None = None,
    format: ExplainFormat = "text",  # noqa: A002 - the name of the option
    strategy: Strategy | None = None,
    logical: bool = False,
) -> None:
    """Show a query's plans.

    Parameters
    ----------
    query
        A file with a SPARQL SELECT query; or a program (.tide), of which the plans of its queries
        are shown, and for each rule how long it keeps events, in ticks of a second.
    data
        RDF to load: the plan then shows the rows that each node holds. Repeat for several files.
    changes
        A file of changes to apply after the data.
    format
        Text shows both plans; mermaid and svg draw one: the physical plan, or with --logical
        (mermaid only) the other.
    strategy
        How patterns are matched; chosen by the planner if not given.
    logical
        Show the logical plan only.
    """
    if query.suffix == PROGRAM_SUFFIX:
        _explain_program(query)
        return
    parsed = read_query(query)
    if logical:
        if format == "svg":
            raise GraphtideError(
                "the logical plan is drawn as text or mermaid only",
                hint="leave --logical out, or use --format mermaid",
            )
        print(explain_logical(parsed, format))
        return
    if format == "text":
        print("logical plan", explain_logical(parsed), "", "physical plan", sep="\n")
    if not data and changes is None:
        print(explain_plan(build_plan(parsed, strategy or DEFAULT_STRATEGY), format))
        return
    graph = LiveGraph()
    watch = graph.watch(parsed.text, strategy=strategy)
    load_data(graph, data or ())
    if changes is not None:
        refuse_query(changes, "--changes")
        graph.apply(changes)
    print(watch.explain(format))


def _explain_program(path: Path) -> None:
    program = read_program(path)
    parts = []
    for query in program.queries:
        parsed = parse_standing(query.text)
        select = parsed if isinstance(parsed, SelectQuery) else parsed.select
        plan = explain_plan(build_plan(select, DEFAULT_STRATEGY))
        parts.append(f"QUERY {query.name}\n{indent(plan, '  ')}")
    if program.rules:
        parts.append(explain_rules(program))
    if program.goals or program.fixes:
        parts.append(explain_fixes(program))
    print("\n\n".join(parts))

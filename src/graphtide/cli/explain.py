"""`graphtide explain`: what a query means, and how it is maintained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphtide.algebra.nodes import SelectQuery
from graphtide.cli.deltas import Changes, told_of
from graphtide.cli.explain_program import explain_program
from graphtide.cli.files import load_data, read_query, refuse_query
from graphtide.cli.query_plan import plan_of
from graphtide.cli.session import Session
from graphtide.engine.live_graph import LiveGraph
from graphtide.engine.watch import Watch
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import PROGRAM_SUFFIX
from graphtide.plan.build import build_plan
from graphtide.plan.explain import ExplainFormat, explain_logical
from graphtide.plan.explain import explain as explain_plan
from graphtide.plan.patterns import DEFAULT_STRATEGY, Strategy


def explain(
    query: Path,
    *,
    data: list[Path] | None = None,
    changes: Path | None = None,
    format: ExplainFormat = "text",  # noqa: A002 - the name of the option
    strategy: Strategy | None = None,
    logical: bool = False,
    pattern: str | None = None,
) -> None:
    """Show a query's plans, or how a program works.

    Example: graphtide explain doors.tide --pattern Left --format svg > left.svg

    Parameters
    ----------
    query
        A file with a SPARQL SELECT query, over windows (RSP-QL) or not; or a program (.tide), of
        which the plans of its queries are shown, the automata of its patterns, and for each rule
        how long it keeps events, in ticks of a second.
    data
        RDF to load: the plan then shows the rows that each node holds, and a pattern its tokens.
        Repeat for several files.
    changes
        A file of changes to apply after the data, and of events for windows: as for watch.
    format
        Text shows both plans; mermaid and svg draw one: the physical plan, or with --logical
        (mermaid only) the other.
    strategy
        How patterns are matched; chosen by the planner if not given.
    logical
        Show the logical plan only.
    pattern
        Of a program, show this pattern only; it can be drawn, too.
    """
    if query.suffix == PROGRAM_SUFFIX:
        print(
            explain_program(query, pattern=pattern, format=format, data=data or (), changes=changes)
        )
        return
    if pattern is not None:
        raise GraphtideError("a query has no pattern", hint="--pattern is for programs (.tide)")
    parsed = read_query(query)
    select = parsed if isinstance(parsed, SelectQuery) else parsed.select
    if logical:
        if format == "svg":
            raise GraphtideError(
                "the logical plan is drawn as text or mermaid only",
                hint="leave --logical out, or use --format mermaid",
            )
        print(explain_logical(select, format))
        return
    if format == "text":
        print("logical plan", explain_logical(select), "", "physical plan", sep="\n")
    if data or changes is not None:
        print(_with_rows(select.text, data or (), changes, format, strategy))
    elif format == "text":
        print(plan_of(parsed, strategy))
    else:
        print(explain_plan(build_plan(select, strategy or DEFAULT_STRATEGY), format))


def _with_rows(
    text: str,
    data: Sequence[Path],
    changes: Path | None,
    format: ExplainFormat,  # noqa: A002 - the name of the option
    strategy: Strategy | None,
) -> str:
    """The plan after data and changes, with the rows that each node holds."""
    graph = LiveGraph()
    session = Session(graph, {"query": text}, strategy)
    load_data(graph, data)
    if changes is not None:
        refuse_query(changes, "--changes")
        for _ in told_of(session, Changes(changes)):
            pass
    query = session.queries["query"]
    if isinstance(query, Watch):
        return query.explain(format)
    return query.explain() if format == "text" else query.watch.explain(format)

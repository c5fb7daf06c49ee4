"""`graphtide explain`, `trace` and `why`: plans, automata and rules; their steps; rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from graphtide.algebra.nodes import SelectQuery
from graphtide.cli import options as opt
from graphtide.cli.inputs import ChangeLog, Rejects, load_data, read_query
from graphtide.cli.output import shortener
from graphtide.cli.session import Session
from graphtide.errors import GraphtideError, QueryError
from graphtide.graph import LiveGraph
from graphtide.lang.sparql.parse import parse_standing, parse_value
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide.ast import CallFunction
from graphtide.lang.tide.program import PROGRAM_SUFFIX, Program
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.explain import explain_pattern
from graphtide.plan.build import build_plan
from graphtide.plan.explain import ExplainFormat, explain_logical
from graphtide.plan.explain import explain as explain_plan
from graphtide.plan.patterns import DEFAULT_STRATEGY, Strategy
from graphtide.repair.explain import explain_fixes
from graphtide.rules.explain import explain_rules
from graphtide.rules.running.tracing import TraceRecord, chrome_trace
from graphtide.streams.query import explain_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.algebra.windows import WindowedQuery
    from graphtide.rdf.terms import Term
    from graphtide.rules.program import RunningProgram

TICK_MS: Final = 1000

WhyFormat = Literal["text", "json", "mermaid", "html"]
TraceFormat = Literal["text", "json", "chrome"]

NO_SUCH_ROW: Final = 1
"""The exit code of `graphtide why` for a row that is not in the answer."""


def explain(
    query: Path,
    /,
    *,
    data: opt.DataOption = None,
    changes: opt.ChangesOption = None,
    format: Annotated[  # noqa: A002 - the name of the option
        ExplainFormat,
        Parameter(
            help=f"{opt.FORMAT_HELP} text shows both plans of a query; mermaid and svg draw the "
            "physical one, or with --logical (mermaid only) the other."
        ),
    ] = "text",
    strategy: opt.StrategyOption = None,
    logical: bool = False,
    pattern: str | None = None,
    tick_ms: opt.TickOption = TICK_MS,
    limits: opt.LimitOptions = opt.DEFAULT_LIMITS,
) -> None:
    """Show a query's plans, or how a program works.

    Parameters
    ----------
    query
        A SPARQL or RSP-QL SELECT query (.rq), or a program (.tide): the plans of its queries, the
        automata of its patterns, and for each rule how long it retains events, in ticks.
    logical
        Show the logical plan only.
    pattern
        Show only this pattern of a program; mermaid and svg draw its automaton.
    """
    opt.at_least("--tick-ms", tick_ms, 1)
    bounds = limits.limits()
    log = None if changes is None else ChangeLog(changes, rejects=Rejects(limits=bounds))
    if log is not None:
        log.check()
    if query.suffix == PROGRAM_SUFFIX:
        program = Program.read(query)
        graph = LiveGraph(tick_ms=tick_ms, limits=bounds)
        running = _run(program, graph, data or (), log) if data or log is not None else None
        shown = ShownProgram(program, graph, running, tick_ms)
        print(shown.text(format) if pattern is None else shown.pattern(pattern, format))
        return
    if pattern is not None:
        raise GraphtideError("a query has no pattern", hint="--pattern is for programs (.tide)")
    parsed = read_query(query)
    select = parsed if isinstance(parsed, SelectQuery) else parsed.select
    if logical:
        if format == "svg":
            raise opt.invalid("--format", format, "the logical plan is drawn as text or mermaid")
        print(explain_logical(select, format))
        return
    if format == "text":
        print("logical plan", explain_logical(select), "", "physical plan", sep="\n")
    if data or log is not None:
        graph = LiveGraph(tick_ms=tick_ms, limits=bounds)
        session = Session(graph, {"query": select.text}, strategy, tick_ms=tick_ms)
        load_data(graph, data or ())
        if log is not None:
            for _ in session.follow(log):
                pass
        print(session.queries["query"].explain(format))
    elif format == "text":
        print(plan_text(parsed, strategy))
    else:
        print(explain_plan(build_plan(select, strategy or DEFAULT_STRATEGY), format))


def plan_text(query: SelectQuery | WindowedQuery, strategy: Strategy | None = None) -> str:
    """The physical plan of a query, after its windows if it has any.

    >>> print(plan_text(parse_standing("SELECT * { ?a <ex:p> ?b }")))
    strategy search
    answer ?a ?b
    └─ [1] input ?a :ex:p ?b
    """
    if isinstance(query, SelectQuery):
        return explain_plan(build_plan(query, strategy or DEFAULT_STRATEGY))
    return f"{explain_windows(query)}\n{plan_text(query.select, strategy)}"


# --- programs ---


@dataclass(frozen=True, slots=True)
class ShownProgram:
    """A program to explain; patterns of a `running` one are shown with their tokens."""

    program: Program
    graph: LiveGraph
    running: RunningProgram | None
    tick_ms: int

    def text(self, format: ExplainFormat = "text") -> str:  # noqa: A002 - the name of the option
        """All of the program, in words."""
        if format != "text":
            allowed = "a whole program is explained as text; draw a pattern with --pattern NAME"
            raise opt.invalid("--format", format, allowed)
        program = self.program
        parts = [
            f"QUERY {query.name}\n{indent(plan_text(parse_standing(query.text)), '  ')}"
            for query in program.queries
        ]
        parts += [self.pattern(pattern.name) for pattern in program.patterns]
        if program.rules:
            parts.append(explain_rules(program, self.tick_ms))
        if program.goals or program.fixes:
            parts.append(explain_fixes(program))
        return "\n\n".join(parts)

    def pattern(
        self,
        name: str,
        format: ExplainFormat = "text",  # noqa: A002 - the name of the option
    ) -> str:
        """The automaton of one pattern."""
        known = {pattern.name: pattern for pattern in self.program.patterns}
        if name not in known:
            hint = name_hint(name, known, "pattern") if known else "it has none"
            raise GraphtideError(f"the program has no pattern named {name}", hint=hint)
        if self.running is not None:
            detector, terms = self.running.detector(name), self.graph.terms
            return explain_pattern(
                detector.automaton, format, detector, lambda id_: str(terms.decode(id_))
            )
        types = {event.name: index for index, event in enumerate(self.program.events)}
        automaton = compile_pattern(known[name], types, lambda _: 1, self.tick_ms)
        return explain_pattern(automaton, format)


def _run(
    program: Program, graph: LiveGraph, data: Sequence[Path], log: ChangeLog | None
) -> RunningProgram:
    """Run a program over data and changes; functions that it calls do nothing."""
    load_data(graph, data)
    running = graph.run(program, functions=no_functions(program))
    if log is not None:
        for _ in Session(graph, {}).follow(log):
            pass
    return running


def called_functions(program: Program) -> list[str]:
    """The names of the functions that the rules of a program call."""
    actions = (action for rule in program.rules for action in rule.actions)
    return sorted({action.function for action in actions if isinstance(action, CallFunction)})


def no_functions(program: Program) -> dict[str, Callable[..., None]]:
    """A function that does nothing for each that the rules of a program call."""
    return {name: lambda *_: None for name in called_functions(program)}


# --- steps ---


def trace(
    program: Path,
    /,
    *,
    changes: opt.ChangesOption = None,
    data: opt.DataOption = None,
    format: Annotated[  # noqa: A002 - the name of the option
        TraceFormat,
        Parameter(
            help=f"{opt.FORMAT_HELP} text has a line per step, json an object; chrome is the "
            "trace event format of Chrome, which Perfetto (ui.perfetto.dev) shows."
        ),
    ] = "text",
    stream: Annotated[tuple[str, ...], Parameter(group=opt.CLOCK)] = (),
    until: opt.UntilOption = None,
    tick_ms: opt.TickOption = TICK_MS,
    limits: opt.LimitOptions = opt.DEFAULT_LIMITS,
) -> None:
    """Trace a program.

    Parameters
    ----------
    program
        A .tide file of events, patterns and rules.
    stream
        IRI of a graph into which inserts are events, for rules and patterns. Repeat the option for
        several.
    """
    opt.at_least("--tick-ms", tick_ms, 1)
    if changes is None:
        raise GraphtideError("there are no changes to trace", hint="--changes FILE")
    parsed, bounds = Program.read(program), limits.limits()
    log = ChangeLog(changes, rejects=Rejects(limits=bounds), until=until)
    log.check()
    graph = LiveGraph(tick_ms=tick_ms, limits=bounds)
    for name in stream:
        graph.stream(name)
    running = graph.run(parsed, functions=no_functions(parsed))
    records: list[TraceRecord] = []
    short = shortener(next(iter(parsed.texts.values()), ""))
    if format == "chrome":
        running.on_trace(records.append)
    elif format == "json":
        running.on_trace(lambda record: print(json.dumps(record.as_json(), ensure_ascii=False)))
    else:
        running.on_trace(lambda record: print(record.line(short)))
    load_data(graph, data or ())
    session = Session(graph, {}, tick_ms=tick_ms)
    for _ in session.follow(log):
        pass
    for line in chrome_trace(records, tick_ms) if format == "chrome" else ():
        print(line)


# --- rows ---


def why(
    query: Path,
    /,
    *,
    row: Annotated[
        list[str] | None,
        Parameter(
            help="A column and its value, as in route=:route5 or speed=80, with the prefixes of "
            "the query; UNDEF is unbound. Columns that are left out may have any value."
        ),
    ] = None,
    data: opt.DataOption = None,
    changes: opt.ChangesOption = None,
    store: opt.StoreOption = None,
    at: int | None = None,
    format: Annotated[  # noqa: A002 - the name of the option
        WhyFormat, Parameter(help=f"{opt.FORMAT_HELP} text, json, mermaid or html.")
    ] = "text",
    all: bool = False,  # noqa: A002 - the name of the option
    max_derivations: int = 100,
    tick_ms: opt.TickOption = TICK_MS,
    limits: opt.LimitOptions = opt.DEFAULT_LIMITS,
) -> int:
    """Explain a row of a query's answer, or its absence.

    Parameters
    ----------
    query
        A file with a SPARQL or RSP-QL query that can be watched.
    at
        With --store, the graph as of that time.
    all
        Show every derivation of the row.
    max_derivations
        With --all, the most derivations to show.
    """
    opt.at_least("--max-derivations", max_derivations, 1)
    opt.at_least("--tick-ms", tick_ms, 1)
    if store is not None and (data or changes is not None):
        raise GraphtideError(
            "--store excludes --data and --changes: a store is only read",
            hint="graphtide update and graphtide watch change a store",
        )
    if at is not None and store is None:
        raise GraphtideError("--at is for --store", hint="only a store has a past")
    bounds = limits.limits()
    rejects = Rejects(limits=bounds)
    log = None if changes is None else ChangeLog(changes, rejects=rejects)
    if log is not None:
        log.check()
    parsed = read_query(query)
    select = parsed if isinstance(parsed, SelectQuery) else parsed.select
    values = dict(row_value(each, select.text) for each in row or ())
    if store is None:
        graph = LiveGraph(tick_ms=tick_ms, limits=bounds)
    else:
        graph = LiveGraph.open(store, read_only=True, limits=bounds)
        graph = graph if at is None else graph.at(time=at)
    session = Session(graph, {query.stem: select.text}, tick_ms=tick_ms)
    load_data(graph, data or ())
    if log is not None:
        for _ in session.follow(log):
            pass
    watched = session.queries[query.stem]
    explanation = watched.why_not(values)
    is_there = explanation.first_failure() is None
    if is_there:
        explanation = watched.why(values, all=all, limit=max_derivations)
    views = {"json": explanation.json, "mermaid": explanation.mermaid, "html": explanation.html}
    print(views.get(format, explanation.text)())
    return 0 if is_there else NO_SUCH_ROW


def row_value(text: str, query: str) -> tuple[str, Term | None]:
    """The column and the term of `name=value`; the term as the query would write it.

    >>> name, term = row_value("route=:r5", "PREFIX : <http://example.org/> SELECT * {}")
    >>> name, str(term)
    ('route', '<http://example.org/r5>')
    """
    name, sign, value = text.partition("=")
    try:
        if not sign:
            raise QueryError("there is no = in it")
        term = parse_value(value, query)
    except QueryError as error:
        problem = error.message
        allowed = "write a column and a term, such as route=:route5, speed=80 or name='Harbour'"
        raise opt.invalid("--row", text, f"{problem}; {allowed}") from None
    return name.removeprefix("?"), term

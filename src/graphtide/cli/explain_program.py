"""How a program works: its queries' plans, its patterns' automata, what its rules and fixes do."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

from graphtide.cli.files import load_data, refuse_query
from graphtide.cli.query_plan import plan_of
from graphtide.engine.live_graph import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide.ast import CallFunction
from graphtide.lang.tide.program import Program
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.explain import explain_pattern
from graphtide.repair.explain import explain_fixes
from graphtide.rules.explain import explain_rules
from graphtide.rules.program import run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from graphtide.lang.tide.ast import PatternDeclaration
    from graphtide.plan.explain import ExplainFormat
    from graphtide.rules.program import RunningProgram

TICK_MS = 1000


def explain_program(
    path: Path,
    *,
    pattern: str | None = None,
    format: ExplainFormat = "text",  # noqa: A002 - the name of the option
    data: Sequence[Path] = (),
    changes: Path | None = None,
) -> str:
    """A program in words; or one of its patterns, which can be drawn.

    With data or changes, the program has seen them, and patterns are shown with their tokens.
    """
    program = Program.read(path)
    running = None
    if data or changes is not None:
        running = _ran(program, data, changes)
    if pattern is not None:
        return _pattern(program, _named(program, pattern), running, format)
    if format != "text":
        raise GraphtideError(
            "a whole program is explained in text only",
            hint="choose one of its patterns with --pattern NAME, or explain a query's file",
        )
    parts = [_query(query.name, query.text) for query in program.queries]
    parts += [_pattern(program, each, running) for each in program.patterns]
    if program.rules:
        parts.append(explain_rules(program, TICK_MS))
    if program.goals or program.fixes:
        parts.append(explain_fixes(program))
    return "\n\n".join(parts)


def _query(name: str, text: str) -> str:
    return f"QUERY {name}\n{indent(plan_of(parse_standing(text)), '  ')}"


def _named(program: Program, name: str) -> PatternDeclaration:
    known = {pattern.name: pattern for pattern in program.patterns}
    if name not in known:
        hint = name_hint(name, known, "pattern") if known else "it has none"
        raise GraphtideError(f"the program has no pattern named {name}", hint=hint)
    return known[name]


def _pattern(
    program: Program,
    pattern: PatternDeclaration,
    running: RunningProgram | None,
    format: ExplainFormat = "text",  # noqa: A002 - the name of the option
) -> str:
    if running is not None:
        detector, terms = running.detector(pattern.name), running.graph.terms
        return explain_pattern(
            detector.automaton, format, detector, lambda number: str(terms.decode(number))
        )
    numbers = {event.name: number for number, event in enumerate(program.events)}
    return explain_pattern(compile_pattern(pattern, numbers, lambda _: 1, TICK_MS), format)


def _ran(program: Program, data: Sequence[Path], changes: Path | None) -> RunningProgram:
    """The program after it has seen data and changes; what it would call is left out."""
    graph = LiveGraph(tick_ms=TICK_MS)
    load_data(graph, data)
    actions = (action for rule in program.rules for action in rule.actions)
    called = {a.function: _nothing for a in actions if isinstance(a, CallFunction)}
    running = run(program, graph, functions=called)
    if changes is not None:
        refuse_query(changes, "--changes")
        graph.apply(changes)
    return running


def _nothing(*_: object) -> None:
    """Explaining calls nobody."""

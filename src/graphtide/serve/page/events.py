"""Patterns and rules for the page: automata with their tokens, firings with their events."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from math import isinf
from typing import TYPE_CHECKING, Any, Final

from graphtide.errors import GraphtideError
from graphtide.lang.sparql.scanner import name_hint
from graphtide.patterns import explain
from graphtide.serve.page.terms import row_json, term_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.graph import LiveGraph
    from graphtide.patterns.detector import AnyDetector
    from graphtide.patterns.tokens import Token
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.firing import Firing
    from graphtide.rules.program import RunningProgram

SHOWN_TOKENS: Final = 200
SHOWN_MATCHES: Final = 50
SHOWN_FIRINGS: Final = 50
SEARCHED_FIRINGS: Final = 5000
"""Of the last firings of all rules, those of one rule are shown."""


class FiringCounts:
    """How often each rule has fired: of the firings that are retained, and all since."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._counts: dict[str, Counter[str]] = {}

    def of(self, program: RunningProgram) -> Counter[str]:
        """The firings of each rule of a program."""
        log, total = program.firings(), program.fired
        new = min(len(log), total - self._seen.get(program.name, 0))
        counts = self._counts.setdefault(program.name, Counter())
        counts.update(log[at].rule for at in range(len(log) - new, len(log)))
        self._seen[program.name] = total
        return counts


def summaries(graph: LiveGraph, counts: FiringCounts) -> Iterator[dict[str, Any]]:
    """The patterns and rules of all programs, as the overview lists them."""
    for program in graph.programs:
        for each in program.program.patterns:
            last = program.matches(each.name, last=1)
            yield {
                "name": each.name,
                "kind": "pattern",
                "program": program.name,
                "rows": program.matched(each.name),
                "tokens": len(program.detector(each.name).tokens()),
                "last": {"time": last[0].time, "row": row_json(last[0].values)} if last else None,
            }
        fired = counts.of(program)
        for rule in program.program.rules:
            found = next((f for f in _last(program) if f.rule == rule.name), None)
            yield {
                "name": rule.name,
                "kind": "rule",
                "program": program.name,
                "rows": fired[rule.name],
                "last": {"time": found.time, "row": row_json(found.values)} if found else None,
            }


def _last(program: RunningProgram) -> Iterator[Firing]:
    log = program.firings()
    return (log[at] for at in islice(reversed(range(len(log))), SEARCHED_FIRINGS))


def _program(graph: LiveGraph, kind: str, name: str) -> RunningProgram:
    known: dict[str, RunningProgram] = {}
    for program in graph.programs:
        declared = program.program.patterns if kind == "pattern" else program.program.rules
        known |= {each.name: program for each in declared}
    if name not in known:
        raise GraphtideError(f"there is no {kind} named {name}", hint=name_hint(name, known, kind))
    return known[name]


def pattern(graph: LiveGraph, name: str) -> dict[str, Any]:
    """A pattern: its automaton, its tokens with what they wait for, and its last matches."""
    program = _program(graph, "pattern", name)
    with graph.lock:
        detector = program.detector(name)
        automaton, tokens = detector.automaton, detector.tokens()
        held = Counter(p for token in tokens for p in {c.position for c in token.configurations})
        return {
            "name": name,
            **explain.drawing(automaton).json(),
            "tokens_at": [held[position.number] for position in automaton.positions],
            "facts": explain.facts(automaton),
            "clock": program.clock,
            "tokens": [_token(each, detector, graph.terms) for each in tokens[:SHOWN_TOKENS]],
            "token_count": len(tokens),
            "matched": program.matched(name),
            "matches": [
                {"start": m.start, "time": m.time, "row": row_json(m.values)}
                for m in reversed(program.matches(name, last=SHOWN_MATCHES))
            ],
        }


def _token(token: Token, detector: AnyDetector, terms: TermDictionary) -> dict[str, Any]:
    reader, automaton = detector.reader, detector.automaton
    first = token.configurations[0]
    deadline = token.deadline(reader)
    waits = {
        explain.transition_text(automaton, transition): None
        for at in token.configurations
        for transition in reader.open(at)
    }
    return {
        "order": token.order,
        "since": token.start,
        "states": sorted({c.position for c in token.configurations}),
        "until": None if isinf(deadline) else deadline,
        "waits_for": list(waits),
        "values": {
            variable.name: term_json(terms.decode(value))
            for variable, value in zip(automaton.variables, first.values, strict=True)
            if value
        },
    }


def rule(graph: LiveGraph, name: str, counts: FiringCounts) -> dict[str, Any]:
    """A rule: its last firings, newest first, with their events and times."""
    program = _program(graph, "rule", name)
    with graph.lock:
        found = list(islice((f for f in _last(program) if f.rule == name), SHOWN_FIRINGS))
        return {
            "name": name,
            "clock": program.clock,
            "fired": counts.of(program)[name],
            "firings": [
                {
                    "number": firing.number,
                    "time": firing.time,
                    "row": row_json(firing.values),
                    "events": {event: list(span) for event, span in firing.events.items()},
                    "why": firing.why(),
                }
                for firing in found
            ],
        }

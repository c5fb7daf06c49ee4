"""Run the tests that a program declares (TEST), and compare what came with what is expected.

Each test has a graph of its own, in which nothing is but what the test gives. Functions of CALL are
not called. `graphtide test` prints the outcomes; `graphtide.testing.pytest_plugin` lets pytest
collect the tests of `.tide` files.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyoxigraph import NamedNode

from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from graphtide.engine.results import WindowResult
    from graphtide.engine.watch import Query
    from graphtide.rdf.terms import Term
    from graphtide.rules.program import RunningProgram

MAX_SHOWN: Final = 20
"""Firings, matches or rows that are shown of a claim that does not hold."""

_LOCAL: Final = re.compile(r"[\w-]*")


class Occurrence(NamedTuple):
    """A firing, a complex event or a row: when it came, or for rows of an answer None."""

    time: int | None
    values: Mapping[str, Term | None]


@dataclass(frozen=True, slots=True)
class FailedClaim:
    """A claim that does not hold: its text and line, and what came instead, as texts."""

    expected: str
    line: int
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProgramTestOutcome:
    """What a test gave: the claims that do not hold, and the error that ended it, if any."""

    test: tide.TestDeclaration
    failed: tuple[FailedClaim, ...] = ()
    error: str | None = None

    @property
    def place(self) -> str:
        """The file and line of the test."""
        return f"{self.test.file}:{self.test.line}"

    @property
    def passed(self) -> bool:
        """Whether all claims hold."""
        return not self.failed and self.error is None

    def diff(self) -> str:
        """What was expected, after `-`, and what came, after `+`; empty if the test passed."""
        lines = [] if self.error is None else [f"! {self.error}"]
        for claim in self.failed:
            lines.append(f"- {claim.expected}")
            lines += (f"+ {each}" for each in claim.found[:MAX_SHOWN])
            if len(claim.found) > MAX_SHOWN:
                lines.append(f"  and {len(claim.found) - MAX_SHOWN:,} more")
            if not claim.found:
                lines.append("  nothing came")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The outcome as values of JSON."""
        failed = [
            {"expected": each.expected, "line": each.line, "found": list(each.found)}
            for each in self.failed
        ]
        found = {"test": self.test.name, "file": self.test.file, "line": self.test.line}
        more = {} if self.error is None else {"error": self.error}
        return {**found, "passed": self.passed, "failed": failed, **more}


def run_tests(program: Program | str | Path, *, tick_ms: int = 1000) -> list[ProgramTestOutcome]:
    """Run all tests of a program, given as in `Program.of`.

    >>> text = '''PREFIX : <http://example.org/>
    ... EVENT Knock(?door) AS { ?door :is :knocked }
    ... RULE Open ON Knock(?door) THEN INSERT { ?door :is :open }
    ... TEST Opens
    ...   GIVEN AT 5 Knock(:d1)
    ...   EXPECT AT 5 ONLY Open(?door = :d1)
    ...          NOT FACT { :d2 :is :open }
    ... TEST Closes
    ...   GIVEN AT 5 Knock(:d1)
    ...   EXPECT NOT FACT { :d1 :is :open }
    ...          AT 6 Open'''
    >>> for outcome in run_tests(text):
    ...     print(outcome.test.name, outcome.passed)
    Opens True
    Closes False
    >>> print(outcome.diff())
    - NOT FACT { :d1 :is :open }
    + FACT { :d1 :is :open }
    - AT 6 Open
    + AT 5 Open(?door = :d1)
    """
    parsed = Program.of(program)
    return [run_test(parsed, test, tick_ms=tick_ms) for test in parsed.tests]


def run_test(
    program: Program, test: tide.TestDeclaration, *, tick_ms: int = 1000
) -> ProgramTestOutcome:
    """Run one test of a program; an error of the engine is part of the outcome."""
    graph = LiveGraph(tick_ms=tick_ms)
    try:
        run = _TestRun(graph, program, test)
        run.give()
        failed = tuple(run.failed())
    except GraphtideError as error:
        return ProgramTestOutcome(test, error=str(error))
    return ProgramTestOutcome(test, failed)


def _nothing(*_: object, **__: object) -> None:
    """What CALL calls in a test: that the rule fires is what is expected."""


class _TestRun:
    """A program on an empty graph, and what a test gives and expects."""

    def __init__(self, graph: LiveGraph, program: Program, test: tide.TestDeclaration) -> None:
        self._graph = graph
        self._test = test
        actions = (action for rule in program.rules for action in rule.actions)
        names = {each.function for each in actions if isinstance(each, tide.CallFunction)}
        lasting = (step.time - step.start for step in test.steps if step.start is not None)
        self._program: RunningProgram = graph.run(
            program,
            functions=dict.fromkeys(names, _nothing),
            max_event_duration=max(lasting, default=0),
        )
        self._results: dict[str, list[WindowResult]] = {}
        self._queries: dict[str, Query] = {}
        for claim in test.claims:
            if claim.kind == "fact":
                self._queries[claim.name] = graph.watch(claim.query, history=None)
            elif claim.kind == "query":
                self._observe(self._program.queries[claim.name])
        self._prefixes = sorted(
            ((iri[1:-1], name) for name, iri in test.prefixes), key=lambda each: -len(each[0])
        )

    def _observe(self, query: Query) -> None:
        """Retain all that a query puts out."""
        if query.windows is None:
            query.retain(None)
            self._queries[query.name] = query
        elif query.name not in self._results:
            results: list[WindowResult] = []
            self._results[query.name] = results
            query.on_result(results.append)

    # --- what is given ---

    def give(self) -> None:
        """Let everything happen that the test gives; its last tick is over then."""
        last = 0
        for step in self._test.steps:
            last = step.time
            for changes, given in groupby(
                step.given, key=lambda each: isinstance(each, tide.GivenChange)
            ):
                if changes:
                    self._change(given, last)
                else:
                    for event in given:
                        self._happen(event, last, step.start)
        until = last if self._test.until is None else self._test.until
        self._graph.advance(until + 1)

    def _change(self, given: Iterable[object], time: int) -> None:
        with self._graph.transaction(time=time) as transaction:
            for change in given:
                assert isinstance(change, tide.GivenChange)
                act = transaction.insert if change.diff > 0 else transaction.delete
                for quad in change.quads:
                    act(*quad)

    def _happen(self, event: object, time: int, start: int | None) -> None:
        assert isinstance(event, tide.GivenEvent)
        if event.stream is None:
            duration = 0 if start is None else time - start
            self._graph.publish(event.triples, time=time, duration=duration)
        else:
            self._graph.stream(event.stream).push(event.triples, time=time)

    # --- what is expected ---

    def failed(self) -> Iterable[FailedClaim]:
        """The claims that do not hold."""
        for claim in self._test.claims:
            every = self._occurrences(claim)
            fitting = [each for each in every if self._fits(claim, each)]
            found = every
            if claim.count == 0:
                found = fitting
            wrong = len(fitting) != claim.count if claim.count is not None else not fitting
            if claim.only and not wrong:
                found = [each for each in every if not self._is_claimed(claim.name, each)]
                wrong = bool(found)
            if wrong:
                texts = tuple(self._text(claim, each) for each in found)
                yield FailedClaim(claim.text, claim.line, texts)

    def _is_claimed(self, name: str, found: Occurrence) -> bool:
        claims = (each for each in self._test.claims if each.name == name and each.count != 0)
        return any(self._fits(claim, found) for claim in claims)

    def _occurrences(self, claim: tide.Claim) -> list[Occurrence]:
        """All that there is of what a claim names; of an answer, as it was at its time."""
        if claim.kind == "rule":
            fired = (each for each in self._program.firings() if each.rule == claim.name)
            return [Occurrence(each.time, each.values) for each in fired]
        if claim.kind == "pattern":
            matches = self._program.matches(claim.name)
            return [Occurrence(each.time, each.values) for each in matches]
        if claim.name in self._results:
            results = self._results[claim.name]
            return [Occurrence(each.time, row) for each in results for row in each]
        counts: Counter[tuple[tuple[str, Term | None], ...]] = Counter()
        for row in self._queries[claim.name].rows():
            if claim.time is None or row.time <= claim.time:
                counts[tuple(row.row.items())] += row.diff
        return [Occurrence(None, dict(row)) for row in counts.elements()]

    def _fits(self, claim: tide.Claim, found: Occurrence) -> bool:
        in_time = claim.time is None or found.time is None or claim.time == found.time
        terms = self._graph.terms
        return in_time and all(
            found.values.get(name) == terms.decode(terms.encode(value))
            for name, value in claim.values
        )

    def _text(self, claim: tide.Claim, found: Occurrence) -> str:
        """An occurrence as a claim of it would be written."""
        values = [f"?{name} = {self._short(term)}" for name, term in found.values.items() if term]
        if claim.kind == "fact":
            fact = claim.text[claim.text.upper().index("FACT") :]
            return f"{fact} with {', '.join(values)}" if values else fact
        at = "" if found.time is None else f"AT {found.time} "
        return f"{at}{claim.name}({', '.join(values)})" if values else f"{at}{claim.name}"

    def _short(self, term: Term) -> str:
        for space, prefix in self._prefixes if isinstance(term, NamedNode) else ():
            local = str(term)[1 + len(space) : -1]
            if str(term).startswith(f"<{space}") and _LOCAL.fullmatch(local):
                return f"{prefix}{local}"
        return str(term)

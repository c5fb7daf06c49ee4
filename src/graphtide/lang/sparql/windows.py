"""RSP-QL: REGISTER, and windows in the dataset clause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from graphtide.algebra.windows import Output, WindowClause
from graphtide.lang.durations import LONGEST, UNITS, iso_milliseconds, whole

if TYPE_CHECKING:
    from pyoxigraph import NamedNode

    from graphtide.lang.sparql.terms import TermParser


class WindowParser:
    """Parses the RSP-QL clauses of a query."""

    def __init__(self, terms: TermParser) -> None:
        self.tokens = terms.tokens
        self.terms = terms
        self.clauses: list[WindowClause] = []
        self.output: Output | None = None
        self.registered: str | None = None

    def register_clause(self) -> None:
        """`REGISTER ISTREAM <name> AS`, if it is there."""
        if not self.tokens.accept("REGISTER"):
            return
        word = self.tokens.advance()
        match word.text.upper():
            case "ISTREAM" | "DSTREAM" | "RSTREAM" as output:
                self.output = output
            case "STREAM" | "QUERY":
                self.output = "RSTREAM"
            case _:
                hint = "write REGISTER ISTREAM <name> AS"
                self.tokens.fail(
                    f"expected ISTREAM, DSTREAM or RSTREAM after REGISTER, found {word}",
                    at=word.start,
                    hint=hint,
                )
        self.registered = (
            self.terms.iri().value if self.terms.at_iri() else self.tokens.advance().text
        )
        self.tokens.expect("AS")

    def window_clause(self) -> WindowClause:
        """The clause after `FROM NAMED WINDOW`."""
        start = self.tokens.token.start
        name = self.terms.iri()
        self.tokens.expect("ON")
        self.tokens.accept("STREAM")
        stream = self.terms.iri()
        self.tokens.expect("[")
        clause = self._extent(name, stream)
        self.tokens.expect("]")
        if any(known.iri == name for known in self.clauses):
            self.tokens.fail(f"the window {name} is declared twice", at=start)
        return clause

    def _extent(self, name: NamedNode, stream: NamedNode) -> WindowClause:
        if self.tokens.accept("ELEMENTS", "TRIPLES"):
            count = self._number()
            step = self._number() if self.tokens.accept("STEP", "SLIDE") else 1
            return WindowClause(name, stream, "ELEMENTS", count, step)
        start = self.tokens.token.start
        self.tokens.expect("RANGE")
        length, in_time = self._duration()
        step, also = (length, in_time)
        if self.tokens.accept("STEP", "SLIDE"):
            step, also = self._duration()
        if in_time != also:
            hint = "write both as durations, such as PT10S, or both in ticks"
            self.tokens.fail("RANGE and STEP have different units", at=start, hint=hint)
        return WindowClause(name, stream, "RANGE", length, step, in_time)

    def _number(self) -> int:
        token = self.tokens.advance()
        number = whole(token.text) if token.text.isdecimal() else 0
        if not 1 <= number <= LONGEST:
            self.tokens.fail(
                f"expected a number of at least 1, at most 2^61, found {token}", at=token.start
            )
        return number

    def _duration(self) -> tuple[int, bool]:
        """A duration, and whether it is in milliseconds rather than in ticks."""
        written = re.match(r"[Pp][0-9A-Za-z.]+", self.tokens.text[self.tokens.token.start :])
        found = iso_milliseconds(written[0]) if written else None
        token = self.tokens.token
        if written and found is not None:
            self.tokens.skip_to(token.start + len(written[0]))
            length, in_time = found, True
        elif self.tokens.advance().text.isdecimal():
            unit = self.tokens.accept(*(unit.upper() for unit in UNITS))
            length = whole(token.text) * (UNITS[unit.text.lower()] if unit else 1)
            in_time = unit is not None
        else:
            hint = "write a number of ticks, or a duration such as PT10S, 10s or 500ms"
            self.tokens.fail(f"expected a duration, found {token}", at=token.start, hint=hint)
        if length < 1:
            self.tokens.fail("the length of a window must not be 0", at=token.start)
        if length > LONGEST:
            self.tokens.fail("a window of this length is too long", at=token.start)
        return length, in_time

"""RSP-QL's additions to the query grammar: REGISTER, and windows in the dataset clause."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from graphtide.algebra.windows import WindowClause
from graphtide.lang.durations import UNITS, iso_milliseconds
from graphtide.lang.groups import GroupParser

if TYPE_CHECKING:
    from graphtide.algebra.windows import Output
    from graphtide.rdf.term import NamedNode


class WindowParser(GroupParser):
    """Reads what makes a query a windowed one."""

    output: Output | None = None
    registered: str | None = None

    def register_clause(self) -> None:
        """`REGISTER ISTREAM <name> AS`, if it is there."""
        if not self.accept("REGISTER"):
            return
        word = self.advance()
        match word.text.upper():
            case "ISTREAM" | "DSTREAM" | "RSTREAM" as output:
                self.output = output
            case "STREAM" | "QUERY":
                self.output = "RSTREAM"
            case _:
                hint = "write REGISTER ISTREAM, DSTREAM or RSTREAM, a name, and AS"
                self.fail(
                    f"expected an output after REGISTER, found {word}", at=word.start, hint=hint
                )
        self.registered = self.iri().value if self.at_iri() else self.advance().text
        self.expect("AS")

    def window_clause(self) -> WindowClause:
        """What follows `FROM NAMED WINDOW`."""
        start = self.token.start
        name = self.iri()
        self.expect("ON")
        self.accept("STREAM")
        stream = self.iri()
        self.expect("[")
        clause = self._extent(name, stream)
        self.expect("]")
        if any(known.iri == name for known in self.windows):
            self.fail(f"the window {name} is declared twice", at=start)
        return clause

    def _extent(self, name: NamedNode, stream: NamedNode) -> WindowClause:
        if self.accept("ELEMENTS", "TRIPLES"):
            count = self._number()
            step = self._number() if self.accept("STEP", "SLIDE") else 1
            return WindowClause(name, stream, "ELEMENTS", count, step)
        start = self.token.start
        self.expect("RANGE")
        length, in_time = self._duration()
        step, also = (length, in_time)
        if self.accept("STEP", "SLIDE"):
            step, also = self._duration()
        if in_time != also:
            hint = "write both as durations, such as PT10S, or both as numbers of ticks"
            self.fail("RANGE and STEP are of different kinds", at=start, hint=hint)
        return WindowClause(name, stream, "RANGE", length, step, in_time)

    def _number(self) -> int:
        token = self.advance()
        if not token.text.isdigit() or int(token.text) < 1:
            self.fail(f"expected a number of at least 1, found {token}", at=token.start)
        return int(token.text)

    def _duration(self) -> tuple[int, bool]:
        """A length, and whether it is in milliseconds rather than in ticks."""
        written = re.match(r"[Pp][0-9A-Za-z.]+", self.text[self.token.start :])
        found = iso_milliseconds(written[0]) if written else None
        token = self.token
        if written and found is not None:
            self.skip_to(token.start + len(written[0]))
            length, in_time = found, True
        elif self.advance().text.isdigit():
            unit = self.accept(*(unit.upper() for unit in UNITS))
            length = int(token.text) * (UNITS[unit.text.lower()] if unit else 1)
            in_time = unit is not None
        else:
            hint = "write a number of ticks, or a duration such as PT10S, 10s or 500ms"
            self.fail(f"expected a duration, found {token}", at=token.start, hint=hint)
        if length < 1:
            self.fail("a window must have a length", at=token.start)
        return length, in_time

"""Turn: a match whose turn it is to fire, made into an object only when somebody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.rules.firing import Firing

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.found import Found, Match
    from graphtide.rules.registered import Registered


class Turn:
    """One of the matches that were found, which is the firing of a number."""

    __slots__ = ("_found", "_place", "_terms", "number", "registered")

    def __init__(
        self, registered: Registered, found: Found, place: int, number: int, terms: TermDictionary
    ) -> None:
        self.registered = registered
        self.number = number
        self._found = found
        self._place = place
        self._terms = terms

    @property
    def rule(self) -> str:
        """The rule's name."""
        return self.registered.matcher.rule.name

    def binding(self) -> dict[Var, int]:
        """The ids of the variables' values."""
        row = self._found.rows[self._place].tolist()
        return dict(zip(self.registered.matcher.shape.variables, row[1:], strict=True))

    def firing(self) -> Firing:
        """All that is known of it."""
        match = self.registered.matcher.shape.match(self._found, self._place)
        return make_firing(match, self.number, self._terms)


class ChosenTurn(Turn):
    """The turn of an activation that has waited."""

    __slots__ = ("_firing",)

    def __init__(self, firing: Firing, registered: Registered) -> None:
        self.registered = registered
        self.number = firing.number
        self._firing = firing

    def binding(self) -> dict[Var, int]:
        """The ids of the variables' values."""
        return {} if self._firing.match is None else self._firing.match.binding

    def firing(self) -> Firing:
        """All that is known of it."""
        return self._firing


def make_firing(match: Match, number: int, terms: TermDictionary) -> Firing:
    """A match as a firing with a number."""
    spans = {n: (e.span.start, e.span.end) for n, e in match.events.items()}
    values = {v.name: terms.decode(i) for v, i in match.binding.items() if i}
    return Firing(match.rule.name, match.time, values, spans, number, match)

"""Firing: a rule that fired, with which values, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import Bgp, Filter, Join, Node, Project, TriplePattern
from graphtide.functions.templates import fill_template

if TYPE_CHECKING:
    from graphtide.rdf.term import Term
    from graphtide.rules.found import Match
    from graphtide.rules.model import EventCondition


@dataclass(frozen=True, slots=True)
class Firing:
    """A rule that fired: when, with which values, because of which events.

    `events` has the first and last tick of each event. `number` counts the firings of an engine.
    """

    rule: str
    time: int
    values: dict[str, Term]
    events: dict[str, tuple[int, int]]
    number: int = 0
    match: Match | None = field(default=None, repr=False, compare=False)

    @property
    def row(self) -> dict[Var, Term]:
        """The values by variable."""
        if self.match is None:
            return {Var(name): term for name, term in self.values.items()}
        values = self.values
        return {v: values[v.name] for v in self.match.binding if v.name in values}

    def why(self) -> str:
        """The events and facts that matched, in words."""
        lines = [f"{self.rule} fired at {self.time}"]
        if self.match is not None:
            lines += (f"  {self._event(condition)}" for condition in self.match.rule.positive)
            lines += (f"  unless {condition.name}" for condition in self.match.rule.negative)
            lines += (f"  fact {fact}" for fact in self.facts())
        return "\n".join(lines)

    def facts(self) -> list[str]:
        """The facts that matched, as N-Triples texts."""
        query = self.match.rule.facts if self.match else None
        patterns = _patterns(query.root) if query else ()
        return [f"{s} {p} {o}" for s, p, o, _ in fill_template(patterns, self.row)]

    def _event(self, condition: EventCondition) -> str:
        start, end = self.events[condition.name]
        given = (
            self.values.get(a.name, a) if isinstance(a, Var) else a for a in condition.arguments
        )
        called = f"{condition.type.name}({', '.join(map(str, given))})"
        when = f"at {end}" if start == end else f"from {start} to {end}"
        return f"{condition.name} = {called} {when}"


def _patterns(node: Node) -> tuple[TriplePattern, ...]:
    """The triple patterns that each row of a query has matched."""
    match node:
        case Bgp(patterns):
            return patterns
        case Join(left, right):
            return _patterns(left) + _patterns(right)
        case Filter(_, child) | Project(child, _):
            return _patterns(child)
        case _:
            return ()

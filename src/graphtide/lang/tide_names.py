"""Names: what the files of a program have declared so far, and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphtide.lang.hints import name_hint

if TYPE_CHECKING:
    from lark import Token

    from graphtide.algebra.expressions import Var
    from graphtide.lang.declarations import (
        EventDeclaration,
        FixDeclaration,
        GoalDeclaration,
        NamedQuery,
        RuleDeclaration,
    )
    from graphtide.lang.event_algebra import PatternDeclaration
    from graphtide.lang.tide_source import Source


@dataclass(slots=True)
class Names:
    """What is declared, by name; queries and events that are broken are known by name only.

    `variables` has the columns of each query that could be read.
    """

    queries: dict[str, NamedQuery] = field(default_factory=dict)
    events: dict[str, EventDeclaration] = field(default_factory=dict)
    patterns: dict[str, PatternDeclaration] = field(default_factory=dict)
    rules: dict[str, RuleDeclaration] = field(default_factory=dict)
    goals: dict[str, GoalDeclaration] = field(default_factory=dict)
    fixes: dict[str, FixDeclaration] = field(default_factory=dict)
    variables: dict[str, tuple[Var, ...]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    _places: dict[tuple[str, str], tuple[str | None, int]] = field(default_factory=dict)

    def declare(self, source: Source, kind: str, name: Token) -> bool:
        """Take a name for a declaration of a kind; False, and a mistake noted, if taken."""
        key = kind, str(name)
        if key in self._places:
            file, line = self._places[key]
            where = f"line {line}" if file in (None, source.name) else f"{file}, line {line}"
            plural = {"query": "queries", "fix": "fixes"}.get(kind, f"{kind}s")
            source.report(
                name, f"there are two {plural} named {name}", f"the first one is in {where}"
            )
            return False
        self._places[key] = source.name, name.line or 1
        return True

    def columns(self, source: Source, name: Token) -> tuple[Var, ...] | None:
        """The columns of a query; None, and a mistake noted, if there is none of that name."""
        found = self.variables.get(str(name))
        if found is None and ("query", str(name)) not in self._places:
            hint = name_hint(str(name), self.queries, "query")
            source.report(name, f"there is no query named {name}", hint)
        return found

    def event(self, source: Source, name: Token) -> EventDeclaration | None:
        """An event; None, and a mistake noted, if there is none of that name."""
        found = self.events.get(str(name))
        known = ("event", str(name)) in self._places or str(name) in self.broken
        if found is None and not known:
            hint = name_hint(str(name), self.events, "event")
            source.report(name, f"there is no event named {name}", hint)
        return found

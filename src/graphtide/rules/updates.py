"""Updates: the INSERT and DELETE templates of a rule, filled in for one firing, in ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph
from graphtide.engine.quads import quad_ids
from graphtide.functions.templates import fill_template
from graphtide.lang.declarations import Delete, Insert
from graphtide.rdf.kinds import BLANK, IRI
from graphtide.rdf.term import BlankNode
from graphtide.rules.insertions import action_scope

if TYPE_CHECKING:
    from graphtide.algebra.nodes import TriplePattern
    from graphtide.engine.quads import Ids
    from graphtide.lang.declarations import RuleDeclaration
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.turn import Turn

Part = Var | int
Quad = tuple[Part, Part, Part, Part | None]
"""Variables and ids; no graph is the default graph."""


class Updates:
    """What a rule inserts and deletes."""

    def __init__(self, rule: RuleDeclaration, terms: TermDictionary) -> None:
        self._terms = terms
        self._actions = [
            (number, action, self._quads(action.template))
            for number, action in enumerate(rule.actions)
            if isinstance(action, Insert | Delete)
        ]

    def _quads(self, template: tuple[TriplePattern, ...]) -> list[Quad] | None:
        """A template in ids; None if it makes blank nodes, which are named by terms."""
        quads: list[Quad] = []
        for triple in template:
            parts = [triple.subject, triple.predicate, triple.object]
            if not isinstance(triple.graph, DefaultGraph):
                parts.append(triple.graph)  # type: ignore[arg-type] # a template names one graph
            if any(isinstance(part, BlankNode) for part in parts):
                return None
            s, p, o, *g = (p if isinstance(p, Var) else self._terms.encode(p) for p in parts)
            quads.append((s, p, o, g[0] if g else None))
        return quads

    def changes(self, turn: Turn) -> dict[Ids, bool]:
        """Which quads are to be there afterwards, and which not; the last word counts."""
        wanted: dict[Ids, bool] = {}
        binding = turn.binding() if self._actions else {}
        for number, action, quads in self._actions:
            there = isinstance(action, Insert)
            if quads is None:
                scope = action_scope(turn.rule, turn.number, number)
                for filled in fill_template(action.template, turn.firing().row, scope=scope):
                    wanted[quad_ids(self._terms, *filled)] = there
                continue
            for quad in quads:
                ids = self._filled(quad, binding)
                if ids is not None:
                    wanted[ids] = there
        return wanted

    def _filled(self, quad: Quad, binding: dict[Var, int]) -> Ids | None:
        """A quad with no unbound or misplaced term; else none."""
        s, p, o, g = (binding.get(part, 0) if isinstance(part, Var) else part for part in quad)
        kinds = self._terms.kinds
        if not o or kinds[p or 0] != IRI or kinds[s or 0] not in (IRI, BLANK):
            return None
        if g is not None and kinds[g] != IRI:
            return None
        return s or 0, p or 0, o, g or 0

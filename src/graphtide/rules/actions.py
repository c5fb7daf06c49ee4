"""Actions of rules: CALL, INSERT, DELETE, RETRACT, EMIT; one firing is one transaction."""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from pyoxigraph import BlankNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import DefaultGraph, TriplePattern
from graphtide.engine.ingest import Ids, quad_ids
from graphtide.errors import ActionError, ExpressionError
from graphtide.functions.evaluate import evaluate
from graphtide.functions.templates import blank_label, fill_template
from graphtide.lang.tide.ast import CallFunction, Delete, Emit, Insert, Retract, RuleDeclaration
from graphtide.lang.tide.references import references_in
from graphtide.rdf.kinds import BLANK, IRI
from graphtide.rdf.terms import TripleTerm
from graphtide.rules.compile import times_in
from graphtide.rules.temporal import Span, time_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term
    from graphtide.rules.agenda import PendingFiring
    from graphtide.rules.effects import GraphEffects
    from graphtide.rules.firing import Firing
    from graphtide.rules.runtime import RuleEngine

OnError = Literal["raise", "skip"]


Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


class Insertions:
    """The INSERT templates of a rule, filled in for many firings at once.

    `variables` are those of the columns of its matches, `identify` returns the id of a firing.
    """

    def __init__(
        self,
        rule: RuleDeclaration,
        variables: tuple[Var, ...],
        terms: TermDictionary,
        identify: Callable[[Firing], str],
    ) -> None:
        self._terms = terms
        self._identify = identify
        self._column = {v: 1 + at for at, v in enumerate(variables)}
        self._templates = [
            (number, action.template)
            for number, action in enumerate(rule.actions)
            if isinstance(action, Insert)
        ]

    def quads(self, rows: Ints, firing: Callable[[int], Firing]) -> tuple[Ints, Longs]:
        """The quads of some matches, and the match of each quad.

        `firing` returns the firing of a match, given by its place.
        """
        parts: list[Ints] = []
        places: list[Longs] = []
        for action, template in self._templates:
            blanks: dict[str, Ints] = {}
            for triple in template:
                quads = self._filled(triple, rows, firing, action, blanks)
                fits = self._fits(quads, triple)
                parts.append(quads[fits])
                places.append(np.flatnonzero(fits))
        place = np.concatenate(places)
        order = np.argsort(place, kind="stable")
        return np.concatenate(parts)[order], place[order]

    def _filled(
        self,
        triple: TriplePattern,
        rows: Ints,
        firing: Callable[[int], Firing],
        action: int,
        blanks: dict[str, Ints],
    ) -> Ints:
        quads = np.zeros((len(rows), 4), np.int32)
        parts = [triple.subject, triple.predicate, triple.object]
        if not isinstance(triple.graph, DefaultGraph):
            parts.append(triple.graph)  # type: ignore[arg-type] # a template names one graph
        for column, part in enumerate(parts):
            if isinstance(part, Var):
                quads[:, column] = rows[:, self._column[part]] if part in self._column else 0
            elif isinstance(part, BlankNode):
                if part.value not in blanks:
                    blanks[part.value] = self._blanks(part, rows, firing, action)
                quads[:, column] = blanks[part.value]
            else:
                quads[:, column] = self._terms.encode(part)
        return quads

    def _fits(self, quads: Ints, triple: TriplePattern) -> Mask:
        """Which quads have terms of the right kinds, and none unbound."""
        kinds = self._terms.kinds
        subjects = kinds[quads[:, 0]]
        fits: Mask = ((subjects == IRI) | (subjects == BLANK)) & (kinds[quads[:, 1]] == IRI)
        fits &= quads[:, 2] != 0
        if not isinstance(triple.graph, DefaultGraph):
            fits &= kinds[quads[:, 3]] == IRI
        return fits

    def _blanks(
        self, node: BlankNode, rows: Ints, firing: Callable[[int], Firing], action: int
    ) -> Ints:
        """A new blank node for each firing, with the label that `Updates` would give it."""
        texts = {
            v.name: self._terms.decode_column(rows[:, at]).to_pylist()
            for v, at in self._column.items()
        }
        names = sorted(texts)
        labels = []
        for place in range(len(rows)):
            cells = [f"{n} {texts[n][place]}" for n in names if texts[n][place] is not None]
            scope = action_scope(self._identify(firing(place)), action)
            labels.append(f"_:{blank_label(node.value, sorted(cells), scope)}")
        return self._terms.intern_column(labels)


def action_scope(firing: str, action: int) -> str:
    """Returns the scope of blank node labels: one action of the firing with an id.

    >>> action_scope("0c1f", 0)
    '0c1f 0'
    """
    return f"{firing} {action}"


def _has_blank(part: object) -> bool:
    """True if a part of a template is, or contains, a blank node."""
    if isinstance(part, TripleTerm):
        return _has_blank(part.subject) or _has_blank(part.object)
    return isinstance(part, BlankNode)


Part = Var | int
Quad = tuple[Part, Part, Part, Part | None]
"""Variables and ids; None as graph is the default graph."""


class Updates:
    """The INSERT and DELETE templates of a rule, filled in for one firing."""

    def __init__(
        self,
        rule: RuleDeclaration,
        row: ActionRow,
        terms: TermDictionary,
        identify: Callable[[Firing], str],
    ) -> None:
        self._terms = terms
        self._row = row
        self._identify = identify
        self._actions = [
            (number, action, self._quads(action.template))
            for number, action in enumerate(rule.actions)
            if isinstance(action, Insert | Delete)
        ]

    def _quads(self, template: tuple[TriplePattern, ...]) -> list[Quad] | None:
        """A template in ids; None if it has blank nodes or times, which are made of terms."""
        quads: list[Quad] = []
        for triple in template:
            parts = [triple.subject, triple.predicate, triple.object]
            if not isinstance(triple.graph, DefaultGraph):
                parts.append(triple.graph)  # type: ignore[arg-type] # a template names one graph
            if any(isinstance(part, BlankNode) for part in parts) or self._row.uses(parts):
                return None
            s, p, o, *g = (p if isinstance(p, Var) else self._terms.encode(p) for p in parts)
            quads.append((s, p, o, g[0] if g else None))
        return quads

    def changes(self, pending: PendingFiring) -> dict[Ids, bool]:
        """Which quads are to be there afterwards, and which not; the last word counts."""
        wanted: dict[Ids, bool] = {}
        binding = pending.binding() if self._actions else {}
        for number, action, quads in self._actions:
            there = isinstance(action, Insert)
            if quads is None:
                firing = pending.firing()
                scope, row = action_scope(self._identify(firing), number), self._row.of(firing)
                for filled in fill_template(action.template, row, scope=scope):
                    wanted[quad_ids(self._terms, *filled)] = there
                continue
            for quad in quads:
                ids = self._filled(quad, binding)
                if ids is not None:
                    wanted[ids] = there
        return wanted

    def _filled(self, quad: Quad, binding: dict[Var, int]) -> Ids | None:
        """A quad in ids; None if a term is unbound or of the wrong kind."""
        s, p, o, g = (binding.get(part, 0) if isinstance(part, Var) else part for part in quad)
        kinds = self._terms.kinds
        if not o or kinds[p or 0] != IRI or kinds[s or 0] not in (IRI, BLANK):
            return None
        if g is not None and kinds[g] != IRI:
            return None
        return s or 0, p or 0, o, g or 0


@dataclass(slots=True, eq=False)
class ErrorPolicy:
    """What happens when an action fails: `retries`, then the error is raised or skipped."""

    on_error: OnError = "raise"
    retries: int = 0
    skipped: list[ActionError] = field(default_factory=list)

    def savepoint(self) -> int:
        """How many errors were skipped."""
        return len(self.skipped)

    def roll_back(self, to: int) -> None:
        """Go back to a number of errors."""
        del self.skipped[to:]


class Actions:
    """Runs the actions of a rule, calls first: if one fails, nothing is changed."""

    def __init__(
        self, rule: RuleDeclaration, functions: Mapping[str, Callable[..., object]],
        engine: RuleEngine, effects: GraphEffects, policy: ErrorPolicy, terms: TermDictionary,
    ) -> None:  # fmt: skip
        self._rule = rule
        self._functions = functions
        self._engine = engine
        self._effects = effects
        self._policy = policy
        self._terms = terms
        self._row = ActionRow(rule)
        self._updates = Updates(rule, self._row, terms, engine.id_of)
        self._calls = [
            (number, each)
            for number, each in enumerate(rule.actions)
            if isinstance(each, CallFunction)
        ]
        called = {each.function for _, each in self._calls}
        self._takes_id = {name for name in called if takes_id(functions[name])}
        self._writes = {name for name in called if takes_graph(functions[name])}
        self._others = [
            (number, each)
            for number, each in enumerate(rule.actions)
            if isinstance(each, Retract | Emit)
        ]
        self._names_blanks = {
            number: any(
                _has_blank(part)
                for triple in each.template
                for part in (triple.subject, triple.predicate, triple.object)
            )
            for number, each in self._others
            if isinstance(each, Emit)
        }
        """By action, whether what it emits has new blank nodes."""
        self._looks = bool(self._calls or self._others)
        self.insertions: Insertions | None = None

    def inserts_only(self, variables: tuple[Var, ...]) -> None:
        """The actions are independent: many firings may be applied at once."""
        self.insertions = Insertions(self._rule, variables, self._terms, self._engine.id_of)

    def carry_out(self, pending: PendingFiring) -> None:
        """Run them, under the error policy."""
        policy = self._policy
        for left in range(policy.retries, -1, -1):
            try:
                self._try(pending)
            except Exception as problem:
                if not self._effects.is_known(problem):
                    raise
                if left:
                    continue
                error = failed(pending.firing(), problem)
                if policy.on_error == "raise":
                    raise error from problem
                self._engine.protect(policy)
                policy.skipped.append(error)
            return

    def _try(self, pending: PendingFiring) -> None:
        firing = pending.firing() if self._looks else None
        row = {} if firing is None else self._row.of(firing)
        for number, action in self._calls:
            given = [row.get(a) if isinstance(a, Var) else a for a in action.arguments]
            self._call(action.function, given, firing, number)
        self._effects.set_present(self._updates.changes(pending))
        for number, other in self._others:
            match other:
                case Retract(event) if firing is not None and firing.match is not None:
                    self._engine.retract(firing.match.events[event])
                case Emit(stream, template):
                    scope = ""
                    if firing is not None and self._names_blanks[number]:
                        scope = action_scope(self._engine.id_of(firing), number)
                    quads = fill_template(template, row, scope=scope)
                    self._emit(str(stream), [(s, p, o) for s, p, o, _ in quads])
                case _:
                    pass

    def _call(
        self, name: str, given: list[Term | None], firing: Firing | None, action: int
    ) -> None:
        """Call a function for an action of a firing, with the id of the firing if it takes that.

        The name of the call is for undo and replay alone: it need only be the same there.
        """
        number, more = 0 if firing is None else firing.number, {}
        if firing is not None and name in self._takes_id:
            more = {"firing_id": self._engine.id_of(firing)}
        call = f"{self._engine.name}-{self._rule.name}-{number}-{action}"
        writes = name in self._writes
        self._engine.call(call, lambda: self._functions[name](*given, **more), writes=writes)

    def _emit(self, stream: str, triples: list[tuple[Term, Term, Term]]) -> None:
        """Publish an event to the rules at once, and to the stream when the cascade is done."""
        self._engine.emit(triples)
        self._effects.emit(stream, triples)


class ActionRow:
    """The values that the actions of a rule use: of its firings, their times, and computed ones."""

    def __init__(self, rule: RuleDeclaration) -> None:
        self._times = times_in(rule)
        self._computed = rule.computed
        self._computes = {variable for variable, _ in rule.computed}

    def uses(self, parts: Iterable[object]) -> bool:
        """Whether some parts of a template are not values of the match."""
        return any(part in self._computes or references_in([part]) for part in parts)

    def of(self, firing: Firing) -> dict[Var, Term]:
        """The values of a firing by variable."""
        if not self._times and not self._computed:
            return firing.row
        spans = {name: Span(*span) for name, span in firing.events.items()}
        return self.completed(firing.row, spans, firing.time)

    def completed(
        self, row: dict[Var, Term], spans: Mapping[str, Span], time: int
    ) -> dict[Var, Term]:
        """The values of a match with its times and what is computed; an error gives no value."""
        row = row | time_values(self._times, spans, time)
        for variable, expression in self._computed:
            with suppress(ExpressionError):
                row[variable] = evaluate(expression, row)
        return row


def takes_id(function: Callable[..., object]) -> bool:
    """Whether a function has a parameter `firing_id`.

    >>> takes_id(lambda who, *, firing_id: None), takes_id(print)
    (True, False)
    """
    try:
        return "firing_id" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a function of C without a signature
        return False


def takes_graph(function: Callable[..., object]) -> bool:
    """Whether a function has a keyword parameter `graph`.

    >>> takes_graph(lambda who, *, graph: None), takes_graph(lambda graph: None)
    (True, False)
    """
    try:
        found = inspect.signature(function).parameters.get("graph")
    except (TypeError, ValueError):
        return False
    return found is not None and found.kind is found.KEYWORD_ONLY


def given_graph(
    functions: Mapping[str, Callable[..., object]], graph: object
) -> dict[str, Callable[..., object]]:
    """The functions, in which those that take a graph have it."""
    return {
        name: partial(function, graph=graph) if takes_graph(function) else function
        for name, function in functions.items()
    }


def failed(firing: Firing, problem: Exception) -> ActionError:
    """The error for an action that failed."""
    values = ", ".join(f"?{name}={term}" for name, term in firing.values.items())
    return ActionError(
        f"the rule {firing.rule} failed at {firing.time} with {values or 'no values'}: "
        f"{type(problem).__name__}: {problem}",
        hint='run(…, on_error="skip") skips it, retries=n tries again',
    )

"""Gathered events: what conditions between events and computed parameters of a pattern refer to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pyoxigraph import Literal

from graphtide.algebra.variables import mentioned
from graphtide.errors import ExpressionError
from graphtide.functions.aggregates import aggregate
from graphtide.functions.evaluate import evaluate
from graphtide.functions.values import effective_boolean, integer_term
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide import pattern_facts as facts
from graphtide.lang.tide.references import EventReference, reference_of, references_in
from graphtide.plan.describe import expression_text

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression, Var
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.terms import Term


class GatheredEvent(NamedTuple):
    """The values (ids) and the time of an event that an instance has consumed."""

    values: tuple[int, ...]
    time: int


Gathered = tuple[tuple[GatheredEvent, ...], ...]
"""The events of an instance by the number of their name, each in order."""


class EventNames:
    """The named events of a pattern whose values are retained, and their parameters."""

    def __init__(self, pattern: tide.PatternDeclaration) -> None:
        atoms = [part for part in facts.walk(pattern.body) if isinstance(part, tide.Atom)]
        read = [a.condition for a in atoms if a.condition is not None]
        read += [expression for _, expression in pattern.computed]
        wanted = {r.event for each in read for r in references_in(mentioned(each))}
        self.fields = {atom.alias: atom.fields for atom in atoms if atom.alias in wanted}
        self.numbers = {name: number for number, name in enumerate(self.fields)}

    def number(self, alias: str) -> int | None:
        """The number of a name; None if nothing refers to it."""
        return self.numbers.get(alias)


class Evaluator:
    """Evaluates conditions and computed parameters for the events of an instance."""

    def __init__(
        self, names: EventNames, variables: tuple[Var, ...], terms: TermDictionary
    ) -> None:
        self._names = names
        self._slots = {variable: slot for slot, variable in enumerate(variables)}
        self._terms = terms

    def holds(self, condition: Expression, values: tuple[int, ...], gathered: Gathered) -> bool:
        """Whether a condition is true; an error is not, but an event without a PREV passes."""
        references = references_in(mentioned(condition))
        if any(r.function == "PREV" and len(self._events(r, gathered)) < 2 for r in references):
            return True
        try:
            return effective_boolean(evaluate(condition, self._row(condition, values, gathered)))
        except ExpressionError:
            return False

    def value(self, expression: Expression, values: tuple[int, ...], gathered: Gathered) -> int:
        """The id of a computed value; 0 if it has none."""
        try:
            return self._terms.intern(evaluate(expression, self._row(expression, values, gathered)))
        except ExpressionError:
            return 0

    def _row(
        self, expression: Expression, values: tuple[int, ...], gathered: Gathered
    ) -> dict[Var, Term]:
        row: dict[Var, Term] = {}
        for variable in mentioned(expression):
            reference = reference_of(variable)
            if reference is None:
                known = values[self._slots[variable]]
                found = self._terms.decode(known) if known else None
            else:
                found = self._referred(reference, gathered)
            if found is not None:
                row[variable] = found
        return row

    def _events(self, reference: EventReference, gathered: Gathered) -> tuple[GatheredEvent, ...]:
        return gathered[self._names.numbers[reference.event]] if gathered else ()

    def _referred(self, reference: EventReference, gathered: Gathered) -> Term | None:
        events = self._events(reference, gathered)
        if reference.function == "COUNT":
            return integer_term(len(events))
        if not events:
            return None
        if not reference.parameter:
            return integer_term(events[0 if reference.function == "STARTOF" else -1].time)
        column = self._names.fields[reference.event].index(reference.parameter)
        ids = [event.values[column] for event in events]
        found = [self._terms.decode(i) if i else None for i in ids]
        return _combined(reference.function, found)


def _combined(function: str, values: list[Term | None]) -> Term | None:
    match function:
        case "FIRST":
            return values[0]
        case "LAST":
            return values[-1]
        case "PREV":
            return values[-2] if len(values) > 1 else None
        case "COLLECT":
            return Literal(" ".join(getattr(each, "value", str(each)) for each in values if each))
        case _:
            try:
                return aggregate(function, values)
            except ExpressionError:
                return None


_INTEGER: Final = re.compile(r'"([+-]?[0-9]+)"\^\^<http://www\.w3\.org/2001/XMLSchema#integer>')


def condition_text(condition: Expression) -> str:
    """An expression with its references as they are written."""
    text = expression_text(condition)
    for reference in references_in(mentioned(condition)):
        text = text.replace(str(reference.variable), str(reference))
    text = _INTEGER.sub(r"\1", text)
    return text if text.startswith("(") else f"({text})"

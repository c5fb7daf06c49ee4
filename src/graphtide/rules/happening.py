"""Happening: an event that has come, and how events match the types that rules ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphtide.algebra.expressions import Var
from graphtide.algebra.variables import pattern_variables
from graphtide.rules.kernel.layout import CONDITION, EVENT, HIT_VALUES, POSITION, WRITTEN
from graphtide.rules.kernel.type_hits import find_hits
from graphtide.rules.temporal import is_true

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.algebra.expressions import Expression
    from graphtide.engine.graph_events import GraphEvents
    from graphtide.kernel.batch import Ints
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.model import EventCondition, EventType
    from graphtide.rules.temporal import Span

MOST_CHECKED = 100_000
"""Rows of values of which it is remembered whether they pass a CHECK."""

Ids = tuple[int, int, int]
Binding = dict[Var, int]
"""Variables and the ids of their values."""


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of a match: when it was, and what the graph was like when it came.

    `order` counts events as they come. `since` is the number of transactions that were before it:
    a fact is older if its own number is less.
    """

    span: Span
    order: int
    since: int


class TypeMatcher:
    """Finds the ways in which the triples of events match a type."""

    def __init__(self, type_: EventType, terms: TermDictionary) -> None:
        others = (v for p in type_.pattern for v in pattern_variables(p))
        variables = list(dict.fromkeys((*type_.parameters, *others)))
        self._width = len(type_.parameters)
        self._pattern = np.array(
            [
                [
                    -1 - variables.index(part) if isinstance(part, Var) else terms.encode(part)
                    for part in (p.subject, p.predicate, p.object)
                ]
                for p in type_.pattern
            ],
            np.int32,
        )
        ids = [int(row[column]) for column in (2, 0, 1) for row in self._pattern if row[column] > 0]
        self.mark: int | None = ids[0] if ids else None
        """An id that all events of the type have, if there is one; one that others hardly have."""
        self._check, self._parameters, self._terms = type_.check, type_.parameters, terms
        self._checked: dict[tuple[int, ...], bool] = {}
        self._work = np.zeros((3, max(len(variables), len(self._pattern), 1)), np.int32)
        self._out = np.empty((16, 1 + self._width), np.int32)

    def hits(self, events: GraphEvents) -> Ints:
        """Rows of an event's place and the values of the parameters, each way once.

        They hold until the next call.
        """
        state, many = np.zeros(2, np.int64), len(events.ends)
        if len(self._out) < many:
            self._out = np.empty((2 * many, 1 + self._width), np.int32)
        while True:
            find_hits(
                self._pattern, self._width, events.triples, events.begins, self._work, self._out,
                state,
            )  # fmt: skip
            if state[POSITION] == many:
                hits = self._out[: state[WRITTEN]]
                return hits if self._check is None else self._passing(hits, self._check)
            more = np.empty((2 * len(self._out), self._out.shape[1]), np.int32)
            more[: len(self._out)] = self._out
            self._out = more

    def _passing(self, hits: Ints, check: Expression) -> Ints:
        """The hits whose values pass the check; each row of values is looked at once."""
        if len(self._checked) > MOST_CHECKED:
            self._checked.clear()
        passing = np.zeros(len(hits), np.bool_)
        for at, row in enumerate(map(tuple, hits[:, 1:].tolist())):
            if row not in self._checked:
                pairs = zip(self._parameters, row, strict=True)
                values = {v: self._terms.decode(i) for v, i in pairs if i}
                self._checked[row] = is_true(check, values)
            passing[at] = self._checked[row]
        return hits[passing]


class ConditionMatcher:
    """From the parameters of events to the variables of a condition."""

    def __init__(
        self, condition: EventCondition, place: int, number: Mapping[Var, int], width: int,
        terms: TermDictionary,
    ) -> None:  # fmt: skip
        self._place = place
        self._width = width
        self._constants: list[tuple[int, int]] = []
        self._equal: list[tuple[int, int]] = []
        self._bound: list[tuple[int, int]] = []
        first: dict[Var, int] = {}
        for column, argument in enumerate(condition.arguments, start=1):
            if not isinstance(argument, Var):
                self._constants.append((column, terms.encode(argument)))
            elif argument in first:
                self._equal.append((column, first[argument]))
            else:
                first[argument] = column
                self._bound.append((column, HIT_VALUES + number[argument]))

    def rows(self, hits: Ints) -> Ints:
        """The hits that fit, as rows of event, condition and the values of a rule's variables."""
        for column, value in self._constants:
            hits = hits[hits[:, column] == value]
        for column, other in self._equal:
            hits = hits[hits[:, column] == hits[:, other]]
        if len(hits) == 1:
            (values,) = hits.tolist()
            row = [0] * (HIT_VALUES + self._width)
            row[EVENT], row[CONDITION] = values[0], self._place
            for column, to in self._bound:
                row[to] = values[column]
            return np.array([row], np.int32)
        rows = np.zeros((len(hits), HIT_VALUES + self._width), np.int32)
        if len(hits):
            rows[:, EVENT] = hits[:, 0]
            rows[:, CONDITION] = self._place
            for column, to in self._bound:
                rows[:, to] = hits[:, column]
        return rows

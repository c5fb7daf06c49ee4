"""How events match types and conditions, and the matches of rules in columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphtide.algebra.expressions import Expression, Var
from graphtide.algebra.variables import pattern_variables
from graphtide.engine.events import GRAPH_EVENT, EventBatch
from graphtide.kernel.batch import longer
from graphtide.limits import allowance
from graphtide.rdf.holders import IdCache
from graphtide.rules.kernel import layout
from graphtide.rules.kernel.layout import CONDITION, EVENT, HIT_VALUES
from graphtide.rules.kernel.types import find_hits
from graphtide.rules.temporal import Span, is_true

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rules.model import EventCondition, EventType, Rule

MAX_CHECKED = 100_000
"""Rows of values for which the result of CHECK is cached."""

Binding = dict[Var, int]
"""The ids of variables' values."""


@dataclass(frozen=True, slots=True)
class MatchedEvent:
    """An event of a match.

    `order` counts events as they come. `since` is the number of transactions before it: a fact is
    older if the number of its transaction is less.
    """

    span: Span
    order: int
    since: int


class TypeMatcher:
    """Finds the events of a type with their values.

    The triples of graph events are matched with the type's pattern; other events have a type id.
    """

    def __init__(self, type_: EventType, terms: TermDictionary) -> None:
        others = (v for p in type_.pattern for v in pattern_variables(p))
        variables = list(dict.fromkeys((*type_.parameters, *others)))
        self.type_id = type_.id
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
        ).reshape(-1, 3)
        ids = [int(row[column]) for column in (2, 0, 1) for row in self._pattern if row[column] > 0]
        self.key_id: int | None = ids[0] if ids else None
        """An id that all graph events of the type have, if any, preferably a selective one."""
        self._columns = self._columns_of_one_triple()
        self._check, self._parameters, self._terms = type_.check, type_.parameters, terms
        self._checked: IdCache[bool] = IdCache(terms, MAX_CHECKED)
        self._work = np.zeros((3, max(len(variables), len(self._pattern), 1)), np.int32)
        self._out = np.empty((16, 1 + self._width), np.int32)

    def _columns_of_one_triple(self) -> list[int] | None:
        """Of a pattern of one triple, the columns of the parameters, if no variable is there twice.

        >>> from graphtide.algebra.nodes import TriplePattern
        >>> from graphtide.rdf.dictionary import TermDictionary
        >>> from graphtide.rules.model import EventType
        >>> pattern = TriplePattern(Var("a"), Var("p"), Var("b"))
        >>> type_ = EventType("E", (Var("b"), Var("a")), (pattern,))
        >>> TypeMatcher(type_, TermDictionary())._columns_of_one_triple()
        [2, 0]
        """
        parts = self._pattern.ravel().tolist()
        places = {-1 - part: column for column, part in enumerate(parts) if part < 0}
        if len(parts) != 3 or len(places) < sum(part < 0 for part in parts):
            return None
        return [places[v] for v in range(self._width)]

    def hits(self, events: EventBatch, *, one_triple_each: bool = False) -> Ints:
        """Rows of an event's index and the values of the parameters, each way to match once.

        They are valid until the next call. Events of `one_triple_each` need no search.
        """
        if self.type_id != GRAPH_EVENT:
            hits = self._of_type(events)
        else:
            hits = self._of_pattern(events, one_triple_each=one_triple_each)
        return hits if self._check is None else self._passing(hits, self._check)

    def _of_type(self, events: EventBatch) -> Ints:
        """The events of the type id."""
        if events.types is None or events.values is None:
            return self._out[:0]
        indices = np.flatnonzero(events.types == self.type_id)
        if not len(indices):  # the values of other types may have fewer columns
            return self._out[:0]
        rows = np.empty((len(indices), 1 + self._width), np.int32)
        rows[:, 0] = indices
        rows[:, 1:] = events.values[indices, : self._width]
        return rows

    def _of_pattern(self, events: EventBatch, *, one_triple_each: bool) -> Ints:
        """The graph events whose triples match the pattern."""
        state, many = np.zeros(layout.DEPTH + 1, np.int64), len(events.ends)
        if one_triple_each and self._columns is not None:
            return self._of_triples(events.triples, self._columns)
        if len(self._out) < many:
            self._out = np.empty((2 * many, 1 + self._width), np.int32)
        state[layout.LEFT] = layout.STEPS
        while True:
            find_hits(
                self._pattern, self._width, events.triples, events.offsets, self._work, self._out,
                state,
            )  # fmt: skip
            if state[layout.POSITION] == many:
                return self._out[: state[layout.WRITTEN]]
            if state[layout.ROOM] == layout.OUTPUT_FULL:
                self._out = longer(self._out)
            else:
                allowance().check_time()
                state[layout.LEFT] = layout.STEPS

    def _of_triples(self, triples: Ints, columns: list[int]) -> Ints:
        """The events of one triple each that match the pattern of one triple."""
        columns_given = [column for column in (2, 0, 1) if self._pattern[0, column] >= 0]
        index = np.arange(len(triples))
        for column in columns_given[:1]:  # objects select most
            index = np.flatnonzero(triples[:, column] == self._pattern[0, column])
        for column in columns_given[1:]:
            fits = triples[index, column] == self._pattern[0, column]
            index = index if fits.all() else index[fits]
        rows = np.empty((len(index), 1 + self._width), np.int32)
        rows[:, 0] = index
        for v, column in enumerate(columns, start=1):
            rows[:, v] = triples[index, column]
        return rows

    def _passing(self, hits: Ints, check: Expression) -> Ints:
        """The hits whose values pass the CHECK."""
        checked = self._checked.current()
        passing = np.zeros(len(hits), np.bool_)
        for at, row in enumerate(map(tuple, hits[:, 1:].tolist())):
            if row not in checked:
                pairs = zip(self._parameters, row, strict=True)
                values = {v: self._terms.decode(i) for v, i in pairs if i}
                checked[row] = is_true(check, values)
            passing[at] = checked[row]
        return hits[passing]


class ConditionMatcher:
    """Maps the parameters of a type to the variables of a condition."""

    def __init__(
        self, condition: EventCondition, index: int, number: Mapping[Var, int], width: int,
        terms: TermDictionary,
    ) -> None:  # fmt: skip
        self._index = index
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
        """The hits that match, as rows of event, condition and the values of a rule's variables."""
        for column, value in self._constants:
            hits = hits[hits[:, column] == value]
        for column, other in self._equal:
            hits = hits[hits[:, column] == hits[:, other]]
        if len(hits) == 1:
            (values,) = hits.tolist()
            row = [0] * (HIT_VALUES + self._width)
            row[EVENT], row[CONDITION] = values[0], self._index
            for column, to in self._bound:
                row[to] = values[column]
            return np.array([row], np.int32)
        rows = np.zeros((len(hits), HIT_VALUES + self._width), np.int32)
        if len(hits):
            rows[:, EVENT] = hits[:, 0]
            rows[:, CONDITION] = self._index
            for column, to in self._bound:
                rows[:, to] = hits[:, column]
        return rows


# --- TypeIndex: the types that a single event may have.


class TypeIndex:
    """Types by number. A single event is matched only with the types that it may have.

    These are found by its type id, or by an id that all graph events of a type have.
    """

    def __init__(self) -> None:
        self._matchers: list[TypeMatcher] = []
        self._by_type: dict[int, list[int]] = {}
        self._by_id: dict[int, list[int]] = {}
        self._others: list[int] = []

    def add(self, matcher: TypeMatcher) -> None:
        """Add a type."""
        number = len(self._matchers)
        self._matchers.append(matcher)
        if matcher.type_id != GRAPH_EVENT:
            self._by_type.setdefault(matcher.type_id, []).append(number)
        elif matcher.key_id is None:
            self._others.append(number)
        else:
            self._by_id.setdefault(matcher.key_id, []).append(number)

    def hits(self, events: EventBatch) -> dict[int, Ints]:
        """By number of a type, the indices of its events with their parameters."""
        many = len(events.ends)
        numbers = self._candidates(events) if many == 1 else range(len(self._matchers))
        one_each = 1 < many == len(events.triples) and bool((np.diff(events.offsets) == 1).all())
        every = ((number, self._matchers[number]) for number in numbers)
        found = ((number, each.hits(events, one_triple_each=one_each)) for number, each in every)
        return {number: rows for number, rows in found if len(rows)}

    def _candidates(self, event: EventBatch) -> list[int]:
        """The types that one event may have."""
        if event.types is not None and event.types[0] != GRAPH_EVENT:
            return self._by_type.get(int(event.types[0]), [])
        by_id = self._by_id
        numbers = [n for i in set(event.triples.ravel().tolist()) if i in by_id for n in by_id[i]]
        numbers += self._others
        if len(numbers) > 1:
            numbers.sort()
        return numbers


# --- Matches of a rule in columns, decoded on access.

Events = dict[str, MatchedEvent]


@dataclass(frozen=True, slots=True)
class Match:
    """The events of a match by name, and the values of all variables."""

    rule: Rule
    events: Events
    binding: Binding
    time: int


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches that a batch of events completes.

    A row has the index of the event that completes the match, then the values of the variables.
    `spans` has start and end of each event of the match, then order and since of each. `moments`
    say when a match fires: 2 n + 1 is after event n, 2 n before it (at the end of a NO EVENT).
    """

    rows: Ints
    spans: Longs
    moments: Longs
    times: Longs

    def __len__(self) -> int:
        return len(self.rows)

    def chosen(self, indices: Longs) -> Matches:
        """Some of the matches, in the order of their indices."""
        return Matches(
            self.rows[indices], self.spans[indices], self.moments[indices], self.times[indices]
        )

    def at_one_moment(self) -> Matches:
        """The same matches, all firing at one moment."""
        return replace(self, moments=np.ones_like(self.moments))


class Shape(NamedTuple):
    """The columns of a rule's matches."""

    rule: Rule
    variables: tuple[Var, ...]

    def match(self, found: Matches, place: int) -> Match:
        """Decode one of the matches."""
        row, spans = found.rows[place].tolist(), found.spans[place].tolist()
        binding = dict(zip(self.variables, row[1:], strict=True))
        half = len(spans) // 2
        events = {
            condition.name: MatchedEvent(
                Span(spans[2 * n], spans[2 * n + 1]), spans[half + 2 * n], spans[half + 2 * n + 1]
            )
            for n, condition in enumerate(self.rule.positive)
        }
        return Match(self.rule, events, binding, int(found.times[place]))


def dump_matches(matches: Sequence[Match]) -> dict[str, Any]:
    """Matches of one rule as arrays, from which `saved_matches` makes them again."""
    events = [list(each.events.values()) for each in matches]
    spans = [
        [n for e in own for n in (e.span.start, e.span.end)]
        + [n for e in own for n in (e.order, e.since)]
        for own in events
    ]
    many = len(matches)
    rows = np.array([list(each.binding.values()) for each in matches], np.int32)
    return {
        "rows": rows.reshape(many, -1 if many else 0),
        "spans": np.array(spans, np.int64).reshape(many, -1 if many else 0),
        "times": np.array([each.time for each in matches], np.int64),
    }


def saved_matches(saved: Mapping[str, Any]) -> Matches:
    """Matches that were saved; each stands for itself, not for an event of a batch."""
    rows, times = saved["rows"], saved["times"]
    events = np.zeros((len(rows), 1), np.int32)
    return Matches(np.hstack([events, rows]), saved["spans"], np.zeros_like(times), times)


def completed(rows: Ints, spans: Longs, ends: Longs) -> Matches:
    """Matches that fire with their last event."""
    places = rows[:, 0].astype(np.int64)
    return Matches(rows, spans, 2 * places + 1, ends[places])

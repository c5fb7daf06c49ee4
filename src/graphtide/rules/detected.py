"""Detected: a pattern of a program at work, and the complex events that it has made."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.rules.compile import HAPPENS, parameter
from graphtide.rules.firing_log import MOST_LISTED
from graphtide.rules.token_history import TokenHistory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from graphtide.events.detect import AnyDetector
    from graphtide.events.token import Found
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rdf.dictionary import TermDictionary
    from graphtide.rdf.term import Term
    from graphtide.rules.happening import Ids
    from graphtide.rules.model import EventType

TokenMark = tuple[int, int]
"""The state of a pattern to come back to: its tokens, and how many complex events it had made."""


@dataclass(frozen=True, slots=True)
class ComplexEvent:
    """A match of a pattern: from when to when it went, and the values of its parameters."""

    pattern: str
    values: dict[str, Term]
    start: int
    time: int


class Detected:
    """A pattern at work, and how its complex events are told in triples of ids."""

    def __init__(self, detector: AnyDetector, type_: EventType, terms: TermDictionary) -> None:
        self.detector = detector
        self.seen = 0
        self._history = TokenHistory(detector)
        self._notices_all = detector.automaton.context != "CHRONICLE"
        self._named = {letter.type for letter in detector.automaton.letters()}
        self.found: deque[tuple[tuple[int, ...], int, int]] = deque(maxlen=MOST_LISTED)
        self._name, self._parameters = type_.name, type_.parameters
        self._kind = terms.encode(type_.pattern[0].object)  # type: ignore[arg-type]
        self._happens = terms.encode(HAPPENS)
        self._numbers = [terms.encode(parameter(n)) for n in range(len(type_.parameters))]

    def passed(self, to: int) -> list[Found]:
        """What is complete because a time before `to` is over.

        Actions may still cause events at the time that is over.
        """
        now = self.detector.now
        if now is not None and to <= now:
            return []
        found = self._history.advance(to)
        for each in found:
            self._note(each.values, each.start, each.time)
        return found

    def fed(self, types: Ints, values: Ints, times: Longs) -> Iterator[tuple[list[int], int, int]]:
        """What some events complete: values, time, and the event it was found with."""
        found = self._history.feed(types, values, times)
        columns = (found.values, found.start, found.time, found.at)
        for row, start, time, at in zip(*(column.tolist() for column in columns), strict=True):
            self._note(row, start, time)
            yield row, time, at

    def concerns(self, types: Iterable[int]) -> bool:
        """Whether events of some types can mean anything to the pattern."""
        return self._notices_all or not self._named.isdisjoint(types)

    def begin(self) -> None:
        """Nobody comes back to where the pattern was."""
        self._history.begin()

    def mark(self) -> TokenMark:
        """The state of now, to come back to."""
        return self._history.mark(), self.seen

    def back_to(self, mark: TokenMark) -> None:
        """Come back to a state: what was found since has not been."""
        self._history.back_to(mark[0])
        for _ in range(min(self.seen - mark[1], len(self.found))):
            self.found.pop()
        self.seen = mark[1]

    def _note(self, values: Sequence[int], start: int, time: int) -> None:
        self.seen += 1
        self.found.append((tuple(values), start, time))

    def events(self, terms: TermDictionary) -> list[ComplexEvent]:
        """The last complex events of the pattern, oldest first."""
        names = [v.name for v in self._parameters]
        return [
            ComplexEvent(
                self._name,
                {n: terms.decode(i) for n, i in zip(names, values, strict=True) if i},
                start,
                time,
            )
            for values, start, time in self.found
        ]

    def told(self, values: Sequence[int]) -> tuple[Ids, ...]:
        """A complex event with these parameters."""
        pairs = zip(self._numbers, values, strict=True)
        return (
            (self._kind, self._happens, self._kind),
            *((self._kind, predicate, value) for predicate, value in pairs),
        )

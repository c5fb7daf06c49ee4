"""Limits: how much time, memory and text a query, a change or a file may take.

`Limits` has the numbers; a graph has one (`LiveGraph(limits=…)`), and files are read under one. An
`Allowance` is what one evaluation has left of them. Whatever is being evaluated finds its own with
`allowance()`: expressions and loops are too deep to be handed it. Outside of an evaluation there is
no bound on time and memory, and the other limits are the defaults.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, fields
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal

from graphtide.arguments import number_or_none
from graphtide.errors import DataLimitError, ExpressionError, GraphtideError, LimitError
from graphtide.progress import PROGRESS

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event
    from types import TracebackType

_LOG: Final = logging.getLogger("graphtide")

MAX_FIRINGS: Final = 10_000
"""Firings that the actions of one cascade may cause, unless a program is run with another bound."""

MAX_STATES: Final = 100_000
MAX_SECONDS: Final = 10.0
MAX_PLANS: Final = 10
"""The bounds of a search for repair plans, unless others are given."""

Work = Literal["query", "flush"]
"""What an allowance is for: a one-off query, or the effect of changes on the standing ones."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that queries, changes and files may take; None is no limit.

    >>> Limits(query_seconds=5).query_seconds, Limits().digits
    (5, 10000)
    >>> Limits(digits=0)
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: the limit digits=0 is too small
      hint: give 1 or more, or None for no limit
    """

    query_seconds: float | None = 300
    """Seconds of a one-off query, or of the first answer of a standing one."""

    query_bytes: int | None = 4 << 30
    """Bytes of all intermediate results of such a query together."""

    flush_seconds: float | None = 600
    """Seconds in which the standing queries take in a batch of changes."""

    flush_bytes: int | None = 4 << 30
    """Bytes of all intermediate results of that together."""

    path_pairs: int | None = 50_000_000
    """Pairs of a start and a node that it reaches, of a property path with `+` or `*`."""

    digits: int | None = 10_000
    """Digits of a number in an expression."""

    literal_length: int | None = 16 << 20
    """Characters of a literal that an expression makes; bytes of a term or statement in a file."""

    regex_steps: int | None = 1_000_000
    """Steps of a regular expression that has to be matched by backtracking."""

    unpacked_bytes: int | None = 64 << 30
    """Bytes that a compressed file may unpack to."""

    entity_bytes: int | None = 16 << 20
    """Bytes that the entities of an RDF/XML file may expand to."""

    exceeded: Counter[str] = field(default_factory=Counter, init=False, compare=False, repr=False)
    """How many values of expressions were over each limit, and so are errors of their rows."""

    def __post_init__(self) -> None:
        for name in NAMES:
            value = number_or_none(getattr(self, name), f"the limit {name}")
            object.__setattr__(self, name, value)  # an integer of NumPy is one of Python now
            if value is not None and not value > 0:
                raise GraphtideError(
                    f"the limit {name}={str(value)[:80]} is too small",
                    hint="give 1 or more, or None for no limit",
                )

    def to_json(self) -> dict[str, float | None]:
        """The numbers by name, from which `Limits(**numbers)` makes the same again."""
        return {name: getattr(self, name) for name in NAMES}

    def error(self, name: str, what: str) -> LimitError:
        """The error for work that is over a limit."""
        return LimitError(what, limit=name, value=getattr(self, name))

    def data_error(
        self, name: str, what: str, *, source: str | None = None, line: int | None = None
    ) -> DataLimitError:
        """The error for input that is over a limit, with its place."""
        value = getattr(self, name)
        return DataLimitError(what, limit=name, value=value, source=source, line=line)

    def no_value(self, name: str, what: str) -> ExpressionError:
        """The error of a row whose value would be over a limit: counted, and logged once."""
        if not self.exceeded[name]:
            _LOG.warning(
                "%s; such values are errors of their rows (Limits.%s=%s)",
                what,
                name,
                getattr(self, name),
            )
        self.exceeded[name] += 1
        return ExpressionError(what)


NAMES: Final = tuple(each.name for each in fields(Limits) if each.init)
"""The names of all limits."""


class Allowance:
    """Time and memory of one evaluation, in force inside a `with` block.

    Inside the allowance of the same work, that one stays in force: a part has no time of its own.
    Time in which loops are compiled does not count: it is that of the first call. Nor do the
    seconds that `pause` returns, which is called when the time is checked.

    >>> with Allowance(Limits(query_bytes=1000), "query") as left:
    ...     left.allow(900)
    ...     left.spend(200)
    ...     allowance().allow(900)
    Traceback (most recent call last):
        ...
    graphtide.errors.LimitError: the query needs more memory for its intermediate results
      hint: the limit query_bytes is 1000; raise it with Limits(query_bytes=…), or on the command
      line with --limit query_bytes=…
    """

    __slots__ = ("_cancel", "_compiled", "_end", "_left", "_pause", "_token", "limits", "work")

    def __init__(
        self, limits: Limits, work: Work | None = None, pause: Callable[[], float] | None = None
    ) -> None:
        self.limits = limits
        self.work = work
        self._token: Token[Allowance] | None = None
        seconds: float | None = None
        size: int | None = None
        if work == "flush":
            seconds, size = limits.flush_seconds, limits.flush_bytes
        elif work == "query":
            seconds, size = limits.query_seconds, limits.query_bytes
        self._end = inf if seconds is None else monotonic() + seconds
        self._left = inf if size is None else size
        self._compiled = PROGRESS.seconds
        # What a query may have to flush first is the work of others.
        self._cancel = _CANCEL.get() if work == "query" else None
        self._pause = pause

    def __enter__(self) -> Allowance:  # noqa: PYI034 - this one, or the one that it joins
        outer = _ACTIVE.get()
        # One whose time is over may be left behind by an interrupt: it is not joined.
        if outer.work == self.work and outer.limits is self.limits and not outer.is_over():
            return outer
        self._token = _ACTIVE.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _ACTIVE.reset(self._token)
            self._token = None

    def is_over(self) -> bool:
        """Whether the time is over, or the query was cancelled."""
        if self._cancel is not None and self._cancel.is_set():
            return True
        now = monotonic()
        return now > self._end and now - (PROGRESS.seconds - self._compiled) > self._end

    def check_time(self) -> None:
        """Raise `LimitError` if the time is over, after a pause."""
        if self._pause is not None:
            self._end += self._pause()
        if self.is_over():
            raise self.limits.error(f"{self.work}_seconds", f"the {self.work} takes too long")

    def allow(self, size: int) -> None:
        """Raise `LimitError` if so many bytes more would be too many, or the time is over."""
        if size > self._left:
            raise self.limits.error(
                f"{self.work}_bytes",
                f"the {self.work} needs more memory for its intermediate results",
            )
        self.check_time()

    def spend(self, size: int) -> None:
        """Count bytes that are held until the end of the work."""
        self.allow(size)
        self._left -= size


_CANCEL: Final[ContextVar[Event | None]] = ContextVar("cancel", default=None)
_UNBOUNDED: Final = Allowance(Limits())
_ACTIVE: Final[ContextVar[Allowance]] = ContextVar("allowance", default=_UNBOUNDED)


def cancel_with(event: Event) -> None:
    """Let queries that begin in this context end when an event is set."""
    _CANCEL.set(event)


def end_all() -> None:
    """End allowances that an interrupt has left behind."""
    _ACTIVE.set(_UNBOUNDED)


def allowance() -> Allowance:
    """The allowance of what is being evaluated here and now."""
    return _ACTIVE.get()


def active() -> Limits:
    """The limits of what is being evaluated here and now."""
    return _ACTIVE.get().limits

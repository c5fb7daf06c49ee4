"""TermReclaimer: when terms that nobody holds are freed.

Terms are freed between operations only, never inside one: an operation may have ids in local
variables. So there are safe points, at the end of what users call, and `Runtime.reclaim` is called
nowhere else. It does nothing while a transaction, a cascade or another call is under way: a safe
point that is reached from a callback or an action is none.

Marking costs time in proportion to what is held. It is done when the dictionary has doubled since
the last time, and has grown by a fraction of the ids that were looked at then: so over all terms it
costs a constant per new term.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from graphtide.kernel.batch import Ints
    from graphtide.rdf.dictionary import TermDictionary

ALWAYS: Final = os.environ.get("GRAPHTIDE_RECLAIM", "") in ("always", "reuse")
"""For tests: free at every safe point. With "always", ids are not reused: what uses one fails."""

QUARANTINE: Final = os.environ.get("GRAPHTIDE_RECLAIM", "") == "always"
"""For tests: never reuse an id."""

FIRST_INTERNAL: Final = 1 << 29
"""Ids from here on are nodes and graphs of windows, not terms."""

LEAST_GROWTH: Final = 8192
"""New terms without which nothing is freed."""

WORTH: Final = 16
"""Of how many terms one has to be free, for the others to be copied."""

LOOKED_AT: Final = 64
"""Ids that may be looked at for each new term: a tenth of a microsecond."""


class TermReclaimer:
    """Frees terms of a dictionary, when it has grown enough.

    `busy` counts the streams that pass events on: windows may call user code meanwhile.

    It has to be `enabled`, as `LiveGraph` does: whoever uses a runtime directly may hold its ids.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> terms = TermDictionary()
    >>> reclaimer = TermReclaimer(terms)
    >>> reclaimer.enabled = True
    >>> for number in range(2 * LEAST_GROWTH):
    ...     if reclaimer.due:
    ...         reclaimer.reclaim()
    ...     _ = terms.intern(f'"{number}"')
    >>> len(terms) <= LEAST_GROWTH
    True
    """

    __slots__ = ("_terms", "at", "busy", "enabled")

    def __init__(self, terms: TermDictionary) -> None:
        self.busy = 0
        self.enabled = False
        self._terms = terms
        self.at = 0 if ALWAYS else LEAST_GROWTH
        """With fewer terms, nothing is freed."""
        terms.reuses = not QUARANTINE

    def verify(self, ids: Ints) -> None:
        """Raise if one of some ids was freed: for tests that free terms all the time."""
        self._terms.check(ids[ids < FIRST_INTERNAL])

    @property
    def due(self) -> bool:
        """Whether it is worth it to free terms, and nobody is busy."""
        return self.enabled and not self.busy and len(self._terms) >= self.at

    def reclaim(self) -> None:
        """Free terms; only at a safe point, see `Runtime.reclaim`."""
        cost = self._terms.reclaim(1 if ALWAYS else len(self._terms) // WORTH + 1)
        left = len(self._terms)
        self.at = 0 if ALWAYS else left + max(LEAST_GROWTH, left, cost // LOOKED_AT)

"""Random events of four kinds, each with a key, a millisecond apart on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from graphtide.kernel.batch import Longs
    from graphtide.lang.tide.ast import PatternDeclaration

TYPES: Final = {"A": 0, "B": 1, "C": 2, "D": 3}

WITHIN_MS: Final = 10_000

PROGRAM: Final = """
PREFIX : <http://example.org/>
EVENT A(?k) AS { ?k a :A }
EVENT B(?k) AS { ?k a :B }
EVENT C(?k) AS { ?k a :C }
EVENT D(?k) AS { ?k a :D }
PATTERN Sequence(?k) AS (A(?k) -> B(?k) -> C(?k) -> D(?k)) WITHIN 10s CONTEXT CHRONICLE PER ?k
"""
"""In CHRONICLE, PER changes nothing where all parts share the key; it says that they do."""


@dataclass(frozen=True, slots=True)
class Events:
    """Types, keys (from 1) and times in milliseconds."""

    types: Longs
    keys: Longs
    times: Longs

    def __len__(self) -> int:
        return len(self.types)


def check_sizes(count: int, keys: int) -> None:
    """Refuse sizes that nothing can have."""
    if count < 1 or keys < 1:
        raise GraphtideError(
            f"{count} events with {keys} keys are not possible", hint="give numbers from 1 on"
        )


def make_events(count: int, keys: int, seed: int = 0) -> Events:
    """Random events in order of time.

    >>> events = make_events(1000, 10)
    >>> len(events), int(events.keys.max()), bool((np.diff(events.times) >= 0).all())
    (1000, 10, True)
    """
    check_sizes(count, keys)
    random = np.random.default_rng(seed)
    types = random.integers(0, len(TYPES), count)
    owners = random.integers(1, keys + 1, count)
    times = np.cumsum(random.exponential(1.0, count)).astype(np.int64)
    return Events(types, owners, times)


def sequence_pattern() -> PatternDeclaration:
    """The pattern that is measured.

    >>> sequence_pattern().context
    'CHRONICLE'
    """
    (pattern,) = Program.parse(PROGRAM).patterns
    return pattern

"""The same sequence by hand: an automaton in plain Python, for this one pattern and nothing else.

An event goes to the oldest instance of its key that waits for it, and is used once. Those that wait
for one kind of event do so in the order in which they began, so a queue for each is enough.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.bench.sequence.events import Events

Match = tuple[int, int, int]
"""The number of its last event, its key, and the time of its first event."""


def plain_matches(events: Events, within: int, keys: int) -> list[Match]:
    """All matches, in order.

    >>> import numpy as np
    >>> from graphtide.bench.sequence.events import Events
    >>> order = np.array([0, 0, 1, 2, 3, 3])
    >>> plain_matches(Events(order, np.full(6, 7), np.arange(6)), 10, 7)
    [(4, 7, 0)]
    """
    waiting = [[deque[int]() for _ in range(keys + 1)] for _ in range(3)]
    found: list[Match] = []
    columns = zip(events.types.tolist(), events.keys.tolist(), events.times.tolist(), strict=True)
    for number, (type_, key, time) in enumerate(columns):
        if type_ == 0:
            waiting[0][key].append(time)
            continue
        queue = waiting[type_ - 1][key]
        while queue and queue[0] + within < time:
            queue.popleft()
        if queue:
            start = queue.popleft()
            if type_ == 3:
                found.append((number, key, start))
            else:
                waiting[type_][key].append(start)
    return found

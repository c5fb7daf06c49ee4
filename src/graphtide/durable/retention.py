"""Retention: how much of the past a store keeps. What is older is folded into a snapshot."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from graphtide.arguments import check_type
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from pathlib import Path

    from graphtide.durable.journal import Journal
    from graphtide.durable.tables import SnapshotRow

SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
BYTES: Final = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class RetentionPolicy(NamedTuple):
    """How long, or how many bytes of, the journal is kept; all of it if neither is given."""

    seconds: float | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, text: str | None) -> RetentionPolicy:
        """The retention that a text such as "30d" or "10GB" stands for.

        >>> RetentionPolicy.of("30d").seconds, RetentionPolicy.of("10GB").bytes
        (2592000.0, 10000000000)
        """
        if text is None:
            return cls()
        check_type(text, "retain", str, None)
        found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([smhdw]|[KMGT]B)", text.strip())
        if found is None:
            raise GraphtideError(
                f"retain={text!r:.80} is neither a time nor a size", hint='such as "30d" or "10GB"'
            )
        number, unit = float(found[1]), found[2]
        if unit in SECONDS:
            return cls(seconds=number * SECONDS[unit])
        return cls(bytes=int(number * BYTES[unit]))


def compact(folder: Path, journal: Journal, retention: RetentionPolicy) -> int:
    """Drop the rows and snapshots that nobody needs any more; how many rows.

    Everything after the chosen snapshot stays: its times can be asked for, and cursors read on.
    """
    chosen = _oldest_needed(journal, retention)
    dropped = 0
    if chosen is not None:
        dropped = max(0, chosen.number - journal.first() + 1)
        journal.drop(chosen.number, chosen.number)
    listed = {row.file for row in journal.snapshots()}
    for path in [*folder.glob("snapshot-*.packed"), *folder.glob("snapshot-*.tmp")]:
        if path.name not in listed:
            path.unlink()
    return dropped


def _oldest_needed(journal: Journal, retention: RetentionPolicy) -> SnapshotRow | None:
    """The snapshot before which nothing is needed."""
    if retention == RetentionPolicy():
        return None
    acknowledged = min(journal.cursors().values(), default=None)
    snapshots = [
        row for row in journal.snapshots() if acknowledged is None or row.tx <= acknowledged + 1
    ]
    if retention.seconds is not None:
        before = time.time() - retention.seconds
        return max((row for row in snapshots if row.wall <= before), default=None)
    limit = retention.bytes or 0
    fitting = [row for row in snapshots if journal.bytes_after(row.number) <= limit]
    return min(fitting, default=max(snapshots, default=None))

"""Stats: what a live graph holds and what it has done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts since the graph was made, and sizes now. Bytes include reserved space."""

    quads: int
    terms: int
    watches: int
    searches: int
    indexes: int
    transactions: int
    inserted: int
    deleted: int
    redundant: int
    dropped: int
    clock: int
    quad_bytes: int
    term_bytes: int
    watch_bytes: int

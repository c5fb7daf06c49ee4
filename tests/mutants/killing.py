"""Run random schedules, or transcripts, until one shows a mistake; started by `run.py`.

`python -m mutants.killing fuzz SEED COUNT` runs schedules as `oracles.fuzz` does, and prints the
number of the first that differs and the way, or nothing. `transcripts 0 COUNT` prints a digest of
each transcript, by part.
"""

from __future__ import annotations

import hashlib
import sys
from random import Random
from typing import Final

from oracles.fuzz import CaseTooLong, processor_limit, ways_of
from oracles.schedule_programs import random_schedule
from oracles.schedules import differing_way
from oracles.transcripts import transcript

MAX_SECONDS: Final = 20
"""Processor time of a schedule: a mutant may go on without end."""


def first_kill(seed: int, count: int) -> str:
    """Return how many schedules it took, and which way differed; empty if none does."""
    for number in range(seed, seed + count):
        try:
            with processor_limit(MAX_SECONDS):
                way, _ = differing_way(random_schedule(Random(number)), ways_of(number), number)
        except CaseTooLong:
            way = "too long"
        except Exception as error:  # noqa: BLE001 - whatever a mutant raises
            way = f"raises {type(error).__name__}"
        if way:
            return f"{number - seed + 1} {way}"
    return ""


def print_transcripts(count: int) -> None:
    """Print a digest of each part of each transcript; a word if there is none."""
    for seed in range(count):
        try:
            with processor_limit(MAX_SECONDS):
                parts = transcript(seed)
        except (CaseTooLong, Exception) as error:  # noqa: BLE001 - whatever a mutant raises
            print(seed, type(error).__name__, flush=True)
            continue
        digests = [
            f"{part}={hashlib.sha256(repr(lines).encode()).hexdigest()[:12]}"
            for part, lines in parts.items()
        ]
        print(seed, *digests, flush=True)


if __name__ == "__main__":
    kind, first, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if kind == "transcripts":
        print_transcripts(many)
    else:
        print(first_kill(first, many))

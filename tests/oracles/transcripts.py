"""Golden transcripts: what random schedules put out, frozen, so that a rebuild can be compared.

A transcript is all that can be seen of one run of a schedule (`schedules.py`), in four parts that
are hashed apart: deltas and results of queries; firings, complex events and calls; numbers (of
transactions, deltas and firings); and the graph, clock and first error at the end. The first of
them are kept as text, the others as a hash for each `GROUP` of schedules.

`python -m oracles.transcripts` compares; `--write` freezes, after a decision that changes the
meaning; `--against PYTHON` names the interpreter of an environment with another version, and prints
the first line that differs between the two.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from oracles.schedule_programs import random_schedule
from oracles.schedules import run_one_by_one

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FOLDER: Final = Path(__file__).parents[1] / "transcripts"
TEXTS, HASHES = FOLDER / "texts.txt", FOLDER / "hashes.txt"

FIRST_SEED: Final = 3_000_000
KEPT: Final = 200
"""Transcripts that are kept as text."""

GROUP: Final = 50
"""Transcripts that share a line of hashes."""

ITEMS: Final = 12
PARTS: Final = ("deltas", "firings", "numbers", "end")
DIGITS: Final = 12


def transcript(seed: int) -> dict[str, list[str]]:
    """Return what a schedule puts out, by part; nothing if it may take minutes."""
    schedule = random_schedule(Random(FIRST_SEED + seed), items=ITEMS)
    text = str(schedule)
    if "UNRESTRICTED" in text and "EMIT" in text:  # each emitted event may double the matches
        return {part: [] for part in PARTS}
    run = run_one_by_one(schedule)
    found = run.outcome().sections
    parts: dict[str, list[str]] = {part: [] for part in PARTS}
    for name, lines in found.items():
        part = _part_of(name)
        shown = [line.split(": ", 1)[1] for line in lines] if name.startswith("firings") else lines
        parts[part] += [f"{name}:", *(f"  {line}" for line in shown)]
    parts["numbers"] += [
        f"program {number}: {[each.number for each in program.firings()]}"
        for number, program in enumerate(run.programs)
    ]
    return parts


def _part_of(section: str) -> str:
    if section == "numbers":
        return "numbers"
    first = section.split(maxsplit=1)[0]
    if first in ("deltas", "results"):
        return "deltas"
    return "firings" if first in ("firings", "complex", "calls", "skipped") else "end"


def text_of(seed: int) -> str:
    """Return a transcript as text."""
    parts = transcript(seed)
    return "\n".join([f"=== {seed}", *(line for part in PARTS for line in parts[part])]) + "\n"


def hashes_of(group: int) -> str:
    """Return the hashes of a group of transcripts, as a line."""
    digests = {part: hashlib.sha256() for part in PARTS}
    for seed in range(group * GROUP, (group + 1) * GROUP):
        for part, lines in transcript(seed).items():
            digests[part].update("\n".join([str(seed), *lines, ""]).encode())
    return " ".join([str(group), *(digests[part].hexdigest()[:DIGITS] for part in PARTS)])


def differences(groups: Sequence[int], frozen: Sequence[str], jobs: int) -> Iterator[str]:
    """Yield a line for each group of which a part is another than the frozen one."""
    with ProcessPoolExecutor(jobs) as pool:
        for group, now in zip(groups, pool.map(hashes_of, groups), strict=True):
            before = frozen[group].split()
            wrong = [
                p for p, a, b in zip(PARTS, before[1:], now.split()[1:], strict=True) if a != b
            ]
            if wrong:
                seeds = f"{group * GROUP} to {(group + 1) * GROUP - 1}"
                yield f"schedules {seeds}: other {', '.join(wrong)}"


def first_difference(seeds: Sequence[int], python: str) -> str:
    """Return the first line in which another version differs; empty if none does."""
    command = [python, "-m", "oracles.transcripts", "--print", *map(str, seeds)]
    there = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    here = "".join(map(text_of, seeds))
    seed = ""
    for ours, theirs in zip(here.splitlines(), there.splitlines(), strict=False):
        seed = ours if ours.startswith("===") else seed
        if ours != theirs:
            return f"{seed}\n  here:  {ours.strip()}\n  there: {theirs.strip()}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, freeze or print transcripts."""
    parser = argparse.ArgumentParser(prog="oracles.transcripts", description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="schedules, from the first one on")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="freeze what comes out now")
    parser.add_argument("--against", metavar="PYTHON", help="the interpreter of another version")
    parser.add_argument("--print", type=int, nargs="+", metavar="SEED", help="print transcripts")
    given = parser.parse_args(arguments)
    groups = range(given.count // GROUP)
    if given.print:
        sys.stdout.write("".join(map(text_of, given.print)))
        return 0
    if given.against:
        check = partial(first_difference, python=given.against)
        seeds = [range(group * GROUP, (group + 1) * GROUP) for group in groups]
        found = next(filter(None, map(check, seeds)), "")
        print(found or f"{given.count} transcripts are equal")
        return 1 if found else 0
    if given.write:
        FOLDER.mkdir(exist_ok=True)
        with ProcessPoolExecutor(given.jobs) as pool:
            HASHES.write_text("\n".join(pool.map(hashes_of, groups)) + "\n", encoding="utf-8")
            TEXTS.write_text("".join(pool.map(text_of, range(KEPT))), encoding="utf-8")
        print(f"{given.count} transcripts are frozen in {FOLDER}")
        return 0
    frozen = HASHES.read_text(encoding="utf-8").splitlines()
    if len(frozen) < len(groups):
        print(
            f"{len(frozen) * GROUP} transcripts are frozen: give --count up to that",
            file=sys.stderr,
        )
        return 2
    found_any = False
    for line in differences(groups, frozen, given.jobs):
        found_any = True
        print(line, flush=True)
    if not found_any:
        print(f"{given.count} transcripts are as they were frozen")
    return 1 if found_any else 0


if __name__ == "__main__":
    sys.exit(main())

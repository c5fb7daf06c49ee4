"""Measure the tests with mutants: which mistakes do they find?

    make mutants                              # each mutant: the fuzz of schedules, transcripts
    make mutants ARGS=--tests                 # and the tests of `make test`, until one fails
    make mutants ARGS='--only depth-first'    # some of them

A mutant is applied to a copy of the repository in a directory of temporary files, never to the work
tree. The copy is kept, as is the machine code of its loops: an edit in Python compiles nothing. The
unchanged source is run first, and has to survive.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter
from typing import Final

from mutants.mutants import MUTANTS, Mutant

ROOT: Final = Path(__file__).parents[2]
WORK: Final = Path(tempfile.gettempdir()) / f"graphtide-mutants-{os.getuid()}"
COPIED: Final = ("src", "tests", "benchmarks", "docs", "examples", "scripts")
"""Folders of the copy; tests read all of them."""

NEAREST: Final = ("oracles", "rules", "streams", "patterns", "engine")
"""Folders whose tests run first. Then come all others but those about the sources themselves."""

NOT_RUN: Final = ("mutants", "repo", "docs", "benchmarks", "w3c")
ANYWAY: Final = "(fails without it)"
"""Before a test that has failed, and says nothing about the mutant: it does not count."""

TRANSCRIPTS: Final = 300
TIMEOUT_S: Final = 3600


@dataclass(frozen=True, slots=True)
class Verdict:
    """What has killed a mutant; a word is empty if that has not."""

    name: str
    fuzz: str
    transcripts: str
    tests: str
    seconds: float


class Copy:
    """A copy of the repository to which one mutant at a time is applied."""

    def __init__(self, number: int) -> None:
        self.root = WORK / str(number)
        self._env = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(WORK / "machine code"),
            "PYTHONPATH": f"{self.root / 'src'}{os.pathsep}{self.root / 'tests'}",
            "PYTHONDONTWRITEBYTECODE": "1",  # an edit of the same size and second would be missed
        }

    def reset(self) -> None:
        """Let it be as the repository is."""
        self.root.mkdir(parents=True, exist_ok=True)
        for folder in COPIED:
            shutil.rmtree(self.root / folder, ignore_errors=True)
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / folder, self.root / folder, ignore=ignored)
        for path in ROOT.iterdir():
            if path.is_file():
                shutil.copy2(path, self.root)

    def freeze(self) -> None:
        """Let it have golden transcripts if the repository has none."""
        if not (self.root / "tests" / "transcripts").is_dir():
            self.run("-m", "oracles.transcripts", "--write", "--count", "1000", "--jobs", "1")

    def begin(self) -> None:
        """Let it have the machine code of the first copy, whose loops are the same."""
        user = next((WORK / "machine code").glob("graphtide-*"))
        first, own = (
            user / hashlib.sha256(str(root / "src" / "graphtide").encode()).hexdigest()[:12]
            for root in (WORK / "0", self.root)
        )
        shutil.copytree(first, own, dirs_exist_ok=True)

    def apply(self, mutant: Mutant) -> None:
        """Apply a mutant to what the repository has."""
        path = Path("src", "graphtide", mutant.file)
        text = (ROOT / path).read_text(encoding="utf-8")
        (self.root / path).write_text(edited(text, mutant), encoding="utf-8")

    def restore(self, mutant: Mutant) -> None:
        """Undo it."""
        path = Path("src", "graphtide", mutant.file)
        shutil.copy2(ROOT / path, self.root / path)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python on the copy."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root, env=self._env, capture_output=True, text=True, timeout=TIMEOUT_S,
            check=False,
        )  # fmt: skip

    def fuzz(self, seed: int, count: int) -> str:
        """Return how many schedules it took and what differed; empty if none does."""
        found = self.run("-m", "mutants.killing", "fuzz", str(seed), str(count))
        return found.stdout.strip() if found.returncode == 0 else "1 does not start"

    def transcripts(self, count: int) -> list[str]:
        """Return a line of digests for each transcript."""
        return self.run("-m", "mutants.killing", "transcripts", "0", str(count)).stdout.splitlines()

    def tests(self) -> str:
        """Return the first test that fails; empty if none does."""
        folders = sorted(path.name for path in (self.root / "tests").iterdir() if path.is_dir())
        others = [f for f in folders if f not in (*NEAREST, *NOT_RUN) and f[0] not in "._"]
        for chosen in (*([folder] for folder in NEAREST), others):
            paths = [f"tests/{folder}" for folder in chosen]
            try:
                ran = self.run("-m", "pytest", "--lane", "test", "-x", "-q", *paths)
            except subprocess.TimeoutExpired:
                return f"{chosen[0]}: no end"
            if ran.returncode not in (0, 5):  # 5: a folder has no test of the lane
                failed = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(\S+)", ran.stdout, re.MULTILINE)
                return failed[1] if failed else f"{chosen[0]}: exit code {ran.returncode}"
        return ""

    def fails(self, test: str) -> bool:
        """Return whether a test fails."""
        return self.run("-m", "pytest", "-q", f"tests/{test}").returncode != 0


def edited(text: str, mutant: Mutant) -> str:
    """Return a source with a mutant; an error if its place is not there, or not clear."""
    if text.count(mutant.old) != 1:
        raise ValueError(
            f"{mutant.name}: {mutant.file} has its text {text.count(mutant.old)} times"
        )
    return text.replace(mutant.old, mutant.new)


def difference(before: list[str], now: list[str]) -> str:
    """Return the number of the first transcript that differs, and its first part that does.

    >>> difference(
    ...     ["0 deltas=a end=b", "1 deltas=c end=d"], ["0 deltas=a end=b", "1 deltas=c end=e"]
    ... )
    '2 end'
    """
    for number, (ours, theirs) in enumerate(zip(before, now, strict=False), 1):
        if ours != theirs:
            pairs = zip(ours.split(), theirs.split(), strict=False)
            part = next((a for a, b in pairs if a != b), "")
            return f"{number} {part.partition('=')[0]}"
    return "" if len(before) == len(now) else f"{min(len(before), len(now)) + 1} missing"


class Measuring:
    """Measures mutants on copies, with the digests of the transcripts of the unchanged source."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._copies: SimpleQueue[Copy] = SimpleQueue()
        self._frozen: list[str] = []

    def begin(self) -> str:
        """Make the copies, and run the unchanged source; what kills that, which is a defect."""
        copies = [Copy(number) for number in range(self._options.jobs)]
        for copy in copies:
            copy.reset()
        first = copies[0]
        self._frozen = first.transcripts(self._options.transcripts)
        found = first.fuzz(self._options.seed, self._options.schedules)
        for copy in copies:
            if copy is not first:
                copy.begin()
            if self._options.tests:
                copy.freeze()
            self._copies.put(copy)
        return found

    def measure(self, mutant: Mutant) -> Verdict:
        """Measure a mutant on a copy that is free."""
        start, options = perf_counter(), self._options
        copy = self._copies.get()
        try:
            copy.apply(mutant)
            fuzz = copy.fuzz(options.seed, options.schedules)
            shown = difference(self._frozen, copy.transcripts(options.transcripts))
            tests = copy.tests() if options.tests else "-"
            copy.restore(mutant)
            if "::" in tests and copy.fails(tests):
                tests = f"{ANYWAY} {tests}"
        finally:
            copy.restore(mutant)
            self._copies.put(copy)
        return Verdict(mutant.name, fuzz, shown, tests, perf_counter() - start)


def main() -> int:
    """Print a line for each mutant; exit code 1 if too few are killed."""
    parser = argparse.ArgumentParser(prog="python -m mutants.run", description=__doc__)
    parser.add_argument("--schedules", type=int, default=2000, help="most schedules of the fuzz")
    parser.add_argument("--seed", type=int, default=5_000_000, help="of the first schedule")
    parser.add_argument("--transcripts", type=int, default=TRANSCRIPTS)
    parser.add_argument("--tests", action="store_true", help="run the tests of `make test`, too")
    parser.add_argument("--only", default="", help="a part of the names of mutants")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if options.only in mutant.name]
    measuring = Measuring(options)
    if defect := measuring.begin():
        print(f"the unchanged source is killed after {defect}: no mutant can be measured")
        return 1
    print(f"{'mutant':24} {'fuzz of schedules':24} {'transcripts':16} {'tests':40} seconds")
    verdicts = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for one in pool.map(measuring.measure, chosen):
            verdicts.append(one)
            columns = [word or "SURVIVES" for word in (one.fuzz, one.transcripts, one.tests)]
            row = f"{one.name:24} {columns[0]:24} {columns[1]:16} {columns[2]:40}"
            print(f"{row} {one.seconds:7.0f}", flush=True)
    by_fuzz = sum(bool(one.fuzz) for one in verdicts)
    by_tests = sum(bool(one.tests) and not one.tests.startswith(ANYWAY) for one in verdicts)
    tests = f", the tests {by_tests}" if options.tests else ""
    print(f"of {len(verdicts)} mutants the fuzz kills {by_fuzz}{tests}")
    few = 4 * by_tests < 3 * len(verdicts)
    return int(by_fuzz < len(verdicts) - 1 or (options.tests and few))


if __name__ == "__main__":
    sys.exit(main())

"""Fuzzing: random queries over random change streams, and random schedules of programs.

`check_case` checks one query and one stream after every transaction, `check_schedule` (see
`schedules.py`) a program and its input. `python -m oracles.fuzz --cases 10000`
generates many, on all cores; a failure is minimised and printed as a script that reproduces it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from random import Random
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Final, TypeVar
from warnings import catch_warnings, simplefilter

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import HypothesisWarning
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from graphtide.graph import LiveGraph
from graphtide.progress import compile_seconds
from oracles import runs
from oracles.generators import Case, cases
from oracles.schedule_programs import random_schedule
from oracles.schedules import WAYS as SCHEDULE_WAYS
from oracles.schedules import ScheduleFailure, check_schedule
from oracles.transactions import Change, StreamTransaction, in_a_row, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from oracles.answers import Bag

__all__ = ["FuzzFailure", "check_case", "main", "transaction"]

T = TypeVar("T")

MAX_ROWS = 2000
"""Cases with larger answers are skipped: they are slow and find little."""

MAX_SECONDS: Final = 30
"""Processor time of a schedule; most take a tenth of a second."""

_AT_ONCE = 20
"""Cases per seed. After some ten examples Hypothesis starts to vary earlier ones: short rounds have
twice as many different queries as long ones."""

_STREAMS = 5
"""Streams per query, one after the other on the same graphs: to plan a query and to start it takes
as long as several streams."""


WAYS: Final = ("in 1 batch", "in 3 batches", "registered late", "callbacks")
"""Ways to run a query beside one transaction at a time; random cases take turns with them."""


class FuzzFailure(AssertionError):  # noqa: N818 - a finding, not an error of the caller
    """A case with a wrong result. The message is a script that reproduces it."""

    def __init__(self, problem: str, query: str, transactions: Sequence[StreamTransaction]) -> None:
        super().__init__(script(problem, query, transactions))
        self.problem = problem
        self.query = query
        self.transactions = list(transactions)


def script(problem: str, query: str, transactions: Sequence[StreamTransaction]) -> str:
    """A Python script that checks one case.

    >>> print(script("wrong", "SELECT * {}", [transaction(3, "+ <a:a> <a:p> <a:b>")]))
    # wrong
    from oracles.fuzz import check_case
    from oracles.transactions import transaction
    <BLANKLINE>
    QUERY = r\'\'\'SELECT * {}\'\'\'
    STREAM = [
        transaction(
            3,
            '+ <a:a> <a:p> <a:b>',
        ),
    ]
    check_case(QUERY, STREAM)
    """
    lines = [f"# {line}" for line in problem.splitlines()]
    lines += ["from oracles.fuzz import check_case"]
    lines += ["from oracles.transactions import transaction", ""]
    lines += [f"QUERY = {_quoted(query)}", "STREAM = ["]
    for each in transactions:
        lines += ["    transaction(", f"        {each.time},"]
        lines += [f"        {line!r}," for line in each.lines()]
        lines += ["    ),"]
    return "\n".join([*lines, "]", "check_case(QUERY, STREAM)"])


def _quoted(query: str) -> str:
    plain = "'''" not in query and not query.endswith(("'", "\\"))
    return f"r'''{query}'''" if plain else repr(query)


def check_case(
    query: str,
    transactions: Sequence[StreamTransaction],
    *,
    make_graph: runs.MakeGraph = LiveGraph,
    ways: Sequence[str] = WAYS,
) -> bool:
    """Check one query over one stream; False if the answers are too large.

    After every transaction, the sum of the deltas must equal the answer of pyoxigraph or of the
    reference evaluator, `table()` and `count()`. The same deltas must come from every strategy,
    from large batches, in one thread and in two, and from a query that is watched late beside
    others that end. Callbacks must get exactly the rows that appear and disappear.

    >>> check_case("SELECT ?x { ?x <a:p> ?y }", [transaction(0, "+ <a:a> <a:p> <a:b>")])
    True
    """
    oracle = runs.SnapshotOracle(query, transactions, max_rows=MAX_ROWS)
    if oracle.too_big:
        return False
    try:
        deltas = _check(query, transactions, oracle, make_graph)
        for way in ways:
            _check_way(way, query, transactions, deltas, make_graph)
    except runs.Disagreement as problem:
        raise FuzzFailure(str(problem), query, transactions) from problem
    except Exception as problem:
        message = f"the engine raised {type(problem).__name__}: {problem}"
        raise FuzzFailure(message, query, transactions) from problem
    return True


def _check(
    query: str,
    stream: Sequence[StreamTransaction],
    oracle: runs.SnapshotOracle,
    make: runs.MakeGraph,
) -> list[Bag]:
    by_strategy = runs.one_by_one(query, stream, make)
    deltas = by_strategy["default"]
    _expect_oracle(deltas, oracle)
    for strategy, others in by_strategy.items():
        _expect_same(f"strategy {strategy}", others, deltas)
    return deltas


def _check_way(
    way: str,
    query: str,
    stream: Sequence[StreamTransaction],
    deltas: Sequence[Bag],
    make: runs.MakeGraph,
) -> None:
    match way:
        case "registered late":
            half, late = runs.registered_late(query, stream, make)
            _expect_same(way, late, [_total(deltas[: half + 1]), *deltas[half + 1 :]])
        case "callbacks":
            _expect_same(way, runs.heard(query, stream, make), _crossings(deltas))
        case _:
            batches = int(way.split()[1])
            _expect_same(way, runs.in_batches(query, stream, make, batches=batches), deltas)


def _expect_oracle(deltas: Sequence[Bag], oracle: runs.SnapshotOracle) -> None:
    total = Counter(deltas[0])
    for number, (delta, answer) in enumerate(zip(deltas[1:], oracle.answers, strict=True)):
        total.update(delta)
        if answer is not None:
            _expect(
                f"transaction {number}, against pyoxigraph", runs.spelled_by_value(+total), answer
            )
        if (exact := oracle.exact.get(number)) is not None:
            _expect(f"transaction {number}, against the reference evaluator", +total, exact)


def _expect_same(way: str, deltas: Sequence[Bag], expected: Sequence[Bag]) -> None:
    for number, (delta, wanted) in enumerate(zip(deltas, expected, strict=True)):
        _expect(f"{way}, delta {number} of {len(expected)}", delta, wanted)


def _expect(where: str, found: Bag, wanted: Bag) -> None:
    if found == wanted:
        return
    difference = Counter(found)
    difference.subtract(wanted)
    rows = "\n".join(f"  {count:+d} {dict(row)}" for row, count in difference.items() if count)
    raise runs.Disagreement(f"{where}: superfluous (+) or missing (-) rows:\n{rows}")


def _total(deltas: Sequence[Bag]) -> Bag:
    total: Bag = Counter()
    for delta in deltas:
        total.update(delta)
    return +total


def _crossings(deltas: Sequence[Bag]) -> list[Bag]:
    """Per transaction, the rows that appear (+1) or disappear (-1)."""
    total = Counter(deltas[0])
    crossings = []
    for delta in deltas[1:]:
        before = Counter(total)
        total.update(delta)
        crossings.append(
            Counter(
                {
                    row: (total[row] > 0) - (before[row] > 0)
                    for row in delta
                    if (total[row] > 0) != (before[row] > 0)
                }
            )
        )
    return crossings


def shrunk(failure: FuzzFailure) -> FuzzFailure:
    """The same query with a stream from which no transaction and no change can be left out."""
    smallest = failure

    def fails(stream: Sequence[StreamTransaction]) -> bool:
        nonlocal smallest
        try:
            check_case(failure.query, stream)
        except FuzzFailure as smaller:
            smallest = smaller
            return True
        return False

    stream = _without_needless(failure.transactions, fails)

    def with_changes(kept: Sequence[tuple[int, Change]]) -> list[StreamTransaction]:
        return [
            StreamTransaction(each.time, tuple(change for place, change in kept if place == at))
            for at, each in enumerate(stream)
        ]

    changes = [(at, change) for at, each in enumerate(stream) for change in each.changes]
    _without_needless(changes, lambda kept: fails(with_changes(kept)))
    return smallest


def _without_needless(items: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """What is left of items that fail when parts are left out, large ones first."""
    left, size = list(items), len(items)
    while size:
        start = 0
        while start < len(left):
            fewer = left[:start] + left[start + size :]
            if fails(fewer):
                left = fewer
            else:
                start += size
        size //= 2
    return left


def run_cases(count: int, first_seed: int, done: Callable[[], object], *, twins: bool) -> None:
    """Check `count` random cases, each a query and a stream; call `done` after each.

    Raises FuzzFailure with a minimised case.
    """
    for task in _rounds("twins" if twins else "queries", count, first_seed):
        _round(task.seed, task.count, done, twins=twins)


def _round(number: int, count: int, done: Callable[[], object], *, twins: bool) -> None:
    checked = 0
    failed = False  # once true, Hypothesis is minimising

    @seed(number)
    @settings(
        max_examples=-(-count // _STREAMS),
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(cases(streams=_STREAMS, twins=twins, seeded=True))  # `shrunk` makes streams smaller
    def check(case: Case) -> None:
        nonlocal checked, failed
        checked += 1
        try:
            ways = WAYS if failed else (WAYS[(number + checked) % len(WAYS)],)
            check_case(case.query, in_a_row(case.streams), ways=ways)
        except FuzzFailure:
            failed = True
            raise
        if not failed:
            for _ in case.streams:
                done()

    try:
        with catch_warnings():  # that the text of a case is long: only its script is printed
            simplefilter("ignore", HypothesisWarning)
            check()
    except FuzzFailure as failure:
        raise shrunk(failure) from None


def run_schedules(count: int, first_seed: int, done: Callable[[], object]) -> None:
    """Check `count` random schedules, each in the `ways_of` its seed; call `done` after each.

    Raises ScheduleFailure with a minimised one. A program whose events multiply from tick to tick
    is left out when it has taken `MAX_SECONDS`.
    """
    for number in range(first_seed, first_seed + count):
        try:
            with processor_limit(MAX_SECONDS):
                check_schedule(random_schedule(Random(number)), ways_of(number), number)
        except CaseTooLong:
            sys.stderr.write(f"schedule {number} is left out: it takes over {MAX_SECONDS} s\n")
        done()


def ways_of(number: int) -> list[str]:
    """Return the ways in which the schedule of a number is run, and what it is compared with.

    >>> ways_of(0), ways_of(5)
    (['definitions', 'jumps', 'batches'], ['definitions', 'beside', 'mixed'])
    """
    others = [way for way in SCHEDULE_WAYS if way != "definitions"]
    chosen = others[number % len(others)], others[(number + 1 + number // 7) % len(others)]
    return ["definitions", *dict.fromkeys(chosen)]


class CaseTooLong(BaseException):
    """A case has used up its processor time: an interrupt, which no `on_error` skips."""


@contextmanager
def processor_limit(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer, where that is possible: in the main thread of a process.

    If loops were compiled meanwhile, the time begins anew.

    >>> with processor_limit(0.05):
    ...     while True:
    ...         pass
    Traceback (most recent call last):
    oracles.fuzz.CaseTooLong
    """
    compiled = compile_seconds()

    def interrupt(*_: object) -> None:
        nonlocal compiled
        before, compiled = compiled, compile_seconds()
        if compiled == before:
            raise CaseTooLong
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)

    if not hasattr(signal, "setitimer") or current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@dataclass(frozen=True, slots=True)
class Round:
    """A few cases of a kind (queries, twins or schedules), by their seed."""

    kind: str
    seed: int
    count: int


def _rounds(kind: str, count: int, first_seed: int) -> Iterator[Round]:
    """Rounds of `count` cases: those of queries have a seed each, schedules one per case."""
    step = _AT_ONCE if kind == "schedules" else 1
    for number, start in enumerate(range(0, count, _AT_ONCE)):
        yield Round(kind, first_seed + number * step, min(_AT_ONCE, count - start))


def run_round(task: Round, done: Callable[[], object] = lambda: None) -> str:
    """The script of the failure of a round; empty if its cases agree with the oracles."""
    try:
        if task.kind == "schedules":
            run_schedules(task.count, task.seed, done)
        else:
            _round(task.seed, task.count, done, twins=task.kind == "twins")
    except (FuzzFailure, ScheduleFailure) as failure:
        return str(failure)
    return ""


def run_rounds(rounds: Sequence[Round], jobs: int, done: Callable[[int], object]) -> str:
    """Run rounds in `jobs` processes; the first failure that is found ends the others."""
    if jobs == 1:
        return next(filter(None, (run_round(each, lambda: done(1)) for each in rounds)), "")
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(run_round, each): each for each in rounds}
        for ended in as_completed(waiting):
            if failure := ended.result():
                pool.shutdown(cancel_futures=True)
                return failure
            done(waiting[ended].count)
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run random cases; exit code 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m oracles.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="number of cases")
    parser.add_argument(
        "--kind",
        choices=("queries", "schedules", "all"),
        default="all",
        help="queries over change streams, schedules of programs, or both: one schedule in ten",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="first seed; the same seed gives the same cases"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="number of processes; all cores unless told",
    )
    options = parser.parse_args(arguments)
    shares = {"queries": 0, "schedules": options.cases, "all": options.cases // 10}
    schedules = shares[options.kind]
    queries = options.cases - schedules
    counts = {"queries": queries - queries // 4, "twins": queries // 4, "schedules": schedules}
    rounds = [each for kind, n in counts.items() for each in _rounds(kind, n, options.seed)]
    console = Console(stderr=True)
    columns = (TextColumn("fuzz"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("fuzz", total=options.cases)
        failure = run_rounds(rounds, options.jobs, lambda n: progress.advance(task, n))
    if failure:
        sys.stdout.write(f"{failure}\n")
        return 1
    console.print(f"{options.cases} cases agree with the oracles (seed {options.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())

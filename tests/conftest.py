"""What all tests share: Hypothesis' profile, a Spark session, and the summary of the W3C suites."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from textwrap import fill

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from graphtide.errors import GraphtideError

# Compiling, and a busy machine, make a case slow now and then: that says nothing about it.
settings.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("full")

SHARES = {"quick": 10, "test": 4}
"""`make quick` tries one in so many examples of a property, `make test` more, all others all."""

FEWEST = 6
"""Examples that are tried at least, if a property has as many."""

NOT_QUICK = (
    "benchmarks/", "serve/", "spark/", "oracles/", "repo/", "cli/", "durable/test_bound",
    "durable/test_full_disk", "durable/test_interrupts", "engine/test_after_interrupts",
    "engine/test_fork", "engine/test_hostile", "kernel/test_growth", "rules/test_growth",
    "rules/test_interrupts", "testing/test_pytest_plugin",
)  # fmt: skip
"""What `make quick` leaves out besides slow tests: servers, Spark's stages, other processes, faults
at every place, and tests of the oracles and of the repository."""

ESSENTIAL = (
    "durable/test_kills", "spark/faults/test_kills", "spark/test_in_spark",
    "serve/page/test_page.py",
)  # fmt: skip
"""Slow tests that `make test` runs too: a kill of each kind, Spark from end to end, the page."""

LONGEST = (
    "spark/faults/", "benchmarks/spark/", "spark/driver/", "spark/test_", "spark/kafka/",
    "w3c/test_spark", "plan/test_flat_", "rules/test_interrupts",
)  # fmt: skip
"""Tests of up to minutes each, and all that use Spark. They come first: at the end, one would keep
one process busy, and scattered, each process would start a session."""

_INDENT = {"initial_indent": "    ", "subsequent_indent": "    ", "break_on_hyphens": False}


def pytest_addoption(parser) -> None:
    parser.addoption(
        "--lane",
        choices=["quick", "test", "rest", "all"],
        default="all",
        help="quick: the core, no slow tests; test: a verdict; rest: all others; all",
    )


def pytest_collection_modifyitems(config, items) -> None:
    """The tests of the lane, the longest first; properties are tried on fewer examples in some."""
    lane = config.getoption("lane")
    kept = [item for item in items if _is_in(lane, item)]
    kept_ids = {id(item) for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept_ids])
    items[:] = sorted(kept, key=lambda item: not _name(item).startswith(LONGEST))
    if lane not in SHARES:
        return
    tests = [getattr(item, "obj", None) for item in items]
    for test in {id(test): test for test in tests if is_hypothesis_test(test)}.values():
        # The settings of a test are chosen where it is defined; a profile would not change them.
        chosen = test._hypothesis_internal_use_settings
        fewer = min(chosen.max_examples, max(FEWEST, chosen.max_examples // SHARES[lane]))
        test._hypothesis_internal_use_settings = settings(chosen, max_examples=fewer)


def _name(item) -> str:
    return item.nodeid.removeprefix("tests/")


def _is_in(lane, item) -> bool:
    """Whether a lane has a test; `test` and `rest` together have all."""
    slow = item.get_closest_marker("slow") is not None
    if lane == "quick":
        return not slow and not _name(item).startswith(NOT_QUICK)
    in_test = not slow or _name(item).startswith(ESSENTIAL)
    return lane == "all" or in_test == (lane == "test")


def pytest_collection_finish() -> None:
    """What was collected stays to the end: the garbage collector need not look through it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _plans_are_replaced_at_once():
    """Another plan takes over within one call: what tests see does not depend on the clock."""
    from graphtide.engine import queries

    queries.PIECE_SECONDS = 3600.0


@pytest.fixture(scope="session")
def spark():
    """One Spark session for all tests of a process: starting it takes longer than most tests."""
    from graphtide.spark.kafka.jars import kafka_settings
    from graphtide.spark.session import make_session

    try:
        settings = kafka_settings()
    except GraphtideError:  # the tests of Kafka say so
        settings = {}
    session = make_session(
        master="local[2]", partitions=2, name="tests", settings=settings, brief=True
    )
    yield session
    session.stop()


@pytest.fixture
def shared_session(spark, monkeypatch):
    """Whatever makes a session gets that of the tests, which is not stopped."""
    from graphtide.spark import session

    monkeypatch.setattr(session, "make_session", lambda **_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    return spark


def pytest_terminal_summary(terminalreporter) -> None:
    """A line for each W3C suite and way, and the name of each test left out, with its reason."""
    passed: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    excluded: dict[str, set[str]] = defaultdict(set)
    for outcome in ("passed", "failed", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            properties = dict(getattr(report, "user_properties", ()))
            if "w3c" not in properties or (outcome == "passed" and report.when != "call"):
                continue
            if "w3c-excluded" in properties:
                name, _, reason = properties["w3c-excluded"].partition(": ")
                excluded[reason].add(name)
                continue
            ran[properties["w3c"]] += 1
            passed[properties["w3c"]] += outcome == "passed"
    if ran:
        terminalreporter.section("W3C SPARQL tests: suite, way, passed/total")
        for line in sorted(ran):
            terminalreporter.write_line(f"{line} {passed[line]}/{ran[line]}")
    if excluded:
        left = sum(map(len, excluded.values()))
        terminalreporter.write_line(f"left out of the ways that maintain an answer, {left}:")
        for reason, names in sorted(excluded.items(), key=lambda item: -len(item[1])):
            terminalreporter.write_line(f"  {reason} ({len(names)}):")
            terminalreporter.write_line(fill(", ".join(sorted(names)), 100, **_INDENT))

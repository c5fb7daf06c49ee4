"""`-v` says what happens, on standard error, before or after the command's name."""

import logging

import pytest


@pytest.fixture
def command(files):
    (files / "bad.rdfp").write_text("TX .\nX\nTC .\n", encoding="utf-8")
    return ["watch", "all.rq", "--changes", "bad.rdfp", "--on-error", "skip"]


REJECTED = "INFO graphtide.rdf.changes: rejected bad.rdfp:2:1: "
WATCHED = "DEBUG graphtide.engine.queries: query all is watched by search"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([], [], []),
        (["-v"], [], [REJECTED]),
        ([], ["--verbose"], [REJECTED]),
        ([], ["-vv"], [WATCHED, REJECTED]),
        (["-v"], ["-v"], [WATCHED, REJECTED]),
    ],
)
def test_records_are_printed_as_asked_for(run, command, before, after, said):
    done = run(*before, *command, *after)
    records = [line for line in done.err.splitlines() if " graphtide." in line]
    assert done.code == 0
    assert len(records) == len(said)
    assert all(map(str.startswith, records, said))


def test_nothing_is_left_of_it(run, command):
    logger = logging.getLogger("graphtide")
    before = logger.level, list(logger.handlers)
    run(*command, "-vv")
    assert (logger.level, logger.handlers) == before


def test_help_lists_it(run):
    assert "--verbose" in run("--help").out

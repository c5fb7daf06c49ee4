"""The ledger has each promise, option, keyword and refusal once, with a verdict and a test."""

from __future__ import annotations

import re

from repo.ledger import difference, listed, problem

VERDICT = re.compile("keep|remove|change: .+")

UNTESTED = {
    'hubs="auto" is for runs over change logs and topics of Kafka: the stream begins',
    "the query … has changes that no window has reported yet, and … partitions count",
    "the run of … is not stopped: it has gone on meanwhile",
    "the state of the checkpoint has format … and not …",
    "… has no complete micro-batch: there is nothing to go on from",
    "… has the state of … partitions, not of …",
    "… was made by an earlier version of graphtide",
}
"""Refusals without a test: all belong to what is removed."""


def test_the_ledger_has_what_the_package_has():
    lines = difference()
    command = "PYTHONPATH=tests python tests/repo/ledger.py"
    assert not lines, "\n".join([*lines, f"lines to add and to remove in ledger.txt: {command}"])


def test_each_entry_is_there_once_with_a_verdict():
    entries = listed()
    names = [entry[:2] for entry in entries]
    assert len(names) == len(set(names))
    assert not [str(entry) for entry in entries if not VERDICT.fullmatch(entry.verdict)]


def test_each_entry_has_a_test_that_mentions_it():
    untested = [entry for entry in listed() if entry.test == "-"]
    assert {entry.name for entry in untested} == UNTESTED
    assert {entry.verdict for entry in untested} <= {"remove"}
    tested = [entry for entry in listed() if entry.test != "-"]
    found = [f"{entry}\n  {what}" for entry in tested if (what := problem(entry))]
    assert not found, "\n".join(found)

"""Reading server-sent events, and copies of answers that follow them."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import contextmanager

PATIENCE = 20
"""Seconds to wait for an event."""


@contextmanager
def events(client, subscription, last=None):
    """The events of a subscription: pairs of a name and the data."""
    headers = {} if last is None else {"last-event-id": str(last)}
    with client.stream("GET", subscription["events"], headers=headers, timeout=20) as response:
        assert response.status_code == 200, response.read()
        yield parsed(response.iter_lines())


def parsed(lines):
    fields = {}
    end = time.monotonic() + PATIENCE
    for line in lines:
        assert time.monotonic() < end, "nothing but heartbeats came"
        if not line and "event" in fields:
            data = json.loads(fields["data"])
            assert fields["event"] == data["event"]
            assert "seq" not in data or int(fields["id"]) == data["seq"]
            yield data
            end = time.monotonic() + PATIENCE
            fields = {}
        elif not line:
            fields = {}
        else:
            name, _, value = line.partition(": ")
            fields[name] = value


def subscribe(client, query, **fields):
    """A new subscription."""
    made = client.post("/subscriptions", json={"query": query, **fields})
    assert made.status_code == 201, made.text
    return made.json()


def bag(rows):
    """The rows of SPARQL's JSON, as a bag."""
    found = rows["results"]["bindings"]
    return Counter(
        tuple(sorted((name, tuple(sorted(term.items()))) for name, term in row.items()))
        for row in found
    )


class Copy:
    """A copy of an answer that follows its events, and checks their order."""

    def __init__(self):
        self.rows = Counter()
        self.seq = None
        self.seen = []

    def take(self, data):
        if data["event"] == "answer":
            self.rows = bag(data["added"])
        else:
            assert self.seq is None or data["seq"] > self.seq
            added, removed = bag(data["added"]), bag(data["removed"])
            assert not removed - self.rows, "a row was removed that was not there"
            self.rows = self.rows + added - removed
        self.seq = data["seq"]
        self.seen.append(data["seq"])

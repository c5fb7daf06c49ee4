"""Calls of the public surface, each with a place for a value that a program may give by mistake."""

from __future__ import annotations

import datetime as dt
import io
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from graphtide import (
    ChangeBatch,
    LiveGraph,
    Program,
    connect,
    function,
    read_changes,
    with_prefixes,
    write_changes,
)  # fmt: skip

VALUES = [
    None, True, False, 0, 1, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**61, 2**62, 2**62 + 1, 2**63,
    2**64, -(2**63) - 1, 10**40, 1.5, 5.0, 1e300, math.nan, math.inf, -math.inf,
    np.int8(3), np.int64(7), np.uint64(2**63), np.float64(2.5), np.float32(1), np.bool_(True),
    np.array([1, 2]), np.array(3), np.datetime64("2026-01-01"), Decimal("1.5"), Decimal("NaN"),
    Fraction(1, 3), 1j, dt.datetime(2026, 1, 1),  # noqa: DTZ001 - on purpose
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    dt.date(2026, 1, 1), dt.time(1, 2), dt.timedelta(days=3), "", " ", "x", "\0", "\ud800",
    "<ex:\ud800>", '"\ud800"', "x" * 200_000, "<" + "x" * 200_000 + ">", "<ex:a", '"a', "_:", "5",
    b"x", bytearray(b"x"), [], [1], {}, {"a": 1}, (), set(), object(), int, len, Ellipsis,
    iter([1]), range(3), Exception("x"), np.array([2**63], np.uint64), np.array([2**62 + 1]),
    np.array([-1]), np.array([0]), np.array([1.5]), np.array(["x"]), np.array([[1, 2, 3, 0]]),
    np.array([[1, 2, 2**40, 0]]), np.array([[0, 1, 1, 0]]), np.array([[-1, 1, 1, 1]]), np.array([]),
]  # fmt: skip

EVENTS = "PREFIX : <ex:> EVENT A(?x) AS { ?x :a ?y } RULE R ON A(?x) THEN INSERT { ?x :is :seen }"
QUERY = "SELECT * { ?s <ex:p> ?o }"
WINDOW = """REGISTER RSTREAM <ex:o> AS SELECT * FROM NAMED WINDOW <ex:w> ON <ex:in>
    [RANGE 5 STEP 5] { WINDOW <ex:w> { ?s <ex:p> ?o } }"""

S, P, O = "<ex:s>", "<ex:p>", "<ex:o>"


def transact(graph, value):
    with graph.transaction() as tx:
        tx.insert(S, P, O)
        tx.insert(S, P, value)


def transact_at(graph, value):
    with graph.transaction(time=value) as tx:
        tx.insert(S, P, "<ex:t>")


CALLS = {
    "insert s": lambda g, v: g.insert(v, P, O),
    "insert p": lambda g, v: g.insert(S, v, O),
    "insert o": lambda g, v: g.insert(S, P, v),
    "insert g": lambda g, v: g.insert(S, P, O, v),
    "insert time": lambda g, v: g.insert(S, P, O, time=v),
    "delete o": lambda g, v: g.delete(S, P, v),
    "delete time": lambda g, v: g.delete(S, P, O, time=v),
    "transaction": transact,
    "transaction time": transact_at,
    "advance": lambda g, v: g.advance(v),
    "update": lambda g, v: g.update(v),
    "update time": lambda g, v: g.update("INSERT DATA { <ex:s> <ex:p> 1 }", time=v),
    "query": lambda g, v: g.query(v),
    "watch": lambda g, v: g.watch(v),
    "watch name": lambda g, v: g.watch(QUERY, name=v),
    "watch strategy": lambda g, v: g.watch(QUERY, strategy=v),
    "watch history": lambda g, v: g.watch(QUERY, history=v),
    "watch report": lambda g, v: g.watch(WINDOW, name="w2", report=v),
    "stream": lambda g, v: g.stream(v),
    "stream lateness": lambda g, v: g.stream("<ex:other>", lateness=v),
    "push": lambda g, v: g.stream("<ex:in>").push(v, time=g.clock),
    "push triple": lambda g, v: g.stream("<ex:in>").push([v], time=g.clock),
    "push o": lambda g, v: g.stream("<ex:in>").push([(S, P, v)], time=g.clock),
    "push time": lambda g, v: g.stream("<ex:in>").push([(S, P, O)], time=v),
    "push graph": lambda g, v: g.stream("<ex:in>").push([(S, P, O)], time=g.clock, graph=v),
    "push_many": lambda g, v: g.stream("<ex:in>").push_many(v),
    "push_many time": lambda g, v: g.stream("<ex:in>").push_many([([(S, P, O)], v)]),
    "stream advance": lambda g, v: g.stream("<ex:in>").advance(v),
    "publish": lambda g, v: g.publish(v),
    "publish o": lambda g, v: g.publish([(S, P, v)]),
    "publish time": lambda g, v: g.publish([(S, P, O)], time=v),
    "apply": lambda g, v: g.apply(v),
    "apply time": lambda g, v: g.apply(ChangeBatch.of([(0, 0, 1, S, P, O, None)]), time=v),
    "apply row time": lambda g, v: g.apply(ChangeBatch.of([(v, 0, 1, S, P, O, None)])),
    "apply row tx": lambda g, v: g.apply(ChangeBatch.of([(g.clock, v, 1, S, P, O, None)])),
    "apply row diff": lambda g, v: g.apply(ChangeBatch.of([(g.clock, 0, v, S, P, O, None)])),
    "apply row o": lambda g, v: g.apply(ChangeBatch.of([(g.clock, 0, 1, S, P, v, None)])),
    "load": lambda g, v: g.load(v),
    "run": lambda g, v: g.run(v),
    "run functions": lambda g, v: g.run(Program.parse(EVENTS), functions=v),
    "run max_firings": lambda g, v: g.run(Program.parse(EVENTS), max_firings=v),
    "run duration": lambda g, v: g.run(Program.parse(EVENTS), max_event_duration=v),
    "run name": lambda g, v: g.run(Program.parse(EVENTS), name=v),
    "run on_error": lambda g, v: g.run(Program.parse(EVENTS), on_error=v),
    "run retries": lambda g, v: g.run(Program.parse(EVENTS), retries=v),
    "run start": lambda g, v: g.run(Program.parse(EVENTS), start=v),
    "run firing": lambda g, v: g.run(Program.parse(EVENTS), firing=v),
    "run resolver": lambda g, v: g.run(Program.parse(EVENTS), resolver=v),
    "run seed": lambda g, v: g.run(Program.parse(EVENTS), seed=v),
    "run disabled": lambda g, v: g.run(Program.parse(EVENTS), disabled=v),
    "parse": lambda g, v: Program.parse(v),
    "contains": lambda g, v: v in g,
    "contains quad": lambda g, v: (S, P, v, None) in g,
    "since": lambda g, v: list(g.queries[0].since(v)),
    "recent": lambda g, v: g.queries[0].recent(v),
    "recent limit": lambda g, v: g.queries[0].recent(limit=v),
    "table offset": lambda g, v: g.queries[0].table(offset=v),
    "table limit": lambda g, v: g.queries[0].table(limit=v),
    "why limit": lambda g, v: g.queries[0].why(s=S, o=P, limit=v),
    "why all": lambda g, v: g.queries[0].why(s=S, o=P, all=v),
    "why value": lambda g, v: g.queries[0].why(s=v),
    "why_not": lambda g, v: g.queries[0].why_not(v),
    "explain format": lambda g, v: g.queries[0].explain(v),
    "explain why": lambda g, v: g.queries[0].explain(why=v),
    "facts": lambda g, v: g.queries[0].facts(actual=v),
    "publish duration": lambda g, v: g.publish([(S, P, O)], duration=v),
    "publish start": lambda g, v: g.publish([(S, P, O)], start=v),
    "repair": lambda g, v: g.repair(v),
    "load time": lambda g, v: g.load(__file__, time=v),
    "stream feed": lambda g, v: g.stream("<ex:in>").feed(v),
    "feed timestamp": lambda g, v: g.stream("<ex:in>").feed("x.nq", timestamp=v),
    "query terms": lambda g, v: g.query(QUERY, terms=v),
    "replace": lambda g, v: g.run(Program.parse(EVENTS)).replace(v),
    "disable": lambda g, v: g.run(Program.parse(EVENTS)).disable(v),
    "fire": lambda g, v: g.run(Program.parse(EVENTS), firing="manual").fire(v),
    "why": lambda g, v: g.queries[0].why(v),
    "explain": lambda g, v: g.queries[0].explain(actual=v),
    "table": lambda g, v: g.queries[0].table(terms=v),
    "on_delta": lambda g, v: g.queries[0].on_delta(v),
    "replan": lambda g, v: g.queries[0].retain(v),
    "repairs": lambda g, v: g.repairs(v),
    "at": lambda g, v: g.at(time=v),
    "at tx": lambda g, v: g.at(tx=v),
    "feed": lambda g, v: g.feed(on_error=v),
    "update load_from": lambda g, v: g.update("LOAD <file:x.nt>", load_from=v),
    "watch reevaluate": lambda g, v: g.watch(WINDOW, name="w2", reevaluate=v),
    "watch plan": lambda g, v: g.watch(QUERY, plan=v, strategy="rete"),
    "apply_ids": lambda g, v: g.apply_ids(v, v, v),
    "apply_ids o": lambda g, v: g.apply_ids(*ids(g)[:2], v),
    "apply_ids diff": lambda g, v: g.apply_ids(*ids(g), diff=v),
    "apply_ids time": lambda g, v: g.apply_ids(*ids(g), time=v),
    "apply_ids tx": lambda g, v: g.apply_ids(*ids(g), tx=v),
    "push_ids times": lambda g, v: g.stream("<ex:in>").push_ids(v, np.array([ids4(g)])),
    "push_ids quads": lambda g, v: g.stream("<ex:in>").push_ids(np.array([g.clock]), v),
}

FUNCTIONS = {
    "read_changes": lambda v: list(read_changes(v)),
    "read_changes format": lambda v: list(read_changes("x.nt", format=v)),
    "read_changes limits": lambda v: list(read_changes("x.nt", limits=v)),
    "write_changes": lambda v: write_changes(v, io.BytesIO(), format="nt"),
    "write_changes format": lambda v: write_changes([], io.BytesIO(), format=v),
    "with_prefixes": with_prefixes,
    "with_prefixes prefixes": lambda v: with_prefixes("ASK {}", v),
    "function": lambda v: function(v, str),
    "function f": lambda v: function("ex:f", v),
    "check": Program.check,
    "check name": lambda v: Program.check(EVENTS, name=v),
    "check folder": lambda v: Program.check(EVENTS, folder=v),
    "of": Program.of,
    "read": Program.read,
    "from_sources": Program.from_sources,
    "from_sources of": lambda v: Program.from_sources([v]),
    "without_groups": Program.parse(EVENTS).without_groups,
    "connect": connect,
    "batch": ChangeBatch.of,
    "batch row": lambda v: ChangeBatch.of([v]),
}
"""Functions of the package that no graph is given to."""

STORE_CALLS = {
    "cursor": lambda g, v: list(g.queries[0].cursor(v)),
    "ack": lambda g, v: g.queries[0].cursor("mailer").ack(v),
    "changes start": lambda g, v: list(g.queries[0].changes(v, 5)),
    "changes end": lambda g, v: list(g.queries[0].changes(0, v)),
}
"""Further calls, of graphs that have a store."""

OPTIONS = (
    "strict", "store", "default_graph", "tick_ms", "window_origin", "window_alignment", "limits",
    "services",
)  # fmt: skip
OPENING = (*OPTIONS, "durability", "retain", "functions", "read_only")


def ids(graph):
    return [graph.terms.encode_column([text]) for text in (S, P, O)]


def ids4(graph):
    return [*(int(column[0]) for column in ids(graph)), 0]


def made(name, value):
    """A graph with one option."""
    return LiveGraph(**{name: value})

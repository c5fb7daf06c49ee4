"""Random queries over random graphs, and what the reference evaluator says of their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, assume, settings

from graphtide import LiveGraph
from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Exists
from graphtide.algebra.queries import as_select
from graphtide.algebra.rewrite import conjuncts
from graphtide.algebra.traverse import walk
from graphtide.errors import UnsupportedError
from graphtide.kernel import JIT
from graphtide.lang.sparql.parse import parse_any_query
from oracles.reference import evaluate_query
from oracles.transactions import terms_of

if TYPE_CHECKING:
    from collections import Counter

MANY = 60
"""Rows of a larger answer are not all asked about."""


def examples(count):
    """Settings for so many examples, fewer without compiled kernels."""
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    number = count if JIT else max(count // 4, 5)
    found_only = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking takes minutes
    return settings(
        deadline=None, max_examples=number, suppress_health_check=slow, phases=found_only
    )


def parsed(text):
    return as_select(parse_any_query(text))


class Case:
    """A query on a graph after a stream of transactions, and the quads at each time."""

    def __init__(self, text, stream, *, strategy=None):
        self.select = parsed(text)
        self.graph = LiveGraph()
        try:
            self.query = self.graph.watch(text, strategy=strategy)
        except UnsupportedError:
            assume(False)
        self.before: set = set()
        self.quads: set = set()
        for transaction in stream:
            self.apply([(diff, terms_of(quad)) for diff, quad in transaction.changes])

    def apply(self, changes):
        self.before = set(self.quads)
        with self.graph.transaction() as tx:
            for diff, quad in changes:
                (tx.insert if diff > 0 else tx.delete)(*quad)
                (self.quads.add if diff > 0 else self.quads.discard)(quad)

    def answer(self, quads=None) -> Counter:
        found = evaluate_query(self.select, self.quads if quads is None else quads)
        assume(found.total() <= MANY)
        return found

    def row(self, values) -> dict:
        return dict(zip(self.query.variables, values, strict=True))


def is_monotone(select) -> bool:
    """Whether more quads never remove a row: no OPTIONAL, MINUS, negation, group or range."""
    for part in walk(select.root):
        match part:
            case alg.LeftJoin() | alg.Minus() | alg.Group():
                return False
            case alg.Slice(limit=limit, offset=offset) if limit is not None or offset:
                return False
            case alg.Filter(condition):
                if any(hides_exists(each) for each in conjuncts(condition)):
                    return False
            case alg.Extend(_, _, expression) if has_exists(expression):
                return False
    return select.form != "ASK"


def has_exists(expression) -> bool:
    return any(isinstance(each, Exists) for each in walk(expression))


def hides_exists(condition) -> bool:
    """Whether a condition uses EXISTS otherwise than by itself."""
    return isinstance(condition, Call) and has_exists(condition)


def has_paths(select) -> bool:
    return any(isinstance(part, alg.Path) for part in walk(select.root))

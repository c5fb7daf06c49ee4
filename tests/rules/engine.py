"""A rule engine without a program: rules are added one by one, actions are Python functions."""

from __future__ import annotations

from dataclasses import dataclass

from graphtide import LiveGraph
from graphtide.rules.effects import GraphConnection
from graphtide.rules.rule_set import RuleSet
from graphtide.rules.runtime import RuleEngine


@dataclass(frozen=True)
class FunctionAction:
    function: object

    def carry_out(self, turn):
        self.function(turn.firing())


class NoEffects:
    """Actions change nothing but what the test sees."""

    def collect(self, clock):
        return ()

    def publish(self):
        return False

    def without_emitted(self, events):
        return events

    def discard(self):
        pass

    def undo(self):
        return ""

    def are_independent(self, rules):
        return all(each.action is None for each in rules)

    def apply_all(self, agenda):
        return not any(share.entry.action for share in agenda.shares)

    def savepoint(self):
        return None

    def roll_back(self, to):
        pass


class Engine:
    """A `RuleEngine` that follows a graph."""

    def __init__(self, graph=None, *, max_firings=10_000):
        self.graph = LiveGraph() if graph is None else graph
        connection = GraphConnection(self.graph._streams)
        self.rules = RuleSet(connection, 0)
        self.engine = RuleEngine(connection, self.rules, NoEffects(), max_firings=max_firings)
        connection.follow(self.engine)
        self.assert_event = self.graph.publish
        self.take_events = self.graph._runtime.publish
        self.advance = self.graph.advance

    def add(self, rule, action=None):
        self.rules.add(rule, None if action is None else FunctionAction(action))

    def firings(self):
        return self.engine.log

    @property
    def clock(self):
        return self.engine.clock

    @property
    def fired(self):
        return self.engine.log.total

    @property
    def retained(self):
        return self.rules.retained

    @property
    def max_retained(self):
        return self.rules.max_retained

"""ProgramParts: the queries, patterns and rules of a program, at work on a graph."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from graphtide.errors import GraphtideError
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide.ast import CallFunction, QueryChange, QueryUpdate, StateChange
from graphtide.rules import change_events
from graphtide.rules.actions import Actions, ErrorPolicy
from graphtide.rules.compile import Compiler, only_inserts
from graphtide.rules.conflicts import ConflictSet, Resolver
from graphtide.rules.detection import detect, types_of_patterns
from graphtide.rules.effects import GraphConnection, GraphEffects, query_of
from graphtide.rules.rule_set import RuleSet
from graphtide.rules.runtime import RuleEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from graphtide.algebra.expressions import Var
    from graphtide.engine.watch import Query
    from graphtide.lang.tide.program import Program
    from graphtide.rules.firing import FiringLog
    from graphtide.rules.model import EventType, Rule


class ProgramSettings(NamedTuple):
    """How a program runs, whatever it declares; `resolver` is None if matches fire at once."""

    functions: Mapping[str, Callable[..., object]]
    policy: ErrorPolicy
    max_firings: int
    max_event_duration: int
    resolver: Resolver | None
    seed: int
    manual: bool


class ProgramParts:
    """What runs the declarations of a program; rules of `disabled` groups do not run.

    Queries that are `kept` run already. Firings go to the `log`, if there is one.
    """

    def __init__(
        self,
        program: Program,
        graph: GraphConnection,
        settings: ProgramSettings,
        disabled: Collection[str] = (),
        kept: Mapping[str, Query] | None = None,
        log: FiringLog | None = None,
    ) -> None:
        self.program = program.without_groups(disabled)
        compiler, rules = _compiled(self.program, program, graph.tick_ms)
        # With the events of disabled rules: what is noise for a pattern must not depend on them.
        self.detection = detect(program, compiler, graph.terms, graph.tick_ms)
        self.types = compiler.types
        self.graph = graph
        known = kept or {}
        self.queries: dict[str, Query] = {
            query.name: known[query.name]
            if query.name in known
            else graph.register(query.name, query.text)
            for query in program.queries
        }
        self.sources = [self._source(*each) for each in compiler.changes.items()]
        self.effects = GraphEffects(graph, self.sources)
        lasting = 0 if self.detection is None else self.detection.longest()
        entries = RuleSet(graph, max(settings.max_event_duration, lasting))
        self.engine = RuleEngine(
            graph, entries, self.effects, self.detection, max_firings=settings.max_firings, log=log
        )
        for rule, declared in zip(rules, self.program.rules, strict=True):
            actions = Actions(
                declared, settings.functions, self.engine, self.effects, settings.policy,
                graph.terms,
            )  # fmt: skip
            entries.add(rule, actions)
        read = [rule.facts for rule in rules if rule.facts is not None]
        read += [query for source in self.sources for query in source.found.queries]
        for declared in self.program.rules:  # whose actions cannot change what a rule matches?
            entry = entries[declared.name]
            if isinstance(entry.action, Actions) and only_inserts(declared, read):
                entry.action.inserts_only(entry.matcher.shape.variables)
        self._row_trackers: list[change_events.RowTracker] = []
        if settings.resolver is not None:
            self.engine.conflicts = ConflictSet(
                self.program.rules, entries, self._row_tracker, settings.resolver, settings.seed
            )
            self.engine.manual = settings.manual

    def _source(
        self, type_: EventType, change: QueryChange | QueryUpdate | StateChange
    ) -> change_events.ChangeSource:
        graph, parameters = self.graph, type_.parameters
        if isinstance(change, StateChange):
            return change_events.ChangeSource(
                type_.id, change_events.StateChanges(graph, change, parameters)
            )
        select = query_of(self.queries[change.query])
        if isinstance(change, QueryUpdate):
            return change_events.ChangeSource(
                type_.id, change_events.RowUpdates(graph, select, parameters)
            )
        rows = change_events.RowChanges(graph, select, parameters, appears=change.appears)
        return change_events.ChangeSource(type_.id, rows)

    def _row_tracker(self, query: str, variables: tuple[Var, ...]) -> change_events.RowTracker:
        tracker = change_events.RowTracker(self.graph, query_of(self.queries[query]), variables)
        self._row_trackers.append(tracker)
        return tracker

    def close(self, kept: Collection[str] = ()) -> None:
        """End its rules, and its queries but those that are kept."""
        for name in self.engine.rules.names():
            self.engine.rules.remove(name)
        for watches in (*self._row_trackers, *(source.found for source in self.sources)):
            for watch in watches.watches:
                watch.close()
        for name, query in self.queries.items():
            if name not in kept:
                query.close()


@lru_cache(maxsize=64)
def _compiled(enabled: Program, whole: Program, tick_ms: int) -> tuple[Compiler, list[Rule]]:
    """The rules of a program that are enabled, and all types of its events.

    All graphs that run it share them: nobody adds a type later.
    """
    compiler = Compiler(tick_ms)
    rules = [compiler.rule(rule) for rule in enabled.rules]
    if whole.patterns:
        types_of_patterns(whole, compiler)
    return compiler, rules


def check_functions(program: Program, functions: Mapping[str, object]) -> None:
    """Reject a program that calls a function which was not given."""
    for rule in program.rules:
        for action in rule.actions:
            if isinstance(action, CallFunction) and action.function not in functions:
                near = name_hint(action.function, functions, "function")
                raise GraphtideError(
                    f"the rule {rule.name} calls {action.function}, which was not given",
                    hint=f"run(…, functions={{…}}): {near}",
                )

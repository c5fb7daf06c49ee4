"""The repair problem: goals, fixes and limits of the search."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Self

from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.updates import Modify
from graphtide.algebra.variables import pattern_variables
from graphtide.arguments import each_of
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_query, parse_standing, parse_update
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.sparql.terms import TermParser
from graphtide.lang.tide.ast import Delete, Insert
from graphtide.lang.tide.program import Program
from graphtide.limits import MAX_PLANS, MAX_SECONDS, MAX_STATES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.algebra.expressions import Var


@dataclass(frozen=True, slots=True)
class Goal:
    """At most `most` rows of a query (hard); if `most` is None, the fewer the better (soft).

    >>> Goal.of("Sound", "SELECT ?r { ?r <ex:broken> true }").soft
    False
    """

    name: str
    query: SelectQuery
    most: int | None = 0
    weight: float = 1.0

    def __post_init__(self) -> None:
        _refuse_ask(self.name, self.query)
        if not (isfinite(self.weight) and self.weight > 0) or (self.most or 0) < 0:
            raise GraphtideError(
                f"invalid goal {self.name}: most={self.most}, weight={self.weight}",
                hint="the weight must be positive, and the number of rows not negative",
            )

    @classmethod
    def of(cls, name: str, query: str, *, most: int | None = 0, weight: float = 1.0) -> Self:
        """A goal about a SPARQL query."""
        return cls(name, parse_query(query), most, weight)

    @property
    def soft(self) -> bool:
        """Whether it is soft: plans need not meet it."""
        return self.most is None

    def violations(self, rows: int) -> int:
        """By how many rows an answer of `rows` rows violates the goal; 0 for a soft one.

        >>> Goal.of("Few", "SELECT ?r { ?r <ex:broken> true }", most=3).violations(5)
        2
        """
        return 0 if self.most is None else max(0, rows - self.most)


@dataclass(frozen=True, slots=True)
class Fix:
    """Quads to insert or delete for each row of a query, projected to `variables`.

    >>> mend = Fix.of("Mend", "SELECT ?r { ?r <ex:broken> true }", delete="?r <ex:broken> true")
    >>> [str(variable) for variable in mend.variables], mend.cost
    (['?r'], 1.0)
    """

    name: str
    query: SelectQuery
    variables: tuple[Var, ...]
    actions: tuple[Insert | Delete, ...]
    cost: float = 1.0

    def __post_init__(self) -> None:
        _refuse_ask(self.name, self.query)
        if not (isfinite(self.cost) and self.cost >= 0):
            message = f"invalid cost {self.cost} of the fix {self.name}"
            raise GraphtideError(message, hint="a cost is 0 or more")
        if not any(action.template for action in self.actions):
            message = f"the fix {self.name} changes nothing"
            raise GraphtideError(message, hint="give it triples to insert or to delete")
        for action in self.actions:
            for variable in (v for p in action.template for v in pattern_variables(p)):
                if variable not in self.variables:
                    raise GraphtideError(
                        f"{variable} has no value in the fix {self.name}",
                        hint=name_hint(str(variable), map(str, self.variables), "variable"),
                    )

    @classmethod
    def of(
        cls, name: str, query: str, *, delete: str = "", insert: str = "", cost: float = 1.0
    ) -> Self:
        """A fix for the rows of a SPARQL query; its templates may use the query's prefixes."""
        parsed = parse_query(query)
        parser = TermParser(query)
        parser.prologue()
        prologue = " ".join(f"PREFIX {name}: <{iri}>" for name, iri in parser.prefixes.items())
        update = parse_update(f"{prologue} DELETE {{ {delete} }} INSERT {{ {insert} }} WHERE {{ }}")
        (operation,) = update.operations
        assert isinstance(operation, Modify)  # noqa: S101 - that is what the text says
        actions = Delete(operation.delete), Insert(operation.insert)
        return cls(name, parsed, parsed.variables, actions, cost)


def _refuse_ask(name: str, query: SelectQuery) -> None:
    if query.form == "ASK":
        message = f"{name} uses an ASK query, which always has one row"
        raise GraphtideError(message, hint="write it as SELECT")


@dataclass(frozen=True, slots=True)
class RepairTask:
    """A repair problem; `queries` are those whose deltas plans preview."""

    goals: tuple[Goal, ...]
    fixes: tuple[Fix, ...]
    queries: dict[str, SelectQuery]


def task_of(
    program: Program | str | Path | Iterable[Goal], fixes: Iterable[Fix] | None = None
) -> RepairTask:
    """The repair problem of a program, or of given goals and fixes."""
    if isinstance(program, str | Path):
        program = Program.of(program)
    if isinstance(program, Program):
        task = _of_program(program, fixes)
    else:
        goals = tuple(each_of(program, "program", Goal))
        task = RepairTask(goals, tuple(fixes or ()), {goal.name: goal.query for goal in goals})
    if not task.goals:
        hint = "add one, such as GOAL Sound NONE OF Query"
        raise GraphtideError("there is no goal", hint=hint)
    _check_names("goal", [goal.name for goal in task.goals])
    _check_names("fix", [fix.name for fix in task.fixes])
    if not task.fixes:
        hint = "add one, such as FIX Mend ON Query THEN INSERT { … }"
        raise GraphtideError("there is no fix", hint=hint)
    return task


def _check_names(kind: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise GraphtideError(f"there is more than one {kind} named {name}")


def _of_program(program: Program, fixes: Iterable[Fix] | None) -> RepairTask:
    parsed = ((query.name, parse_standing(query.text)) for query in program.queries)
    queries = {name: query for name, query in parsed if isinstance(query, SelectQuery)}
    goals = tuple(Goal(g.name, queries[g.query], g.most, g.weight) for g in program.goals)
    if fixes is None:
        fixes = (
            Fix(f.name, queries[f.query], f.variables, f.actions, f.cost) for f in program.fixes
        )
    return RepairTask(goals, tuple(fixes), queries)


# --- limits of the search ---


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of a search: steps in a plan, seconds, visited states, and plans."""

    max_steps: int | None = None
    max_seconds: float = MAX_SECONDS
    max_states: int = MAX_STATES
    max_plans: int = MAX_PLANS

    def __post_init__(self) -> None:
        for name, value, low in (
            ("max_steps", self.max_steps, 0),
            ("max_states", self.max_states, 1),
            ("max_plans", self.max_plans, 1),
        ):
            if value is not None and value < low:
                raise GraphtideError(f"invalid {name}={value}", hint=f"use {low} or more")
        if not 0 < self.max_seconds <= inf:
            message = f"invalid max_seconds={self.max_seconds}"
            raise GraphtideError(message, hint="use more than 0")


class SearchStopped(Exception):  # noqa: N818 - not an error: a limit is reached
    """The search ends here; the message says why."""

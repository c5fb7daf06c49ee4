"""What is explored: goals, fixes, and the queries that are told of in previews."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.updates import Modify
from graphtide.algebra.variables import pattern_variables
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_query, parse_standing, parse_update
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.sparql.select import SelectParser
from graphtide.lang.tide.ast import Delete, Insert
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.algebra.expressions import Var


@dataclass(frozen=True, slots=True)
class Goal:
    """Of a query, at most so many rows (hard); without `most`, the fewer the better (soft).

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
                f"the goal {self.name} has at most {self.most} rows and weight {self.weight}",
                hint="a weight is above 0, and a number of rows not below",
            )

    @classmethod
    def of(cls, name: str, query: str, *, most: int | None = 0, weight: float = 1.0) -> Self:
        """A goal about a SPARQL query."""
        return cls(name, parse_query(query), most, weight)

    @property
    def soft(self) -> bool:
        """Whether it may be missed."""
        return self.most is None

    def violations(self, rows: int) -> int:
        """How far an answer of so many rows is from the goal; 0 for a soft one.

        >>> Goal.of("Few", "SELECT ?r { ?r <ex:broken> true }", most=3).violations(5)
        2
        """
        return 0 if self.most is None else max(0, rows - self.most)


@dataclass(frozen=True, slots=True)
class Fix:
    """For each row of a query, seen through some variables: what may be put in and taken out.

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
            message = f"the fix {self.name} cannot cost {self.cost}"
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
        parser = SelectParser(query, None)
        parser.prologue()
        prologue = " ".join(f"PREFIX {name}: <{iri}>" for name, iri in parser.prefixes.items())
        update = parse_update(f"{prologue} DELETE {{ {delete} }} INSERT {{ {insert} }} WHERE {{ }}")
        (operation,) = update.operations
        assert isinstance(operation, Modify)  # noqa: S101 - that is what the text says
        actions = Delete(operation.delete), Insert(operation.insert)
        return cls(name, parsed, parsed.variables, actions, cost)


def _refuse_ask(name: str, query: SelectQuery) -> None:
    if query.form == "ASK":
        message = f"{name} is about an ASK query, which has one row whatever is found"
        raise GraphtideError(message, hint="write it as SELECT")


@dataclass(frozen=True, slots=True)
class RepairTask:
    """What is explored; `queries` are those whose deltas a plan tells."""

    goals: tuple[Goal, ...]
    fixes: tuple[Fix, ...]
    queries: dict[str, SelectQuery]


def task_of(
    program: Program | str | Path | Iterable[Goal], fixes: Iterable[Fix] | None = None
) -> RepairTask:
    """The goals and fixes of a program, or those that are given."""
    if isinstance(program, str | Path):
        program = Program.of(program)
    if isinstance(program, Program):
        task = _of_program(program, fixes)
    else:
        goals = tuple(program)
        task = RepairTask(goals, tuple(fixes or ()), {goal.name: goal.query for goal in goals})
    if not task.goals:
        hint = "add one, such as GOAL Sound NONE OF Query"
        raise GraphtideError("there is no goal, so nothing is to be mended", hint=hint)
    _check_names("goal", [goal.name for goal in task.goals])
    _check_names("fix", [fix.name for fix in task.fixes])
    if not task.fixes:
        hint = "add one, such as FIX Mend ON Query THEN INSERT { … }"
        raise GraphtideError("there is no fix, so nothing can be mended", hint=hint)
    return task


def _check_names(kind: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise GraphtideError(f"{name} is the name of more than one {kind}")


def _of_program(program: Program, fixes: Iterable[Fix] | None) -> RepairTask:
    parsed = ((query.name, parse_standing(query.text)) for query in program.queries)
    queries = {name: query for name, query in parsed if isinstance(query, SelectQuery)}
    goals = tuple(Goal(g.name, queries[g.query], g.most, g.weight) for g in program.goals)
    if fixes is None:
        fixes = (
            Fix(f.name, queries[f.query], f.variables, f.actions, f.cost) for f in program.fixes
        )
    return RepairTask(goals, tuple(fixes), queries)


# --- Limits: how far an exploration goes, and why it stops.

MOST_STATES: Final = 100_000
MOST_SECONDS: Final = 10.0
MOST_PLANS: Final = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """At most so many steps in a plan, seconds, states looked at, and plans."""

    depth: int | None = None
    seconds: float = MOST_SECONDS
    states: int = MOST_STATES
    plans: int = MOST_PLANS

    def __post_init__(self) -> None:
        least = {"depth": (self.depth, 0), "states": (self.states, 1), "plans": (self.plans, 1)}
        for name, (value, low) in least.items():
            if value is not None and value < low:
                raise GraphtideError(f"{name}={value} is no limit", hint=f"use {low} or more")
        if not 0 < self.seconds <= inf:
            raise GraphtideError(f"seconds={self.seconds} is no limit", hint="use more than 0")


class Stopped(Exception):  # noqa: N818 - no error: a limit is reached
    """Exploring ends here; says why."""

"""Check GOAL and FIX declarations."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final

from lark import Token, Tree

from graphtide.algebra.nodes import SelectQuery
from graphtide.lang.durations import whole
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.tide.ast import Delete, FixDeclaration, GoalDeclaration, Insert
from graphtide.lang.tide.events import read_columns
from graphtide.lang.tide.rules import read_actions
from graphtide.lang.tide.source import DeclaredNames, Source, token_of, tokens_of

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var

GOALS: Final = ("none_goal", "most_goal", "soft_goal")
"""Grammar rules of goals."""


def read_goal(source: Source, tree: Tree[Token], names: DeclaredNames) -> None:
    """Check a GOAL declaration, and add it to the names."""
    name, query = tokens_of(tree, "NAME")
    number = token_of(tree, "NUMBER")
    most, weight = (0 if tree.data == "none_goal" else None), 1.0
    if tree.data == "most_goal" and number is not None:
        if not number.isdigit():
            source.report(number, f"invalid number of rows {number}", "write a whole number")
            return
        most = whole(number)
    elif number is not None:
        found = _amount(source, number, "WEIGHT")
        if found is None:
            return
        weight = found
        if not weight:
            hint = "remove the goal, or give it a weight above 0"
            source.report(number, "a goal of weight 0 has no effect", hint)
            return
    if names.columns(source, query) is not None and _is_usable(source, query, names, "goal"):
        names.goals[str(name)] = GoalDeclaration(
            str(name), str(query), most, weight, name.line or 1
        )


def read_fix(source: Source, tree: Tree[Token], names: DeclaredNames) -> None:
    """Check a FIX declaration, and add it to the names."""
    name, query = tokens_of(tree, "NAME")
    variables = _variables(source, tree, names)
    if variables is not None and not _is_usable(source, query, names, "fix"):
        variables = None
    edits = tree.children[-1]
    assert isinstance(edits, Tree)  # noqa: S101 - the grammar says so
    bound = None if variables is None else set(variables)
    actions = read_actions(source, edits, bound, (), "fix")
    number = token_of(tree, "NUMBER")
    cost = 1.0 if number is None else _amount(source, number, "COST")
    if variables is None or actions is None or cost is None:
        return
    changes = tuple(action for action in actions if isinstance(action, Insert | Delete))
    if not any(action.template for action in changes):
        source.report(name, f"the fix {name} changes nothing", "write triples between the brackets")
        return
    names.fixes[str(name)] = FixDeclaration(
        str(name), str(query), variables, changes, cost, name.line or 1
    )


def _variables(source: Source, tree: Tree[Token], names: DeclaredNames) -> tuple[Var, ...] | None:
    """The variables of a fix: the columns that it names, or else all of its query."""
    called, written = tokens_of(tree, "NAME")[1], token_of(tree, "ARGUMENTS")
    wanted, columns = read_columns(source, called, written, names)
    return None if columns is None else wanted


def _is_usable(source: Source, name: Token, names: DeclaredNames, what: str) -> bool:
    """Whether a query can be used in goals and fixes: not over windows, and not ASK."""
    query = parse_standing(names.queries[str(name)].text)
    if not isinstance(query, SelectQuery):
        message = f"{name} is a windowed query, which a {what} cannot use"
        source.report(name, message, "write it as a query over the graph")
        return False
    if query.form == "ASK":
        message = f"{name} is an ASK query, which always has one row"
        source.report(name, message, "write it as SELECT")
        return False
    return True


def _amount(source: Source, number: Token, word: str) -> float | None:
    amount = float(number)
    if not isfinite(amount):
        source.report(number, f"{word} {number} is too large", "write a smaller number")
        return None
    return amount

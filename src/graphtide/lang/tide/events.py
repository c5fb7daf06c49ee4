"""Check EVENT declarations."""

from __future__ import annotations

from dataclasses import replace

from lark import Token, Tree

from graphtide.algebra.expressions import Call, Expression, Var
from graphtide.algebra.variables import mentioned, merge, pattern_variables
from graphtide.lang.sparql.parse import parse_query
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.fragments import filter_of, triples_of, variables_of
from graphtide.lang.tide.source import DeclaredNames, Source, token_of, tokens_of

Variables = tuple[Var, ...]


def report_arity(source: Source, token: Token, type_: tide.EventDeclaration, given: int) -> None:
    """Record a wrong number of arguments."""
    wanted = len(type_.parameters)
    plural = "parameter" if wanted == 1 else "parameters"
    shown = f"it is {type_.name}({', '.join(map(str, type_.parameters))})"
    source.report(token, f"the event {type_.name} has {wanted} {plural}, not {given}", shown)


def read_event(
    source: Source, tree: Tree[Token], names: DeclaredNames
) -> tide.EventDeclaration | None:
    """An EVENT declaration; None, and errors recorded, if it is invalid."""
    event = _read_event(source, tree, names)
    written = next((part for part in tree.find_data("check")), None)
    if event is None or written is None:
        return event
    check = _read_check(source, tokens_of(written, "EXPRESSION")[0], event)
    return None if check is None else replace(event, check=check)


def _read_check(source: Source, token: Token, event: tide.EventDeclaration) -> Expression | None:
    check = filter_of(source, token, "write a query, and an event ON APPEAR OF it")
    if check is None or not _tests_parameters(source, token, check, event):
        return None
    return check if event.check is None else Call("&&", (event.check, check))


def _tests_parameters(
    source: Source, token: Token, condition: Expression, event: tide.EventDeclaration
) -> bool:
    """Whether the condition of CHECK or FILTER is over parameters; else it is reported."""
    unknown = sorted(v.name for v in mentioned(condition) - set(event.parameters))
    for name in unknown:
        hint = name_hint(f"?{name}", map(str, event.parameters), "parameter")
        message = f"?{name} is not a parameter of the event {event.name}"
        source.report_variable(token, name, message, hint)
    return not unknown


def _read_event(
    source: Source, tree: Tree[Token], names: DeclaredNames
) -> tide.EventDeclaration | None:
    name, written = tokens_of(tree, "NAME")[0], token_of(tree, "ARGUMENTS")
    parameters = variables_of(source, written) if written is not None else None
    if tree.data == "graph_event":
        group = tokens_of(tree, "GROUP")[0]
        read = triples_of(source, group)
        if read is None or (written is not None and parameters is None):
            return None
        patterns, condition = read
        known: Variables = merge(*(pattern_variables(pattern) for pattern in patterns))
        event = tide.EventDeclaration(
            str(name), parameters or (), tide.GraphPattern(patterns), name.line or 1, condition
        )
        if condition is not None and not _tests_parameters(source, group, condition, event):
            return None
    else:
        change = next(each for each in tree.children if isinstance(each, Tree))
        found = read_change(source, change, names, name)
        if found is None or (written is not None and parameters is None):
            return None
        event, known = found
        if parameters is not None:
            event = tide.EventDeclaration(event.name, parameters, event.source, event.line)
    return event if _known(source, written, event, known) else None


def _known(
    source: Source, written: Token | None, event: tide.EventDeclaration, known: Variables
) -> bool:
    for parameter in event.parameters if written is not None else ():
        if parameter not in known:
            hint = name_hint(str(parameter), [str(v) for v in known if _nameable(v)], "variable")
            message = f"the parameter {parameter} of the event {event.name} is not bound"
            source.report_variable(written, parameter.name, message, hint)  # type: ignore[arg-type]
            return False
    return True


def _nameable(variable: Var) -> bool:
    return not variable.name.startswith("_:")


def read_columns(
    source: Source, called: Token, written: Token | None, names: DeclaredNames
) -> tuple[Variables | None, Variables | None]:
    """The named columns of a query, or else all; and all its columns. None if there are errors."""
    columns = names.columns(source, called)
    wanted = variables_of(source, written) if written is not None else columns
    if columns is None or wanted is None:
        return None, columns
    for variable in wanted:
        if variable not in columns:
            hint = name_hint(str(variable), map(str, columns), "variable")
            message = f"the query {called} has no variable {variable}"
            source.report_variable(written or called, variable.name, message, hint)
            return None, columns
    return wanted, columns


def read_change(
    source: Source, tree: Tree[Token], names: DeclaredNames, name: Token | None = None
) -> tuple[tide.EventDeclaration, Variables] | None:
    """The event after ON with its parameters, and all variables that it could have."""
    if tree.data == "change":
        return _state_change(source, tree, name)
    called = tokens_of(tree, "NAME")[0]
    wanted, columns = read_columns(source, called, token_of(tree, "ARGUMENTS"), names)
    if columns is None or wanted is None:
        return None
    shown = f"{tree.data.upper()} OF {called}({_listed(wanted)})"
    if tree.data == "update":
        if set(wanted) == set(columns):
            fewer = f"name fewer variables, such as UPDATE OF {called}({_listed(wanted[:1])})"
            source.report(
                called,
                f"{called} has no other columns than ({_listed(wanted)}) that could change",
                fewer,
            )
            return None
        change: tide.QueryChange | tide.QueryUpdate = tide.QueryUpdate(str(called), wanted)
    else:
        change = tide.QueryChange(str(called), wanted, tree.data == "appear")
    line = (name or called).line or 1
    return tide.EventDeclaration(str(name) if name else shown, wanted, change, line), wanted


def _listed(variables: Variables) -> str:
    return ", ".join(map(str, variables))


def _state_change(
    source: Source, tree: Tree[Token], name: Token | None
) -> tuple[tide.EventDeclaration, Variables] | None:
    variable = tokens_of(tree, "VAR")[0]
    of = Var(variable[1:])
    groups = tokens_of(tree, "GROUP")
    states = [source.parse_fragment(group, parse_query, "SELECT * WHERE") for group in groups]
    before, after = states
    if before is None or after is None:
        return None
    for group, state in zip(groups, (before, after), strict=True):
        if of not in state.variables:
            source.report(group, f"{of} does not occur in this state", f"use {of} in it")
            return None
    event = tide.EventDeclaration(
        str(name) if name else f"CHANGE OF {of}", (of,), tide.StateChange(of, before, after),
        (name or variable).line or 1,
    )  # fmt: skip
    return event, merge(before.variables, after.variables)

"""The actions of a rule: what it puts in, takes out, emits, calls and retracts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lark import Token, Tree

from graphtide.algebra.expressions import Var
from graphtide.algebra.variables import pattern_variables
from graphtide.lang.declarations import Action, CallFunction, Delete, Emit, Insert, Retract
from graphtide.lang.hints import name_hint
from graphtide.lang.tide_events import token_of, tokens_of
from graphtide.lang.tide_pieces import arguments_of, stream_of, template_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.lang.declarations import EventUse
    from graphtide.lang.tide_source import Source


def read_actions(
    source: Source,
    tree: Tree[Token],
    bound: set[Var] | None,
    events: Sequence[EventUse],
    what: str = "rule",
) -> tuple[Action, ...] | None:
    """The actions in order; None, and mistakes noted, if one is not sound.

    Without `bound` nothing is known of the variables, and they are not checked.
    """
    written = [part for part in tree.children if isinstance(part, Tree)]
    found = [_read_action(source, part, bound, events, what) for part in written]
    sound = tuple(action for action in found if action is not None)
    return sound if len(sound) == len(found) else None


def _read_action(
    source: Source,
    tree: Tree[Token],
    bound: set[Var] | None,
    events: Sequence[EventUse],
    what: str,
) -> Action | None:
    match str(tree.data):
        case "call":
            return _call(source, tree, bound, what)
        case "retract":
            return _retract(source, tree, events)
        case word:
            return _change(source, tree, word.upper(), bound, what)


def _change(
    source: Source, tree: Tree[Token], word: str, bound: set[Var] | None, what: str
) -> Insert | Delete | Emit | None:
    group = tokens_of(tree, "GROUP")[0]
    template = template_of(source, group, word)
    name = token_of(tree, "IRI")
    stream = stream_of(source, name) if name is not None else None
    if template is None or not _all_bound(source, group, _variables(template), bound, what):
        return None
    if word == "EMIT":
        return None if stream is None else Emit(stream, template)
    return Insert(template) if word == "INSERT" else Delete(template)


def _variables(template: tuple[TriplePattern, ...]) -> list[Var]:
    return [variable for pattern in template for variable in pattern_variables(pattern)]


def _all_bound(
    source: Source, token: Token, variables: Iterable[Var], bound: set[Var] | None, what: str
) -> bool:
    if bound is None:
        return True
    missing = [v for v in dict.fromkeys(variables) if v not in bound]
    for variable in missing:
        known = sorted(str(v) for v in bound if not v.name.startswith("_:"))
        hint = name_hint(str(variable), known, "variable")
        message = f"{variable} has no value in this {what}"
        source.report_variable(token, variable.name, message, hint)
    return not missing


def _call(
    source: Source, tree: Tree[Token], bound: set[Var] | None, what: str
) -> CallFunction | None:
    name, written = tokens_of(tree, "NAME")[0], token_of(tree, "ARGUMENTS")
    arguments = arguments_of(source, written) if written is not None else ()
    if arguments is None:
        return None
    variables = [argument for argument in arguments if isinstance(argument, Var)]
    if written is not None and not _all_bound(source, written, variables, bound, what):
        return None
    return CallFunction(str(name), arguments)


def _retract(source: Source, tree: Tree[Token], events: Sequence[EventUse]) -> Retract | None:
    name = tokens_of(tree, "NAME")[0]
    known = [use.name for use in events if not use.negated]
    if str(name) in known or not events:
        return Retract(str(name))
    hint = name_hint(str(name), known, "event")
    source.report(name, f"there is no event named {name} in this rule", hint)
    return None

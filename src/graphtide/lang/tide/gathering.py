"""References between the events of a pattern: `AS`, `WHERE`, and computed parameters.

`a -> b WHERE (?b.value > 2 * ?a.value)`: a condition is over the parameters of the events that an
instance has consumed, by the names that `AS` gives them or else by their types.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from graphtide.algebra.expressions import Expression, Var
from graphtide.algebra.variables import mentioned
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide import pattern_facts as facts
from graphtide.lang.tide.fragments import expression_of, variables_of
from graphtide.lang.tide.references import TIMES, EventReference, reference_of, references_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lark import Token

    from graphtide.lang.tide.source import Source

    Moved = Callable[[tide.EventPattern, tide.EventPattern], None]
    """Called with a node and the one that replaces it."""

Computed = tuple[tuple[Var, Expression], ...]

_COMPUTED: Final = re.compile(r"(.*\S)\s+AS\s+[?$](\w+)\s*", re.IGNORECASE | re.DOTALL)


def parameters_of(source: Source, token: Token) -> tuple[tuple[Var, ...], Computed] | None:
    """The parameters of a pattern; `SUM(?a.value) AS ?total` is a computed one."""
    pieces = list(_pieces(token))
    plain, computed = [], []
    for start, text in pieces:
        written = _COMPUTED.fullmatch(text)
        if written is None:
            plain.append(text)
            continue
        indent = len(written[1]) - len(written[1].lstrip())
        part = token.update(value=f"({written[1].strip()})")
        part.start_pos = (token.start_pos or 0) + start + indent - 1
        part.line, part.column = source.place(part.start_pos)
        expression = expression_of(source, part)
        if expression is None:
            return None
        computed.append((Var(written[2]), expression))
        plain.append(f"?{written[2]}")
    if not computed:
        given = variables_of(source, token)
        return None if given is None else (given, ())
    variables = variables_of(source, token.update(value=f"({', '.join(plain)})"))
    return None if variables is None else (variables, tuple(computed))


def _pieces(token: Token) -> Iterator[tuple[int, str]]:
    """The parts between the commas outside of inner brackets, with their offsets."""
    depth, start = 0, 1
    for at, sign in enumerate(token):
        depth += (sign == "(") - (sign == ")")
        if (sign == "," and depth == 1) or (sign == ")" and depth == 0):
            yield start, token[start:at]
            start = at + 1


def named(
    pattern: tide.PatternDeclaration, fields: Callable[[str], tuple[str, ...]], moved: Moved
) -> tide.PatternDeclaration:
    """Give events that are referred to by their type its name as alias, if it is the only one."""
    wanted = {reference.event for reference in _all_references(pattern)}
    atoms = [part for part in facts.walk(pattern.body) if isinstance(part, tide.Atom)]
    types = Counter(atom.event for atom in atoms if not atom.alias)
    taken = {atom.alias for atom in atoms}
    aliases = {name for name in wanted if types[name] == 1 and name not in taken}

    def alias(atom: tide.Atom) -> tide.Atom:
        fits = not atom.alias and atom.event in aliases
        return replace(atom, alias=atom.event, fields=fields(atom.event)) if fits else atom

    return replace(pattern, body=changed_atoms(pattern.body, alias, moved)) if aliases else pattern


def changed_atoms(
    node: tide.EventPattern, change: Callable[[tide.Atom], tide.Atom], moved: Moved
) -> tide.EventPattern:
    """A pattern with other events."""
    match node:
        case tide.Atom():
            made: tide.EventPattern = change(node)
        case tide.Follows(parts) | tide.Either(parts) | tide.Both(parts) | tide.Interleaved(parts):
            made = type(node)(tuple(changed_atoms(part, change, moved) for part in parts))
        case tide.Repeat(part) | tide.Not(part) | tide.Within(part) | tide.HoldsFor(part):
            made = replace(node, part=changed_atoms(part, change, moved))
    moved(node, made)
    return made


def gathers(pattern: tide.PatternDeclaration) -> bool:
    """Whether a pattern refers to its events."""
    return bool(pattern.computed) or any(_conditions(pattern.body))


def _conditions(body: tide.EventPattern) -> Iterator[tuple[tide.Atom, Expression]]:
    for part in facts.walk(body):
        if isinstance(part, tide.Atom) and part.condition is not None:
            yield part, part.condition


def _all_references(pattern: tide.PatternDeclaration) -> Iterator[EventReference]:
    for _, condition in _conditions(pattern.body):
        yield from references_in(mentioned(condition))
    for _, expression in pattern.computed:
        yield from references_in(mentioned(expression))


Problem = tuple[str, str | None, tide.Atom | None]
"""Message, hint, and the event that it is about; None: a parameter."""


def problems_of(pattern: tide.PatternDeclaration) -> Iterator[Problem]:
    """What is wrong with the references of a pattern."""
    aliases = Counter(a.alias for a in _atoms(pattern.body) if a.alias)
    for alias, count in aliases.items():
        if count > 1:
            atom = [a for a in _atoms(pattern.body) if a.alias == alias][-1]
            yield f"there are two events named {alias}", "give them different names", atom
    denied = {id(a) for n in facts.walk(pattern.body) if isinstance(n, tide.Not) for a in _atoms(n)}
    for atom, condition in _conditions(pattern.body):
        known = {
            a.alias: a
            for a in _seen(pattern.body, atom)
            if a.alias and (id(a) not in denied or a is atom or id(atom) in denied)
        }
        yield from _unknown(condition, known, facts.may_bind(pattern.body), atom)
    outside = {a.alias: a for a in _atoms(pattern.body) if a.alias and id(a) not in denied}
    for variable, expression in pattern.computed:
        yield from _unknown(expression, outside, facts.must_bind(pattern.body), None)
        if variable in facts.variables_in(pattern.body):
            hint = "choose another name after AS"
            yield f"{variable} has a value from an event already", hint, None


def _atoms(body: tide.EventPattern) -> list[tide.Atom]:
    return [part for part in facts.walk(body) if isinstance(part, tide.Atom)]


def _seen(body: tide.EventPattern, atom: tide.Atom) -> list[tide.Atom]:
    """The events that may have been consumed when an event is: those that are written before it.

    In AND and ALL the order is open, and in a repeated part later ones are of the round before.
    """
    atoms = _atoms(body)
    unordered = any(
        isinstance(part, tide.Both | tide.Interleaved) or _is_loop(part)
        for part in facts.walk(body)
        if any(each is atom for each in facts.walk(part))
    )
    at = next(place for place, each in enumerate(atoms) if each is atom)
    return atoms if unordered else atoms[: at + 1]


def _is_loop(part: tide.EventPattern) -> bool:
    return isinstance(part, tide.Repeat) and part.most != 1 and not isinstance(part.part, tide.Atom)


def _unknown(
    expression: Expression,
    known: dict[str, tide.Atom],
    bound: facts.Variables,
    atom: tide.Atom | None,
) -> Iterator[Problem]:
    for variable in sorted(mentioned(expression), key=str):
        reference = reference_of(variable)
        if reference is None:
            if variable not in bound:
                hint = name_hint(str(variable), sorted(map(str, bound)), "variable")
                yield f"{variable} has no value here", hint, atom
            continue
        event = known.get(reference.event)
        if event is None:
            hint = name_hint(reference.event, known, "named event")
            yield f"{reference}: no event before it is named {reference.event}", hint, atom
        elif reference.function in (*TIMES, "COUNT"):
            if reference.parameter:
                hint = f"write {reference.function}({reference.event})"
                yield f"{reference.function} is of an event, not of a parameter", hint, atom
        elif reference.parameter not in event.fields:
            hint = name_hint(reference.parameter, event.fields, "parameter")
            lacks = f"has no parameter {reference.parameter}" if reference.parameter else "is given"
            yield f"{reference}: the event {event.event} {lacks}", hint, atom

"""Check TEST declarations: what is given, and what is expected of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from lark import Token, Tree
from pyoxigraph import BlankNode

from graphtide.algebra.expressions import Var
from graphtide.algebra.variables import pattern_variables
from graphtide.functions.templates import fill_template
from graphtide.lang.durations import whole
from graphtide.lang.sparql.parse import parse_query
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide import fragments
from graphtide.lang.tide.events import report_arity
from graphtide.lang.tide.source import DeclaredNames, Source, token_of, tokens_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.nodes import TriplePattern
    from graphtide.functions.templates import FilledQuad
    from graphtide.rdf.terms import Term

Given = tide.GivenChange | tide.GivenEvent
Kind = Literal["rule", "pattern", "query"]

_WRITE_TRIPLES: Final = "PUBLISH { … } has the triples of an event"


def read_test(source: Source, tree: Tree[Token], names: DeclaredNames) -> None:
    """Check a TEST declaration, and add it to the names."""
    name, written = tokens_of(tree, "NAME")[0], tokens_of(tree, "NUMBER")
    parts = {str(part.data): part for part in tree.children if isinstance(part, Tree)}
    steps = _read_steps(source, parts["steps"], names) if "steps" in parts else ()
    claims = [_read_claim(source, part, names) for part in _trees(parts["claims"])]
    last = steps[-1].time if steps else 0
    until = _time(source, written[0], last) if written else None
    sound = tuple(claim for claim in claims if claim is not None)
    if steps is None or len(sound) < len(claims) or (written and until is None):
        return
    prefixes = tuple(source.prefixes.items())
    names.tests[str(name)] = tide.TestDeclaration(
        str(name), steps, until, sound, prefixes, source.name or "program", name.line or 1
    )


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [part for part in tree.children if isinstance(part, Tree)]


def _time(source: Source, number: Token, least: int = 0) -> int | None:
    """A time in ticks; None, and an error recorded, if it is none, or before another."""
    if not number.isdigit():
        source.report(number, f"invalid time {number}", "write whole ticks such as 5")
    elif whole(number) < least:
        source.report(number, f"{number} is before {least}", "write what is given in order of time")
    else:
        return whole(number)
    return None


# --- what is given ---


def _read_steps(
    source: Source, tree: Tree[Token], names: DeclaredNames
) -> tuple[tide.TestStep, ...] | None:
    steps: list[tide.TestStep] = []
    time, sound = 0, True
    for step in _trees(tree):
        given: list[Given] = []
        start: int | None = None
        for part in _trees(step):
            if part.data in ("at", "lasting"):
                *first, last = tokens_of(part, "NUMBER")
                start = _time(source, first[0]) if first else None
                found = _time(source, last, max(time, start or 0))
                sound &= found is not None and (start is not None) == bool(first)
                time = time if found is None else found
                continue
            read = (
                _read_event(source, part, names) if part.data == "called" else _read(source, part)
            )
            if start is not None and part.data not in ("called", "publish"):
                word = next(part.scan_values(lambda each: isinstance(each, Token)))
                source.report(word, f"{part.data.upper()} does not last", "write AT instead")
                sound = False
            sound &= read is not None
            given += [] if read is None else [read]
        steps.append(tide.TestStep(time, tuple(given), start))
    return tuple(steps) if sound else None


def _read(source: Source, tree: Tree[Token]) -> Given | None:
    """INSERT, DELETE, EMIT or PUBLISH."""
    word, group = tree.data.upper(), tokens_of(tree, "GROUP")[0]
    name = token_of(tree, "IRI")
    stream = None if name is None else fragments.stream_of(source, name)
    template = fragments.template_of(source, group, word)
    if template is None or (name is not None and stream is None):
        return None
    unbound = dict.fromkeys(v for pattern in template for v in pattern_variables(pattern))
    for variable in unbound:
        message = f"{variable} has no value in a test"
        source.report_variable(group, variable.name, message, "write a term instead")
    quads = tuple(fill_template(template, {}, scope=str(group.start_pos)))
    if unbound or not _complete(source, group, template, quads):
        return None
    if word in ("INSERT", "DELETE"):
        return tide.GivenChange(1 if word == "INSERT" else -1, quads)
    return tide.GivenEvent(tuple((s, p, o) for s, p, o, _ in quads), stream)


def _complete(
    source: Source, token: Token, template: Sequence[TriplePattern], quads: Sequence[FilledQuad]
) -> bool:
    if not quads:
        source.report(token, "there are no triples here", "write some, such as { :a :knows :b }")
    elif len(quads) < len(template):
        source.report(token, "a term cannot be where it is in a triple", _WRITE_TRIPLES)
    return len(quads) == len(template) > 0


def _read_event(source: Source, tree: Tree[Token], names: DeclaredNames) -> tide.GivenEvent | None:
    """`Type(terms)`: the pattern of the event, filled in; its other variables are blank nodes."""
    name, written = tokens_of(tree, "NAME")[0], token_of(tree, "ARGUMENTS")
    type_ = names.event(source, name)
    given = () if written is None else fragments.arguments_of(source, written)
    if type_ is None or given is None:
        return None
    if not isinstance(type_.source, tide.GraphPattern):
        hint = "insert or delete, or let events happen, what causes it"
        source.report(name, f"{name} is not an event that comes from outside", hint)
        return None
    if len(given) != len(type_.parameters):
        report_arity(source, written or name, type_, len(given))
        return None
    row: dict[Var, Term] = {}
    for parameter, argument in zip(type_.parameters, given, strict=True):
        if isinstance(argument, Var):
            message = f"{argument} has no value in a test"
            source.report_variable(written or name, argument.name, message, "write a term instead")
            return None
        row[parameter] = argument
    patterns = type_.source.patterns
    others = dict.fromkeys(v for pattern in patterns for v in pattern_variables(pattern))
    for number, variable in enumerate(v for v in others if v not in row):
        row[variable] = BlankNode(f"t{name.start_pos}x{number}")
    quads = fill_template(patterns, row, scope=str(name.start_pos))
    if not _complete(source, written or name, patterns, quads):
        return None
    return tide.GivenEvent(tuple((s, p, o) for s, p, o, _ in quads))


# --- what is expected ---


def _read_claim(source: Source, tree: Tree[Token], names: DeclaredNames) -> tide.Claim | None:
    parts = {str(part.data): part for part in _trees(tree)}
    at = tokens_of(parts["at"], "NUMBER")[0] if "at" in parts else None
    time = None if at is None else _time(source, at)
    tokens = list(tree.scan_values(lambda value: isinstance(value, Token)))
    text = " ".join(source.text[tokens[0].start_pos : tokens[-1].end_pos].split())
    line = tokens[0].line or 1
    count = 0 if token_of(tree, "NOT") is not None else None
    if "many" in parts:
        number = tokens_of(parts["many"], "NUMBER")[0]
        if not number.isdigit():
            source.report(number, f"invalid number {number}", "write a whole number")
            return None
        count = whole(number)
    if at is not None and time is None:
        return None
    if tree.data == "fact_claim":
        group = tokens_of(tree, "GROUP")[0]
        if source.parse_fragment(group, parse_query, "SELECT * WHERE") is None:
            return None
        query = f"{source.prologue} SELECT * WHERE {group}"
        return tide.Claim("fact", text, (), time, count, False, text, line, query)
    found = _read_named(source, parts["called"], names)
    if found is None:
        return None
    kind, name, values = found
    only = token_of(tree, "ONLY") is not None
    return tide.Claim(kind, name, values, time, count, only, text, line)


def _read_named(
    source: Source, tree: Tree[Token], names: DeclaredNames
) -> tuple[Kind, str, tuple[tuple[str, Term], ...]] | None:
    """What a claim names (a rule, else a pattern, else a query), and the values of variables."""
    name, written = tokens_of(tree, "NAME")[0], token_of(tree, "ARGUMENTS")
    declared: dict[Kind, dict[str, tuple[Var, ...]]] = {
        "rule": {each.name: _rule_variables(each) for each in names.rules.values()},
        "pattern": {each.name: each.parameters for each in names.patterns.values()},
        "query": names.variables,
    }
    kind = next((kind for kind, known in declared.items() if str(name) in known), None)
    given = () if written is None else fragments.values_of(source, written)
    if kind is None:
        if str(name) not in names.broken and not names.is_declared(str(name)):
            hint = name_hint(str(name), [n for known in declared.values() for n in known], "name")
            message = f"there is no rule, pattern or query named {name}"
            source.report(name, message, hint)
        return None
    if given is None:
        return None
    columns = declared[kind][str(name)]
    values: list[tuple[str, Term]] = []
    for place, (variable, value) in enumerate(given):
        if variable is None and kind == "rule":
            hint = f"write {', '.join(f'{v} = …' for v in columns) or 'nothing'}"
            source.report(written or name, "the values of a rule have no order", hint)
            return None
        if variable is None and place >= len(columns):
            many = f"{len(columns)} column" + ("" if len(columns) == 1 else "s")
            message = f"the {kind} {name} has {many}"
            source.report(written or name, message, f"it is {name}({_listed(columns)})")
            return None
        column = columns[place] if variable is None else variable
        if column not in columns:
            hint = name_hint(str(column), map(str, columns), "variable")
            message = f"the {kind} {name} has no variable {column}"
            source.report_variable(written or name, column.name, message, hint)
            return None
        values += [] if value is None else [(column.name, value)]
    return kind, str(name), tuple(values)


def _listed(variables: Sequence[Var]) -> str:
    return ", ".join(map(str, variables))


def _rule_variables(rule: tide.RuleDeclaration) -> tuple[Var, ...]:
    """The variables that a firing of the rule has values of."""
    used = [a for use in rule.events if not use.negated for a in use.arguments]
    facts = () if rule.facts is None else rule.facts.variables
    return tuple(dict.fromkeys(v for v in (*used, *facts) if isinstance(v, Var)))

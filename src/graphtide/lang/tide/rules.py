"""Check RULE declarations: their events, tests and actions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lark import Token, Tree

from graphtide.algebra.expressions import Var
from graphtide.algebra.variables import mentioned, pattern_variables
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide import fragments
from graphtide.lang.tide.events import read_change, report_arity
from graphtide.lang.tide.references import TIMES, EventReference, reference_of, references_in
from graphtide.lang.tide.source import DeclaredNames, Source, token_of, tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from graphtide.algebra.expressions import Expression
    from graphtide.algebra.nodes import SelectQuery, TriplePattern
    from graphtide.rdf.terms import Term


# --- actions ---


def read_actions(
    source: Source,
    tree: Tree[Token],
    bound: set[Var] | None,
    events: Sequence[tide.EventUse],
    what: str = "rule",
) -> tuple[tide.Action, ...] | None:
    """The actions in order; None, and errors recorded, if one is invalid.

    If `bound` is None, the conditions have errors, and variables are not checked.
    """
    written = [part for part in tree.children if isinstance(part, Tree)]
    found = [_read_action(source, part, bound, events, what) for part in written]
    sound = tuple(action for action in found if action is not None)
    return sound if len(sound) == len(found) else None


def _read_action(
    source: Source,
    tree: Tree[Token],
    bound: set[Var] | None,
    events: Sequence[tide.EventUse],
    what: str,
) -> tide.Action | None:
    match str(tree.data):
        case "call":
            return _call(source, tree, bound, what)
        case "retract":
            return _retract(source, tree, events)
        case word:
            return _change(source, tree, word.upper(), bound, what)


def _change(
    source: Source, tree: Tree[Token], word: str, bound: set[Var] | None, what: str
) -> tide.Insert | tide.Delete | tide.Emit | None:
    group = tokens_of(tree, "GROUP")[0]
    before = len(source.errors)
    template = fragments.template_of(source, group, word)
    for error in source.errors[before:]:
        if what == "rule" and _OPERATOR.match(error.message):
            error.hint = "give a computed value a name: (?a + 1 AS ?b)"
    name = token_of(tree, "IRI")
    stream = fragments.stream_of(source, name) if name is not None else None
    if template is None or not _all_bound(source, group, _variables(template), bound, what):
        return None
    if word == "EMIT":
        return None if stream is None else tide.Emit(stream, template)
    return tide.Insert(template) if word == "INSERT" else tide.Delete(template)


_PRIORITY: Final = re.compile(r"[+-]?[0-9]{1,18}")
_OPERATOR: Final = re.compile(r"expected a term or variable, found '[-+*/=<>!&|]")


def _variables(template: tuple[TriplePattern, ...]) -> list[Var]:
    return [variable for pattern in template for variable in pattern_variables(pattern)]


def _all_bound(
    source: Source, token: Token, variables: Iterable[Var], bound: set[Var] | None, what: str
) -> bool:
    if bound is None:
        return True
    missing = [v for v in dict.fromkeys(variables) if v not in bound]
    for variable in missing:
        message = f"{reference_of(variable) or variable} has no value in this {what}"
        source.report_variable(token, variable.name, message, _nearest(variable, bound))
    return not missing


def _nearest(variable: Var, bound: set[Var]) -> str:
    """A hint with the variables that a text can name, or with the events if it is about one."""
    reference = reference_of(variable)
    if reference is not None and reference.event:
        events = sorted({each.event for each in references_in(bound) if each.event})
        return name_hint(reference.event, events, "event with a time")
    known = [v for v in bound if not v.name.startswith("_:") and reference_of(v) is None]
    return name_hint(str(variable), sorted(map(str, known)), "variable")


def _call(
    source: Source, tree: Tree[Token], bound: set[Var] | None, what: str
) -> tide.CallFunction | None:
    name, written = tokens_of(tree, "NAME")[0], token_of(tree, "ARGUMENTS")
    arguments = fragments.arguments_of(source, written) if written is not None else ()
    if arguments is None:
        return None
    variables = [argument for argument in arguments if isinstance(argument, Var)]
    if written is not None and not _all_bound(source, written, variables, bound, what):
        return None
    return tide.CallFunction(str(name), arguments)


def _retract(
    source: Source, tree: Tree[Token], events: Sequence[tide.EventUse]
) -> tide.Retract | None:
    name = tokens_of(tree, "NAME")[0]
    known = [use.name for use in events if not use.negated]
    if str(name) in known or not events:
        return tide.Retract(str(name))
    hint = name_hint(str(name), known, "event")
    source.report(name, f"there is no event named {name} in this rule", hint)
    return None


# --- tests: temporal relations and filters, joined with AND, OR and NOT ---


@dataclass(frozen=True, slots=True)
class WrittenTest:
    """The tree of a test, and the event before it; None after WHERE."""

    tree: Tree[Token]
    this: str | None


def read_test(
    source: Source, written: WrittenTest, known: list[str], bound: set[Var] | None
) -> tide.RuleTest | None:
    """A test; None, and errors recorded, if it is invalid."""
    return _Reader(source, written.this, known, bound).test(written.tree)


@dataclass(slots=True)
class _Reader:
    source: Source
    this: str | None
    known: list[str]
    bound: set[Var] | None

    def test(self, tree: Tree[Token]) -> tide.RuleTest | None:
        match str(tree.data):
            case "time":
                return self._time(tree)
            case "filter":
                return self._filter(tree)
            case word:
                inner = [self.test(part) for part in tree.children if isinstance(part, Tree)]
                parts = tuple(part for part in inner if part is not None)
                return tide.Combined(word.upper(), parts) if len(parts) == len(inner) else None

    def _time(self, tree: Tree[Token]) -> tide.TimeTest | None:
        given, relation, bounds, other = tree.children
        assert isinstance(relation, Token)  # noqa: S101 - the grammar says so
        assert isinstance(other, Token)  # noqa: S101 - same
        numbers = fragments.bounds_of(
            self.source, relation, bounds if isinstance(bounds, Token) else None
        )
        named = [name for name in (given, other) if isinstance(name, Token)]
        unknown = [name for name in named if str(name) not in self.known]
        for name in unknown:
            hint = name_hint(str(name), self.known, "event")
            self.source.report(name, f"there is no event named {name} in this rule", hint)
        this = str(given) if isinstance(given, Token) else self.this
        if this is None:
            hint = f"write the name of an event before {relation}"
            self.source.report(relation, f"{relation} needs an event on its left", hint)
        elif this == str(other):
            self.source.report(other, f"the event {this} is compared with itself")
        elif numbers is not None and not unknown:
            return tide.TimeTest(relation.upper(), this, str(other), numbers)
        return None

    def _filter(self, tree: Tree[Token]) -> tide.ValueTest | None:
        token = tree.children[1]
        assert isinstance(token, Token)  # noqa: S101 - the grammar says so
        expression = fragments.filter_of(self.source, token)
        if expression is None or self.bound is None:
            return None
        unbound = sorted(mentioned(expression) - self.bound, key=str)
        for variable in unbound:
            message = f"{reference_of(variable) or variable} has no value in this rule"
            hint = _nearest(variable, self.bound)
            self.source.report_variable(token, variable.name, message, hint)
        return None if unbound else tide.ValueTest(expression)


def check_parts(
    source: Source, tests: list[tide.RuleTest], written: list[WrittenTest], denied: set[str]
) -> bool:
    """Whether each test mentions at most one NO EVENT."""
    for test, each in zip(tests, written, strict=True):
        for part in _conjuncts(test):
            found = sorted(denied.intersection(_named(part)))
            if len(found) > 1:
                message = f"{' and '.join(found)} are both NO EVENT, so they cannot be compared"
                token = next(each.tree.scan_values(lambda value: isinstance(value, Token)))
                source.report(token, message, "compare each with an EVENT")
                return False
    return True


def _conjuncts(test: tide.RuleTest) -> Iterator[tide.RuleTest]:
    if isinstance(test, tide.Combined) and test.word == "AND":
        for part in test.parts:
            yield from _conjuncts(part)
    else:
        yield test


def _named(test: tide.RuleTest) -> set[str]:
    match test:
        case tide.TimeTest(_, this, other):
            return {this, other}
        case tide.Combined(_, parts):
            return {name for part in parts for name in _named(part)}
        case _:
            return set()


@dataclass(slots=True)
class Draft:
    """A rule under construction. `sound`: no errors in its conditions so far.

    `certain`: its variables are known all the same, so that its tests and actions are checked.
    """

    source: Source
    names: DeclaredNames
    events: list[tide.EventUse] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    groups: list[Token] = field(default_factory=list)
    binds: list[Token] = field(default_factory=list)
    written: list[WrittenTest] = field(default_factory=list)
    sound: bool = True
    certain: bool = True
    arguments: set[Var] = field(default_factory=set)

    def bound(self, facts: SelectQuery | None) -> set[Var]:
        """The variables that are bound when the rule fires."""
        return self.arguments | set(facts.variables if facts else ())

    def times(self, *, of_match: bool) -> set[Var]:
        """The variables for the times of its events, and of the whole match."""
        names = [use.name for use in self.events if not use.negated]
        names += [""] if of_match else []
        return {EventReference(word, name).variable for word in TIMES for name in names}


def read_rule(
    source: Source, tree: Tree[Token], names: DeclaredNames
) -> tide.RuleDeclaration | None:
    """A RULE declaration; None, and errors recorded, if it is invalid."""
    (name, *groups), actions = tokens_of(tree, "NAME"), tree.children[-1]
    assert isinstance(actions, Tree)  # noqa: S101 - the grammar says so
    draft = Draft(source, names)
    _read_conditions(draft, tree)
    actions = _without_expressions(draft, actions)
    if draft.sound and not draft.events and draft.groups:
        _read_facts_alone(draft, name)
    if draft.sound and all(use.negated for use in draft.events):
        hint = "add an EVENT; for facts alone, write a query and ON APPEAR OF it, or WHEN FACT"
        source.report(name, f"the rule {name} has no event", hint)
        draft.sound = False
    facts = fragments.facts_of(source, draft.groups)
    draft.sound &= facts is not None or not draft.groups
    certain = draft.certain and (facts is not None or not draft.groups)
    bound = draft.bound(facts) if certain else None
    waits = any(use.negated for use in draft.events)
    tests = _read_tests(draft, _with(bound, draft.times(of_match=not waits)))
    bound = _with(bound, draft.times(of_match=True))
    computed = _read_binds(draft, bound)
    bound = _with(bound, {variable for variable, _ in computed or ()})
    done = read_actions(source, actions, None if computed is None else bound, draft.events)
    if not draft.sound or tests is None or done is None or computed is None:
        return None
    number = token_of(tree, "NUMBER")
    if number is not None and not _PRIORITY.fullmatch(number):
        source.report(number, f"invalid priority {number}", "write a whole number, such as 5")
        return None
    line = name.line or 1
    return tide.RuleDeclaration(
        str(name), tuple(draft.events), facts, tests, done, int(number or 0), line, computed,
        "".join(groups),
    )  # fmt: skip


def _without_expressions(draft: Draft, actions: Tree[Token]) -> Tree[Token]:
    """The actions with variables for the expressions in their templates, which become BINDs."""

    def changed(part: Token | Tree[Token]) -> Token | Tree[Token]:
        if isinstance(part, Tree):
            return Tree(part.data, [changed(each) for each in part.children])
        if part and part.type == "GROUP":
            part, computed = fragments.computed_in(draft.source, part)
            draft.binds += computed
        return part

    return Tree(actions.data, [changed(part) for part in actions.children])


_BIND: Final = re.compile(r"\((.*\S)\s+AS\s+[?$](\w+)\s*\)", re.IGNORECASE | re.DOTALL)


def _read_binds(draft: Draft, bound: set[Var] | None) -> tuple[tuple[Var, Expression], ...] | None:
    """The values that BIND computes for the actions, each from those before it."""
    found: list[tuple[Var, Expression]] = []
    for token in draft.binds:
        written = _BIND.fullmatch(token)
        if written is None:
            draft.source.report(token, "invalid BIND", "write BIND (?a + 1 AS ?b)")
            return None
        expression = fragments.filter_of(draft.source, token.update(value=f"({written[1]})"))
        variable, known = Var(written[2]), _with(bound, {v for v, _ in found})
        if expression is None:
            return None
        if bound is not None and variable in (known or ()):
            draft.source.report(token, f"{variable} has a value already", "choose another name")
            return None
        if not _all_bound(draft.source, token, mentioned(expression), known, "rule"):
            return None
        found.append((variable, expression))
    return tuple(found)


def _with(bound: set[Var] | None, times: set[Var]) -> set[Var] | None:
    return None if bound is None else bound | times


def _read_facts_alone(draft: Draft, name: Token) -> None:
    """`RULE name WHEN FACT { … }` is short for a query of that name, and ON APPEAR OF it."""
    source, groups = draft.source, draft.groups
    facts = fragments.facts_of(source, groups)
    draft.groups = []
    if facts is None or not draft.names.declare(source, "query", name):
        draft.sound = draft.certain = False
        return
    if not facts.variables:
        hint = "a row appears by its values: use a variable"
        source.report(groups[0], f"the facts of the rule {name} have no variable", hint)
        draft.sound = False
        return
    line = groups[0].line or 1
    text = f"{source.prologue}\nSELECT * WHERE {{ {' '.join(groups)} }}"
    draft.names.queries[str(name)] = tide.NamedQuery(str(name), text, line)
    draft.names.variables[str(name)] = facts.variables
    change = tide.QueryChange(str(name), facts.variables, appears=True)
    shown = f"APPEAR OF {name}({', '.join(map(str, facts.variables))})"
    event = tide.EventDeclaration(shown, facts.variables, change, line)
    _use(draft, "event", event, facts.variables, line)


def _read_conditions(draft: Draft, tree: Tree[Token]) -> None:
    for part in tree.children[:-1]:
        if not isinstance(part, Tree):
            continue
        match str(part.data):
            case "conditions":
                for condition in part.children:
                    assert isinstance(condition, Tree)  # noqa: S101 - the grammar says so
                    _read_condition(draft, condition)
            case "appear" | "disappear" | "update" | "change":
                found = read_change(draft.source, part, draft.names)
                if found is None:
                    draft.sound = draft.certain = False
                else:
                    _use(draft, "event", found[0], found[0].parameters, found[0].line)
            case "use":
                _read_use(draft, part, negated=False)
            case _:
                draft.written.append(WrittenTest(part, None))


def _read_condition(draft: Draft, tree: Tree[Token]) -> None:
    if tree.data == "fact":
        draft.groups += tokens_of(tree, "GROUP")
        return
    if tree.data == "bind":
        draft.binds += tokens_of(tree, "EXPRESSION")
        return
    use, *tests = (part for part in tree.children if isinstance(part, Tree))
    name = _read_use(draft, use, negated=tree.data == "none")
    draft.written += (WrittenTest(test, name) for test in tests)


def _read_use(draft: Draft, tree: Tree[Token], *, negated: bool) -> str:
    """Add an event of a rule; returns its name."""
    *given, called = tokens_of(tree, "NAME")
    name = str(given[0]) if given else _free(str(called), draft.known)
    if name in draft.known:
        draft.source.report(given[0], f"there are two events named {name} in this rule")
        draft.sound = False
        return name
    draft.known.append(name)
    type_ = draft.names.event(draft.source, called)
    written = token_of(tree, "ARGUMENTS")
    arguments = fragments.arguments_of(draft.source, written) if written is not None else None
    if not negated:
        draft.arguments.update(a for a in arguments or () if isinstance(a, Var))
    if type_ is None or (written is not None and arguments is None):
        draft.sound = False
        draft.certain &= negated or arguments is not None
        return name
    if arguments is None:
        arguments = type_.parameters
    for reference in references_in(arguments):
        draft.source.report(written or called, f"{reference} cannot be an argument of an event")
        draft.sound = False
    if len(arguments) != len(type_.parameters):
        report_arity(draft.source, written or called, type_, len(arguments))
        draft.sound = False
        return name
    _use(draft, name, type_, arguments, called.line or 1, negated=negated)
    return name


def _use(
    draft: Draft,
    name: str,
    type_: tide.EventDeclaration,
    arguments: tuple[Var | Term, ...],
    line: int,
    *,
    negated: bool = False,
) -> None:
    if name not in draft.known:
        draft.known.append(name)
    draft.events.append(tide.EventUse(name, type_, arguments, negated, line))
    if not negated:
        draft.arguments.update(a for a in arguments if isinstance(a, Var))


def _free(name: str, known: list[str]) -> str:
    """A name for an anonymous event: that of its type, numbered if already used."""
    number, found = 2, name
    while found in known:
        found, number = f"{name}{number}", number + 1
    return found


def _read_tests(draft: Draft, bound: set[Var] | None) -> tuple[tide.RuleTest, ...] | None:
    tests = [read_test(draft.source, written, draft.known, bound) for written in draft.written]
    sound = [test for test in tests if test is not None]
    if len(sound) < len(tests):
        return None
    denied = {use.name for use in draft.events if use.negated}
    return tuple(sound) if check_parts(draft.source, sound, draft.written, denied) else None

"""RULE declarations: from trees to rules whose events, tests and actions are checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lark import Token, Tree

from graphtide.algebra.expressions import Var
from graphtide.lang.declarations import EventUse, RuleDeclaration
from graphtide.lang.tide_actions import read_actions
from graphtide.lang.tide_events import read_change, report_arity, token_of, tokens_of
from graphtide.lang.tide_pieces import arguments_of, facts_of
from graphtide.lang.tide_tests import WrittenTest, check_parts, read_test

if TYPE_CHECKING:
    from graphtide.algebra.nodes import SelectQuery
    from graphtide.lang.declarations import EventDeclaration, RuleTest
    from graphtide.lang.tide_names import Names
    from graphtide.lang.tide_source import Source
    from graphtide.rdf.term import Term


@dataclass(slots=True)
class Draft:
    """A rule while it is read. `sound` says that nothing was wrong with its conditions."""

    source: Source
    names: Names
    events: list[EventUse] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    groups: list[Token] = field(default_factory=list)
    written: list[WrittenTest] = field(default_factory=list)
    sound: bool = True

    def bound(self, facts: SelectQuery | None) -> set[Var]:
        """The variables that have a value when the rule fires."""
        arguments = {a for use in self.events if not use.negated for a in use.arguments}
        known = {argument for argument in arguments if isinstance(argument, Var)}
        return known | set(facts.variables if facts else ())


def read_rule(source: Source, tree: Tree[Token], names: Names) -> RuleDeclaration | None:
    """A RULE declaration; None, and mistakes noted, if it is not sound."""
    name, actions = tokens_of(tree, "NAME")[0], tree.children[-1]
    assert isinstance(actions, Tree)  # noqa: S101 - the grammar says so
    draft = Draft(source, names)
    _read_conditions(draft, tree)
    if draft.sound and all(use.negated for use in draft.events):
        hint = "for facts alone, write a query and ON APPEAR OF it"
        source.report(name, f"the rule {name} waits for no event", hint)
        draft.sound = False
    facts = facts_of(source, draft.groups)
    draft.sound &= facts is not None or not draft.groups
    bound = draft.bound(facts) if draft.sound else None
    tests = _read_tests(draft, bound)
    done = read_actions(source, actions, bound, draft.events)
    if not draft.sound or tests is None or done is None:
        return None
    number = token_of(tree, "NUMBER")
    if number is not None and not number.lstrip("+-").isdigit():
        source.report(number, f"{number} is no priority", "write a whole number, such as 5")
        return None
    line = name.line or 1
    return RuleDeclaration(
        str(name), tuple(draft.events), facts, tests, done, int(number or 0), line
    )


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
                    draft.sound = False
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
    use, *tests = (part for part in tree.children if isinstance(part, Tree))
    name = _read_use(draft, use, negated=tree.data == "none")
    draft.written += (WrittenTest(test, name) for test in tests)


def _read_use(draft: Draft, tree: Tree[Token], *, negated: bool) -> str:
    """An event of a rule; the name that tests call it by."""
    *given, called = tokens_of(tree, "NAME")
    name = str(given[0]) if given else _free(str(called), draft.known)
    if name in draft.known:
        draft.source.report(given[0], f"there are two events named {name} in this rule")
        draft.sound = False
        return name
    draft.known.append(name)
    type_ = draft.names.event(draft.source, called)
    written = token_of(tree, "ARGUMENTS")
    arguments = arguments_of(draft.source, written) if written is not None else None
    if type_ is None or (written is not None and arguments is None):
        draft.sound = False
        return name
    if arguments is None:
        arguments = type_.parameters
    if len(arguments) != len(type_.parameters):
        report_arity(draft.source, written or called, type_, len(arguments))
        draft.sound = False
        return name
    _use(draft, name, type_, arguments, called.line or 1, negated=negated)
    return name


def _use(
    draft: Draft,
    name: str,
    type_: EventDeclaration,
    arguments: tuple[Var | Term, ...],
    line: int,
    *,
    negated: bool = False,
) -> None:
    if name not in draft.known:
        draft.known.append(name)
    draft.events.append(EventUse(name, type_, arguments, negated, line))


def _free(name: str, known: list[str]) -> str:
    """A name for an event that was given none: that of its type, numbered if need be."""
    number, found = 2, name
    while found in known:
        found, number = f"{name}{number}", number + 1
    return found


def _read_tests(draft: Draft, bound: set[Var] | None) -> tuple[RuleTest, ...] | None:
    tests = [read_test(draft.source, written, draft.known, bound) for written in draft.written]
    sound = [test for test in tests if test is not None]
    if len(sound) < len(tests):
        return None
    denied = {use.name for use in draft.events if use.negated}
    return tuple(sound) if check_parts(draft.source, sound, draft.written, denied) else None

"""PATTERN declarations: all of a program, in the order in which they use each other."""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Final, cast

from lark import Token, Tree

from graphtide.algebra.expressions import Var
from graphtide.lang.declarations import EventDeclaration, PatternSource
from graphtide.lang.event_algebra import PatternDeclaration
from graphtide.lang.tide_events import token_of, tokens_of
from graphtide.lang.tide_lexer import CONTEXTS
from graphtide.lang.tide_pattern_checks import flaws_of
from graphtide.lang.tide_pattern_reader import PatternReader
from graphtide.lang.tide_pieces import variables_of

if TYPE_CHECKING:
    from graphtide.lang.event_algebra import Context
    from graphtide.lang.pattern_flaw import Flaw
    from graphtide.lang.tide_names import Names
    from graphtide.lang.tide_source import Source

DEFAULT: Final[Context] = "CHRONICLE"
"""The context of a pattern if neither it nor its file says one."""

Trees = list[tuple["Source", Tree[Token]]]


def read_patterns(names: Names, declared: Trees, contexts: Trees) -> None:
    """Take in the patterns of a program, in the order of the files, or note what is wrong."""
    defaults = _read_contexts(contexts, declared)
    drafts: dict[str, _Draft] = {}
    for source, tree in declared:
        token = tokens_of(tree, "NAME")[0]
        if names.declare(source, "event", token):
            drafts[str(token)] = _Draft(source, tree, names, defaults.get(id(source), DEFAULT))
    for name in _order(drafts):
        drafts[name].read()
    for name in drafts:  # in the order of the files again
        if name in names.patterns:
            names.patterns[name] = names.patterns.pop(name)


def _read_contexts(contexts: Trees, declared: Trees) -> dict[int, Context]:
    """What each file says of its patterns."""
    found: dict[int, Context] = {}
    first = {id(s): tree.children[0] for s, tree in reversed(declared)}
    for source, tree in contexts:
        word, kind = (token for token in tree.children if isinstance(token, Token))
        pattern = first.get(id(source))
        if id(source) in found:
            source.report(word, "there are two contexts for the patterns of this file")
        elif isinstance(pattern, Token) and (pattern.start_pos or 0) < (word.start_pos or 0):
            hint = "write it above the first PATTERN"
            source.report(word, "the context of a file comes before its patterns", hint)
        found.setdefault(id(source), _context_of(kind))
    return found


def _context_of(token: Token) -> Context:
    return cast("Context", token.type)


def _order(drafts: dict[str, _Draft]) -> list[str]:
    """Patterns after those that they use; those that use themselves are reported and left out."""
    uses = {name: [use for use in draft.uses if use in drafts] for name, draft in drafts.items()}
    while True:
        try:
            return list(TopologicalSorter(uses).static_order())
        except CycleError as error:
            round_: list[str] = error.args[1][::-1]  # each uses the one after it
            drafts[min(round_, key=list(drafts).index)].report_cycle(round_)
            for name in round_:
                uses.pop(name, None)
            uses = {name: [u for u in used if u in uses] for name, used in uses.items()}


@dataclass(slots=True)
class _Draft:
    """A pattern before those that it uses are known."""

    source: Source
    tree: Tree[Token]
    names: Names
    default: Context

    @property
    def name(self) -> Token:
        return tokens_of(self.tree, "NAME")[0]

    @property
    def uses(self) -> list[str]:
        """The names of the events and patterns in it."""
        atoms = self.tree.find_data("atom")
        return list(dict.fromkeys(str(tokens_of(atom, "NAME")[0]) for atom in atoms))

    def report_cycle(self, names: list[str]) -> None:
        """Note that it uses itself, perhaps through others; `names` goes round."""
        start = names.index(str(self.name))
        turned = [*names[start:-1], *names[:start], str(self.name)]
        message = f"the pattern {self.name} uses itself"
        if len(turned) > 2:
            message += f": {' -> '.join(turned)}"
        self.source.report(self.name, message, "a pattern can only use what it is no part of")

    def read(self) -> None:
        """Take it in if it is sound."""
        written = token_of(self.tree, "ARGUMENTS")
        parameters = variables_of(self.source, written) if written is not None else ()
        expression, *scope = (part for part in self.tree.children if isinstance(part, Tree))
        reader = PatternReader(self.source, self.names)
        body = reader.read(expression)
        if body is None or parameters is None:
            return
        kinds = [t for part in scope for t in _kinds(part)]
        context = _context_of(kinds[0]) if kinds else self.default
        per = tuple(Var(t[1:]) for part in scope for t in tokens_of(part, "VAR"))
        line = self.name.line or 1
        pattern = PatternDeclaration(str(self.name), parameters, body, context, per, line)
        flaws = list(flaws_of(pattern))
        for flaw in flaws:
            self._report(flaw, reader, written)
        if not flaws:
            source = PatternSource(pattern.name)
            self.names.patterns[pattern.name] = pattern
            self.names.events[pattern.name] = EventDeclaration(
                pattern.name, parameters, source, line
            )

    def _report(self, flaw: Flaw, reader: PatternReader, written: Token | None) -> None:
        token = self.name
        if flaw.part is not None:
            self.source.report_at(reader.places.of(flaw.part), flaw.message, flaw.hint)
            return
        if flaw.variable is not None and flaw.per:
            given = (t for part in self.tree.find_data("scope") for t in tokens_of(part, "VAR"))
            token = [t for t in given if t[1:] == flaw.variable.name][-1]
        elif flaw.variable is not None and written is not None:
            self.source.report_variable(written, flaw.variable.name, flaw.message, flaw.hint)
            return
        self.source.report(token, flaw.message, flaw.hint)


def _kinds(scope: Tree[Token]) -> list[Token]:
    return [t for t in scope.children if isinstance(t, Token) and t.type in CONTEXTS]

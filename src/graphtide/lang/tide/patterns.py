"""Parse PATTERN declarations into the event algebra; patterns used in others are inlined."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, cast

from lark import Token, Tree

from graphtide.algebra.expressions import Var
from graphtide.lang.durations import WrittenDuration, parse_duration, whole
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide import gathering
from graphtide.lang.tide import pattern_facts as facts
from graphtide.lang.tide.events import report_arity
from graphtide.lang.tide.fragments import expression_of, gapped_arguments_of
from graphtide.lang.tide.lexer import AFTER_CONTEXT, CONTEXTS
from graphtide.lang.tide.pattern_checks import Flaw, flaws_of
from graphtide.lang.tide.source import DeclaredNames, Source, token_of, tokens_of

if TYPE_CHECKING:
    from collections.abc import Sequence


# --- atoms ---

MAX_DEPTH: Final = 100
TOO_DEEP: Final = f"this pattern is nested deeper than {MAX_DEPTH}"
TOO_DEEP_HINT: Final = "use fewer brackets, and fewer patterns inside of patterns"


class Places:
    """The offset and depth of each node of an expression, by identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[tide.EventPattern, int, int]] = {}

    def add(self, node: tide.EventPattern, offset: int) -> int:
        """Record a node, and keep it alive so that its id stays unique; returns its depth."""
        depth = 1 + max((self._known[id(part)][2] for part in facts.parts_of(node)), default=0)
        self._known[id(node)] = node, offset, depth
        return depth

    def move(self, node: tide.EventPattern, to: tide.EventPattern) -> None:
        """Record a node in the place of another one."""
        self.add(to, self.of(node))

    def of(self, node: tide.EventPattern) -> int:
        """The offset of a node."""
        return self._known[id(node)][1]


class AtomReader:
    """Parses the events and inlined patterns of one expression."""

    def __init__(self, source: Source, names: DeclaredNames, places: Places) -> None:
        self._source = source
        self._names = names
        self._places = places
        self._uses: Counter[str] = Counter()
        self._events = 0

    def read(self, tree: Tree[Token]) -> tide.EventPattern | None:
        """`Type(…)`; the default arguments are the parameters. None if there is an error."""
        name, written = tokens_of(tree, "NAME")[0], token_of(tree, "ARGUMENTS")
        type_ = self._names.event(self._source, name)
        arguments: tuple[facts.Argument, ...] | None = type_.parameters if type_ else None
        if written is not None:
            arguments = gapped_arguments_of(self._source, written)
        if type_ is None or arguments is None:
            return None
        if len(arguments) != len(type_.parameters):
            report_arity(self._source, written or name, type_, len(arguments))
            return None
        pattern = self._names.patterns.get(type_.name)
        if pattern is not None and gathering.gathers(pattern):
            hint = "use it in a rule, or write its parts here"
            self._source.report(name, f"{name} has WHERE or computed parameters", hint)
            return None
        if pattern is not None:
            return self._inlined(name, pattern, arguments)
        self._events += 1
        atom = tide.Atom(type_.name, arguments)
        self._places.add(atom, name.start_pos or 0)
        return atom

    def fields(self, event: str) -> tuple[str, ...]:
        """The names of the parameters of an event."""
        return tuple(v.name for v in self._names.events[event].parameters)

    def _inlined(
        self, name: Token, pattern: tide.PatternDeclaration, arguments: tuple[facts.Argument, ...]
    ) -> tide.EventPattern | None:
        self._events += sum(isinstance(part, tide.Atom) for part in facts.walk(pattern.body))
        if self._events > facts.MAX_POSITIONS:
            hint = "use fewer patterns inside of patterns"
            message = f"with {name} this pattern has more than {facts.MAX_POSITIONS:,} positions"
            self._source.report(name, message, hint)
            return None
        self._uses[pattern.name] += 1
        number = self._uses[pattern.name]
        space = pattern.name if number == 1 else f"{pattern.name}.{number}"
        body = facts.inlined(pattern, arguments, space, lambda node: self._placed(node, name))
        if self._places.add(body, name.start_pos or 0) <= MAX_DEPTH:
            return body
        self._source.report(name, TOO_DEEP, TOO_DEEP_HINT)
        return None

    def _placed(self, node: tide.EventPattern, name: Token) -> tide.EventPattern:
        self._places.add(node, name.start_pos or 0)
        return node


# --- expressions ---

_TIMES: Final = re.compile(r"(?=.*\d)(\d{0,9})(\s*,\s*(\d{0,9}))?", re.ASCII)

_CHAINS: Final[dict[str, type[facts.Chain]]] = {
    "ARROW": tide.Follows,
    "OR": tide.Either,
    "AND": tide.Both,
}


class PatternReader:
    """Parses one expression; errors are recorded in the source, and the result is None."""

    def __init__(self, source: Source, names: DeclaredNames) -> None:
        self._source = source
        self.places = Places()
        self._atoms = AtomReader(source, names, self.places)
        self.fields = self._atoms.fields

    def read(self, tree: Tree[Token], depth: int = 0) -> tide.EventPattern | None:
        """The pattern of a tree inside `depth` brackets."""
        match str(tree.data):
            case "chain":
                return self._chain(tree, depth)
            case "group" | "all" if depth == MAX_DEPTH:
                token = tokens_of(tree, "OPEN")[0]
                self._source.report(token, TOO_DEEP, TOO_DEEP_HINT)
                return None
            case "group":
                return self.read(_trees(tree)[0], depth + 1)
            case "all":
                return self._all(tree, depth + 1)
            case "atom":
                return self._atoms.read(tree)
            case "suffixed":
                whole, *suffixes = _trees(tree)
                return self._suffixed(self.read(whole, depth), suffixes)
            case _:
                return self._absent(tree, depth)

    def _made(self, node: tide.EventPattern, place: int) -> tide.EventPattern | None:
        """Record a node; None if it is nested too deeply."""
        if self.places.add(node, place) <= MAX_DEPTH:
            return node
        self._source.report_at(place, TOO_DEEP, TOO_DEEP_HINT)
        return None

    def _chain(self, tree: Tree[Token], depth: int) -> tide.EventPattern | None:
        """A left-associative chain of operators without precedence."""
        read = [self.read(part, depth) for part in _trees(tree)]
        parts = [part for part in read if part is not None]
        if len(parts) < len(read):
            return None
        kinds = [_CHAINS[t.type] for t in tree.children if isinstance(t, Token)]
        whole: tide.EventPattern | None = parts[0]
        place = self.places.of(parts[0])
        for kind, run in groupby(zip(kinds, parts[1:], strict=True), key=itemgetter(0)):
            if whole is not None:
                whole = self._made(facts.chained(kind, [whole, *(part for _, part in run)]), place)
        return whole

    def _all(self, tree: Tree[Token], depth: int) -> tide.EventPattern | None:
        read = [self.read(part, depth) for part in _trees(tree)]
        parts = tuple(part for part in read if part is not None)
        if len(parts) < len(read):
            return None
        if len(parts) == 1:
            return parts[0]
        return self._made(tide.Interleaved(parts), _start(tokens_of(tree, "ALL")[0]))

    def _absent(self, tree: Tree[Token], depth: int) -> tide.EventPattern | None:
        """`NOT p …`: suffixes before the first WITHIN belong to p."""
        denials = tokens_of(tree, "NOT")
        whole, *suffixes = _trees(tree)
        part = self.read(whole, depth)
        ends = [place for place, suffix in enumerate(suffixes) if suffix.data == "within"]
        end = ends[0] if ends else len(suffixes)
        part = self._suffixed(part, suffixes[:end])
        for token in reversed(denials):
            if part is not None:
                part = self._made(tide.Not(part), _start(token))
        return self._suffixed(part, suffixes[end:])

    def _suffixed(
        self, part: tide.EventPattern | None, suffixes: Sequence[Tree[Token]]
    ) -> tide.EventPattern | None:
        for suffix in suffixes:
            node = self._one_suffix(part, suffix)
            token = suffix.children[0]
            assert isinstance(token, Token)  # noqa: S101 - the grammar says so
            part = self._made(node, _start(token)) if node is not None else None
        return part

    def _one_suffix(
        self, part: tide.EventPattern | None, suffix: Tree[Token]
    ) -> tide.EventPattern | None:
        if suffix.data == "times":
            bounds = self._bounds(tokens_of(suffix, "COUNT")[0])
            greedy = token_of(suffix, "GREEDY") is not None
            if part is None or bounds is None:
                return None
            return tide.Repeat(part, *bounds, greedy=greedy)
        written = suffix.children[-1]
        assert isinstance(written, Token)  # noqa: S101 - the grammar says so
        if suffix.data in ("named", "where"):
            return self._of_event(part, written, str(suffix.data))
        length = self._duration(written)
        if part is None or length is None:
            return None
        return tide.Within(part, length) if suffix.data == "within" else tide.HoldsFor(part, length)

    def _of_event(
        self, part: tide.EventPattern | None, written: Token, word: str
    ) -> tide.EventPattern | None:
        """`AS name` or `WHERE (condition)`, of one event that may be repeated."""
        atom = part.part if isinstance(part, tide.Repeat) else part
        condition = expression_of(self._source, written) if word == "where" else None
        if part is None or (word == "where" and condition is None):
            return None
        if not isinstance(atom, tide.Atom):
            shown = "AS" if word == "named" else "WHERE"
            hint = "write it behind an event, such as A{+} AS a WHERE (?a.x > 1)"
            self._source.report(written, f"{shown} is for one event", hint)
            return None
        twice = atom.alias if word == "named" else atom.condition
        if twice:
            self._source.report(written, "this event has one already", "remove one of them")
            return None
        made = replace(atom, condition=condition)
        if word == "named":
            fields = self._atoms.fields(atom.event)
            made = replace(atom, alias=str(written), fields=fields)
        if not isinstance(part, tide.Repeat):
            return made
        self.places.add(made, self.places.of(atom))
        return replace(part, part=made)

    def _bounds(self, token: Token) -> tuple[int, int | None] | None:
        """Minimum and maximum of `{n}`, `{n,m}`, `{n,}`, `?`, `{+}` or `{*}`."""
        written = token.strip("{} \t\n")
        short = {"+": (1, None), "*": (0, None), "?": (0, 1)}.get(written)
        if short is not None:
            return short
        found = _TIMES.fullmatch(written)
        if found is None:
            hint = (
                "write {3} for three times, {2,5} for two to five, {2,} for two or more, "
                "{+} for once or more, {*} for any number of times, ? for at most once"
            )
            self._source.report(token, f"invalid repetition '{token}'", hint)
            return None
        least = whole(found[1] or "0")
        return least, least if found[2] is None else whole(found[3]) if found[3] else None

    def _duration(self, token: Token) -> WrittenDuration | None:
        length = parse_duration(token)
        if length is None:
            hint = "write ticks such as 5, or a duration such as 10s, 500ms or PT2H"
            self._source.report(token, f"expected a duration, found '{token}'", hint)
        return length


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [part for part in tree.children if isinstance(part, Tree)]


def _start(token: Token) -> int:
    return token.start_pos or 0


_SKIP_WORDS: Final = (*AFTER_CONTEXT, "NO", "TO")
DEFAULT: Final[tide.Context] = "CHRONICLE"
"""The default context."""

Trees = list[tuple["Source", Tree[Token]]]


def read_patterns(names: DeclaredNames, declared: Trees, contexts: Trees) -> None:
    """Parse and check the patterns of a program, and add them to the names."""
    defaults = _read_contexts(contexts, declared)
    drafts: dict[str, _Draft] = {}
    for source, tree in declared:
        token = tokens_of(tree, "NAME")[0]
        if names.declare(source, "event", token):
            drafts[str(token)] = _Draft(source, tree, names, defaults.get(id(source), DEFAULT))
    for name in _order(drafts):
        drafts[name].read()
    for name in drafts:  # back to the order of the files
        if name in names.patterns:
            names.patterns[name] = names.patterns.pop(name)


def _read_contexts(contexts: Trees, declared: Trees) -> dict[int, tide.Context]:
    """The default context of each file, by source."""
    found: dict[int, tide.Context] = {}
    first = {id(s): tree.children[0] for s, tree in reversed(declared)}
    for source, tree in contexts:
        word, kind = (token for token in tree.children if isinstance(token, Token))
        pattern = first.get(id(source))
        if id(source) in found:
            source.report(word, "CONTEXT is given twice in this file")
        elif isinstance(pattern, Token) and (pattern.start_pos or 0) < (word.start_pos or 0):
            hint = "write it above the first PATTERN"
            source.report(word, "CONTEXT must come before the patterns of a file", hint)
        found.setdefault(id(source), _context_of(kind))
    return found


def _context_of(token: Token) -> tide.Context:
    return cast("tide.Context", token.type)


def _order(drafts: dict[str, _Draft]) -> list[str]:
    """Topological order: patterns after those that they use; cycles are reported and left out."""
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
    """A pattern whose body is not parsed yet."""

    source: Source
    tree: Tree[Token]
    names: DeclaredNames
    default: tide.Context

    @property
    def name(self) -> Token:
        return tokens_of(self.tree, "NAME")[0]

    @property
    def uses(self) -> list[str]:
        """The names of the events and patterns in its body."""
        atoms = self.tree.find_data("atom")
        return list(dict.fromkeys(str(tokens_of(atom, "NAME")[0]) for atom in atoms))

    def report_cycle(self, names: list[str]) -> None:
        """Report that it uses itself, directly or through others; `names` is the cycle."""
        start = names.index(str(self.name))
        turned = [*names[start:-1], *names[:start], str(self.name)]
        message = f"the pattern {self.name} uses itself"
        if len(turned) > 2:
            message += f": {' -> '.join(turned)}"
        self.source.report(self.name, message, "patterns cannot be recursive")

    def read(self) -> None:
        """Parse and check it, and add it to the names if it is valid."""
        written = token_of(self.tree, "ARGUMENTS")
        given = gathering.parameters_of(self.source, written) if written is not None else ((), ())
        expression, *scope = (part for part in self.tree.children if isinstance(part, Tree))
        reader = PatternReader(self.source, self.names)
        body = reader.read(expression)
        if body is None or given is None:
            return
        parameters, computed = given
        kinds = [t for part in scope for t in _kinds(part)]
        context = _context_of(kinds[0]) if kinds else self.default
        per = tuple(Var(t[1:]) for part in scope for t in tokens_of(part, "VAR"))
        line = self.name.line or 1
        skips = (t.type for part in scope for t in part.children if isinstance(t, Token))
        skip = " ".join(word for word in skips if word in _SKIP_WORDS) or "NO SKIP"
        pattern = tide.PatternDeclaration(
            str(self.name), parameters, body, context, per, line, cast("tide.Skip", skip), computed,
            interval=token_of(self.tree, "INTERVAL") is not None,
        )  # fmt: skip
        pattern = gathering.named(pattern, reader.fields, reader.places.move)
        flaws = list(flaws_of(pattern))
        for flaw in flaws:
            self._report(flaw, reader, written)
        if not flaws:
            source = tide.PatternSource(pattern.name)
            self.names.patterns[pattern.name] = pattern
            self.names.events[pattern.name] = tide.EventDeclaration(
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

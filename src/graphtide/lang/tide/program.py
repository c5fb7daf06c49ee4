"""Programs: queries, events, patterns, rules, goals and fixes in one file, the .tide language.

    PREFIX : <http://example.org/>       # holds for every declaration of the file
    QUERY Hot AS SELECT ?room WHERE { ?room :temperature ?t FILTER (?t > 30) }
    RULE Tell ON APPEAR OF Hot THEN CALL tell(?room)

A query's SPARQL text goes on until the next declaration. A `.rq` file is a program with one query,
named after the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from graphtide.algebra.nodes import SelectQuery
from graphtide.errors import ProgramError, QueryError
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide.ast import (
    EventDeclaration,
    FixDeclaration,
    GoalDeclaration,
    NamedQuery,
    RuleDeclaration,
)
from graphtide.lang.tide.events import read_event, tokens_of
from graphtide.lang.tide.parser import Source, trees_of
from graphtide.lang.tide.patterns import read_patterns
from graphtide.lang.tide.repairs import GOALS, read_fix, read_goal
from graphtide.lang.tide.rules import read_rule

if TYPE_CHECKING:
    from pathlib import Path

    from lark import Token, Tree

    from graphtide.algebra.expressions import Var
    from graphtide.lang.tide.ast import PatternDeclaration


# --- DeclaredNames: what the files of a program have declared so far, and where.


@dataclass(slots=True)
class DeclaredNames:
    """What is declared, by name; queries and events that are broken are known by name only.

    `variables` has the columns of each query that could be read.
    """

    queries: dict[str, NamedQuery] = field(default_factory=dict)
    events: dict[str, EventDeclaration] = field(default_factory=dict)
    patterns: dict[str, PatternDeclaration] = field(default_factory=dict)
    rules: dict[str, RuleDeclaration] = field(default_factory=dict)
    goals: dict[str, GoalDeclaration] = field(default_factory=dict)
    fixes: dict[str, FixDeclaration] = field(default_factory=dict)
    variables: dict[str, tuple[Var, ...]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    _places: dict[tuple[str, str], tuple[str | None, int]] = field(default_factory=dict)

    def declare(self, source: Source, kind: str, name: Token) -> bool:
        """Take a name for a declaration of a kind; False, and a mistake noted, if taken."""
        key = kind, str(name)
        if key in self._places:
            file, line = self._places[key]
            where = f"line {line}" if file in (None, source.name) else f"{file}, line {line}"
            plural = {"query": "queries", "fix": "fixes"}.get(kind, f"{kind}s")
            source.report(
                name, f"there are two {plural} named {name}", f"the first one is in {where}"
            )
            return False
        self._places[key] = source.name, name.line or 1
        return True

    def columns(self, source: Source, name: Token) -> tuple[Var, ...] | None:
        """The columns of a query; None, and a mistake noted, if there is none of that name."""
        found = self.variables.get(str(name))
        if found is None and ("query", str(name)) not in self._places:
            hint = name_hint(str(name), self.queries, "query")
            source.report(name, f"there is no query named {name}", hint)
        return found

    def event(self, source: Source, name: Token) -> EventDeclaration | None:
        """An event; None, and a mistake noted, if there is none of that name."""
        found = self.events.get(str(name))
        known = ("event", str(name)) in self._places or str(name) in self.broken
        if found is None and not known:
            hint = name_hint(str(name), self.events, "event")
            source.report(name, f"there is no event named {name}", hint)
        return found


QUERY_SUFFIXES: Final = (".rq", ".sparql")
PROGRAM_SUFFIX: Final = ".tide"


@dataclass(frozen=True, slots=True)
class Program:
    """What a program declares, in the order of the file."""

    queries: tuple[NamedQuery, ...]
    events: tuple[EventDeclaration, ...] = ()
    rules: tuple[RuleDeclaration, ...] = ()
    goals: tuple[GoalDeclaration, ...] = ()
    fixes: tuple[FixDeclaration, ...] = ()
    patterns: tuple[PatternDeclaration, ...] = ()

    @property
    def texts(self) -> dict[str, str]:
        """The SPARQL texts by name."""
        return {query.name: query.text for query in self.queries}


def parse_program(text: str, *, folder: Path | None = None) -> Program:
    r"""Read a program; every error knows its line and column in this text.

    If there are several, `ProgramError` has them all. INCLUDE reads files below `folder`.

    >>> text = "PREFIX : <ex:>\nQUERY Hot AS SELECT ?r { ?r :is :hot }"
    >>> parse_program(text).queries
    (NamedQuery(name='Hot', text='PREFIX : <ex:>\nSELECT ?r { ?r :is :hot }', line=2),)
    >>> parse_program("QURY Hot AS SELECT * { }")
    Traceback (most recent call last):
        ...
    graphtide.errors.QueryError: 1:1: expected PREFIX, INCLUDE, CONTEXT, QUERY, EVENT, PATTERN,
    RULE, GOAL or FIX, found 'QURY'
      1 | QURY Hot AS SELECT * { }
        | ^
      hint: did you mean QUERY?
    """
    program, errors = check_program(text, folder=folder)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ProgramError(errors)
    return program


def check_program(
    text: str, *, name: str | None = None, folder: Path | None = None
) -> tuple[Program, list[QueryError]]:
    r"""What of a program is sound, and every mistake in it, in order.

    >>> [error.line for error in check_program("QUERY\nQUERY a AS SELECT * { ?s ?p }")[1]]
    [2, 2]
    """
    reading = _Reading()
    reading.read(Source(text, name), folder, ())
    program = reading.resolve()
    if not reading.errors and not (program.queries or program.rules or program.events):
        hint = "write one, such as QUERY All AS SELECT * WHERE { ?s ?p ?o }"
        reading.errors.append(
            QueryError("the program has no query and no rule", source=name, hint=hint)
        )
    return program, reading.errors


def read_program(path: Path) -> Program:
    """Read the program of a file; errors name the file."""
    text = read_text(path)
    if path.suffix in QUERY_SUFFIXES:
        try:
            parse_standing(text)
        except QueryError as error:
            error.source = str(path)
            raise
        return Program((NamedQuery(path.stem, text, 1),))
    program, errors = check_program(text, name=str(path), folder=path.parent)
    if errors:
        raise errors[0] if len(errors) == 1 else ProgramError(errors)
    return program


def read_text(path: Path) -> str:
    """The text of a program file; errors name the file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise QueryError("there is no such file", source=str(path)) from None
    except IsADirectoryError:
        raise QueryError("is a directory, not a program", source=str(path)) from None
    except UnicodeDecodeError:
        hint = "a program is a text file in UTF-8"
        raise QueryError("is not a text file", source=str(path), hint=hint) from None
    except OSError as error:
        raise QueryError(f"cannot be read: {error.strerror}", source=str(path)) from None


class _Reading:
    """The files of a program while they are read: first the names, then what they mean."""

    def __init__(self) -> None:
        self.names = DeclaredNames()
        self._files: list[tuple[Source, list[Tree[Token]]]] = []
        self._seen: set[Path] = set()

    @property
    def errors(self) -> list[QueryError]:
        """All mistakes, file by file, in order of place."""
        return self._errors

    def read(self, source: Source, folder: Path | None, above: tuple[Path, ...]) -> None:
        """Cut a file into declarations, and those that it includes before it."""
        trees = list(trees_of(source, self.names.broken))
        for tree in trees:
            if tree.data == "prefix":
                _read_prefix(source, tree)
            elif tree.data == "include":
                self._include(source, tree, folder, above)
        self._files.append((source, trees))

    def _include(
        self, source: Source, tree: Tree[Token], folder: Path | None, above: tuple[Path, ...]
    ) -> None:
        token = tokens_of(tree, "STRING")[0]
        if folder is None:
            hint = "read the program from a file"
            source.report(token, "INCLUDE needs to know where the program lies", hint)
            return
        path = (folder / token.strip("\"'")).resolve()
        if path in above:
            source.report(token, f"{path.name} includes itself")
            return
        if path in self._seen:
            return
        self._seen.add(path)
        try:
            text = read_text(path)
        except QueryError as error:
            source.report(token, f"{token.strip(chr(34))}: {error.message}")
            return
        shown = str(folder / token.strip("\"'"))
        self.read(Source(text, shown), path.parent, (*above, path))

    def resolve(self) -> Program:
        """Give all names their meaning: queries first, then events, then what uses them."""
        names = self.names
        for source, tree in self._declarations("query"):
            _read_query(source, tree, names)
        for source, tree in self._declarations("graph_event", "change_event"):
            if names.declare(source, "event", tokens_of(tree, "NAME")[0]):
                event = read_event(source, tree, names)
                if event is not None:
                    names.events[event.name] = event
        read_patterns(names, self._declarations("pattern"), self._declarations("context"))
        for source, tree in self._declarations("rule"):
            sound = names.declare(source, "rule", tokens_of(tree, "NAME")[0])
            rule = read_rule(source, tree, names)
            if rule is not None and sound:
                names.rules[rule.name] = rule
        for source, tree in self._declarations(*GOALS):
            if names.declare(source, "goal", tokens_of(tree, "NAME")[0]):
                read_goal(source, tree, names)
        for source, tree in self._declarations("fix"):
            if names.declare(source, "fix", tokens_of(tree, "NAME")[0]):
                read_fix(source, tree, names)
        self._errors = [
            error
            for source, _ in self._files
            for error in sorted(source.errors, key=lambda e: (e.line or 0, e.column or 0))
        ]
        return Program(
            queries=tuple(names.queries.values()),
            events=tuple(e for e in names.events.values() if e.name not in names.patterns),
            rules=tuple(names.rules.values()),
            goals=tuple(names.goals.values()),
            fixes=tuple(names.fixes.values()),
            patterns=tuple(names.patterns.values()),
        )

    def _declarations(self, *kinds: str) -> list[tuple[Source, Tree[Token]]]:
        return [
            (source, tree) for source, trees in self._files for tree in trees if tree.data in kinds
        ]


def _read_prefix(source: Source, tree: Tree[Token]) -> None:
    name, iri = tokens_of(tree, "NAMESPACE")[0], tokens_of(tree, "IRI")[0]
    known = source.prefixes.setdefault(str(name), str(iri))
    if known != iri:
        message = f"the prefix '{name}' already stands for {known}"
        source.report(name, message, "choose another prefix")


def _read_query(source: Source, tree: Tree[Token], names: DeclaredNames) -> None:
    name, body = tokens_of(tree, "NAME")[0], tokens_of(tree, "BODY")[0]
    sound = names.declare(source, "query", name)
    query = source.piece(body, parse_standing)
    if query is None or not sound:
        return
    text = f"{source.prologue}\n{body}"
    names.queries[str(name)] = NamedQuery(str(name), text, body.line or 1)
    select = query if isinstance(query, SelectQuery) else query.select
    names.variables[str(name)] = select.variables

"""Programs: queries, events, patterns, rules, goals, fixes and tests in the .tide language.

    PREFIX : <http://example.org/>       # holds for every declaration of the file
    QUERY Hot AS SELECT ?room WHERE { ?room :temperature ?t FILTER (?t > 30) }
    RULE Tell ON APPEAR OF Hot THEN CALL tell(?room)

A query's SPARQL text ends at the next declaration. A `.rq` file is a program with one query, named
after the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from graphtide.algebra.nodes import SelectQuery
from graphtide.arguments import check_path, check_type, each_of
from graphtide.errors import GraphtideError, ProgramError, QueryError
from graphtide.lang.sparql.parse import parse_standing
from graphtide.lang.sparql.prefixes import file_text
from graphtide.lang.sparql.scanner import name_hint
from graphtide.lang.tide import ast as tide
from graphtide.lang.tide.events import read_event
from graphtide.lang.tide.parser import trees_of
from graphtide.lang.tide.patterns import read_patterns
from graphtide.lang.tide.repairs import GOALS, read_fix, read_goal
from graphtide.lang.tide.rules import read_rule
from graphtide.lang.tide.source import DeclaredNames, Source, tokens_of
from graphtide.lang.tide.tests import read_test

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lark import Token, Tree


QUERY_SUFFIXES: Final = (".rq", ".sparql")
PROGRAM_SUFFIX: Final = ".tide"


class CheckedProgram(NamedTuple):
    """The declarations without errors, and all errors of the text in order."""

    program: Program
    errors: list[QueryError]


@dataclass(frozen=True, slots=True)
class Program:
    """The declarations of a program, in the order of the text.

    `sources` are the texts of its files, included ones first: `from_sources` reads them again.
    """

    queries: tuple[tide.NamedQuery, ...]
    events: tuple[tide.EventDeclaration, ...] = ()
    rules: tuple[tide.RuleDeclaration, ...] = ()
    goals: tuple[tide.GoalDeclaration, ...] = ()
    fixes: tuple[tide.FixDeclaration, ...] = ()
    patterns: tuple[tide.PatternDeclaration, ...] = ()
    tests: tuple[tide.TestDeclaration, ...] = field(default=(), compare=False)
    """Its TESTs, which change nothing in what it does: see `graphtide.testing.program_tests`."""
    sources: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __hash__(self) -> int:  # by names alone: what is computed from a program is looked up by it
        parts = (self.queries, self.events, self.rules, self.patterns)
        return hash(tuple(each.name for part in parts for each in part))

    @classmethod
    def from_sources(cls, texts: Sequence[str]) -> Program:
        r"""Parse the texts of all files of a program, in the order of `sources`.

        >>> program = Program.parse("QUERY All AS SELECT * { ?s ?p ?o }")
        >>> Program.from_sources(program.sources) == program
        True
        """
        reader = _ProgramReader(None)
        for text in each_of(texts, "texts", str):
            reader.read(Source(text, None), None, (), includes=False)
        return _without_errors(CheckedProgram(reader.resolve(), reader.errors))

    @classmethod
    def read(cls, path: Path | str) -> Program:
        """Read a `.tide` program, or a `.rq` file as a program with one query.

        Errors name the file; `ProgramError` has all of them if there are several.
        """
        check_path(path, "path")
        path = Path(path)
        text = file_text(read_text(path))
        if path.suffix in QUERY_SUFFIXES:
            try:
                parse_standing(text)
            except QueryError as error:
                error.source = str(path)
                raise
            return cls((tide.NamedQuery(path.stem, text, 1),))
        return _without_errors(cls.check(text, name=str(path), folder=path.parent))

    @classmethod
    def parse(cls, text: str, *, folder: Path | None = None) -> Program:
        r"""Parse a program; INCLUDE reads files below `folder`.

        Errors know their line and column; `ProgramError` has all of them if there are several.

        >>> text = "PREFIX : <ex:>\nQUERY Hot AS SELECT ?r { ?r :is :hot }"
        >>> Program.parse(text).queries
        (NamedQuery(name='Hot', text='PREFIX : <ex:>\nSELECT ?r { ?r :is :hot }', line=2),)
        >>> Program.parse("QURY Hot AS SELECT * { }")
        Traceback (most recent call last):
            ...
        graphtide.errors.QueryError: 1:1: expected PREFIX, INCLUDE, CONTEXT, QUERY, EVENT, PATTERN,
        RULE, GOAL, FIX or TEST, found 'QURY'
          1 | QURY Hot AS SELECT * { }
            | ^
          hint: did you mean QUERY?
        """
        check_type(text, "text", str)
        return _without_errors(cls.check(text, folder=folder))

    @classmethod
    def of(cls, source: Program | str | Path) -> Program:
        """The program of a text (str) or of a file (Path); a program stays as it is."""
        check_type(source, "a program", cls, str, Path)
        if isinstance(source, Path):
            return cls.read(source)
        return cls.parse(source) if isinstance(source, str) else source

    @classmethod
    def check(
        cls, text: str, *, name: str | None = None, folder: Path | None = None
    ) -> CheckedProgram:
        r"""Parse a program without raising: what is correct in it, and every error.

        `name` is the file to show in errors.

        >>> [error.line for error in Program.check("QUERY\nQUERY a AS SELECT * { ?s ?p }").errors]
        [2, 2]
        """
        check_type(text, "text", str)
        check_type(name, "name", str, None)
        check_type(folder, "folder", Path, None)
        reader = _ProgramReader(folder)
        reader.read(Source(text, name), folder, ())
        program = reader.resolve()
        if not reader.errors and not (program.queries or program.rules or program.events):
            hint = "write one, such as QUERY All AS SELECT * WHERE { ?s ?p ?o }"
            reader.errors.append(
                QueryError("the program has no query and no rule", source=name, hint=hint)
            )
        return CheckedProgram(program, reader.errors)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of its rules (`RULE name IN group`), in order."""
        return tuple(dict.fromkeys(rule.group for rule in self.rules if rule.group))

    def without_groups(self, names: Collection[str]) -> Program:
        """The program without the rules of some groups.

        >>> text = "QUERY Q AS SELECT ?x { ?x ?p ?o } RULE R IN g ON APPEAR OF Q THEN CALL f(?x)"
        >>> program = Program.parse(text)
        >>> program.groups, program.without_groups(["g"]).rules
        (('g',), ())
        """
        names = list(each_of(names, "names", str))
        if not names:
            return self
        unknown = sorted(set(names) - set(self.groups))
        if unknown:
            hint = name_hint(unknown[0], self.groups, "group")
            raise GraphtideError(f"the program has no group named {unknown[0]}", hint=hint)
        return replace(self, rules=tuple(r for r in self.rules if r.group not in names))

    @property
    def texts(self) -> dict[str, str]:
        """The SPARQL texts by query name."""
        return {query.name: query.text for query in self.queries}


def _without_errors(checked: CheckedProgram) -> Program:
    program, errors = checked
    if errors:
        raise errors[0] if len(errors) == 1 else ProgramError(errors)
    return program


def read_text(path: Path) -> str:
    """The text of a file; errors name the file."""
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


class _ProgramReader:
    """Reads the files of a program: parses all of them, then resolves names."""

    def __init__(self, root: Path | None) -> None:
        self._root = None if root is None else root.resolve()
        self.names = DeclaredNames()
        self._files: list[tuple[Source, list[Tree[Token]]]] = []
        self._seen: set[Path] = set()
        self.errors: list[QueryError] = []

    def read(
        self, source: Source, folder: Path | None, above: tuple[Path, ...], *, includes: bool = True
    ) -> None:
        """Parse a file, after those that it includes; `above` are the files that include it."""
        trees = list(trees_of(source, self.names.broken))
        for tree in trees:
            if tree.data == "prefix":
                _read_prefix(source, tree)
            elif tree.data == "include" and includes:
                self._include(source, tree, folder, above)
        self._files.append((source, trees))

    def _include(
        self, source: Source, tree: Tree[Token], folder: Path | None, above: tuple[Path, ...]
    ) -> None:
        token = tokens_of(tree, "STRING")[0]
        if folder is None:
            hint = "use Program.read(path), or Program.parse(text, folder=…)"
            source.report(token, "INCLUDE works only in a program that is read from a file", hint)
            return
        path = (folder / token.strip("\"'")).resolve()
        if reason := self._refused(path):
            source.report(token, *reason)
            return
        if path in above:
            source.report(token, f"{path.name} includes itself")
            return
        if path in self._seen:
            return
        self._seen.add(path)
        try:
            text = file_text(read_text(path))
        except QueryError as error:
            source.report(token, f"{token.strip(chr(34))}: {error.message}")
            return
        shown = str(folder / token.strip("\"'"))
        self.read(Source(text, shown), path.parent, (*above, path))

    def _refused(self, path: Path) -> tuple[str, str] | None:
        """Why a file may not be included, and what to do: its errors would quote it."""
        if path.suffix != PROGRAM_SUFFIX:
            return "INCLUDE reads programs only", f"the name of a program ends in {PROGRAM_SUFFIX}"
        if self._root is None or not path.is_relative_to(self._root):
            return (
                "INCLUDE reads files inside the folder of the program only",
                "move the file there, or the program to a folder that contains both",
            )
        return None

    def resolve(self) -> Program:
        """Check all declarations: queries first, then events, then what uses them."""
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
        for source, tree in self._declarations("test"):
            if names.declare(source, "test", tokens_of(tree, "NAME")[0]):
                read_test(source, tree, names)
        self.errors = [
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
            tests=tuple(names.tests.values()),
            sources=tuple(source.text for source, _ in self._files),
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
    query = source.parse_fragment(body, parse_standing)
    if query is None or not sound:
        return
    text = f"{source.prologue}\n{body}"
    names.queries[str(name)] = tide.NamedQuery(str(name), text, body.line or 1)
    select = query if isinstance(query, SelectQuery) else query.select
    names.variables[str(name)] = select.variables

"""Promises, options, keywords, constructs and refusals, derived from the docs and the sources.

`ledger.txt` has a line for each entry: kind, name, verdict and test. `python tests/repo/ledger.py`
prints the lines to add and to remove.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphtide.cli.main import app
from graphtide.client import RemoteGraph
from graphtide.engine.query_host import QueryCursor
from graphtide.lang.tide import lexer
from graphtide.repair.plan import RepairPlan
from graphtide.rules.program import RunningProgram
from graphtide.spark.driver.options import RunSettings
from graphtide.spark.driver.run import SparkJob
from graphtide.spark.partition.hubs import AUTO
from graphtide.streams.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = ROOT / "src" / "graphtide"
LEDGER = HERE / "ledger.txt"

HANDLES = (Stream, RunningProgram, QueryCursor, RepairPlan, RemoteGraph, SparkJob)
"""Classes of objects that public functions return, and that the list of public names leaves out."""

MESSAGE_LENGTH = 80
"""A refusal is named by its message up to this length."""

QUOTED_WORDS = 3
"""How many words in a row of a refusal its test has to quote."""


class Entry(NamedTuple):
    """A line of the ledger."""

    kind: str
    name: str
    verdict: str
    test: str

    def __str__(self) -> str:
        return " | ".join(self)


def listed() -> list[Entry]:
    """The lines of the ledger; names may contain the separator."""
    lines = LEDGER.read_text(encoding="utf-8").splitlines()
    entries = []
    for line in lines:
        if line and not line.startswith("#"):
            kind, rest = line.split(" | ", 1)
            entries.append(Entry(kind, *rest.rsplit(" | ", 2)))
    return entries


def derived() -> list[tuple[str, str]]:
    """The kind and name of each entry that there has to be, in the order of the ledger."""
    kinds = {
        "promise": promises(),
        "command": commands(),
        "keyword": hidden_keywords(),
        "value": keyword_values(),
        "sparql": sparql_constructs(),
        "tide word": tide_words(),
        "tide rule": tide_rules(),
        "refusal on Spark": spark_refusals(),
    }
    return [(kind, name) for kind, names in kinds.items() for name in sorted(set(names))]


def difference() -> list[str]:
    """The lines that are missing (+) and those that are too many (-).

    A name of the list of public names needs a line only if it is not kept.
    """
    there, wanted = listed(), derived()
    known = {(entry.kind, entry.name) for entry in there}
    public = set(public_names())
    lines = [f"+ {kind} | {name} | keep | -" for kind, name in wanted if (kind, name) not in known]
    for entry in there:
        expected = entry.name in public if entry.kind == "name" else entry[:2] in set(wanted)
        if not expected:
            lines.append(f"- {entry}")
    return lines


# --- docs ---


def promises() -> Iterator[str]:
    """The rows of tables that end with a column "shown by", and the points of lists."""
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    for header, *rows in tables(text):
        if header[-1] == "shown by":
            yield from (": ".join(row[:-1]) for row in rows)
    for point in re.findall(r"^- (.*(?:\n  .*)*)", text, re.MULTILINE):
        yield " ".join(point.split()).partition(" (`")[0]


def sparql_constructs() -> Iterator[str]:
    """The first column of the table of constructs."""
    text = (ROOT / "docs" / "sparql.md").read_text(encoding="utf-8")
    for header, *rows in tables(text):
        if header[0] == "construct":
            yield from (row[0] for row in rows)


def tables(markdown: str) -> Iterator[list[list[str]]]:
    """The tables of a page, as lists of cells; a `|` in code does not end a cell."""
    for block in re.findall(r"(?:^\|.*\|$\n?)+", markdown, re.MULTILINE):
        lines = block.splitlines()
        yield [cells(line) for line in (lines[0], *lines[2:])]


def cells(line: str) -> list[str]:
    """The cells of a row."""
    return [cell.strip() for cell in re.findall(r"(?:`[^`]*`|[^|`])+", line.strip("|"))]


# --- the command line ---


def commands() -> Iterator[str]:
    """Each command, and each of its options in its positive form."""
    yield from commands_of(app, ())
    yield from (f"graphtide {option}" for option in options_of(app.meta))


def commands_of(where, path: tuple[str, ...]) -> Iterator[str]:
    """The commands below an app."""
    for name in where:
        if not name.startswith("-"):
            here, below = (*path, name), where[name]
            yield " ".join(here)
            if below.default_command:
                yield from (f"{' '.join(here)} {option}" for option in options_of(below))
            yield from commands_of(below, here)


def options_of(command) -> Iterator[str]:
    """The options of a command, each by its first name, which is the long and positive form."""
    for argument in command.assemble_argument_collection():
        names = [name for name in argument.names if name.startswith("--")]
        if names:
            yield names[0]


# --- the public API ---


@cache
def public_lines() -> list[str]:
    """The list of public names with their signatures."""
    return (HERE / "public_names.txt").read_text(encoding="utf-8").splitlines()


def public_names() -> Iterator[str]:
    """Each public name, and each of its parameters as NAME(PARAMETER=)."""
    for name, parameters in signatures():
        yield name
        yield from (f"{name}({each.arg}=)" for each in parameters)


def signatures() -> Iterator[tuple[str, list[ast.arg]]]:
    """The public names with their parameters; values have none."""
    for line in public_lines():
        name, opening, rest = line.partition("(")
        if ": " in name or not opening:
            yield name.partition(":")[0], []
            continue
        arguments = parsed_parameters(f"({rest}")
        yield name, [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def parsed_parameters(signature: str) -> ast.arguments:
    """The parameters of a signature."""
    text = signature.replace("(…)", "()")
    definition = ast.parse(f"def f{text}: ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    return definition.args


def hidden_keywords() -> Iterator[str]:
    """The keyword arguments that the list of public names does not show.

    It shows those of `LiveGraph.open` and `spark.run` as `**options` and `**settings`, and has no
    methods of `HANDLES`.
    """
    constructor = dict(signatures())["graphtide.LiveGraph"]
    yield from (f"graphtide.LiveGraph.open({each.arg}=)" for each in constructor)
    yield from (f"graphtide.spark.run({name}=)" for name in RunSettings.__annotations__)
    for handle in HANDLES:
        for name, method in inspect.getmembers(handle, inspect.isroutine):
            if not name.startswith("_"):
                yield from (f"{handle.__name__}.{name}({each}=)" for each in optional(method))


def optional(function) -> Iterator[str]:
    """The parameters that have a default or a name only."""
    for name, parameter in inspect.signature(function).parameters.items():
        named = parameter.kind is parameter.KEYWORD_ONLY
        if named or parameter.default is not parameter.empty:
            yield name


def keyword_values() -> Iterator[str]:
    """The values of the public keyword arguments that take one of a few strings."""
    values = literal_values()
    annotated = [
        (name, each.arg, ast.unparse(each.annotation))
        for name, parameters in signatures()
        for each in parameters
        if each.annotation
    ]
    settings = settings_as_written()
    annotated += [("graphtide.spark.run", name, text) for name, text in settings.items()]
    for name, keyword, annotation in annotated:
        for alias in re.findall(r"\w+", annotation):
            yield from (f'{name}({keyword}="{value}")' for value in values.get(alias, ()))
    yield f'graphtide.spark.run(hubs="{AUTO}")'


def settings_as_written() -> dict[str, str]:
    """The annotations of the settings of a run on Spark, as they are written."""
    path = SOURCES / "spark" / "driver" / "options.py"
    (found,) = (
        node
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and node.name == RunSettings.__name__
    )
    fields = [node for node in found.body if isinstance(node, ast.AnnAssign)]
    return {node.target.id: ast.unparse(node.annotation) for node in fields}


def literal_values() -> dict[str, set[str]]:
    """The strings of each type alias that is a `Literal`, or is made of one."""
    aliases: dict[str, list[ast.expr]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        for node in tree_of(path).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and is_type(node.value):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                aliases.setdefault(ast.unparse(target), []).append(node.value)
    return {name: set(strings_of(found, aliases)) for name, found in aliases.items()}


def strings_of(types: list[ast.expr], aliases: dict[str, list[ast.expr]]) -> Iterator[str]:
    """The strings of the `Literal`s in types, also in those that are named there."""
    for part in (part for each in types for part in ast.walk(each)):
        if isinstance(part, ast.Name):
            yield from strings_of(aliases.get(part.id, []), aliases)
        elif isinstance(part, ast.Subscript) and is_type(part):
            values = (each.value for each in ast.walk(part) if isinstance(each, ast.Constant))
            yield from (value for value in values if isinstance(value, str))


def is_type(value: ast.expr | None) -> bool:
    """Whether an expression is a `Literal[…]`, or a union."""
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Name) and value.value.id == "Literal"
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)


# --- programs ---


def tide_words() -> Iterator[str]:
    """The keywords of the lexer; one that is a keyword in one declaration only comes after it."""
    yield from (*lexer.TOP_LEVEL, *lexer.WORDS, *lexer.RELATIONS)
    for declaration, words in lexer.OWN_WORDS.items():
        yield from (f"{declaration} {word}" for word in words)
    yield from (f"PATTERN {word}" for word in (*lexer.AFTER_CONTEXT, *lexer.AFTER_COUNT))
    yield f"PATTERN {lexer.INTERVAL}"


def tide_rules() -> Iterator[str]:
    """The rules of the grammar that have a token; the others only join rules."""
    text = (SOURCES / "lang" / "tide" / "tide.lark").read_text(encoding="utf-8")
    text = re.sub(r"^(//|%).*\n", "", text, flags=re.MULTILINE)
    for rule in re.findall(r"^\w+:.*(?:\n +\|.*)*", text, re.MULTILINE):
        if re.search(r"\b[A-Z]+\b", rule):
            yield " ".join(rule.split())


# --- refusals on Spark ---


def spark_refusals() -> Iterator[str]:
    """The messages of errors that Spark's part of the package makes, without what is inserted.

    An error made in an `except` clause reports a failure of the environment, and is not a refusal.
    """
    for path in sorted((SOURCES / "spark").rglob("*.py")):
        tree = tree_of(path)
        handled = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.ExceptHandler)
            for part in ast.walk(node)
        }
        texts = {
            node.target.id: node.value
            for node in tree.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        for node in ast.walk(tree):
            if is_error(node) and id(node) not in handled:
                text = message(node.args[0], texts)
                if text.strip("… :"):
                    yield text


def is_error(node: ast.AST) -> bool:
    """Whether a node makes an error for users."""
    named = {"GraphtideError", "UnsupportedError"}
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in named


def message(text: ast.expr, texts: dict[str, ast.expr]) -> str:
    """A message with `…` for each value that is not a constant of its module; cut after a word."""
    whole = "".join(words_of(part, texts) for part in getattr(text, "values", [text]))
    if len(whole) <= MESSAGE_LENGTH:
        return whole
    return whole[:MESSAGE_LENGTH].rpartition(" ")[0]


def words_of(part: ast.expr, texts: dict[str, ast.expr]) -> str:
    """The words of a part of a message, if they are known from its module."""
    value = part.value if isinstance(part, ast.FormattedValue) else part
    constant = texts.get(value.id, value) if isinstance(value, ast.Name) else value
    known = isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    return constant.value if known else "…"


# --- tests ---


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def problem(entry: Entry) -> str | None:
    """What is wrong with the test of an entry; None if it is there and mentions the entry."""
    file, _, function = entry.test.partition("::")
    path = ROOT / file
    if not path.is_file():
        return f"there is no file {file}"
    functions = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef))
    if function and function not in {node.name for node in functions}:
        return f"{file} has no function {function}"
    text = path.read_text(encoding="utf-8")
    if not mentions(text, entry):
        return f"{file} does not mention it"
    return None


def mentions(text: str, entry: Entry) -> bool:
    """Whether the text of a test has the words of an entry."""
    match entry.kind:
        case "command":
            words = entry.name.removeprefix("graphtide ").split()
            return all(re.search(rf"(?<![\w-]){word}(?![\w-])", text) for word in words)
        case "value":
            _, value, _ = entry.name.split('"')
            return f'"{value}"' in text
        case "name" | "keyword":
            word = re.findall(r"\w+", entry.name)[-1]
            return re.search(rf"\b{word}\b", text) is not None
        case "tide word":
            return all(re.search(rf"\b{word}\b", text) for word in entry.name.split())
        case "tide rule":
            words = [word for word in re.findall(r"\b[A-Z]+\b", entry.name) if is_keyword(word)]
            return not words or any(re.search(rf"\b{word}\b", text) for word in words)
        case "refusal on Spark":
            return any(quote in text for quote in quotes(entry.name))
    return True


def is_keyword(word: str) -> bool:
    """Whether a symbol of the grammar is a word of programs."""
    return word in {*lexer.TOP_LEVEL, *lexer.ALL_WORDS, *lexer.RELATIONS}


def quotes(refusal: str) -> list[str]:
    """The runs of words of a message that a test may quote."""
    found = []
    for part in refusal.split("…"):
        words = part.strip(" :;,.").split()
        width = min(QUOTED_WORDS, len(words))
        found += [" ".join(words[at : at + width]) for at in range(len(words) - width + 1) if words]
    longest = max((len(quote.split()) for quote in found), default=0)
    return [quote for quote in found if len(quote.split()) == longest]


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in difference()))

"""Every option means one thing: the same name has the same type and the same help everywhere."""

import re
from collections import defaultdict
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

import pytest

from graphtide.cli.main import app


def commands(group=app, path=()):
    """All commands, with their words."""
    names = [name for name in group if not name.startswith("-")]
    if path and not names:
        yield path, group
    for name in names:
        yield from commands(group[name], (*path, name))


COMMANDS = dict(commands())


def options(command):
    """The options of a command: name, kind of value, help."""
    for argument in command.assemble_argument_collection(parse_docstring=True):
        name = argument.names[0]
        if name.startswith("--"):
            yield name, kind(argument.hint), " ".join((argument.parameter.help or "").split())


def kind(hint):
    """What a value is: a path, a number, a choice…; optional or repeated makes no difference."""
    if get_origin(hint) in (UnionType, Union):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) in (list, tuple):
        hint = get_args(hint)[0]
    if get_origin(hint) is Literal or hint is str:
        return "text"
    return {Path: "path", int: "integer", float: "number", bool: "flag"}[hint]


def first_sentence(text):
    return re.split(r"(?<=[.:;]) ", text, maxsplit=1)[0].rstrip(".:;")


def by_name():
    found = defaultdict(dict)
    for path, command in COMMANDS.items():
        for name, value, text in options(command):
            found[name][" ".join(path)] = value, text
    return found


OPTIONS = by_name()


def test_all_commands_are_walked():
    assert {("watch",), ("run",), ("repair",), ("fmt",)} <= set(COMMANDS)


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_one_type_and_one_meaning(name):
    kinds = {command: value for command, (value, _) in OPTIONS[name].items()}
    meanings = {command: first_sentence(text) for command, (_, text) in OPTIONS[name].items()}
    assert len(set(kinds.values())) == 1, kinds
    assert len(set(meanings.values())) == 1, meanings


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_has_help_and_every_command_an_example(path, run):
    for name, _, text in options(COMMANDS[path]):
        assert text, name
    ran = run(*path, "--help")
    assert ran.code == 0
    assert f"Example: graphtide {' '.join(path)}" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    "old",
    ["--cells", "--only-new", "--once", "--in-process", "--most", "--in-topic", "--limit-digits"],
)
def test_old_spellings_are_gone(old):
    assert old not in OPTIONS


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (("watch", "a.rq", "--changes", "b", "--tick-ms", "x"), '--tick-ms "x": give a whole'),
        (("watch", "a.rq", "--changes", "b", "--on-error", "x"), '"x": choose from raise, skip'),
        (("run", "a.tide", "--changes", "b", "--engine", "x"), "choose from spark, process"),
        (("run", "a.tide", "--changes", "b", "--format", "x"), "choose from parquet, json"),
        (("explain", "a.rq", "--format", "x"), "choose from text, mermaid, svg"),
        (("repair", "a.tide", "--data", "b", "--max-seconds", "x"), '"x": give a number'),
        (("demo", "--seed", "x"), 'invalid --seed "x": give a whole number'),
    ],
)
def test_values_that_are_not_allowed(run, tokens, message):
    ran = run(*tokens)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("graphtide: invalid --")
    assert message in ran.err


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (("run", "a.tide"), "--changes"),
        (("repair", "a.tide"), "--data"),
        (("query",), "argument"),
        (("watch", "--nonsense"), "--nonsense"),
    ],
)
def test_arguments_that_are_missing_or_unknown(run, tokens, message):
    ran = run(*tokens)
    assert (ran.code, ran.out) == (2, "")
    first, *hints = ran.err.splitlines()
    assert message in first
    assert len(hints) <= 1
    assert all(hint.startswith("  hint: ") for hint in hints)

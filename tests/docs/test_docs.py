"""The documents tell the truth where a machine can check it: pictures, links, names of files."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from functools import lru_cache
from pathlib import Path

import pytest

from graphtide.cli.main import main

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "graphtide"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
FILE = re.compile(r"`([\w./-]+/[\w-]+\.(?:py|toml|md))`")
ROW = re.compile(r"^\| (.+) \|$", re.MULTILINE)
MERMAID = re.compile(r"^```mermaid\n(.*?)\n```$", re.MULTILINE | re.DOTALL)

page = pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


def globals_after(path):
    """The variables that a page's examples leave behind."""
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    text = path.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(text, {}, path.name, str(path), 0)
    runner = doctest.DocTestRunner(optionflags=options, verbose=False)
    runner.run(examples, clear_globs=False)
    assert runner.failures == 0
    return examples.globs


def test_the_picture_in_the_readme_is_the_plan_of_its_program():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (picture,) = MERMAID.findall(text)
    after = globals_after(ROOT / "README.md")
    graph, query = after["graph"], after["query"]
    assert graph.watch(query.text, strategy="rete").explain("mermaid") == picture


def test_the_readme_names_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text and "make test" in text


@page
def test_links_lead_somewhere(path):
    links = LINK.findall(path.read_text(encoding="utf-8"))
    lost = [link for link in links if not (path.parent / link).exists()]
    assert not lost


@page
def test_files_that_are_named_exist(path):
    named = FILE.findall(path.read_text(encoding="utf-8"))
    folders = (ROOT, SOURCES)
    lost = [name for name in named if not any((folder / name).exists() for folder in folders)]
    assert not lost


def table_of(path, heading):
    """The rows of the first table below a heading, as lists of cells."""
    section = path.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [row.split(" | ") for row in ROW.findall(section)]
    return rows[1:]


VOCABULARY = [
    (word.strip(), module.strip("`"))
    for words, _, module in table_of(ROOT / "docs" / "architecture.md", "Vocabulary")
    for word in words.split(",")
]


@pytest.mark.parametrize(("word", "module"), VOCABULARY)
def test_words_of_the_vocabulary_are_used(word, module):
    text = (SOURCES / module).read_text(encoding="utf-8")
    assert re.search(rf"\b{word}", text, re.IGNORECASE)


def test_folders_of_the_architecture_are_the_layers():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawing = text.split("## The layers")[1].split("```")[1]
    drawn = re.findall(r"^ (\w+)(?:/|\.py) ", drawing, re.MULTILINE)
    contract = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("layers = [")[1]
    layers = re.findall(r'"(\w+)"', contract.split("]")[0])
    assert [name for name in drawn if name in layers] == layers


TABLES = {
    "README.md": table_of(ROOT / "README.md", "Where is what"),
    "CONTRIBUTING.md": table_of(ROOT / "CONTRIBUTING.md", "Where to look"),
}
FOUND = [tuple(row) for table in TABLES.values() for row in table]


@pytest.mark.parametrize(("what", "where"), FOUND)
def test_names_are_where_the_table_says(what, where):
    """A module, and in brackets after it names that it defines."""
    for module, names in re.findall(r"`([\w/]+\.py)`(?: \(([^()]*)\))?", where):
        text = (SOURCES / module).read_text(encoding="utf-8")
        for name in re.findall(r"`([\w.]+)`", names):
            last = name.split(".")[-1]
            assert re.search(rf"(class|def) {last}\b|\b{last}:", text), f"{name} in {module}"


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_what_strangers_look_for_is_in_the_table(table):
    sought = " ".join(what for what, _ in table)
    for thing in ("NOT EXISTS", "window closes", "token moves", "event expires", "Spark state"):
        assert thing in sought
    assert "RDF Patch" in sought


COMMAND = re.compile(r"^(?:\.venv/bin/)?graphtide ((?:store )?[a-z][a-z-]*)([^#|\n]*)")
CODE = re.compile(r"`([^`\n]+)`")


def commands_of(path):
    """The commands that a page shows, each with its options."""
    text = path.read_text(encoding="utf-8")
    for code in [*text.splitlines(), *CODE.findall(text.replace("```", ""))]:
        if match := COMMAND.match(code.strip()):
            yield match[1], tuple(re.findall(r"--(?!help)[a-z][a-z-]*", match[2]))


@lru_cache
def help_of(command):
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        main([*command.split(), "--help"])
    return output.getvalue()


@page
def test_commands_and_options_exist(path):
    if path.name == "CHANGELOG.md":  # it also has those that are gone
        return
    for command, options in commands_of(path):
        text = help_of(command)
        assert f"Usage: graphtide {command}" in text, command
        unknown = [option for option in options if not re.search(rf"{option}\b(?!-)", text)]
        assert not unknown, f"graphtide {command}: {unknown}"

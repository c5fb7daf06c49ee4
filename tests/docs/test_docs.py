"""The documents tell the truth where a machine can check it: pictures, links, names of files."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
FILE = re.compile(r"`([\w./-]+/[\w-]+\.(?:py|toml|md))`")
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
    graph, watch = after["graph"], after["watch"]
    assert graph.watch(watch.text, strategy="rete").explain("mermaid") == picture


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
    places = (ROOT, ROOT / "src" / "graphtide")
    lost = [name for name in named if not any((place / name).exists() for place in places)]
    assert not lost

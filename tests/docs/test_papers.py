"""docs/papers.md names files and tests that are there, and covers each paper from end to end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "graphtide"
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
PAPERS = TEXT.split("\n## ")[1:]
NAMED = re.compile(r"`([\w-]+(?:/[\w.-]+)+|graph\.py|patterns)`(?: \(([^()]*)\))?")
PATHS = sorted({(path, names) for path, names in NAMED.findall(TEXT)})

LAST = {"Paper 1": ("Figures 12 to 20", "10 and 11"), "Paper 2": ("4.5", "5.2")}
LAST |= {"Paper 3": ("Definition 13", "Algorithm 4"), "Paper 4": ("Definition 16", "Table 3")}
LAST |= {"Paper 5": ("Definition 8", "Algorithm 4", "Figures 7 to 9")}


def rows(paper):
    return [line[2:-2].split(" | ") for line in paper.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize(("path", "names"), PATHS)
def test_paths_and_names_exist(path, names):
    (found,) = [base / path for base in (ROOT, SOURCES) if (base / path).exists()]
    text = found.read_text(encoding="utf-8") if found.is_file() else ""
    for name in re.findall(r"`(\w+)`", names):
        assert re.search(rf"(class|def) {name}\b|\b{name}:", text), f"{name} in {path}"


def test_tests_that_are_named_alone_exist():
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    names = set(re.findall(r"`(test_\w+)`", TEXT))
    assert names
    assert not [name for name in names if not any(f"def {name}(" in text for text in texts)]


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper[:7])
def test_every_row_says_where_and_how_it_departs(paper):
    table = rows(paper)
    assert len(table) >= 15
    for row in table:
        assert len(row) == 4, row[0]
        assert row[0].strip(), row
        assert row[1].strip(), row
        assert row[3].strip(), row
    first = " ".join(row[0] for row in table)
    assert all(part in first for part in LAST[paper[:7]])

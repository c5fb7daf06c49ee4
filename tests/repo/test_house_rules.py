"""House rules that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
WHOLE_PRODUCT = {"docs", "mutants", "oracles", "papers", "repo", "spark/faults", "support", "w3c"}
"""Folders of tests that do not belong to one folder of the package."""

# Spelled in two parts, so that this file does not hold what it looks for.
FORBIDDEN = {
    "a place on somebody's machine": re.compile(
        r"/(?:ho" + r"me|ro" + r"ot|Us" + r"ers|wo" + r"rk)/"
    ),
    "a package registry's host": re.compile(
        "py" + r"pi\.org|pythonhos" + r"ted\.org|npm" + r"js\.com"
    ),
    "a note of unfinished work": re.compile(r"\bTO" + r"DO\b|\bFIX" + r"ME\b"),
}


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(path: Path) -> set[str]:
    """The modules that a file imports anywhere, also those that it imports names of."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def tracked_files() -> list[Path]:
    """The repository's files; outside a clone, everything that is not hidden or made by a tool."""
    command = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        made = re.compile(r"(^|/)(\.(?!ci/)|__pycache__)")
        files = [p for p in ROOT.rglob("*") if not made.search(p.relative_to(ROOT).as_posix())]
    return [path for path in files if path.is_file()]


def lines_of(path: Path) -> list[str]:
    """The lines of a text file; none of a binary one."""
    content = path.read_bytes()
    return [] if b"\0" in content else content.decode(errors="replace").splitlines()


def test_there_is_something_to_check():
    assert ROOT / "pyproject.toml" in tracked_files()
    assert len(SOURCES) > 10


COMPILERS = {"compiled", "inlined", "allocating"}


def negative_indexes(function: ast.FunctionDef) -> list[int]:
    """The lines of a function where a constant index counts from the end."""
    parts = (part for node in ast.walk(function) if isinstance(node, ast.Subscript)
             for part in getattr(node.slice, "elts", [node.slice]))  # fmt: skip
    return [
        part.lineno
        for part in parts
        if isinstance(part, ast.UnaryOp)
        and isinstance(part.op, ast.USub)
        and isinstance(part.operand, ast.Constant)
    ]


def test_no_index_of_a_compiled_loop_counts_from_the_end():
    """`graphtide.indexing` says why; those that are computed are found by its checks."""
    functions = [
        (path, node)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef)
        and COMPILERS & {getattr(each, "id", "") for each in node.decorator_list}
    ]
    assert len(functions) > 100
    assert [
        (path.name, lines) for path, each in functions if (lines := negative_indexes(each))
    ] == []


def test_a_class_name_means_one_class():
    """The twins of kernels have the names of their kernels; all other names are unique."""
    homes = defaultdict(set)
    for path in SOURCES:
        if path.parent.name != "twin":
            classes = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)]
            for node in classes:
                homes[node.name].add(str(path.relative_to(ROOT)))
    assert not {name: sorted(where) for name, where in homes.items() if len(where) > 1}


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_test_module_is_imported(path):
    """What tests share is in `tests/support` or beside them, in modules that are no tests."""
    parts = [part for name in imported_modules(path) for part in name.split(".")]
    assert not [
        part for part in parts if part.startswith("test_") and (path.parent / part).exists()
    ]
    known = {test.stem for test in TESTS if test.stem.startswith("test_")}
    assert not known.intersection(parts)


def test_tests_mirror_the_tree():
    """Every folder of tests is one of the package or of benchmarks, or tests all of it."""
    homes = (ROOT / "src" / "graphtide", ROOT)
    folders = {path.parent.relative_to(ROOT / "tests").as_posix() for path in TESTS}
    lost = [f for f in folders - WHOLE_PRODUCT if not any((home / f).is_dir() for home in homes)]
    assert not lost


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_no_file_holds(rule):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in tracked_files()
        for number, line in enumerate(lines_of(path), 1)
        if FORBIDDEN[rule].search(line)
    ]
    assert not found, "\n".join(found)


def test_the_lock_pins_what_the_project_asks_for():
    lock = (ROOT / "requirements" / "dev.lock").read_text(encoding="utf-8")
    pinned = set(re.findall(r"^([a-z0-9-]+)==", lock, flags=re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [
        *project["project"]["dependencies"],
        *project["dependency-groups"]["bench"],
        *project["dependency-groups"]["dev"],
        *project["dependency-groups"]["install"],
    ]
    names = [each for each in wanted if isinstance(each, str)]  # not the groups that are included
    missing = {re.match("[a-z0-9-]+", each)[0] for each in names} - pinned
    assert not missing, f"run `make lock`: {sorted(missing)} missing"

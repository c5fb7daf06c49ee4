"""House rules that no linter knows."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MOST_LINES = 600
MOST_LINES_OF_A_FUNCTION = 45

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


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_short_and_says_what_it_is(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert ast.get_docstring(ast.parse(text)), "no module docstring"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_function_is_too_long_to_read(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    long = [f.name for f in functions if lines_of_code(f) > MOST_LINES_OF_A_FUNCTION]
    assert not long


def lines_of_code(function: ast.FunctionDef) -> int:
    """The lines of a function's body; parameters and docstring explain, they are not in the way."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


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
        *project["project"]["optional-dependencies"]["bench"],
        *project["dependency-groups"]["dev"],
    ]
    missing = {re.match("[a-z0-9-]+", each)[0] for each in wanted} - pinned
    assert not missing, f"run `make lock`: {sorted(missing)} missing"

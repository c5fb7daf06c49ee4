"""`make docs-check`: which commands it finds, what it makes of them, and what fails."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load():
    spec = importlib.util.spec_from_file_location("docs_check", ROOT / "scripts" / "docs_check.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


script = load()
SHOWN = [shown for page in script.PAGES for shown in script.commands_of(page)]

PAGE = """
Text with `graphtide query inline.rq`, which is no block.

```
graphtide query a.rq --format json      # one answer
graphtide store info rail/              journal, snapshots
GRAPHTIDE_NO_JIT=1 .venv/bin/python -m pytest tests/papers
graphtide run a.tide --kafka servers=broker:9092 \\
    --kafka 'in=a  b' --follow
time graphtide check a.rq
out/RouteSensor/batch.parquet           no command
```

```python
graphtide = "python"
```

```console
$ curl -s localhost:8765/healthz
ok
```
"""


def test_commands_are_found_with_their_lines():
    found = [(shown.line, shown.text) for shown in script.commands_in(PAGE, "page.md")]
    assert found == [
        (5, "graphtide query a.rq --format json"),
        (6, "graphtide store info rail/"),
        (7, "GRAPHTIDE_NO_JIT=1 .venv/bin/python -m pytest tests/papers"),
        (8, "graphtide run a.tide --kafka servers=broker:9092 --kafka 'in=a  b' --follow"),
        (10, "time graphtide check a.rq"),
        (19, "curl -s localhost:8765/healthz"),
    ]
    assert all(PAGE.splitlines()[line - 1].strip("$ ").startswith(text[:9]) for line, text in found)


def test_blocks_that_tests_run_are_left_to_them():
    assert not any("curl" in shown.text for shown in script.commands_in(PAGE, "docs/serve.md"))


@pytest.mark.parametrize("plan", script.PLANS, ids=lambda plan: plan.start)
def test_every_plan_is_for_a_command_that_is_printed(plan):
    assert [shown for shown in SHOWN if script.plan_for(shown.text) is plan]


@pytest.mark.parametrize("shown", SHOWN, ids=str)
def test_every_command_is_well_formed_also_when_it_is_made_small(shown):
    plan = script.plan_for(shown.text)
    text = shown.text.removeprefix("time ").removesuffix(" &")
    small = script.with_options(text, plan.small)
    if shlex.split(text)[0] == "graphtide":
        for each in (text, small):
            assert not script.look_at(script.Shown(shown.page, shown.line, each))


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("graphtide query a.rq --colour red", "--colour"),
        ("graphtide run --partitions", "--partitions"),
        ("make no-such-target", "no-such-target"),
        ("make help", ""),
    ],
)
def test_what_is_not_run_is_looked_at(command, problem):
    found = script.look_at(script.Shown("page.md", 1, command))
    assert (problem in found) if problem else not found


INLINE = re.compile(r"`((?:graphtide|make)\s[^`]+)`")
BLOCKS = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
IN_TEXT = [
    script.Shown(page.name, 0, " ".join(text.split()))
    for page in script.PAGES
    for text in INLINE.findall(BLOCKS.sub("", page.read_text(encoding="utf-8")))
    if "…" not in text
]


@pytest.mark.parametrize("shown", sorted(set(IN_TEXT), key=str), ids=str)
def test_commands_in_sentences_and_their_options_exist(shown):
    """They may lack arguments: `graphtide run` is the name of a command."""
    problem = script.look_at(shown)
    assert not problem or "requires an argument" in problem


@pytest.mark.parametrize(
    ("command", "plan", "problem"),
    [
        ("python -c 'print(1)'", {}, ""),
        ("A=3 python -c 'import os, sys; sys.exit(int(os.environ[\"A\"]))'", {}, "exit code 3"),
        ("python -c 'raise SystemExit(1)'", {"codes": (0, 1)}, ""),
        ("python -c 'pass'", {"endless": True}, "ended by itself, with exit code 0"),
    ],
)
def test_a_command_is_run_to_its_end(command, plan, problem, tmp_path):
    shown = script.Shown("page.md", 1, command)
    plan = script.Plan(command, **plan)
    assert script.run_command(shown, plan, tmp_path, tmp_path / "log") == problem


@pytest.mark.slow
def test_a_command_without_an_end_is_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "STOP_AFTER_S", 2.0)
    wait = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print(7)"
    shown = script.Shown("page.md", 1, shlex.join(["python", "-c", wait]))
    plan = script.Plan("python", endless=True)
    assert not script.run_command(shown, plan, tmp_path, tmp_path / "log")
    assert (tmp_path / "log").read_text() == "7\n"


def test_the_folder_has_what_commands_read(tmp_path):
    script.make_folder(tmp_path)
    assert {"route.rq", "rail.ttl", "examples", "logs", "rail.tide"} <= {
        path.name for path in tmp_path.iterdir()
    }

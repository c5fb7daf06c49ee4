"""Each benchmark runs small, and its own checks of the answers hold."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from benchmarks.__main__ import BENCHMARKS, find_benchmark, main, parse
from benchmarks.harness import ROOT, Benchmark
from benchmarks.report import Panel, Plot, write_plot

HERE = sorted(set(BENCHMARKS) - {"spark"})
"""That on Spark has a test of its own, which shares a session with others."""


COMMANDS = re.findall(
    "^python -m benchmarks (.*)$",
    (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_results_are_well_formed(command):
    name, *words = shlex.split(command)
    options, _ = parse(name, words)
    assert find_benchmark(name).tasks(**options)


def test_every_benchmark_has_results():
    assert {command.split()[0] for command in COMMANDS} == set(BENCHMARKS)


def test_they_are_listed(capsys):
    assert main([]) == 0
    listed = capsys.readouterr().out.splitlines()[: len(BENCHMARKS)]
    assert [line.split()[0] for line in listed] == list(BENCHMARKS)
    assert main(["no-such"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", HERE)
def test_it_runs_small(name, tmp_path, monkeypatch, capsys):
    """In this process, but for its servers; `main` gives 2 where a check of answers fails."""
    monkeypatch.setattr(Benchmark, "measure_apart", lambda self, task, _=None: self.measure(task))
    file = tmp_path / "found.json"
    code = main([name, "--small", "--json", str(file)])
    assert code == 0, capsys.readouterr().err
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["benchmark"] == name
    assert len(found["results"]) == len(find_benchmark(name).tasks(**found["options"]))
    assert all(found["tables"].values())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["table", "--jobs", "groups", "nothing"], "--jobs: unknown 'nothing'"),
        (["planner", "--queries", "stars"], "--queries: unknown 'stars'"),
        (["windows", "--only", "table2"], "--only: unknown 'table2'"),
        (["layouts", "--queries", "PosLength"], "--queries: unknown 'PosLength'"),
        (["train", "--scenario", "nope"], "unknown scenario 'nope'"),
        (["train", "--plans", "A"], "ConnectedSegments has no plan named 'A'"),
    ],
)
def test_options_that_cannot_be(words, problem, capsys):
    assert main(words) == 2
    assert problem in capsys.readouterr().err


def test_options_are_those_of_the_function_that_makes_the_tasks():
    options, given = parse("rules", ["--sizes", "7", "9", "--small"])
    assert options == {"sizes": [7, 9], "events": 2000}
    assert given.json is given.plot is None


@pytest.mark.slow
def test_the_process_of_a_peer_does_not_load_the_engine():
    script = (
        "import sys\n"
        "from benchmarks.harness import worker\n"
        "worker()\n"
        "print(sorted(name for name in sys.modules if name.startswith('graphtide')))\n"
    )
    task = json.dumps({"way": "clipspy", "equipments": 5, "events": 50})
    command = [sys.executable, "-c", script, "benchmarks.rules", task]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    result, loaded = done.stdout.splitlines()
    assert json.loads(result)["way"] == "clipspy"
    assert loaded == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_plots_are_drawn(suffix, tmp_path):
    panel = Panel("p", {"a": [(1, 1), (10, 2)]}, "x", "y", 1.0, {"a": [(1, 0.5, 2)]})
    write_plot(Plot("plots", [[panel, panel], [panel]]), tmp_path / f"plot.{suffix}")
    assert (tmp_path / f"plot.{suffix}").stat().st_size > 1000

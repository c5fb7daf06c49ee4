"""`graphtide warm` compiles all loops."""

import pytest

from graphtide import warm
from graphtide.cli import demo
from graphtide.jit import LOOPS
from graphtide.kernel import JIT

needs_compiler = pytest.mark.skipif(not JIT, reason="there is no compiler")


@needs_compiler
@pytest.mark.slow
def test_every_loop_is_compiled_and_said(run):
    ran = run("warm", "--no-spark")
    assert ran.code == 0
    lines = [line for line in ran.err.splitlines() if " loops: " in line]
    count = len(lines)
    assert [line.split(" loops: ")[0] for line in lines] == [
        f"{number} of {count}" for number in range(1, count + 1)
    ]
    assert {line.split(" loops: ")[1].split(",")[0] for line in lines} == set(warm.all_loops())


@needs_compiler
def test_loops_of_the_first_minutes_exist():
    assert set(warm.FIRST) | set(warm.LONGEST) <= set(warm.all_loops()) <= set(LOOPS)
    assert len(warm.FIRST) == len(set(warm.FIRST))


def test_spark_is_warmed_too(run, monkeypatch):
    calls = []
    monkeypatch.setattr(warm, "all_loops", list)
    monkeypatch.setattr(warm, "compile_loops", lambda names, say: None)
    monkeypatch.setattr("graphtide.spark.warm_up.main", lambda *options: calls.append(options) or 0)
    assert run("warm").code == 0
    assert calls == ([("--once",)] if JIT else [])


def test_without_a_compiler_it_says_so(run, monkeypatch):
    monkeypatch.setattr(demo, "JIT", False)
    ran = run("warm")
    assert ran.code == 0 and "nothing to compile" in ran.err

"""`graphtide demo` on Spark, and without."""

import json
import os
import subprocess
import sys

import pytest

from graphtide.cli.main import main


def demo(*tokens, home):
    command = [sys.executable, "-m", "graphtide.cli.main", "demo", "--json", *map(str, tokens)]
    environment = os.environ | {"TMPDIR": str(home)}
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    return ran


def rows(text):
    found = [json.loads(line) for line in text.splitlines()]
    return sorted((r["time"], r["tx"], r["query"], r["diff"], *r["row"].values()) for r in found)


def test_without_java_the_demo_runs_in_this_process(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["demo", "--transactions", "20", "--json"]) == 0
    fallback = capsys.readouterr()
    assert fallback.err.startswith("running in process, without Spark: JAVA_HOME is")
    assert main(["demo", "--transactions", "20", "--json", "--engine", "process"]) == 0
    assert fallback.out == capsys.readouterr().out != ""


@pytest.mark.slow
def test_on_spark_it_shows_the_rows_that_it_shows_in_process(tmp_path, capsys):
    on_spark = demo("--transactions", 12, "--seed", 4, home=tmp_path)
    assert not list(tmp_path.glob("graphtide-*"))
    assert "rows now, +" in on_spark.stderr
    shown = rows(on_spark.stdout)
    # On a slow machine the demo ends before all is shown, and says so.
    last = shown[-1][0] if "stopped before" in on_spark.stderr else 12
    assert main(["demo", "--json", "--transactions", "12", "--seed", "4", "--engine=process"]) == 0
    assert shown == [row for row in rows(capsys.readouterr().out) if row[0] <= last]

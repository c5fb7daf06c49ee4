"""graphtide trace: the steps of a program as text, as JSON, and for Perfetto."""

import json
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
GIVEN = (EXAMPLES / "doors.tide", "--changes", EXAMPLES / "doors.rdfp")


def test_text(run):
    ran = run("trace", *GIVEN)
    assert ran.code == 0
    kinds = [line.split()[1] for line in ran.lines]
    assert kinds[:2] == ["event", "token"]
    assert any(line.split()[1:3] == ["firing", "Warn"] for line in ran.lines)
    times = [int(line.split()[0]) for line in ran.lines]
    assert times == sorted(times)


def test_json_has_the_same_steps(run):
    found = [json.loads(line) for line in run("trace", *GIVEN, "--format", "json").lines]
    shown = run("trace", *GIVEN).lines
    assert [f"{each['time']} {each['kind']} {each['name']}" for each in found] == [
        " ".join(line.split()[:3]) for line in shown
    ]


def test_chrome(run):
    events = json.loads(run("trace", *GIVEN, "--format", "chrome").out)
    assert {each["ph"] for each in events} >= {"M", "i", "b", "e"}


def test_without_changes(run):
    ran = run("trace", GIVEN[0])
    assert ran.code == 2
    assert "--changes FILE" in ran.err

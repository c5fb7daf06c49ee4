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


STREAMED = """PREFIX : <http://example.org/>
EVENT Seen(?d) AS { ?d :is :seen }
PATTERN Missed(?d) AS Seen(?d) -> NOT Seen(?d) WITHIN 30s
RULE Late ON Missed(?d) THEN INSERT { ?d :was :missed }
RULE Known WHEN FACT { ?d :is :known } EVENT Seen(?d) THEN INSERT { ?d :was :expected }
"""
SEEN = "<http://example.org/front> <http://example.org/is> <http://example.org/seen>"
CAMERA = "http://example.org/camera"


def test_data_streams_and_times(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seen.tide").write_text(STREAMED)
    (tmp_path / "known.ttl").write_text(SEEN.replace("/seen>", "/known> ."))
    (tmp_path / "log.rdfp").write_text(f"H time 5 .\nTX .\nA {SEEN} <{CAMERA}> .\nTC .\n")

    def fired(*options):
        ran = run("trace", "seen.tide", "--changes", "log.rdfp", *options)
        assert ran.code == 0
        words = [line.split() for line in ran.lines]
        return [(int(time), name) for time, kind, name, *_ in words if kind == "firing"]

    assert fired("--until", "100") == []
    stream = ("--stream", CAMERA)
    assert fired(*stream) == []
    assert fired(*stream, "--until", "100") == [(35, "Late")]
    assert fired(*stream, "--until", "100", "--tick-ms", "10000") == [(8, "Late")]
    assert fired(*stream, "--data", "known.ttl") == [(5, "Known")]

"""The options that set limits, and what is printed where one is exceeded."""

from __future__ import annotations

import pytest

from graphtide.cli.options import LimitOptions
from graphtide.limits import NAMES, Limits

QUERY = "SELECT * { ?a ?p ?b . ?c ?q ?d }"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "all.rq").write_text(QUERY)
    (tmp_path / "up.ru").write_text(
        f"INSERT {{ ?a ?p ?d }} WHERE {QUERY.removeprefix('SELECT * ')}"
    )
    lines = (f"<ex:{n}> <ex:p> <ex:{n}> .\n" for n in range(300))
    (tmp_path / "data.nt").write_text("".join(lines))
    (tmp_path / "long.nt").write_text(f'<ex:a> <ex:p> "{"x" * 1000}" .\n<ex:a> <ex:p> <ex:b> .\n')
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_each_limit_has_its_name(name):
    assert LimitOptions((f"{name}=77",)).limits() == Limits(**{name: 77})
    assert LimitOptions((f"{name}=none",)).limits() == Limits(**{name: None})


def test_limits_of_a_file_and_of_the_command_line(tmp_path):
    file = tmp_path / "limits.txt"
    file.write_text("# ours\n\ndigits = 50  # short\nquery_seconds=0.5\npath_pairs=none\n")
    given = LimitOptions(("digits=60",), file).limits()
    assert given == Limits(digits=60, query_seconds=0.5, path_pairs=None)


@pytest.mark.parametrize(("command", "file"), [("query", "all.rq"), ("update", "up.ru")])
def test_a_query_over_its_limit(run, files, command, file):
    ran = run(command, files / file, "--data", files / "data.nt", "--limit", "query_bytes=100000")
    assert (ran.code, ran.out) == (2, "")
    assert "graphtide: the query needs more memory" in ran.err
    assert "--limit query_bytes=…" in ran.err


def test_a_file_over_its_limit(run, files):
    for tokens in (
        ("query", files / "all.rq", "--data", files / "long.nt"),
        ("watch", files / "all.rq", "--changes", files / "long.nt"),
        ("explain", files / "all.rq", "--data", files / "long.nt"),
    ):
        ran = run(*tokens, "--limit", "literal_length=500")
        assert ran.code == 2
        assert f"{files / 'long.nt'}:1: a line of more than 500 bytes" in ran.err


def test_check_reports_what_is_too_long(run, files):
    ran = run("check", files / "long.nt", "--limit", "literal_length=500")
    assert ran.code == 1
    assert "long.nt:1:1: a line of more than 500 bytes" in ran.out
    assert run("check", files / "long.nt").code == 0


def test_a_run_rejects_what_is_too_long(run, files):
    tokens = ("run", files / "all.rq", "--engine", "process", "--changes", files / "long.nt")
    ran = run(*tokens, "--limit", "literal_length=500")
    assert ran.code == 0
    assert "rejected: 1 line" in ran.err
    assert "long.nt:1:1: a line of more than 500 bytes" in ran.err


NAMED = (
    "write NAME=VALUE, such as query_seconds=10 or digits=none; the names are query_seconds, query"
)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("digit=5", NAMED),
        ("digits", NAMED),
        ("digits=0", "digits is a whole number above 0, or none for no limit"),
        ("digits=1.5", "digits is a whole number above 0"),
        ("query_seconds=-1", "query_seconds is a number above 0"),
        ("query_seconds=inf", "query_seconds is a number above 0"),
    ],
)
def test_mistakes(run, files, text, allowed):
    ran = run("query", files / "all.rq", "--limit", text)
    assert (ran.code, ran.out) == (2, "")
    assert f'invalid --limit "{text}": {allowed}' in ran.err
    (files / "limits").write_text(f"digits=9\n{text}\n")
    ran = run("query", files / "all.rq", "--limits", files / "limits")
    assert (ran.code, ran.out) == (2, "")
    assert f'invalid line 2 of --limits {files / "limits"} "{text}": {allowed}' in ran.err


def test_a_file_of_limits_that_is_not_there(run, files):
    ran = run("query", files / "all.rq", "--limits", files / "none")
    assert ran.code == 2 and f"{files / 'none'}: cannot be read" in ran.err


COMMANDS = [
    ("check", "all.rq"),
    ("explain", "all.rq"),
    ("query", "all.rq"),
    ("repair", "goals.tide", "--data", "data.nt"),
    ("run", "all.rq", "--engine", "process", "--changes", "data.nt"),
    ("serve", "all.rq", "--port", "0"),
    ("trace", "goals.tide", "--changes", "data.nt"),
    ("update", "up.ru", "--data", "data.nt"),
    ("watch", "all.rq", "--changes", "data.nt"),
    ("why", "all.rq", "--data", "data.nt"),
]


@pytest.mark.parametrize("tokens", COMMANDS, ids=lambda tokens: tokens[0])
def test_each_command_reads_limits(run, files, monkeypatch, tokens):
    monkeypatch.chdir(files)
    (files / "goals.tide").write_text(f"QUERY Faults AS {QUERY} GOAL Sound NONE OF Faults")
    ran = run(*tokens, "--limit", "digits=0")
    assert (ran.code, ran.out) == (2, "")
    assert 'invalid --limit "digits=0"' in ran.err
    ran = run(*tokens, "--limits", "none.txt")
    assert (ran.code, ran.out) == (2, "")
    assert "none.txt: cannot be read" in ran.err

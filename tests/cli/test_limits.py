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


def test_there_is_an_option_for_each_limit():
    assert set(LimitOptions.__dataclass_fields__) == set(NAMES)
    assert LimitOptions().limits() == Limits()


@pytest.mark.parametrize("name", NAMES)
def test_zero_is_no_limit(name):
    assert getattr(LimitOptions(**{name: 0}).limits(), name) is None
    assert getattr(LimitOptions(**{name: 77}).limits(), name) == 77


@pytest.mark.parametrize(("command", "file"), [("query", "all.rq"), ("update", "up.ru")])
def test_a_query_over_its_limit(run, files, command, file):
    ran = run(command, files / file, "--data", files / "data.nt", "--limit-query-bytes", "100000")
    assert (ran.code, ran.out) == (2, "")
    assert "graphtide: the query needs more memory" in ran.err
    assert "--limit-query-bytes" in ran.err


def test_a_file_over_its_limit(run, files):
    for tokens in (
        ("query", files / "all.rq", "--data", files / "long.nt"),
        ("watch", files / "all.rq", "--changes", files / "long.nt"),
        ("explain", files / "all.rq", "--data", files / "long.nt"),
    ):
        ran = run(*tokens, "--limit-literal-length", "500")
        assert ran.code == 2
        assert f"{files / 'long.nt'}:1: a line of more than 500 bytes" in ran.err


def test_check_reports_what_is_too_long(run, files):
    ran = run("check", files / "long.nt", "--limit-literal-length", "500")
    assert ran.code == 1
    assert "long.nt:1:1: a line of more than 500 bytes" in ran.out
    assert run("check", files / "long.nt").code == 0


def test_a_run_rejects_what_is_too_long(run, files):
    tokens = ("run", files / "all.rq", "--engine", "process", "--changes", files / "long.nt")
    ran = run(*tokens, "--limit-literal-length", "500")
    assert ran.code == 0
    assert "rejected: 1 line" in ran.err
    assert "long.nt:1:1: a line of more than 500 bytes" in ran.err


def test_a_limit_is_not_negative(run, files):
    ran = run("query", files / "all.rq", "--limit-digits", "-1")
    assert (ran.code, ran.out) == (2, "")
    assert 'invalid --limit-digits "-1": give 0 or more' in ran.err

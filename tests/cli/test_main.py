import runpy
import sys

import pytest

import graphtide
from graphtide.cli.main import COMMANDS


def test_version(run):
    ran = run("--version")
    assert (ran.code, ran.out.strip()) == (0, graphtide.__version__)


def test_the_package_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["graphtide", "--version"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("graphtide", run_name="__main__")
    assert graphtide.__version__ in capsys.readouterr().out


def test_help_lists_every_command(run):
    ran = run("--help")
    assert ran.code == 0
    for command in COMMANDS:
        assert command.name in ran.out


@pytest.mark.parametrize(
    "tokens",
    [
        ("watch",),
        ("query",),
        ("update",),
        ("explain",),
        ("check",),
        ("demo",),
        ("run",),
    ],
)
def test_every_command_has_an_example(run, tokens):
    ran = run(*tokens, "--help")
    assert ran.code == 0
    assert f"Example: graphtide {' '.join(tokens)}" in ran.out


def test_an_unknown_command(run):
    ran = run("wach")
    assert ran.code == 2
    assert 'Did you mean "watch"?' in ran.err

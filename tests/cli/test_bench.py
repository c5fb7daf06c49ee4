"""`graphtide bench`: its commands come from one table."""

import shlex

import pytest

from graphtide.cli.bench import BENCHMARKS, app
from graphtide.cli.options import names, numbers
from graphtide.errors import GraphtideError

NAMES = [each.name or each.run.__name__.replace("_", "-") for each in BENCHMARKS]


def words(text):
    return " ".join(text.replace("│", " ").split())


def test_the_help_lists_what_each_measures(run):
    shown = words(run("bench", "--help").out)
    assert len(BENCHMARKS) == len(set(NAMES)) == 15
    for command, name in zip(BENCHMARKS, NAMES, strict=True):
        assert f"{name} {command.measures}" in shown


@pytest.mark.parametrize(("command", "name"), list(zip(BENCHMARKS, NAMES, strict=True)), ids=NAMES)
def test_each_help_has_an_example_that_can_be_run(run, command, name):
    assert f"Example: {command.example}" in words(run("bench", name, "--help").out)
    program, group, *tokens = shlex.split(command.example)
    assert (program, group, tokens[0]) == ("graphtide", "bench", name)
    called, bound, _ = app.parse_args(tokens, exit_on_error=False, print_error=False)
    assert called is command.run and bound.kwargs


def test_all_strategies_are_in_the_help_of_train(run):
    shown = words(run("bench", "train", "--help").out)
    for strategy in ("search", "rete", "decomposed", "auto"):
        assert strategy in shown


@pytest.mark.parametrize("text", ["", "1,,2", "many", "-3", "99"])
def test_lists_of_numbers(text):
    assert numbers("100, 2_000,100", "--sizes", 100) == [100, 2000]
    with pytest.raises(GraphtideError, match="invalid --sizes"):
        numbers(text, "--sizes", 100)


def test_lists_of_names():
    assert names("A, B,A", "--plans") == ["A", "B"]
    with pytest.raises(GraphtideError, match='invalid --plans "A,,B": separate names'):
        names("A,,B", "--plans")

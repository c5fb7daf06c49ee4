"""Every example prints what its docstring says."""

import ast
import runpy
import textwrap
from pathlib import Path

import pytest

EXAMPLES = sorted(Path(__file__).parents[2].joinpath("examples").glob("*.py"))


def expected(path):
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    _, marker, text = docstring.partition("Prints:\n\n")
    assert marker, f"{path.name} does not say what it prints"
    return textwrap.dedent(text).strip()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip() == expected(path)


def test_there_are_examples():
    assert len(EXAMPLES) >= 4

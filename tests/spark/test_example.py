"""The example of sources and sinks prints what its docstring says."""

import ast
import runpy
import textwrap
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark" / "sources_and_sinks.py"


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_it_prints_what_it_says(shared_session, capsys):
    docstring = ast.get_docstring(ast.parse(EXAMPLE.read_text()))
    _, _, expected = docstring.partition("Prints:\n\n")
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.strip() == textwrap.dedent(expected).strip()

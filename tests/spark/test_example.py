"""The example of sources and sinks prints what its docstring says."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark" / "sources_and_sinks.py"


@pytest.mark.slow
def test_it_prints_what_it_says():
    docstring = ast.get_docstring(ast.parse(EXAMPLE.read_text()))
    _, _, expected = docstring.partition("Prints:\n\n")
    ran = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == textwrap.dedent(expected).strip()

"""The example: its queries are those that are measured, and it prints what it says."""

import ast
import runpy
import textwrap
from pathlib import Path

from benchmarks.datasets.queries import program_text
from graphtide.lang.sparql.parse import parse_query
from graphtide.lang.tide.program import Program

FOLDER = Path(__file__).parents[3] / "examples" / "gesture"


def test_the_example_is_the_program_that_is_measured():
    example, measured = Program.read(FOLDER / "gesture.tide"), Program.parse(program_text())
    assert [q.name for q in example.queries] == [q.name for q in measured.queries]
    for one, other in zip(example.queries, measured.queries, strict=True):
        assert parse_query(one.text).root == parse_query(other.text).root
    (one,), (other,) = example.patterns, measured.patterns
    assert (one.body, one.context, one.per) == (other.body, other.context, other.per)


def test_the_example_prints_what_it_says(capsys):
    path = FOLDER / "run.py"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    _, _, wanted = docstring.partition("Prints:\n\n")
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip() == textwrap.dedent(wanted).strip()

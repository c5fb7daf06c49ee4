"""The case study of a cyber-physical system, as its example has it (paper 4, 6.4)."""

import ast
import runpy
import textwrap
from pathlib import Path

from support.programs import find_repairs, run

import graphtide as gt
from graphtide.cli.main import main
from graphtide.lang.tide.program import Program

FOLDER = Path(__file__).parents[2] / "examples" / "cps"
CPS = "<http://example.org/cps#{}>".format


def test_the_example_prints_what_it_says(capsys):
    path = FOLDER / "quick_fix.py"
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    expected = textwrap.dedent(docstring.partition("Prints:\n\n")[2]).strip()
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip() == expected


def test_the_two_quick_fixes_of_the_paper():
    graph = gt.LiveGraph()
    for predicate, amount in (("availableCpu", 10), ("totalCpu", 8)):
        graph.insert(CPS("host"), CPS(predicate), amount)
    is_a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    graph.insert(CPS("host"), is_a, CPS("HostInstance"))
    found = find_repairs(graph, Program.read(FOLDER / "validity.tide"))
    assert found.complete
    assert [[step.fix for step in plan.steps] for plan in found] == [
        ["LowerAvailableCpu"],
        ["RaiseTotalCpu"],
    ]
    graph.repair(found[0])
    assert (CPS("host"), CPS("availableCpu"), 8) in graph
    assert (CPS("host"), CPS("totalCpu"), 8) in graph
    assert len(graph) == 3


def test_the_programs_are_sound_and_laid_out(capsys):
    programs = sorted(map(str, FOLDER.glob("*.tide")))
    assert len(programs) == 3
    assert main(["check", *programs]) == 0
    assert main(["fmt", "--check", *programs, str(FOLDER.parent / "repairs.tide")]) == 0


def test_events_of_different_hosts_do_not_add_up():
    graph, suggested = gt.LiveGraph(), []
    graph.apply(str(FOLDER / "cps.ttl"))
    functions = {"suggest": lambda host: suggested.append(str(host)), "tell_valid": print}
    run(Program.read(FOLDER / "cps.tide"), graph, functions=functions)
    set_to = {"server": 3, "gateway": 2}
    changes = [("server", 10), ("gateway", 9), ("server", 11), ("gateway", 8), ("server", 12)]
    for time, (host, available) in enumerate(changes, start=1):
        assert suggested == []
        with graph.transaction(time=time) as change:
            change.delete(CPS(host), CPS("availableCpu"), set_to[host])
            change.insert(CPS(host), CPS("availableCpu"), available)
        set_to[host] = available
    assert suggested == [CPS("server")]

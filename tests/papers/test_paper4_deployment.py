"""Paper 4, section 3 and Figure 4: a deployment model that follows the model of hosts."""

import ast
import runpy
import textwrap
from pathlib import Path

import pytest
from support.programs import run

import graphtide as gt
from graphtide.lang.tide.program import Program

FOLDER = Path(__file__).parents[2] / "examples" / "cps"
CPS = "<http://example.org/cps#{}>".format
IS_A = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
RESOURCES = ("Cpu", "Ram", "Hdd")


class Model:
    """A model of hosts and applications, and the deployment that the program makes of it."""

    def __init__(self):
        self.graph = gt.LiveGraph()
        run(Program.read(FOLDER / "deployment.tide"), self.graph)

    def change(self, *, delete=(), insert=()):
        with self.graph.transaction() as tx:
            for s, p, o in delete:
                tx.delete(CPS(s), CPS(p) if p != "a" else IS_A, o if isinstance(o, int) else CPS(o))
            for s, p, o in insert:
                tx.insert(CPS(s), CPS(p) if p != "a" else IS_A, o if isinstance(o, int) else CPS(o))

    def triples(self, subject_or_object="deployed"):
        """The triples of the deployment, without the namespace."""
        found = {
            tuple(str(t).rpartition("#")[2].rstrip(">") for t in quad[:3])
            for quad in self.graph.quads()
        }
        return {triple for triple in found if subject_or_object in triple[0]}


def host(name):
    return [(name, "a", "HostInstance"), (name, "type", "Box")] + [
        (name, f"{kind}{resource}", 4) for resource in RESOURCES for kind in ("available", "total")
    ]


def application(name, on):
    return [(name, "a", "ApplicationInstance"), (name, "type", "Any"), (name, "allocatedTo", on)]


def deployed_host(name):
    return {(f"{name}-deployed", "type", "DeploymentHost"), (f"{name}-deployed", "deploys", name)}


def deployed_application(name, on):
    return {
        (f"{name}-deployed", "type", "DeploymentApplication"),
        (f"{name}-deployed", "deploys", name),
        (f"{on}-deployed", "runs", f"{name}-deployed"),
    }


@pytest.fixture
def model():
    made = Model()
    made.change(insert=[*host("h1"), *host("h2"), *application("a1", "h1")])
    return made


BOTH = deployed_host("h1") | deployed_host("h2")


def test_the_example_prints_what_it_says(capsys):
    path = FOLDER / "deployment.py"
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    expected = textwrap.dedent(docstring.partition("Prints:\n\n")[2]).strip()
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip() == expected


def test_every_element_has_its_counterpart_and_hosts_have_their_applications(model):
    assert model.triples() == BOTH | deployed_application("a1", "h1")


def test_an_element_without_its_mandatory_attributes_waits(model):
    *rest, last = host("h3")
    model.change(insert=[*rest, *application("a3", "h3")])
    assert model.triples() == BOTH | deployed_application("a1", "h1")
    model.change(insert=[last])
    new = deployed_host("h3") | deployed_application("a3", "h3")
    assert model.triples() == BOTH | deployed_application("a1", "h1") | new


def test_an_application_that_moves_is_deployed_anew(model):
    model.change(delete=[("a1", "allocatedTo", "h1")], insert=[("a1", "allocatedTo", "h2")])
    assert model.triples() == BOTH | deployed_application("a1", "h2")


@pytest.mark.parametrize("resource", RESOURCES)
def test_while_the_model_is_invalid_the_deployment_stays(model, resource):
    model.change(
        delete=[("h2", f"available{resource}", 4)], insert=[("h2", f"available{resource}", 5)]
    )
    assert model.triples() == BOTH | deployed_application("a1", "h1")
    model.change(delete=[("a1", "allocatedTo", "h1")], insert=[("a1", "allocatedTo", "h2")])
    assert model.triples() == BOTH | deployed_application("a1", "h1")
    model.change(
        delete=[("h2", f"available{resource}", 5)], insert=[("h2", f"available{resource}", 4)]
    )
    assert model.triples() == BOTH | deployed_application("a1", "h2")


def test_an_application_that_is_on_no_host_stays_where_it_was(model):
    model.change(delete=[("a1", "allocatedTo", "h1")])
    assert model.triples() == BOTH | deployed_application("a1", "h1")


def test_what_is_removed_is_deployed_no_more(model):
    model.change(delete=application("a1", "h1"))
    assert model.triples() == BOTH
    model.change(delete=host("h1"))
    assert model.triples() == deployed_host("h2")


def test_a_host_that_is_removed_takes_its_placements(model):
    model.change(delete=host("h1"))
    gone = ("h1-deployed", "runs", "a1-deployed")
    assert model.triples() == deployed_host("h2") | deployed_application("a1", "h1") - {gone}
    model.change(delete=[("a1", "allocatedTo", "h1")], insert=[("a1", "allocatedTo", "h2")])
    assert model.triples() == deployed_host("h2") | deployed_application("a1", "h2")


def test_a_deployment_that_was_changed_by_hand_is_set_right(model):
    model.change(delete=[("h1-deployed", "runs", "a1-deployed")])
    assert model.triples() == BOTH | deployed_application("a1", "h1")

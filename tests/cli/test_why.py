"""`graphtide why` on files, in every format."""

from __future__ import annotations

import json

import pytest

from graphtide.graph import LiveGraph

QUERY = """PREFIX : <http://example.org/>
SELECT ?route ?sensor { ?route :follows ?switch . ?switch :monitoredBy ?sensor
                        FILTER NOT EXISTS { ?route :requires ?sensor } }
"""
DATA = """@prefix : <http://example.org/> .
:route1 :follows :switch1 . :route2 :follows :switch2 .
:switch1 :monitoredBy :sensor1 . :switch2 :monitoredBy :sensor1 .
:route2 :requires :sensor1 .
"""


@pytest.fixture
def railway(files):
    files.joinpath("route.rq").write_text(QUERY)
    files.joinpath("rail.ttl").write_text(DATA)
    ex = "http://example.org/"
    files.joinpath("today.rdfp").write_text(
        f"TX .\nD <{ex}route2> <{ex}requires> <{ex}sensor1> .\nTC .\n"
    )
    return files


def test_a_row_that_is_there(railway, run):
    ran = run("why", "route.rq", "--row", "route=:route1", "--data", "rail.ttl")
    assert ran.code == 0
    assert ran.out == (
        "route=:route1 sensor=:sensor1 is in route\n"
        "├─ ?route :follows ?switch\n"
        "│     :route1 :follows :switch1\n"
        "├─ ?switch :monitoredBy ?sensor\n"
        "│     :switch1 :monitoredBy :sensor1\n"
        "└─ NOT EXISTS { ?route :requires ?sensor }: nothing matches\n"
    )


def test_a_row_that_is_not_there_until_a_change(railway, run):
    question = ("why", "route.rq", "--row", "route=:route2", "--data", "rail.ttl")
    ran = run(*question)
    assert ran.code == 1
    assert ran.out.endswith("it would be with\n  - :route2 :requires :sensor1\n")
    assert run(*question, "--changes", "today.rdfp").code == 0


@pytest.mark.parametrize("form", ["json", "mermaid", "html"])
def test_other_formats(railway, run, form):
    ran = run("why", "route.rq", "--data", "rail.ttl", "--format", form, "--all")
    assert ran.code == 0
    assert ":route1 :follows :switch1" in ran.out or form == "json"
    if form == "json":
        assert len(json.loads(ran.out)["derivations"]) == 1


@pytest.mark.parametrize("row", ["route", "route=", "route=:a :b", "route=?x", "other=1"])
def test_a_row_that_means_nothing(railway, run, row):
    ran = run("why", "route.rq", "--row", row, "--data", "rail.ttl")
    assert ran.code == 2
    assert "column" in ran.err


def test_the_rows_of_a_store_now_and_as_of_then(run, tmp_path):
    with LiveGraph.open(tmp_path / "rail") as graph:
        graph.insert("<ex:a>", "<ex:next>", "<ex:b>", time=10)
        graph.delete("<ex:a>", "<ex:next>", "<ex:b>", time=20)
    (tmp_path / "next.rq").write_text("SELECT * { ?x <ex:next> ?y }")
    question = ("why", tmp_path / "next.rq", "--row", "x=<ex:a>", "--store", tmp_path / "rail")
    assert run(*question).code == 1
    then = run(*question, "--at", "15")
    assert then.code == 0 and "next" in then.out
    for more, said in [(("--data", "a.ttl"), "--store excludes --data"), ((), "--at is for")]:
        tokens = question if more else question[:-2]
        refused = run(*tokens, "--at", "15", *more)
        assert refused.code == 2 and said in refused.err


def test_as_many_derivations_as_are_asked_for(files, run):
    (files / "ways.rq").write_text("SELECT ?x { ?x <ex:p> ?y }")
    (files / "ways.nt").write_text("".join(f"<ex:a> <ex:p> <ex:{n}> .\n" for n in range(5)))
    question = ("why", "ways.rq", "--row", "x=<ex:a>", "--data", "ways.nt", "--format", "json")
    for options, number in (((), 1), (("--all",), 5), (("--all", "--max-derivations", "2"), 2)):
        assert len(json.loads(run(*question, *options).out)["derivations"]) == number
    ran = run(*question, "--max-derivations", "0")
    assert ran.code == 2 and 'invalid --max-derivations "0"' in ran.err


def test_ticks_of_windows(files, run):
    (files / "hot.rq").write_text(
        "REGISTER RSTREAM <ex:o> AS SELECT ?x FROM NAMED WINDOW <ex:w> ON <ex:s> "
        "[RANGE PT2S STEP PT2S] WHERE { WINDOW <ex:w> { ?x <ex:p> ?y } }"
    )
    (files / "log.rdfp").write_text(
        "".join(
            f"H time {time} .\nTX .\nA <ex:{time}> <ex:p> <ex:b> {graph}.\nTC .\n"
            for time, graph in ((1, "<ex:s> "), (4, ""))
        )
    )
    question = ("why", "hot.rq", "--changes", "log.rdfp", "--row", "x=<ex:1>")
    assert run(*question).code == 1
    assert run(*question, "--tick-ms", "500").code == 0
    ran = run(*question, "--tick-ms", "0")
    assert ran.code == 2 and '--tick-ms "0"' in ran.err

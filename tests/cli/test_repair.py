"""`graphtide repair`: plans shown, one applied, and what goes wrong."""

import pytest

PROGRAM = """PREFIX : <http://example.org/>
QUERY RouteSensor AS SELECT ?route ?sensor WHERE {
  ?route :follows ?swP . ?swP :target ?sw . ?sw :monitoredBy ?sensor .
  FILTER NOT EXISTS { ?route :requires ?sensor } }
QUERY Monitor AS SELECT ?sw ?sensor { ?sw :monitoredBy ?sensor }
GOAL Sound NONE OF RouteSensor
FIX Link ON RouteSensor THEN INSERT { ?route :requires ?sensor }
FIX Unplug COST 5 ON Monitor THEN DELETE { ?sw :monitoredBy ?sensor }
"""
DATA = """@prefix : <http://example.org/> .
:route1 :follows :swP1 . :swP1 :target :sw1 . :sw1 :monitoredBy :sensor1 .
"""
EX = "<http://example.org/{}>".format


@pytest.fixture
def rail(files):
    (files / "rail.tide").write_text(PROGRAM)
    (files / "rail.ttl").write_text(DATA)
    return files


def test_plans_are_shown_the_best_first(rail, run):
    ran = run("repair", "rail.tide", "--data", "rail.ttl")
    assert ran.code == 0
    assert [line.rstrip() for line in ran.lines] == [
        "plan  cost  steps  changes  fixes",
        "   1     1      1    +1 -0  Link(?route=:route1, ?sensor=:sensor1)",
        "   2     5      1    +0 -1  Unplug(?sw=:sw1, ?sensor=:sensor1)",
    ]
    assert ran.err.startswith("2 plans; 3 states searched in ")
    assert ran.err.endswith(", which is all there are\n")


def test_a_plan_is_applied(rail, run):
    ran = run("repair", "rail.tide", "--data", "rail.ttl", "--apply", 2, "--out", "mended.nt")
    assert ran.code == 0
    assert [line.rstrip() for line in ran.lines[3:]] == [
        "",
        "plan 2",
        "  - :sw1 :monitoredBy :sensor1",
        "RouteSensor",
        "  - ?route=:route1 ?sensor=:sensor1",
        "Monitor",
        "  - ?sw=:sw1 ?sensor=:sensor1",
    ]
    assert (rail / "mended.nt").read_text().splitlines() == [
        f"{EX('route1')} {EX('follows')} {EX('swP1')} .",
        f"{EX('swP1')} {EX('target')} {EX('sw1')} .",
    ]
    assert (rail / "rail.ttl").read_text() == DATA
    again = run("repair", "rail.tide", "--data", "mended.nt")
    assert again.code == 0
    assert "nothing to do: all goals are met" in again.out


def test_without_a_file_the_data_goes_to_standard_output_and_the_rest_aside(rail, run):
    ran = run("repair", "rail.tide", "--data", "rail.ttl", "--apply", 1)
    assert ran.code == 0
    assert f"{EX('route1')} {EX('requires')} {EX('sensor1')} ." in ran.lines
    assert len(ran.lines) == 4
    assert "+ :route1 :requires :sensor1" in ran.err


def test_plans_as_json(rail, run):
    ran = run("repair", "rail.tide", "--data", "rail.ttl", "--json")
    assert ran.code == 0
    first, second = ran.objects
    assert first == {
        "plan": 1,
        "cost": 1.0,
        "steps": [{"fix": "Link", "bindings": {"route": EX("route1"), "sensor": EX("sensor1")}}],
        "changes": [
            {"diff": 1, "s": EX("route1"), "p": EX("requires"), "o": EX("sensor1"), "g": None}
        ],
        "violations": {"Sound": 0},
        "counts": {"Sound": 0},
        "preview": {
            "RouteSensor": [{"diff": -1, "row": {"route": EX("route1"), "sensor": EX("sensor1")}}],
            "Monitor": [],
        },
    }
    assert second["plan"] == 2


@pytest.mark.parametrize(
    "strategy", ["bfs", "dfs", "best-first", "hill-climbing", "random-restarts"]
)
def test_every_strategy(rail, run, strategy):
    ran = run("repair", "rail.tide", "--data", "rail.ttl", "--search", strategy, "--max-plans", 1)
    assert ran.code == 0
    assert "Link(?route=:route1, ?sensor=:sensor1)" in ran.out
    assert len(ran.lines) == 2


def test_random_restarts_have_a_seed(rail, run):
    tokens = ("repair", "rail.tide", "--data", "rail.ttl", "--search", "random-restarts")
    first, again = (run(*tokens, "--seed", 7, "--json") for _ in range(2))
    assert first.code == 0 and first.out == again.out


def test_no_plan(rail, run):
    ran = run("repair", "rail.tide", "--data", "rail.ttl", "--max-steps", 0, "--apply", 1)
    assert (ran.code, ran.out) == (1, "")
    assert "no plan was found: 1 state searched" in ran.err
    assert "the nearest, in 0 steps, leaves violations of Sound: 1" in ran.err
    ran = run("repair", "rail.tide", "--data", "rail.ttl", "--max-states", 1)
    assert ran.code == 1
    assert "not all: max_states=1 reached" in ran.err


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (("--apply", 3), 'invalid --apply "3": 2 plans found'),
        (("--apply", 0), 'invalid --apply "0": plans are numbered from 1'),
        (("--out", "x.nt"), "--out is for the result of --apply"),
        (("--apply", 1, "--json"), "cannot both go to standard output"),
        (("--apply", 1, "--out", "x.rdfp"), "the result is a graph, not a change log"),
        (("--max-steps", -1), 'invalid --max-steps "-1": give 0 or more'),
        (("--max-seconds", 0), 'invalid --max-seconds "0": give more than 0'),
        (("--search", "best"), "best-first"),
        (("--data", "nope.ttl"), "nope.ttl: there is no such file"),
        (("--data", "route.rq"), "is a query"),
    ],
)
def test_mistakes(rail, run, tokens, message):
    ran = run("repair", "rail.tide", "--data", "rail.ttl", *tokens)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert not (rail / "x.nt").exists()


def test_programs_that_cannot_be_used(rail, run):
    (rail / "goal.tide").write_text("QUERY q AS SELECT ?s { ?s ?p ?o }\nGOAL g NONE OF q")
    (rail / "wrong.tide").write_text(PROGRAM + "GOAL h NONE OF Ruote")
    for name, message in {
        "nope.tide": "there is no such file",
        "goal.tide": "there is no fix",
        "all.rq": "there is no goal",
        "wrong.tide": "wrong.tide:9:16: there is no query named Ruote",
    }.items():
        ran = run("repair", name, "--data", "rail.ttl")
        assert ran.code == 2
        assert message in ran.err
    assert run("repair", "rail.tide").code == 2


def test_check_and_explain(rail, run):
    assert run("check", "rail.tide").lines == [
        "rail.tide: ok, 2 queries, 0 events, 0 rules, 1 goal, 2 fixes"
    ]
    ran = run("explain", "rail.tide")
    assert ran.out.endswith(
        "GOAL Sound\n  no row of RouteSensor\n  helped by Link, Unplug\n\n"
        f"FIX Link\n  for each row of RouteSensor, at a cost of 1\n  + ?route {EX('requires')} "
        f"?sensor\n\nFIX Unplug\n  for each row of Monitor, at a cost of 5\n"
        f"  - ?sw {EX('monitoredBy')} ?sensor\n"
    )


def test_help_has_an_example(run):
    ran = run("repair", "--help")
    assert ran.code == 0
    assert "Example: graphtide repair rail.tide --data rail.ttl" in ran.out


def test_long_plans_are_cut_short(rail, run):
    many = "".join(f":sw1 :monitoredBy :s{n} ." for n in range(50))
    (rail / "rail.ttl").write_text(DATA + many)
    program = PROGRAM.partition("FIX Unplug")[0]
    (rail / "rail.tide").write_text(program)
    ran = run(
        "repair", "rail.tide", "--data", "rail.ttl", "--max-plans", 1, "--apply", 1, "--out", "o.nt"
    )
    assert ran.code == 0
    assert "… and 43 more steps" in ran.out
    assert "… and 11 more changes" in ran.out
    assert len((rail / "o.nt").read_text().splitlines()) == 2 + 2 * 51

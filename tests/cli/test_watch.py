import io
import sys

import pytest

from graphtide.rdf.formats.change_log import read_changes, write_changes

APPEARS = "+ time=17 tx=0 ?route=:route1 ?sensor=:sensor1"
DISAPPEARS = "- time=18 tx=1 ?route=:route1 ?sensor=:sensor1"

ROUTE, SENSOR = "<http://example.org/route1>", "<http://example.org/sensor1>"


@pytest.mark.parametrize("strategy", [(), ("--strategy", "rete"), ("--strategy", "search")])
def test_rows_come_and_go(files, run, strategy):
    ran = run("watch", "route.rq", "--data", "rail.ttl", "--changes", "log.rdfp", *strategy)
    assert (ran.code, ran.lines) == (0, [APPEARS, DISAPPEARS])
    assert "route: 0 rows now, +1 -1" in ran.err
    assert "2 changes in 2 transactions" in ran.err


def test_json_lines_and_nothing_else(files, run):
    ran = run("watch", "route.rq", "--data", "rail.ttl", "--changes", "log.rdfp", "--json")
    row = {"route": ROUTE, "sensor": SENSOR}
    assert ran.objects == [
        {"query": "route", "time": 17, "tx": 0, "diff": 1, "row": row},
        {"query": "route", "time": 18, "tx": 1, "diff": -1, "row": row},
    ]


def test_unbound_is_null_and_copies_are_counted(files, run):
    text = "SELECT ?x ?n { ?s ?p ?o OPTIONAL { ?o <http://example.org/none> ?n } }"
    (files / "bag.rq").write_text(text)
    ran = run("watch", "bag.rq", "--changes", "rail.ttl", "--json")
    assert ran.objects == [
        {"query": "bag", "time": 0, "tx": 0, "diff": 2, "row": {"x": None, "n": None}}
    ]


def test_data_gives_the_first_answer(files, run):
    ran = run("watch", "all.rq", "--data", "rail.ttl", "--changes", "empty.rdfp")
    assert sorted(ran.lines) == [
        "+ time=0 tx=0 ?s=<http://example.org/route1> ?o=<http://example.org/swP1>",
        "+ time=0 tx=0 ?s=<http://example.org/swP1> ?o=<http://example.org/sw1>",
    ]


def test_rows_of_several_queries_are_in_the_order_of_transactions(files, run):
    ran = run(
        "watch", "route.rq", "all.rq", "--data", "rail.ttl", "--changes", "log.rdfp", "--json"
    )
    assert [(row["time"], row["query"]) for row in ran.objects] == [
        (0, "all"),
        (0, "all"),
        (17, "route"),
        (17, "all"),
        (18, "route"),
        (18, "all"),
    ]


def test_a_query_given_twice_has_two_names(files, run):
    ran = run("watch", "all.rq", "all.rq", "--changes", "rail.ttl", "--json")
    assert {row["query"] for row in ran.objects} == {"all", "all-2"}


def test_limit(files, run):
    ran = run("watch", "route.rq", "--data", "rail.ttl", "--changes", "log.rdfp", "--rows", 1)
    assert (ran.code, ran.lines) == (0, [APPEARS])


def test_a_columnar_log_gives_the_same_rows(files, run):
    write_changes(read_changes("log.rdfp"), "log.parquet")
    options = "--data", "rail.ttl", "--json"
    ours = run("watch", "route.rq", "--changes", "log.parquet", *options)
    assert ours.objects == run("watch", "route.rq", "--changes", "log.rdfp", *options).objects


def test_one_long_log_gives_the_same_rows_as_its_transactions(files, run):
    """Deltas of many transactions in one piece, each exact: a value that steps from 0 to 299."""
    steps = ["PA ex: <http://example.org/> .", "PA xsd: <http://www.w3.org/2001/XMLSchema#> ."]
    for n in range(300):
        old = [f'D ex:a ex:p "{n - 1}"^^xsd:integer .'] if n else []
        steps += [f"H time {n} .", "TX .", *old, f'A ex:a ex:p "{n}"^^xsd:integer .', "TC ."]
    (files / "steps.rdfp").write_text("\n".join([*steps, ""]))
    (files / "even.rq").write_text("SELECT ?n { ?s ?p ?n FILTER(?n / 2 = FLOOR(?n / 2)) }")
    ran = run("watch", "even.rq", "--changes", "steps.rdfp")
    expected = [f"{'+' if n % 2 == 0 else '-'} time={n} tx={n} ?n={n // 2 * 2}" for n in range(300)]
    assert ran.lines == expected


@pytest.mark.slow
def test_changes_from_standard_input(files, start):
    with (files / "log.rdfp").open() as log:
        process = start("watch", "route.rq", "--data", "rail.ttl", "--changes", "-", stdin=log)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.splitlines()) == (0, [APPEARS, DISAPPEARS])


def test_the_first_broken_line_stops(files, run):
    ran = run("watch", "route.rq", "--data", "rail.ttl", "--changes", "broken.rdfp")
    assert (ran.code, ran.out) == (2, "")
    assert "broken.rdfp:3:28: unknown prefix 'oops:'" in ran.err


def test_rows_long_before_a_broken_line_are_shown(files, run):
    padding = "# a comment\n" * 400_000  # longer than what is read at once
    with (files / "log.rdfp").open("a") as log:
        log.write(f"{padding}nonsense\n")
    ran = run("watch", "route.rq", "--data", "rail.ttl", "--changes", "log.rdfp")
    assert (ran.code, ran.lines) == (2, [APPEARS, DISAPPEARS])
    assert "route: 0 rows now, +1 -1" in ran.err
    assert "log.rdfp:400010:1: unknown row 'nonsense'" in ran.err


def test_broken_lines_are_skipped_and_listed(files, run):
    options = "--data", "rail.ttl", "--changes", "broken.rdfp", "--on-error", "skip"
    ran = run("watch", "route.rq", *options)
    assert (ran.code, ran.lines) == (0, [APPEARS.replace("time=17", "time=0")])
    assert "rejected: 2 lines" in ran.err
    assert "broken.rdfp:3:28: unknown prefix 'oops:'" in ran.err
    assert "broken.rdfp:4:1: unknown row 'X'" in ran.err


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (("nope.rq", "--changes", "log.rdfp"), "nope.rq: there is no such file"),
        (("folder.rq", "--changes", "log.rdfp"), "folder.rq: is a directory"),
        (("empty.rq", "--changes", "log.rdfp"), "empty.rq: is empty"),
        (("syntax.rq", "--changes", "log.rdfp"), "syntax.rq:1:25: expected"),
        (("prefix.rq", "--changes", "log.rdfp"), "hint: add: PREFIX foaf:"),
        (("random.rq", "--changes", "log.rdfp"), "random.rq:1:9: RAND"),
        (("route.rq", "--changes", "nope.nt"), "nope.nt: there is no such file"),
        (("route.rq", "--changes", "folder.nt"), "folder.nt: is a directory"),
        (("route.rq", "--changes", "table.csv"), "table.csv: unknown suffix '.csv'"),
        (("route.rq", "--changes", "all.rq"), "all.rq: is a query, and --changes takes"),
        (("route.rq", "--changes", "log.rdfp", "--data", "all.rq"), "all.rq: is a query"),
        (("route.rq", "--changes", "rail.ttl", "--follow"), "cannot be followed"),
        (("route.rq", "--changes", "--follow"), "--changes needs a file"),
        (
            ("route.rq", "--changes", "log.rdfp", "--rows", "0"),
            'invalid --rows "0": give 1 or more',
        ),
        (
            ("route.rq", "--changes", "log.rdfp", "--strategy", "magic"),
            'invalid --strategy "magic": choose from ',
        ),
        (("--changes", "log.rdfp"), "there is no query to watch"),
        (("x.tide", "--changes", "log.rdfp"), "graphtide run x.tide --engine process --changes"),
        (("route.rq",), "--changes"),
    ],
)
def test_mistakes_are_told(files, run, tokens, message):
    ran = run("watch", *tokens)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_times_that_run_backwards_are_told(files, run):
    (files / "back.rdfp").write_text("H time 5 .\nTX .\nA <ex:a> <ex:p> <ex:b> .\nTC .\n")
    (files / "data.rdfp").write_text("H time -3 .\nTX .\nA <ex:a> <ex:p> <ex:c> .\nTC .\n")
    assert run("watch", "all.rq", "--changes", "back.rdfp").code == 0
    ran = run("watch", "all.rq", "--changes", "data.rdfp")
    assert ran.code == 2
    assert "time runs backwards" in ran.err


def test_a_bug_is_one_line_unless_asked_for(files, run, monkeypatch, capsys):
    def fail(*_, **__):
        message = "on purpose"
        raise RuntimeError(message)

    monkeypatch.setattr("graphtide.cli.inputs.read_pieces", fail)
    ran = run("watch", "route.rq", "--changes", "log.rdfp")
    assert (ran.code, ran.out, ran.err.count("\n")) == (70, "", 1)
    assert "this is a bug in graphtide" in ran.err
    assert "GRAPHTIDE_DEBUG=1" in ran.err
    monkeypatch.setenv("GRAPHTIDE_DEBUG", "1")
    from graphtide.cli.main import main

    assert main(["watch", "route.rq", "--changes", "log.rdfp"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_colours_on_a_terminal(files, run, monkeypatch):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen = Screen()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", screen)
    ran = run("watch", "route.rq", "--data", "rail.ttl", "--changes", "log.rdfp")
    assert ran.code == 0
    assert f"\x1b[32m{APPEARS}\x1b[0m" in screen.getvalue()
    assert f"\x1b[31m{DISAPPEARS}\x1b[0m" in screen.getvalue()
    assert "2 transactions" in screen.getvalue()

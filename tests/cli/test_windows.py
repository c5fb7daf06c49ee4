"""Queries over windows on the command line; the expected reports are worked out by hand."""

import signal

import pyarrow.parquet as pq
import pytest

from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import read_changes, write_changes

SHOWS, READINGS = "<http://example.org/shows>", "<http://example.org/readings>"

PREFIXES = "PA ex: <http://example.org/> .\nPA xsd: <http://www.w3.org/2001/XMLSchema#> .\n"

HOT = """PREFIX : <http://example.org/>
REGISTER {} :hot AS SELECT ?room ?t
FROM NAMED WINDOW :w ON :readings [RANGE PT10S STEP PT5S]
WHERE {{ WINDOW :w {{ ?sensor :shows ?t }} ?sensor :in ?room FILTER (?t > 30) }}
"""
LAST = """PREFIX : <http://example.org/>
SELECT ?t FROM NAMED WINDOW :w ON :readings [ELEMENTS 1 STEP 1] { WINDOW :w { ?s :shows ?t } }
"""
PAIRS = """PREFIX : <http://example.org/>
SELECT ?t ?d FROM NAMED WINDOW :w ON :readings [RANGE 5] FROM NAMED WINDOW :v ON :doors [RANGE 5]
{ WINDOW :w { ?s :shows ?t } WINDOW :v { ?d :opens ?room } }
"""
ROOM = "@prefix : <http://example.org/> .\n:sensor1 :in :kitchen ."


def at(time, *rows):
    return "\n".join([f"H time {time} .", "TX .", *rows, "TC .", ""])


def shows(value):
    return f'A ex:sensor1 ex:shows "{value}"^^xsd:integer ex:readings .'


IN = "A ex:sensor1 ex:in ex:kitchen ."
LOG = PREFIXES + at(0, IN) + at(3, shows(31)) + at(8, shows(22))
TRIG = """@prefix : <http://example.org/> .
:e2 { :sensor1 :shows 22 }
:e1 { :sensor1 :shows 31 }
{ :e1 :at 3 . :e2 :at 8 }
"""
XSD = "http://www.w3.org/2001/XMLSchema#"
SHOWN = '<http://example.org/sensor1> <http://example.org/shows> "{}"^^<{}integer> <ex:e{}> .'
TOLD = (
    '<ex:e{}> <http://www.w3.org/ns/prov#generatedAtTime> "1970-01-01T00:00:0{}Z"^^<{}dateTime> .'
)
NQ = "\n".join(
    [
        SHOWN.format(31, XSD, 1),
        SHOWN.format(22, XSD, 2),
        TOLD.format(1, 3, XSD),
        TOLD.format(2, 8, XSD),
    ]
)
WINDOW = "window <http://example.org/w> on <http://example.org/readings>: range 10 s, step 5 s"

# [0, 10) holds both readings, [5, 15) the second one, [10, 20) none; only the first is hot.
REPORTS = {
    "ISTREAM": ["at 10", "  + ?room=:kitchen ?t=31", "at 15", "at 20"],
    "DSTREAM": ["at 10", "at 15", "  - ?room=:kitchen ?t=31", "at 20"],
    "RSTREAM": ["at 10", "  ?room=:kitchen ?t=31", "at 15", "at 20"],
}


@pytest.fixture
def folder(files):
    for name, text in {
        "hot.rq": HOT.format("ISTREAM"),
        "last.rq": LAST,
        "pairs.rq": PAIRS,
        "readings.rdfp": LOG,
        "readings.trig": TRIG,
        "readings.nq": NQ,
        "room.ttl": ROOM,
        "half.rq": HOT.format("ISTREAM").replace("PT5S", "PT0.5S"),
    }.items():
        (files / name).write_text(text)
    return files


@pytest.mark.parametrize("output", REPORTS)
def test_reports_are_shown(folder, run, output):
    (folder / "hot.rq").write_text(HOT.format(output))
    ran = run("watch", "hot.rq", "--changes", "readings.rdfp", "--until", 20)
    assert (ran.code, ran.lines) == (0, REPORTS[output])
    assert "hot: 3 results, 1 row\n" in ran.err
    assert "3 changes in 3 transactions" in ran.err


@pytest.mark.parametrize(
    "source",
    [
        ("readings.trig", "--timestamp", "http://example.org/at"),
        ("readings.trig", "--timestamp", "<http://example.org/at>"),
        ("readings.nq",),
        ("readings.parquet",),
    ],
)
def test_events_in_every_format(folder, run, source):
    write_changes(read_changes("readings.rdfp"), "readings.parquet")
    ran = run("watch", "hot.rq", "--data", "room.ttl", "--until", 20, "--changes", *source)
    assert (ran.code, ran.lines) == (0, REPORTS["ISTREAM"])


@pytest.mark.parametrize(("output", "time", "diff"), [("ISTREAM", 10, 1), ("DSTREAM", 15, -1)])
def test_rows_of_reports_as_json(folder, run, output, time, diff):
    (folder / "hot.rq").write_text(HOT.format(output))
    ran = run("watch", "hot.rq", "--changes", "readings.rdfp", "--until", 20, "--json")
    row = {"room": "<http://example.org/kitchen>", "t": f'"31"^^<{XSD}integer>'}
    assert ran.objects == [{"query": "hot", "time": time, "tx": 0, "diff": diff, "row": row}]


def test_elements_of_one_time_are_reported_one_by_one_also_at_the_end(folder, run):
    (folder / "log.rdfp").write_text(PREFIXES + at(5, shows(1), shows(2)) + at(7, shows(3)))
    ran = run("watch", "last.rq", "--changes", "log.rdfp")
    assert ran.lines == ["at 5", "  ?t=1", "at 5", "  ?t=2", "at 7", "  ?t=3"]
    ran = run("watch", "last.rq", "--changes", "log.rdfp", "--json")
    assert [(row["time"], row["tx"]) for row in ran.objects] == [(5, 0), (5, 1), (7, 0)]


def test_changes_and_events_happen_in_the_order_of_the_log(folder, run):
    """The room is known from 4 to 12 and again from 16 on; the windows close at 10, 15 and 20."""
    log = at(3, shows(31)) + at(4, IN) + at(12, IN.replace("A", "D", 1), shows(40)) + at(16, IN)
    (folder / "log.rdfp").write_text(PREFIXES + log + at(21, shows(0)))
    (folder / "hot.rq").write_text(HOT.format("RSTREAM"))
    ran = run("watch", "hot.rq", "--changes", "log.rdfp")
    kitchen = "  ?room=:kitchen ?t="
    assert ran.lines == ["at 10", f"{kitchen}31", "at 15", "at 20", f"{kitchen}40"]


def test_windows_beside_a_query_without(folder, run):
    ran = run("watch", "hot.rq", "route.rq", "all.rq", "--changes", "readings.rdfp", "--until", 15)
    kitchen = "?s=<http://example.org/sensor1> ?o=<http://example.org/kitchen>"
    expected = [f"+ time=0 tx=0 all {kitchen}", "at 10 hot", "  + ?room=:kitchen ?t=31"]
    assert ran.lines == [*expected, "at 15 hot"]
    assert "hot: 2 results, 1 row\nroute: 0 rows now, +0 -0\nall: 1 row now, +1 -0" in ran.err


def test_reports_of_several_streams(folder, run):
    """All streams of a log have one clock: both windows close at 5 and 10."""
    door = "A ex:door1 ex:opens ex:kitchen ex:doors ."
    (folder / "log.rdfp").write_text(PREFIXES + at(1, shows(31), door) + at(10, shows(32)))
    ran = run("watch", "pairs.rq", "--changes", "log.rdfp")
    assert ran.lines == ["at 5", "  ?t=31 ?d=:door1", "at 10"]


def test_limit_counts_rows_not_reports(folder, run):
    (folder / "log.rdfp").write_text(PREFIXES + at(5, shows(1), shows(2)) + at(7, shows(3)))
    ran = run("watch", "last.rq", "--changes", "log.rdfp", "--rows", 2)
    assert ran.lines == ["at 5", "  ?t=1", "at 5", "  ?t=2"]


def test_deletes_from_a_stream(folder, run):
    """Events only happen. Set aside, a delete leaves the others as they are."""
    with (folder / "readings.rdfp").open("a") as log:
        log.write(at(9, shows(31).replace("A", "D", 1)))
    ran = run("watch", "hot.rq", "--changes", "readings.rdfp")
    assert ran.code == 2
    assert "events cannot be deleted" in ran.err
    assert "<http://example.org/readings> is at time 9" in ran.err
    options = "--changes", "readings.rdfp", "--until", 20, "--on-error", "skip"
    ran = run("watch", "hot.rq", *options)
    assert (ran.code, ran.lines) == (0, REPORTS["ISTREAM"])
    assert "rejected: 1 delete from streams" in ran.err


@pytest.mark.slow
def test_a_log_that_grows(folder, start):
    with (folder / "readings.rdfp").open("a") as log:
        log.write(at(12, shows(1)))
    process = start("watch", "hot.rq", "--changes", "readings.rdfp", "--follow")
    assert [process.stdout.readline().rstrip() for _ in range(2)] == REPORTS["ISTREAM"][:2]
    with (folder / "readings.rdfp").open("a") as log:
        log.write(at(15, shows(1)))
    assert process.stdout.readline() == "at 15\n"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert "hot: 2 results, 1 row" in err


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (("hot.rq", "--changes", "readings.trig"), "readings.trig: no graph is an event"),
        (("pairs.rq", "--changes", "readings.nq"), "could be of any of the streams"),
        (("hot.rq", "--changes", "readings.nq", "--follow"), "are read from change logs"),
        (("hot.rq", "--changes", "readings.rdfp", "--until", "7"), "--until 7 is in the past"),
        (("hot.rq", "--changes", "readings.rdfp", "--until", "9", "--follow"), "has no end"),
        (("route.rq", "--changes", "readings.rdfp", "--until", "7"), "windowed queries"),
        (("half.rq", "--changes", "readings.rdfp"), "500 ms is no whole number of ticks"),
    ],
)
def test_mistakes_are_told(folder, run, tokens, message):
    ran = run("watch", *tokens)
    assert ran.code == 2
    assert message in ran.err


def test_times_of_events_that_run_backwards_are_told(folder, run):
    rows = [
        (7, 0, 1, "<ex:a>", SHOWS, '"1"', READINGS),
        (5, 1, 1, "<ex:a>", SHOWS, '"2"', READINGS),
    ]
    pq.write_table(ChangeBatch.of(rows).to_arrow(), folder / "back.parquet")
    ran = run("watch", "last.rq", "--changes", "back.parquet")
    assert (ran.code, ran.out) == (2, "")
    assert "time runs backwards: a transaction at 5 after one at 7" in ran.err


def test_ticks_can_be_shorter(folder, run):
    """Of a tenth of a second: the window is 100 ticks long and closes every 5, first at 100."""
    log = PREFIXES + at(0, IN) + at(100, shows(31)) + at(10_000, shows(0))
    (folder / "log.rdfp").write_text(log)
    ran = run("watch", "half.rq", "--changes", "log.rdfp", "--tick-ms", 100, "--rows", 1)
    assert ran.lines == ["at 105", "  + ?room=:kitchen ?t=31"]


def test_check_is_content(folder, run):
    ran = run("check", "hot.rq", "readings.rdfp")
    assert ran.code == 0
    assert "hot.rq: ok, maintained by this plan" in ran.out
    assert f"  {WINDOW}" in ran.lines
    assert "  answer ?room ?t" in ran.lines


def test_explain_shows_windows_and_plans(folder, run):
    ran = run("explain", "hot.rq")
    assert ran.code == 0
    assert "      ├─ pattern ?sensor :shows ?t in :w" in ran.lines
    begin = ran.lines.index("physical plan")
    assert ran.lines[begin + 1 : begin + 3] == ["output ISTREAM", WINDOW]
    assert "answer ?room ?t" in ran.lines
    assert run("explain", "hot.rq", "--format", "mermaid").lines[0] == "flowchart BT"
    assert "window" not in run("explain", "hot.rq", "--logical").out


def test_explain_with_events_shows_what_is_held(folder, run):
    """The last reading stays the only element of the window."""
    ran = run("explain", "last.rq", "--changes", "readings.rdfp")
    assert "answer ?t, 1 row now" in ran.lines
    options = "--changes", "readings.rdfp", "--format", "mermaid"
    assert "answer ?t, 1 row now" in run("explain", "last.rq", *options).out


def test_a_program_shows_its_windows(folder, run):
    query = HOT.format("ISTREAM").replace("REGISTER ISTREAM :hot AS ", "")
    prefix, _, rest = query.partition("\n")
    (folder / "hot.tide").write_text(f"{prefix}\nQUERY Hot AS {rest}")
    ran = run("explain", "hot.tide")
    assert ran.lines[:2] == ["QUERY Hot", "  output RSTREAM"]
    assert "range 10 s, step 5 s" in ran.lines[2]


def test_a_query_over_windows_is_not_answered_once(folder, run):
    ran = run("query", "hot.rq", "--data", "room.ttl")
    assert ran.code == 2
    assert "hot.rq:1:1: a windowed query cannot be evaluated once" in ran.err
    assert "graphtide watch" in ran.err

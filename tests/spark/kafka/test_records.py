"""What records become: changes, ends of transactions, rejected rows. A table per format."""

from __future__ import annotations

import json
from random import Random
from urllib.parse import quote

import pytest
from pyoxigraph import Literal, NamedNode

from graphtide.spark.kafka.debezium import debezium_changes
from graphtide.spark.kafka.json_records import json_changes
from graphtide.spark.kafka.mapping import read_mapping
from graphtide.spark.kafka.patch_records import patch_changes
from graphtide.spark.kafka.records import CHANGE_SQL, ROWS_PER_RECORD, with_places

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

KAFKA = "value binary, topic string, partition int, offset long, millis long"
FIRST = 40
OWN = (2 << 48) + FIRST  # of partition 2
"""The transaction of a record that names none."""


def rows_of(spark, read, values):
    """Rows by record: (time, tx, diff, s, p, o, g); or, if it is rejected, (reason, line, text)."""
    records = [
        (value.encode() if isinstance(value, str) else value, "rail", 2, FIRST + number, 17_999)
        for number, value in enumerate(values)
    ]
    frame = spark.createDataFrame(records, KAFKA).selectExpr(
        "*", "timestamp_millis(millis) timestamp"
    )
    found = read(with_places(frame, 1000))
    assert {(f.name, f.dataType.simpleString()) for f in found.schema} == {
        tuple(column.split()) for column in CHANGE_SQL.split(", ")
    }
    by_record = {f"rail/2/{FIRST + number}": [] for number in range(len(values))}
    for row in found.collect():
        assert row.shard == "rail/2"
        if row.reason is None:
            offset = int(row.file.split("/")[2])
            assert row.seq == offset * ROWS_PER_RECORD + len(by_record[row.file])
            told = (row.time, row.tx, row.diff, row.s, row.p, row.o, row.g)
        else:
            assert row.time is row.tx is row.diff is row.s is None
            told = (row.reason, row.line or None, row.text)
        by_record[row.file].append(told)
    return list(by_record.values())


def with_own(expected, number):
    """Expected rows of a record, with its own transaction where they have `OWN`."""
    own = OWN + number
    return [tuple(own if value == OWN else value for value in row) for row in expected]


S, P, O = "<ex:s>", "<ex:p>", "<ex:o>"
SPO = {"s": S, "p": P, "o": O}
END = (0, None, None, None, None)
XSD = "http://www.w3.org/2001/XMLSchema#"

JSON = {
    "a change of a transaction": (
        {"time": 5, "tx": 1, "diff": -1, **SPO, "g": "<ex:g>"},
        [(5, 1, -1, S, P, O, "<ex:g>")],
    ),
    "an insert, numbers as texts": ({"time": "5", "tx": " 1 ", **SPO}, [(5, 1, 1, S, P, O, None)]),
    "the last change": (
        {"time": 5, "tx": 1, **SPO, "end": True},
        [(5, 1, 1, S, P, O, None), (5, 1, *END)],
    ),
    "an end": ({"time": 5, "tx": 1, "end": True}, [(5, 1, *END)]),
    "an end by diff": ({"time": 5, "tx": 1, "diff": 0}, [(5, 1, *END)]),
    "a transaction by itself": (SPO, [(17, OWN, 1, S, P, O, None), (17, OWN, *END)]),
    "with a time": ({"time": 3, **SPO}, [(3, OWN, 1, S, P, O, None), (3, OWN, *END)]),
    "a list": (
        {"time": 3, "tx": 9, "changes": [SPO, {**SPO, "diff": -1, "o": '"x"'}]},
        [(3, 9, 1, S, P, O, None), (3, 9, -1, S, P, '"x"', None), (3, 9, *END)],
    ),
    "a list that goes on": (
        {"time": 3, "tx": 9, "changes": [SPO], "end": False},
        [(3, 9, 1, S, P, O, None)],
    ),
    "an empty list": ({"time": 3, "tx": 9, "changes": []}, [(3, 9, *END)]),
    "terms as objects": (
        {
            "time": 5,
            "tx": 1,
            "s": {"kind": "blank", "value": "b0"},
            "p": {"type": "uri", "value": "ex:p"},
            "o": {"type": "literal", "value": 'say "ä"\n', "xml:lang": "en"},
        },
        [(5, 1, 1, "_:b0", P, '"say \\"ä\\"\\n"@en', None)],
    ),
    "a typed literal": (
        {
            "time": 5,
            "tx": 1,
            **SPO,
            "o": {"kind": "literal", "value": "7", "datatype": XSD + "byte"},
        },
        [(5, 1, 1, S, P, f'"7"^^<{XSD}byte>', None)],
    ),
    "what is wrong with a change is said later": (
        {"time": 5, "tx": 1, "diff": "x", "s": 7, "o": {"kind": "strange", "value": "x"}},
        [(5, 1, None, "7", None, '{"kind":"strange","value":"x"}', None)],
    ),
    "other fields": ({"time": 5, "tx": 1, **SPO, "by": {"a": [1]}}, [(5, 1, 1, S, P, O, None)]),
}

NO_OBJECT = "not a JSON object with the fields of a change"
BAD_JSON = {
    '{"time": 5': NO_OBJECT,
    "": NO_OBJECT,
    "7": NO_OBJECT,
    "null": NO_OBJECT,
    "[]": NO_OBJECT,
    '[{"time": 5}]': NO_OBJECT,
    '{"time": 5, "tx": 1}{"time": 6, "tx": 1}': NO_OBJECT,
    '{"time": 5, "tx": 1}, {"time": 6, "tx": 1}': NO_OBJECT,
    '{"time": 5, "tx": 1} end': NO_OBJECT,
    '{"time": 5, "changes": 7}': NO_OBJECT,
    '{"time": 5, "changes": [7]}': NO_OBJECT,
    "{'time': 5}": NO_OBJECT,
    '{"time": 5, "s": "\u0000"}': NO_OBJECT,
    "[" * 3000: NO_OBJECT,
    '{"a":' * 3000 + "1" + "}" * 3000: NO_OBJECT,
    '{"time": 5.5}': "time is not a whole number of 64 bits: 5.5",
    '{"time": {"a": 1}}': 'time is not a whole number of 64 bits: {"a":1}',
    '{"time": 5, "tx": "x"}': "tx is not a whole number of 64 bits: x",
    '{"time": 99999999999999999999}': (
        "time is not a whole number of 64 bits: 99999999999999999999"
    ),
    '{"time": 5, "tx": 1, "end": "soon"}': "end is neither true nor false",
}


def test_json(spark):
    values = [json.dumps(value) for value, _ in JSON.values()]
    found = rows_of(spark, json_changes, values)
    for number, ((name, (_, expected)), rows) in enumerate(zip(JSON.items(), found, strict=True)):
        assert rows == with_own(expected, number), name


def test_json_that_is_no_change(spark):
    found = rows_of(spark, json_changes, [*BAD_JSON, b'\xff{"time": 5}', None])
    expected = [[(reason, None, text)] for text, reason in BAD_JSON.items()]
    assert found == [*expected, [(NO_OBJECT, None, '\ufffd{"time": 5}')], []]


# --- RDF Patch ---

LINE = f"A {S} {P} {O} .\n"


def test_rdf_patch(spark):
    values = {
        f'TX .\n{LINE}D {S} {P} "x" .\nTC .\n': [
            (17, OWN, 1, S, P, O, None),
            (17, OWN, -1, S, P, '"x"', None),
            (17, OWN, *END),
        ],
        f"H time 5 .\nH tx 2 .\nTX .\n{LINE}TC .": [(5, 2, 1, S, P, O, None), (5, 2, *END)],
        "PA e: <ex:> .\nA e:s e:p e:o <ex:g> .\n": [
            (17, OWN, 1, S, P, O, "<ex:g>"),
            (17, OWN, *END),
        ],
        f"A {S} {P} .\n{LINE}": [
            (17, OWN, 1, S, P, O, None),
            (17, OWN, *END),
            ("2 values where the row is 'A s p o [g] .'", 1, f"A {S} {P} ."),
        ],
        f"TX .\n{LINE}": [("the transaction that starts here is never committed", 1, "TX .")],
        f"TX .\n{LINE}TC .\nTX .\n{LINE}TC .": [
            (
                "the record has 2 transactions: write each into a record of its own",
                None,
                f"TX .\n{LINE}TC .\nTX .\n{LINE}TC .",
            )
        ],
        f"TX .\n{LINE}TA .": [],
        "": [],
        b"\xff": [("the record is not UTF-8", None, "\ufffd")],
    }
    expected = [with_own(rows, number) for number, rows in enumerate(values.values())]
    assert rows_of(spark, patch_changes, values) == expected


# --- Debezium ---

EX = "http://example.org/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
TABLES = {
    "train": {
        "subject": EX + "train/{id}",
        "type": EX + "Train",
        "columns": {
            "name": EX + "name",
            "speed": {"predicate": EX + "speed", "datatype": XSD + "integer"},
            "motto": {"predicate": EX + "motto", "language": "en"},
            "track": {"predicate": EX + "on", "iri": EX + "track/{line}/{track}"},
        },
    },
    "public.stop": {
        "subject": EX + "stop/{id}",
        "graph": EX + "day/{day}",
        "columns": {"at": EX + "at"},
    },
}
ROW = {"id": 1, "name": 'A "B"', "speed": 200, "motto": None, "line": "x y", "track": "ü/~*"}
SOURCE = {
    "db": "rail",
    "schema": "public",
    "table": "train",
    "ts_ms": 5999,
    "sequence": '["70","80"]',
}
SUBJECT = f"<{EX}train/1>"


def quad(diff, predicate, object_, time=5, tx=70):
    return (time, tx, diff, SUBJECT, predicate, object_, None)


NAME = (f"<{EX}name>", '"A \\"B\\""')
SPEED = (f"<{EX}speed>", f'"200"^^<{XSD}integer>')
TRACK = (f"<{EX}on>", f"<{EX}track/x%20y/%C3%BC%2F~%2A>")
ALL = [(TYPE, f"<{EX}Train>"), NAME, SPEED, TRACK]


def debezium(records):
    return debezium_changes(records, read_mapping(TABLES), 1000)


def event(op, before=None, after=None, **source):
    return {"op": op, "before": before, "after": after, "source": {**SOURCE, **source}}


EVENTS = [
    (event("c", None, ROW), [quad(1, *pair) for pair in ALL]),
    (event("d", ROW), [quad(-1, *pair) for pair in ALL]),
    (
        event("u", ROW, {**ROW, "speed": 210, "motto": "go", "track": None}),
        [
            quad(-1, *SPEED),
            quad(-1, *TRACK),
            quad(1, f"<{EX}speed>", f'"210"^^<{XSD}integer>'),
            quad(1, f"<{EX}motto>", '"go"@en'),
        ],
    ),
    (event("u", ROW, {**ROW, "name": "__debezium_unavailable_value"}), []),
    ({"schema": {"type": "struct"}, "payload": event("c", None, ROW)}, [quad(1, *p) for p in ALL]),
    (
        event("r", None, {"id": 1, "name": "x"}, sequence=None),
        [
            quad(1, *ALL[0], tx=OWN),
            quad(1, f"<{EX}name>", '"x"', tx=OWN),
            (5, OWN, *END),
        ],
    ),
    (
        event(
            "c",
            None,
            {"id": 1, "name": "x"},
            sequence=None,
            gtid="37e1f9f4-0000-0000-0000-b0ca6f2d1d3c:9",
        ),
        [quad(1, *ALL[0], tx=9), quad(1, f"<{EX}name>", '"x"', tx=9)],
    ),
    (
        event("c", None, {"id": 7, "at": "noon", "day": 3}, table="stop"),
        [(5, 70, 1, f"<{EX}stop/7>", f"<{EX}at>", '"noon"', f"<{EX}day/3>")],
    ),
    (event("c", None, {"id": 7, "at": "noon", "day": None}, table="stop"), []),
    ({"status": "BEGIN", "id": "571:75", "ts_ms": 5999}, []),
    ({"status": "END", "id": "571:90", "ts_ms": 5999, "event_count": 2}, [(5, 89, *END)]),
    (
        {"status": "END", "id": "37e1f9f4-0000-0000-0000-b0ca6f2d1d3c:9", "ts_ms": 5999},
        [(5, 9, *END)],
    ),
    ({"status": "END", "id": "strange", "ts_ms": 5999}, []),
    (None, []),
]

BAD_EVENTS = [
    (event("u", None, ROW), "no row before the change: PostgreSQL needs REPLICA IDENTITY FULL"),
    (event("d"), "no row before the change: PostgreSQL needs REPLICA IDENTITY FULL"),
    (event("c"), "no row after the change"),
    (event("c", None, {"name": "x"}), "a column of the subject is null or missing"),
    (event("t"), "op is not c, r, u or d: t"),
    (event("c", None, ROW, table="tracks"), "the mapping has no table tracks"),
    ({"id": 1}, "neither op nor status BEGIN or END"),
    ({**event("c", None, ROW), "before": 7}, "not a change event of Debezium in JSON"),
    ([event("c", None, ROW)], "not a change event of Debezium in JSON"),
]


def test_debezium(spark):
    values = [None if value is None else json.dumps(value) for value, _ in EVENTS]
    found = rows_of(spark, debezium, values)
    for number, ((value, expected), rows) in enumerate(zip(EVENTS, found, strict=True)):
        assert rows == with_own(expected, number), value


def test_debezium_that_is_no_change(spark):
    values = [json.dumps(value) for value, _ in BAD_EVENTS]
    found = rows_of(spark, debezium, values)
    expected = [
        [(reason, None, text)] for text, (_, reason) in zip(values, BAD_EVENTS, strict=True)
    ]
    assert found == expected


def triples(row):
    """The triples of a row of `train`, from the mapping's definition."""
    subject = f"<{EX}train/{quote(str(row['id']), safe='')}>"
    found = {(subject, TYPE, f"<{EX}Train>")}
    if row["name"] is not None:
        found.add((subject, f"<{EX}name>", str(Literal(row["name"]))))
    if row["speed"] is not None:
        speed = Literal(str(row["speed"]), datatype=NamedNode(XSD + "integer"))
        found.add((subject, f"<{EX}speed>", str(speed)))
    if row["motto"] is not None:
        found.add((subject, f"<{EX}motto>", str(Literal(row["motto"], language="en"))))
    if row["line"] is not None and row["track"] is not None:
        place = "/".join(quote(str(row[name]), safe="") for name in ("line", "track"))
        found.add((subject, f"<{EX}on>", f"<{EX}track/{place}>"))
    return found


def test_the_changes_of_a_table_add_up_to_the_triples_of_its_rows(spark):
    rng = Random(7)
    texts = [None, "", "x", 'q"\\', "line\nbreak", "ü €", "a/b?c#d%20", "<tag> {x}", "~*+ "]
    table, events, states = {}, [], []
    for _ in range(300):
        key = rng.choice([1, "two", "ü/3"])
        text = {name: rng.choice(texts) for name in ("name", "motto", "line", "track")}
        after = {"id": key, "speed": rng.choice([None, 0, -7]), **text}
        before = table.pop(key, None)
        if before is not None and rng.random() < 0.3:
            events.append(event("d", before))
        else:
            table[key] = after
            events.append(event("u" if before else "c", before, after))
        states.append(set().union(*map(triples, table.values())))
    found = rows_of(spark, debezium, [json.dumps(each) for each in events])
    graph = set()
    for rows, expected in zip(found, states, strict=True):
        for _, _, diff, *quad, _ in rows:
            triple = tuple(quad)
            assert (triple in graph) == (diff < 0), "only what changes is changed"
            (graph.add if diff > 0 else graph.remove)(triple)
        assert graph == expected

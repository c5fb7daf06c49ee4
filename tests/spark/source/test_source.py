"""The source on its own: what it reads, in which order, from which offset, and again."""

import bz2
import gzip
import itertools
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from support.sampling import quick_sample

from graphtide.errors import DataError, GraphtideError
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import read_changes, write_changes
from graphtide.rdf.formats.patch import change_terms, split_row
from graphtide.spark.source import scan
from graphtide.spark.source.plan import GIVE_LATER_NAME
from graphtide.spark.source.readers import LogReader, LogStreamReader
from graphtide.spark.source.source import GraphtideSource

TERMS = ("s", "p", "o", "g")


def line(o, *, code="A", tail=" ."):
    return f"{code} <ex:s> <ex:p> <ex:{o}>{tail}\n"


def tx(*objects, time=None, code="A"):
    header = "" if time is None else f"H time {time} .\n"
    return header + "TX .\n" + "".join(line(o, code=code) for o in objects) + "TC .\n"


def reader(path, **options):
    return LogStreamReader({"path": str(path), **options})


def rows_between(stream, start, end):
    parts = stream.partitions(start, end)
    return [row for part in parts for batch in stream.read(part) for row in batch.to_pylist()]


def pull(stream, start, limit=None):
    end = stream.latestOffset(start, limit or ReadAllAvailable())
    return end, rows_between(stream, start, end)


def drain(stream, start, limit=None):
    """Everything that is there, micro-batch by micro-batch; and the offsets in between."""
    found, offsets = [], [start]
    while True:
        end, rows = pull(stream, offsets[-1], limit)
        if end == offsets[-1]:
            return found, offsets
        found += rows
        offsets.append(end)


def changes(rows):
    return [
        (row["time"], row["tx"], row["diff"], *(row[name] for name in TERMS))
        for row in rows
        if row["reason"] is None and row["diff"] != 0
    ]


def objects(rows):
    return [row["o"][4:-1] for row in rows if row["o"]]


def aside(rows):
    return [(Path(row["file"]).name, row["line"], row["reason"]) for row in rows if row["reason"]]


def test_a_transaction_ends_with_a_mark(tmp_path):
    (tmp_path / "a.rdfp").write_text(tx("a", "b", time=5))
    stream = reader(tmp_path)
    _, rows = pull(stream, stream.initialOffset())
    assert [(row["time"], row["tx"], row["diff"], row["o"]) for row in rows] == [
        (5, 0, 1, "<ex:a>"),
        (5, 0, 1, "<ex:b>"),
        (5, 0, 0, None),
    ]


def test_files_are_read_in_the_order_of_their_names_and_numbers_rise(tmp_path):
    (tmp_path / "b.rdfp").write_text(tx("b", time=7) + tx("c"))
    (tmp_path / "a.rdfp").write_text(tx("a", time=5))
    (tmp_path / "c.nq").write_text("<ex:s> <ex:p> <ex:d> <ex:g> .\n\n<ex:s> <ex:p> <ex:e> .\n")
    stream = reader(tmp_path)
    _, rows = pull(stream, stream.initialOffset())
    assert changes(rows) == [
        (5, 0, 1, "<ex:s>", "<ex:p>", "<ex:a>", None),
        (7, 1, 1, "<ex:s>", "<ex:p>", "<ex:b>", None),
        (7, 2, 1, "<ex:s>", "<ex:p>", "<ex:c>", None),
        (7, 3, 1, "<ex:s>", "<ex:p>", "<ex:d>", "<ex:g>"),
        (7, 5, 1, "<ex:s>", "<ex:p>", "<ex:e>", None),
    ]


def test_a_files_own_numbers_are_kept_when_they_rise(tmp_path):
    (tmp_path / "a.rdfp").write_text("H tx 10 .\n" + tx("a"))
    (tmp_path / "b.rdfp").write_text("H tx 20 .\n" + tx("b"))
    (tmp_path / "c.rdfp").write_text("H tx 3 .\n" + tx("c") + "H tx 7 .\n" + tx("d"))
    stream = reader(tmp_path)
    _, rows = pull(stream, stream.initialOffset())
    assert [row[1] for row in changes(rows)] == [10, 20, 21, 25]


def test_parquet_and_packed_files(tmp_path):
    with gzip.open(tmp_path / "a.rdfp.gz", "wt") as file:
        file.write(tx("a", time=3) + tx("b"))
    batch = ChangeBatch.of(
        [
            (4, 0, 1, "<ex:s>", "<ex:p>", "<ex:c>", None),
            (9, 4, -1, "_:s", "<ex:p>", '"d"', "<ex:g>"),
        ]
    )
    write_changes(batch, tmp_path / "b.parquet")
    with gzip.open(tmp_path / "c.nt.gz", "wt") as file:
        file.write("<ex:s> <ex:p> <ex:e> .")
    stream = reader(tmp_path)
    rows, _ = drain(stream, stream.initialOffset(), ReadMaxRows(1))
    assert [(row[0], row[1], row[2], row[5]) for row in changes(rows)] == [
        (3, 0, 1, "<ex:a>"),
        (3, 1, 1, "<ex:b>"),
        (4, 2, 1, "<ex:c>"),
        (9, 6, -1, '"d"'),
        (9, 7, 1, "<ex:e>"),
    ]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_limits_of_packed_files_and_long_lines(tmp_path, suffix):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(
        suffix, lambda data: pa.compress(data, codec="zstd", asbytes=True)
    )
    (tmp_path / f"a.rdfp{suffix}").write_bytes(pack(tx("a", time=3).encode()))
    (tmp_path / f"b.rdfp{suffix}").write_bytes(pack(tx("b", "x" * 500).encode()))
    (tmp_path / f"c.rdfp{suffix}").write_bytes(pack(tx(*["c"] * 1000).encode()))
    (tmp_path / "d.rdfp").write_text(tx("d"))
    stream = reader(tmp_path, limits='{"unpacked_bytes": 10000, "literal_length": 400}')
    rows, _ = drain(stream, stream.initialOffset())
    assert objects(rows) == ["a", "b", "d"]
    reasons = [row["reason"] for row in rows if row["reason"]]
    assert len(reasons) == 2 and reasons[0].startswith("a line of more than 400 bytes")
    assert reasons[1].startswith("unpacks to more than 10,000 bytes")
    everything, _ = drain(reader(tmp_path), stream.initialOffset())
    assert len(objects(everything)) == 1 + 2 + 1000 + 1


def test_only_complete_transactions_of_a_growing_file_are_taken(tmp_path):
    path = tmp_path / "a.rdfp"
    path.write_text("PA ex: <ex:> .\n" + tx("a", time=5) + "TX .\nA ex:s ex:p ex:b .\nT")
    stream = reader(tmp_path)
    middle, rows = pull(stream, stream.initialOffset())
    assert objects(rows) == ["a"]
    assert stream.latestOffset(middle, ReadAllAvailable()) == middle
    with path.open("a") as file:
        file.write("C .\nTX .\n")
    _, rows = pull(stream, middle)
    assert changes(rows) == [(5, 1, 1, "<ex:s>", "<ex:p>", "<ex:b>", None)]


def test_only_complete_lines_of_a_growing_file_are_taken(tmp_path):
    path = tmp_path / "a.nt"
    path.write_text("<ex:s> <ex:p> <ex:a> .\n<ex:s> <ex:p> <ex:")
    stream = reader(tmp_path)
    middle, rows = pull(stream, stream.initialOffset())
    assert objects(rows) == ["a"]
    with path.open("a") as file:
        file.write("b> .\n")
    _, rows = pull(stream, middle)
    assert [(row[1], row[5]) for row in changes(rows)] == [(1, "<ex:b>")]


def test_changes_outside_of_transactions_wait_for_a_pause(tmp_path):
    path = tmp_path / "a.rdfp"
    path.write_text(line("a") + line("b"))
    stream = reader(tmp_path)
    start = stream.initialOffset()
    assert stream.latestOffset(start, ReadAllAvailable()) == start
    os.utime(path, (0, 0))
    middle, rows = pull(stream, start)
    assert [row[1] for row in changes(rows)] == [0, 0]
    with path.open("a") as file:
        file.write(line("c"))
    os.utime(path, (0, 0))
    _, rows = pull(stream, middle)
    assert [(row[1], row[5]) for row in changes(rows)] == [(1, "<ex:c>")]


def test_a_later_file_ends_the_one_before(tmp_path):
    (tmp_path / "a.rdfp").write_text(line("a") + "TX .\n" + line("open", tail=" ."))
    (tmp_path / "b.rdfp").write_text(tx("b"))
    stream = reader(tmp_path)
    _, rows = pull(stream, stream.initialOffset())
    assert objects(rows) == ["a", "b"]
    assert aside(rows) == [("a.rdfp", 2, "the transaction that starts here is never committed")]


def test_broken_lines_are_rejected_with_their_position(tmp_path):
    (tmp_path / "a.rdfp").write_text(
        "# one\n" + tx("a") + "X\n" + tx("b").replace("<ex:s>", "<ex s>")
    )
    (tmp_path / "b.nq").write_text("<ex:s> <ex:p> <ex:c> .\nwhat\n")
    for limit in (ReadAllAvailable(), ReadMaxRows(1)):
        stream = reader(tmp_path)
        found, _ = drain(stream, stream.initialOffset(), limit)
        assert objects(found) == ["a", "c"]
        assert [(file, at) for file, at, _ in aside(found)] == [
            ("a.rdfp", 5),
            ("a.rdfp", 7),
            ("b.nq", 2),
        ]
        assert next(row["text"] for row in found if row["reason"]) == "X"


def test_a_transaction_with_an_earlier_time_is_too_late(tmp_path):
    (tmp_path / "a.rdfp").write_text(tx("a", time=5) + tx("late", time=3) + tx("b", time=6))
    (tmp_path / "b.rdfp").write_text(tx("older", time=4) + tx("c", time=6))
    for limit in (ReadAllAvailable(), ReadMaxRows(1)):
        stream = reader(tmp_path)
        rows, _ = drain(stream, stream.initialOffset(), limit)
        assert [(row[0], row[1], row[5][4:-1]) for row in changes(rows)] == [
            (5, 0, "a"),
            (6, 2, "b"),
            (6, 4, "c"),
        ]
        assert aside(rows) == [
            ("a.rdfp", 6, "too late: its time is 3, and the log is already at 5"),
            ("b.rdfp", 2, "too late: its time is 4, and the log is already at 6"),
        ]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("b.csv", b"x,y", "unknown suffix '.csv'"),
        ("b.ttl", b"", "a file of this format cannot be part of a log that grows"),
        ("b.parquet", b"PAR1", "is not a Parquet file that can be read"),
        ("b.nt.gz", b"\x1f\x8bnothing", "cannot be read"),
        ("b.rdfp", b"\0\0\0", "is a binary file, not RDF text"),
    ],
)
def test_a_file_that_cannot_be_read_is_rejected_once(tmp_path, name, content, reason):
    (tmp_path / "a.rdfp").write_text(tx("a"))
    (tmp_path / name).write_bytes(content)
    (tmp_path / "c.rdfp").write_text(tx("c"))
    stream = reader(tmp_path)
    rows, offsets = drain(stream, stream.initialOffset(), ReadMaxRows(1))
    assert objects(rows) == ["a", "c"]
    assert [(file, why[: len(reason)]) for file, _, why in aside(rows)] == [(name, reason)]
    assert aside(rows)[0][2].endswith(f"; fix it, and {GIVE_LATER_NAME}")
    assert [rows_between(reader(tmp_path), *pair) for pair in itertools.pairwise(offsets)] == [
        rows_between(stream, *pair) for pair in itertools.pairwise(offsets)
    ]


def test_a_file_that_is_still_being_written_is_waited_for(tmp_path):
    whole = gzip.compress(b"<ex:s> <ex:p> <ex:a> .\n" * 1000)
    (tmp_path / "a.nt.gz").write_bytes(whole[: len(whole) // 2])
    stream = reader(tmp_path)
    start = stream.initialOffset()
    assert stream.latestOffset(start, ReadAllAvailable()) == start
    (tmp_path / "a.nt.gz").write_bytes(whole)
    _, rows = pull(stream, start)
    assert len(changes(rows)) == 1000


def test_empty_and_hidden_files_are_no_part_of_the_log(tmp_path):
    for name in ("a.rdfp", "b.nt", "_c.rdfp", ".d.rdfp", "e.rdfp.tmp"):
        (tmp_path / name).write_text("" if name < "c" and name[0] not in "._" else tx("x"))
    stream = reader(tmp_path)
    start = stream.initialOffset()
    assert stream.latestOffset(start, ReadAllAvailable()) == start


def test_a_file_whose_turn_has_passed_is_set_aside(tmp_path):
    (tmp_path / "b.rdfp").write_text(tx("b"))
    stream = reader(tmp_path)
    middle, _ = pull(stream, stream.initialOffset())
    (tmp_path / "a.rdfp").write_text(tx("a"))
    end, rows = pull(stream, middle)
    assert aside(rows) == [
        ("a.rdfp", 0, f"too late: files up to b.rdfp were read already; {GIVE_LATER_NAME}")
    ]
    assert stream.latestOffset(end, ReadAllAvailable()) == end
    again = reader(tmp_path)
    assert again.latestOffset(end, ReadAllAvailable()) == end
    (tmp_path / "a2.rdfp").write_text(tx("a"))
    _, rows = pull(reader(tmp_path), end)
    assert [file for file, _, _ in aside(rows)] == ["a2.rdfp"]


def test_latest_begins_with_what_is_written_from_now_on(tmp_path):
    path = tmp_path / "a.rdfp"
    path.write_text("PA ex: <ex:> .\n" + tx("a", time=5))
    stream = reader(tmp_path, startingOffsets="latest")
    start = stream.initialOffset()
    assert stream.latestOffset(start, ReadAllAvailable()) == start
    with path.open("a") as file:
        file.write("TX .\nA ex:s ex:p ex:b .\nTC .\n")
    _, rows = pull(stream, start)
    assert changes(rows) == [(5, 1, 1, "<ex:s>", "<ex:p>", "<ex:b>", None)]


def test_a_stream_goes_on_from_another_with_the_micro_batch_that_was_planned(tmp_path):
    stream = reader(tmp_path)
    (tmp_path / "a.rdfp").write_text(tx("a"))
    first, _ = pull(stream, stream.initialOffset())
    (tmp_path / "b.rdfp").write_text(tx("b"))
    planned, rows = pull(stream, first)
    assert objects(rows) == ["b"]
    (tmp_path / "c.rdfp").write_text(tx("c"))
    continues = {"continues": json.dumps(first), "planned": json.dumps(planned)}
    after = reader(tmp_path, **continues)
    assert after.initialOffset() == first
    again, rows = pull(after, first)
    assert again == planned and objects(rows) == ["b"]
    assert objects(pull(after, again)[1]) == ["c"]
    # A micro-batch of another source may end where it begins; the next one goes on.
    nothing = reader(tmp_path, continues=json.dumps(first), planned=json.dumps(first))
    assert pull(nothing, first) == (first, [])
    assert objects(pull(nothing, first)[1]) == ["b", "c"]


def test_available_now_takes_what_was_there_and_ends(tmp_path):
    (tmp_path / "a.rdfp").write_text(tx("a") + line("b").rstrip("\n"))
    stream = reader(tmp_path)
    stream.prepareForTriggerAvailableNow()
    with (tmp_path / "a.rdfp").open("a") as file:
        file.write("\n" + tx("later"))
    (tmp_path / "b.rdfp").write_text(tx("later"))
    rows, _ = drain(stream, stream.initialOffset(), ReadMaxRows(1))
    assert objects(rows) == ["a", "b"]


def test_the_batch_reader_reads_all(tmp_path):
    (tmp_path / "a.rdfp").write_text(tx("a") + line("b"))
    (tmp_path / "b.nt").write_text("<ex:s> <ex:p> <ex:c> .")
    table = LogReader({"path": str(tmp_path)})
    rows = [r for part in table.partitions() for b in table.read(part) for r in b.to_pylist()]
    assert objects(rows) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the source has no path"),
        ({"path": "no/such/place"}, "there is no such directory"),
        ({"path": __file__}, "unknown suffix '.py'"),
        ({"path": ".", "maxRowsPerBatch": "0"}, "maxRowsPerBatch is '0', not a number from 1 on"),
        ({"path": ".", "startingOffsets": "now"}, "startingOffsets is 'now'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises((DataError, GraphtideError), match=message):
        LogStreamReader(options)


def test_the_schema_is_that_of_the_rows():
    from graphtide.spark.source.read import SCHEMA

    kinds = {"int64": "bigint", "int32": "int", "string": "string"}
    columns = [f"{field.name} {kinds[str(field.type)]}" for field in SCHEMA]
    assert GraphtideSource({}).schema() == ", ".join(columns)


def random_log(rng):
    """RDF Patch with everything that may stand in it, right or wrong."""
    parts = ["PA ex: <ex:> .\n"] if rng.random() < 0.5 else []
    time = 0
    for number in range(rng.randint(1, 12)):
        time += rng.choice([0, 0, 1, 2, -1])
        some = [
            rng.choice(
                [line(f"o{number}{i}"), f"A ex:s ex:p ex:n{number}{i} .\n", "oops\n", "# c\n"]
            )
            for i in range(rng.randint(0, 4))
        ]
        head = rng.choice(
            ["", f"H time {max(time, 0)} .\n", "H time x .\n", f"H tx {time + 30} .\n"]
        )
        shape = rng.random()
        body = "".join(some)
        if shape < 0.6:
            parts.append(head + "TX .\n" + body + "TC .\n")
        elif shape < 0.7:
            parts.append("TX .\n" + head + body + "TA .\n")
        elif shape < 0.8:
            parts.append("TX .\n" + body + head + "TC .\n")
        else:
            parts.append(head + body + rng.choice(["", "TC .\n", "PD zz: .\n"]))
    return "".join(parts).replace("\n", rng.choice(["\n", "\n", "\r\n"]))


@pytest.mark.parametrize("seed", quick_sample(range(60), 6))
@pytest.mark.slow
def test_any_cut_gives_the_same_rows_and_so_does_a_replay(tmp_path, seed):
    rng = random.Random(seed)
    for number in range(rng.randint(1, 4)):
        (tmp_path / f"{number}.rdfp").write_bytes(random_log(rng).encode())
    stream = reader(tmp_path)
    stream.prepareForTriggerAvailableNow()
    whole, _ = drain(stream, stream.initialOffset())
    for limit in (1, 3, 8):
        again = reader(tmp_path)
        again.prepareForTriggerAvailableNow()
        rows, offsets = drain(again, again.initialOffset(), ReadMaxRows(limit))
        assert changes(rows) == changes(whole)
        assert sorted(aside(rows)) == sorted(aside(whole))
        for pair in itertools.pairwise(offsets):
            assert rows_between(reader(tmp_path), *pair) == rows_between(again, *pair)


@pytest.mark.parametrize("seed", range(20))
def test_one_file_gives_what_the_plain_reader_gives(tmp_path, seed):
    path = tmp_path / "a.rdfp"
    path.write_bytes(random_log(random.Random(seed)).encode() + b"H x y .\n")
    stream = reader(tmp_path)
    stream.prepareForTriggerAvailableNow()
    rows, _ = drain(stream, stream.initialOffset(), ReadMaxRows(2))
    expected, latest = [], 0
    for batch in read_changes(path, on_error="skip", rejected=[]):
        for row in batch.to_arrow().to_pylist():
            if row["time"] >= latest:
                latest = row["time"]
                expected.append(tuple(row.values()))
    assert changes(rows) == expected


@pytest.mark.parametrize("seed", range(10))
def test_a_file_that_grows_byte_by_byte(tmp_path, seed):
    rng = random.Random(seed)
    text = random_log(rng).encode()
    (tmp_path / "a.rdfp").write_bytes(text)
    whole = reader(tmp_path)
    whole.prepareForTriggerAvailableNow()
    expected, _ = drain(whole, whole.initialOffset())
    path = tmp_path / "a.rdfp"
    path.write_bytes(b"")
    stream = reader(tmp_path)
    offset, rows, done = stream.initialOffset(), [], 0
    while done < len(text):
        step = rng.randint(1, 40)
        with path.open("ab") as file:
            file.write(text[done : done + step])
        done += step
        offset, more = pull(stream, offset)
        rows += more
    stream.prepareForTriggerAvailableNow()
    rows += drain(stream, offset)[0]
    assert changes(rows) == changes(expected)
    assert aside(rows) == aside(expected)


@given(st.from_regex(re.compile(scan.PLAIN.pattern.removesuffix(rb"(?=\n)")), fullmatch=True))
def test_what_the_scan_takes_for_a_change_is_one(line):
    row = split_row(line.decode())
    assert row.code in {"A", "D"} and len(change_terms(row, {})) == 3


def test_the_schema_is_known_without_the_readers():
    """Spark starts a process only to ask for it; the readers bring the compiler along."""
    code = """
import sys
from graphtide.spark.source.source import GraphtideSource
print(GraphtideSource({}).schema()[:11], {"numba", "pyarrow"} & set(sys.modules))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "time bigint set()\n"

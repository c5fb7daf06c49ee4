"""Following a growing file: in a process of its own, which is stopped in every way it can be."""

import gzip
import os
import signal
import threading
import time

import pytest
from support.sampling import quick_sample

from graphtide.cli.inputs import LineReader, Rejects, read_pieces
from graphtide.errors import DataError

APPEARS = "+ time=17 tx=0 ?route=:route1 ?sensor=:sensor1\n"
DISAPPEARS = "- time=18 tx=1 ?route=:route1 ?sensor=:sensor1\n"
FOLLOW = "watch", "route.rq", "--data", "rail.ttl", "--follow", "--changes"


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", quick_sample([signal.SIGINT, signal.SIGTERM], 2))
def test_rows_come_as_the_file_grows_until_a_signal_ends_it(files, start, signal_number):
    text = (files / "log.rdfp").read_text()
    half = text.index("A ex:route1") + 5  # in the middle of a row of an open transaction
    (files / "growing.rdfp").write_text(text[:half])
    process = start(*FOLLOW, "growing.rdfp")
    assert process.stdout.readline() == APPEARS
    with (files / "growing.rdfp").open("a") as log:
        log.write(text[half:])
    assert process.stdout.readline() == DISAPPEARS
    process.send_signal(signal_number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    assert "route: 0 rows now, +1 -1" in err
    assert "Traceback" not in err


def test_a_packed_log_is_read_but_not_followed(files, run):
    (files / "log.rdfp.gz").write_bytes(gzip.compress((files / "log.rdfp").read_bytes()))
    ran = run("watch", "route.rq", "--data", "rail.ttl", "--changes", "log.rdfp.gz")
    assert ran.out == APPEARS + DISAPPEARS
    assert "cannot be followed" in run(*FOLLOW, "log.rdfp.gz").err


def test_limit_ends_it(files, run):
    text = (files / "log.rdfp").read_text()
    (files / "growing.rdfp").write_text("")

    def write():
        for line in text.splitlines(keepends=True):
            with (files / "growing.rdfp").open("a") as log:
                log.write(line)
            time.sleep(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    ran = run(*FOLLOW, "growing.rdfp", "--rows", 2, "--json")
    writer.join()
    assert [(row["time"], row["diff"]) for row in ran.objects] == [(17, 1), (18, -1)]


def test_changes_outside_transactions_count_when_the_writer_pauses(files, run):
    (files / "loose.rdfp").write_text("A <ex:a> <ex:p> <ex:b> .\nA <ex:a> <ex:p> <ex:c> .\n")
    ran = run("watch", "all.rq", "--changes", "loose.rdfp", "--follow", "--rows", 2, "--json")
    assert {(row["tx"], row["row"]["o"]) for row in ran.objects} == {(0, "<ex:b>"), (0, "<ex:c>")}


def test_each_line_of_quads_is_a_transaction(files, run):
    (files / "log.nq").write_text("<ex:a> <ex:p> <ex:b> .\n\n<ex:a> <ex:p> <ex:c> .\n")
    ran = run("watch", "all.rq", "--changes", "log.nq", "--follow", "--rows", 2, "--json")
    assert [(row["tx"], row["row"]["o"]) for row in ran.objects] == [(0, "<ex:b>"), (1, "<ex:c>")]


@pytest.mark.slow
def test_an_interrupt_without_follow_is_no_success(files, start):
    os.mkfifo(files / "pipe.rdfp")
    process = start("watch", "route.rq", "--data", "rail.ttl", "--changes", "pipe.rdfp")
    with (files / "pipe.rdfp").open("w"):  # opened when the command has opened it, too
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "route: 0 rows now" in err
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", quick_sample(["1", ""], 2))
def test_a_reader_that_has_enough_ends_it_silently(files, start, unbuffered):
    lines = (f"<ex:a> <ex:p> <ex:b{n}> .\n" for n in range(50_000))
    (files / "many.nt").write_text("".join(lines))
    process = start("watch", "all.rq", "--changes", "many.nt", unbuffered=unbuffered)
    assert process.stdout.readline().startswith("+ time=0 tx=0")
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""


def test_broken_lines_of_a_growing_file_have_their_true_place():
    rejected = []
    reader = LineReader("log.nt", "nt", Rejects("skip", rejected))
    assert reader.feed(b"<ex:a> <ex:p> <ex:b> .\n<ex:a> ")[0].o.to_pylist() == ["<ex:b>"]
    assert reader.feed(b"nonsense .\n\n") == []
    assert reader.finish() == []
    assert [(line.file, line.line) for line in rejected] == [("log.nt", 2)]
    strict = LineReader("log.nt", "nt")
    strict.feed(b"<ex:a> <ex:p> <ex:b> .\n")
    with pytest.raises(DataError, match=r"log\.nt:2:"):
        strict.feed(b"nonsense\n")


def test_a_last_line_without_an_end_is_read_at_the_end():
    reader = LineReader("log.nt", "nt")
    assert reader.feed(b"<ex:a> <ex:p> <ex:b> .") == []
    assert reader.finish()[0].o.to_pylist() == ["<ex:b>"]


def test_a_file_that_shrinks_is_told(tmp_path):
    path = tmp_path / "log.nt"
    path.write_text("<ex:a> <ex:p> <ex:b> .\n")
    batches = read_pieces(path, wait=True)
    assert [len(batch) for batch in next(batches)] == [1]
    assert next(batches) == []
    path.write_text("")
    with pytest.raises(DataError, match="became shorter"):
        next(batches)

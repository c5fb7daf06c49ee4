"""`graphtide rescale` and `graphtide evolve`: what they say of checkpoints that are none."""

import json

import pytest

from graphtide.errors import GraphtideError
from graphtide.spark.driver import continued as going_on
from graphtide.spark.driver.options import BOUNDED, Fingerprint
from graphtide.spark.files import Location

QUERY = "SELECT ?a { ?a <ex:p> ?b }"


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    """A checkpoint that cannot be changed by anyone: Spark does not start here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.rq").write_text(QUERY)
    (tmp_path / "ckpt").mkdir()
    return tmp_path / "ckpt"


def write_owner(checkpoint, **changed):
    Fingerprint("run", {"query": QUERY}, 2, "in").write(Location.of(checkpoint))
    file = checkpoint / "graphtide.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))


def break_file(checkpoint):
    (checkpoint / "graphtide.json").write_text('{"run": "r", ')


def break_fields(checkpoint):
    write_owner(checkpoint, partitionen=3)


def write_list(checkpoint):
    (checkpoint / "graphtide.json").write_text("[1, 2]")


def write_foreign(checkpoint):
    (checkpoint / "thesis.txt").write_text("do not lose me")


def write_sparks(checkpoint):
    """Spark's own checkpoint, as of a query of `watch`."""
    (checkpoint / "offsets").mkdir()
    (checkpoint / "metadata").write_text('{"id":"5"}')


def be_a_file(checkpoint):
    checkpoint.rmdir()
    checkpoint.write_text("hello")


NONE = "ckpt is not a checkpoint of graphtide run"
DAMAGED = "graphtide.json cannot be read"


@pytest.mark.parametrize(
    ("make", "message", "hint"),
    [
        (lambda where: where.rmdir(), NONE, "give the --checkpoint of graphtide run"),
        (lambda _: None, NONE, "give the --checkpoint of graphtide run"),
        (be_a_file, NONE, "give the --checkpoint of graphtide run"),
        (write_foreign, NONE, "give the --checkpoint of graphtide run"),
        (write_sparks, NONE, "a query of watch belongs to its program"),
        (break_file, DAMAGED, "use a copy of it"),
        (break_fields, DAMAGED, "use a copy of it"),
        (write_list, DAMAGED, "use a copy of it"),
        (lambda where: write_owner(where, changes=BOUNDED), "a bounded DataFrame, and is done", ""),
    ],
)
@pytest.mark.parametrize("command", [("rescale", "ckpt", "--partitions", "3"), ("evolve", "ckpt")])
def test_it_is_said_before_spark_starts(checkpoint, run, monkeypatch, make, message, hint, command):
    monkeypatch.setattr("graphtide.cli.spark_engine.check_needs", lambda: None)
    make(checkpoint)
    ran = run(*command, *(["new.rq"] if command[0] == "evolve" else []))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err and hint in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ((), "give --partitions, or --hub, or both"),
        (("--partitions", 0), 'invalid --partitions "0": give 1 or more'),
        (("--hub", "auto"), "hubs: not an RDF term: 'auto'"),
    ],
)
def test_mistakes_in_options(checkpoint, run, tokens, message):
    ran = run("rescale", "ckpt", *tokens)
    assert (ran.code, ran.out) == (2, "") and message in ran.err


@pytest.mark.parametrize("command", ["rescale", "evolve"])
def test_help_has_an_example(run, command):
    ran = run(command, "--help")
    assert ran.code == 0 and f"graphtide {command} ckpt/ " in ran.out


@pytest.mark.parametrize("text", ["", "v1\n{}", "v1\n{}\n{", "v1\n{}\n-"])
def test_damaged_files_of_a_stream_are_named(tmp_path, text):
    stream = Location.of(tmp_path)
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0").write_text(text)
    with pytest.raises(GraphtideError, match=r"offsets/0 cannot be read") as caught:
        going_on.stopped_at(stream)
    assert "use a copy" in caught.value.hint
    (tmp_path / "job.json").write_text(text)
    with pytest.raises(GraphtideError, match=r"job\.json cannot be read"):
        going_on.noted_job(stream)

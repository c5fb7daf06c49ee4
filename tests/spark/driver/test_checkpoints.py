"""What `rescale` and `evolve` say of checkpoints that are none, before they use Spark."""

import json

import pytest

from graphtide.errors import GraphtideError
from graphtide.spark.driver import continued as going_on
from graphtide.spark.driver.options import BOUNDED, Fingerprint
from graphtide.spark.driver.rescale import known_checkpoint
from graphtide.spark.files import Location

QUERY = "SELECT ?a { ?a <ex:p> ?b }"


@pytest.fixture
def checkpoint(tmp_path):
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
DAMAGED = r"graphtide\.json cannot be read"


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
def test_what_it_says(checkpoint, make, message, hint):
    make(checkpoint)
    with pytest.raises(GraphtideError, match=message) as caught:
        known_checkpoint(Location.of(checkpoint))
    assert hint in str(caught.value)


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

"""Paths and URIs: reading, writing and errors, on this machine and in an object store."""

import gzip
import os
import pickle
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from support.object_store import BUCKET, SECRET, object_store

from graphtide.errors import DataError, GraphtideError
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import write_changes
from graphtide.spark import files
from graphtide.spark.driver.sink import Sink
from graphtide.spark.files import Location, s3_options
from graphtide.spark.source.readers import LogStreamReader
from graphtide.spark.state.messages import REJECTED

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def store():
    with object_store() as environment:
        yield environment


@pytest.fixture(params=["path", "file URI", "object store"])
def place(request, tmp_path, monkeypatch):
    """A directory, of each kind."""
    if request.param == "object store":
        for name, value in request.getfixturevalue("store").items():
            monkeypatch.setenv(name, value)
        return Location.of(f"s3a://{BUCKET}/{tmp_path.name}")
    return Location.of(tmp_path if request.param == "path" else tmp_path.as_uri())


def test_files_are_written_listed_read_and_deleted(place):
    place.check()
    assert place.is_dir() and place.entries() == []
    inner = place / "inner"
    inner.make_directory()
    (inner / "b.txt").write_text("büro")
    (place / "a.txt").write_bytes(b"x" * 3_000_000)
    (place / "a.txt").write_bytes(b"0123456789")
    assert [(e.name, e.is_file) for e in place.entries()] == [("a.txt", True), ("inner", False)]
    assert place.entries()[0].size == (place / "a.txt").info().size == 10
    assert (inner / "b.txt").read_text() == "büro"
    with (place / "a.txt").open() as file:
        file.seek(4)
        assert file.read(3) == b"456"
        assert file.seek(0, os.SEEK_END) == 10
    for _ in range(2):
        (place / "a.txt").delete()
    assert not (place / "a.txt").exists() and (inner / "b.txt").is_file()
    with pytest.raises(FileNotFoundError):
        (place / "a.txt").open()


def test_a_location_travels_with_its_settings(place):
    (place / "a.txt").write_text("here")
    assert (pickle.loads(pickle.dumps(place)) / "a.txt").read_text() == "here"
    assert SECRET not in repr(place) + str(place)


def test_names_are_those_of_hadoop():
    assert Location.of("file:///tmp/x") == Location.of("file:/tmp/x") == Location.of("/tmp/x/")
    assert Location.of(Path("s3a://rail/x")) == Location.of("s3a://rail/x/")
    assert str(Location.of("C:/data")) == "C:/data"
    assert Location.of("file:///tmp/x").local == Path("/tmp/x")
    assert Location.of("hdfs://head:9000/x").local is None


@pytest.mark.parametrize(
    ("uri", "message", "hint"),
    [
        ("ftp://host/x", "there is no file system ftp://", "s3a, hdfs, abfss or gs"),
        ("s3a://nowhere/x", "there is no s3a://nowhere", "make the bucket first"),
        ("abfss://c@a.dfs.core.windows.net/x", "neither a key", "AZURE_STORAGE_KEY"),
    ],
)
def test_a_file_system_that_is_not_there_is_explained(store, monkeypatch, uri, message, hint):
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    for name in ("AZURE_CLIENT_ID", "AZURE_STORAGE_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(GraphtideError) as caught:
        Location.of(uri).check()
    assert message in caught.value.message and hint in caught.value.hint


@pytest.mark.slow
def test_a_store_that_does_not_answer_is_explained():
    where = Location.of(f"s3a://{BUCKET}/x", {"fs.s3a.endpoint": "http://127.0.0.1:1"})
    for use in (where.check, lambda: where.write_text("")):
        with pytest.raises(GraphtideError, match="cannot be reached") as caught:
            use()
        assert "fs.s3a.endpoint" in caught.value.hint


def test_settings_of_hadoop_are_those_of_arrow():
    options = s3_options(
        {
            "fs.s3a.endpoint": "minio:9000",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.endpoint.region": "eu-1",
            "fs.s3a.access.key": "a",
            "fs.s3a.secret.key": "b",
        }
    )
    assert (options["endpoint_override"], options["scheme"]) == ("minio:9000", "http")
    assert (options["region"], options["access_key"], options["secret_key"]) == ("eu-1", "a", "b")
    assert s3_options({"fs.s3a.endpoint": "minio"})["scheme"] == "https"
    provider = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    assert s3_options({"fs.s3a.aws.credentials.provider": provider})["anonymous"]


def test_settings_come_before_the_environment(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://one")
    monkeypatch.setenv("AWS_REGION", "eu-1")
    found = dict(Location.of("s3a://b", {"fs.s3a.endpoint": "http://two"}).settings)
    assert (found["fs.s3a.endpoint"], found["fs.s3a.endpoint.region"]) == ("http://two", "eu-1")


def test_a_file_that_cannot_be_written_whole_is_not_written(tmp_path, monkeypatch):
    """A write that fails leaves the old file, and nothing that a reader takes for one."""
    where = Location.of(tmp_path / "a.json")
    where.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        where.write_text("new")
    assert where.read_text() == "old"
    assert [entry.name for entry in Location.of(tmp_path).entries()] == ["_a.json.tmp", "a.json"]


# --- the source ---


def objects(stream, limit):
    """The objects of all changes, micro-batch by micro-batch, each planned and read twice."""
    found, offset = [], stream.initialOffset()
    while (end := stream.latestOffset(offset, limit)) != offset:
        rows = [
            row
            for part in pickle.loads(pickle.dumps(stream.partitions(offset, end)))
            for batch in stream.read(part)
            for row in batch.to_pylist()
        ]
        found += [row["reason"] or row["o"] for row in rows if row["diff"] != 0]
        offset = end
    return found


def test_a_directory_is_tailed_wherever_it_is(place):
    (place / "a.nt").write_text("<ex:s> <ex:p> <ex:a> .\n<ex:s> <ex:p> <ex:b> .\n")
    (place / "b.rdfp.gz").write_bytes(gzip.compress(b"TX .\nA <ex:s> <ex:p> <ex:c> .\nTC .\n"))
    stream = LogStreamReader({"path": str(place)})
    assert objects(stream, ReadMaxRows(1)) == ["<ex:a>", "<ex:b>", "<ex:c>"]
    first = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    (place / "c.rdfp").write_text("TX .\nA <ex:s> <ex:p> <ex:d> .\nTC .\n")
    second = stream.latestOffset(first, ReadAllAvailable())
    assert second["position"]["file"] == "c.rdfp" and second["files"] == 3
    again = LogStreamReader({"path": str(place)})
    rows = [row for p in again.partitions(first, second) for b in again.read(p) for row in b["o"]]
    assert [str(row) for row in rows if row.is_valid] == ["<ex:d>"]


@pytest.mark.parametrize("before", [None, "junk", ""])
@pytest.mark.slow
def test_the_first_file_may_be_parquet(place, before, tmp_path_factory):
    if before is not None:
        (place / "a.parquet").write_text(before)
    local = tmp_path_factory.mktemp("made") / "b.parquet"
    rows = [(4, 0, 1, "<ex:s>", "<ex:p>", "<ex:c>", None), (9, 4, 1, "_:s", "<ex:p>", '"d"', None)]
    write_changes(ChangeBatch.of(rows), local)
    (place / "b.parquet").write_bytes(local.read_bytes())
    (place / "c.nt").write_text("<ex:s> <ex:p> <ex:e> .\n")
    for limit in (ReadMaxRows(1), ReadAllAvailable()):
        found = objects(LogStreamReader({"path": str(place)}), limit)
        assert found[-3:] == ["<ex:c>", '"d"', "<ex:e>"]
        assert len(found) == 3 + (before is not None)


def test_a_connection_that_fails_rejects_no_file(store, monkeypatch):
    """What cannot be reached now can be later: the run fails, and loses nothing."""
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    place = Location.of(f"s3a://{BUCKET}/failing")
    for name in ("a.nt", "b.nt"):
        (place / name).write_text("<ex:s> <ex:p> <ex:a> .\n")
    stream = LogStreamReader({"path": str(place)})
    opened = files._RemoteFile.__init__

    def fail(_):
        raise OSError("curlCode: 56, connection reset")

    def break_off(self, file, where):
        opened(self, SimpleNamespace(seek=file.seek, tell=file.tell, close=file.close), where)
        self._file.readinto = fail

    monkeypatch.setattr(files._RemoteFile, "__init__", break_off)
    with pytest.raises(GraphtideError, match="cannot be reached"):
        stream.latestOffset(stream.initialOffset(), ReadAllAvailable())


def test_what_is_not_there(tmp_path):
    with pytest.raises(DataError, match="there is no such directory"):
        LogStreamReader({"path": str(tmp_path / "nowhere")})


# --- the sink ---


def test_output_is_written_wherever_it_is(place):
    table = ChangeBatch.of([(1, 0, 1, "<ex:s>", "<ex:p>", "<ex:c>", None)]).to_arrow()
    for _ in range(2):
        Sink(place / "out", "run", {"q": ["x"]}).write(0, {"q": table}, REJECTED.empty_table())
    found = next(e.name for e in (place / "out" / "q").entries())
    with (place / "out" / "q" / found).open() as file:
        assert pq.read_table(file).num_rows == 1
    with pytest.raises(GraphtideError, match="output of another run"):
        Sink(place / "out", "other", {"q": ["x"]})


def test_the_store_is_a_real_one(store):
    """Its objects are seen by another client than ours."""
    settings = {"fs.s3a.endpoint": store["AWS_ENDPOINT_URL"], "fs.s3a.access.key": "test"}
    settings["fs.s3a.secret.key"] = SECRET
    Location.of(f"s3a://{BUCKET}/seen.txt", settings).write_text("x")
    client = fs.S3FileSystem(**s3_options(settings))
    assert client.get_file_info(f"{BUCKET}/seen.txt").size == 1

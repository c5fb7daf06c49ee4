"""Models in files: every format holds the same triples."""

import gzip

import pyarrow.parquet as pq
import pytest
from pyoxigraph import RdfFormat, parse

from graphtide.bench.train.driver import load_model
from graphtide.cli.main import main
from graphtide.datasets.train import TrainModel, write_model
from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph


def loaded(path):
    graph = LiveGraph()
    graph.apply(path)
    return {tuple(map(str, quad)) for quad in graph.quads()}


@pytest.fixture(scope="module")
def direct():
    graph = LiveGraph()
    load_model(graph, TrainModel(1, "repair"))
    return {tuple(map(str, quad)) for quad in graph.quads()}


@pytest.mark.parametrize(
    "name",
    ["a.nt", "a.nq", "a.ttl", "a.nt.gz", "a.nq.gz", "a.parquet", "a.arrow", "a.arrows"],
)
def test_every_format_holds_the_model(name, tmp_path, direct):
    assert write_model(TrainModel(1, "repair"), tmp_path / name) == 4054 == len(direct)
    assert loaded(tmp_path / name) == direct


def test_the_format_may_be_named(tmp_path):
    write_model(TrainModel(1, "batch"), tmp_path / "rail", format="nt")
    write_model(TrainModel(1, "batch"), tmp_path / "packed.gz", format="nt")
    text = (tmp_path / "rail").read_bytes()
    assert len(list(parse(text, format=RdfFormat.N_TRIPLES))) == 4073
    assert gzip.decompress((tmp_path / "packed.gz").read_bytes()) == text


def test_parquet_is_a_log_of_inserts(tmp_path):
    write_model(TrainModel(1, "batch"), tmp_path / "rail.parquet")
    table = pq.read_table(tmp_path / "rail.parquet")
    assert table.column_names == ["time", "tx", "diff", "s", "p", "o", "g"]
    assert table.num_rows == 4073
    assert set(table["diff"].to_pylist()) == {1}


def test_progress_is_reported_block_by_block(tmp_path):
    routes = []
    write_model(
        TrainModel(16, "batch"),
        tmp_path / "a.nt",
        progress=lambda block: routes.append(block.routes),
    )
    assert len(routes) > 1 and sum(routes) == 80


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a.csv", "unknown suffix '.csv'"),
        ("a.rdfp", "cannot be written as rdfp"),
        ("a.parquet.gz", "compresses its columns itself"),
        ("no/a.nt", "cannot be written"),
        ("no/a.nt.gz", "cannot be written"),
    ],
)
def test_targets_that_cannot_be_written(name, problem, tmp_path):
    with pytest.raises(GraphtideError, match=problem):
        write_model(TrainModel(1, "batch"), tmp_path / name)


@pytest.fixture
def command(capsys):
    def run(*tokens):
        code = main([str(token) for token in tokens])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


def test_generate(command, tmp_path):
    path = tmp_path / "rail.nt"
    code, out, err = command("generate", "train", "--scenario", "inject", "--out", path)
    assert (code, out) == (0, "")
    assert "4,089 triples" in err
    assert path.read_text().count("\n") == 4089


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--size", "0", "--out", "a.nt"], "invalid size 0"),
        (["--size", "1.5", "--out", "a.nt"], "invalid size '1.5'"),
        (["--scenario", "nope", "--out", "a.nt"], "unknown scenario 'nope'"),
        (["--out", "a.nope"], "unknown suffix '.nope'"),
        (["--out", "a.nt", "--format", "nope"], "unknown format 'nope'"),
        ([], "--out"),
    ],
)
def test_generate_with_mistakes(command, options, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = command("generate", "train", *options)
    assert (code, out) == (2, "")
    assert problem in err
    assert not list(tmp_path.iterdir())

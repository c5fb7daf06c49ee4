"""LUBM in files: every format holds the same triples; streams have times."""

import gzip

import pytest
from pyoxigraph import RdfFormat, parse
from support.sampling import quick_sample, slow

from graphtide.cli.main import main
from graphtide.graph import LiveGraph
from graphtide.rdf.formats.change_log import read_changes


@pytest.fixture
def command(capsys):
    def run(*tokens):
        code = main([str(token) for token in tokens])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


def loaded(path):
    graph = LiveGraph()
    graph.apply(path)
    return {" ".join(map(str, quad[:3])) + " ." for quad in graph.quads()}


@pytest.mark.parametrize(
    "name",
    quick_sample(["a.nt", "a.nq.gz", "a.ttl", "a.parquet", "a.arrows", "a.rdfp", "a.rdfp.gz"], 3),
)
@pytest.mark.slow
def test_every_format_holds_the_model(name, tmp_path, lubm_lines, command):
    code, out, err = command("generate", "lubm", "--out", tmp_path / name)
    assert (code, out) == (0, "") and "100,543 triples" in err
    if name == "a.nt":
        assert (tmp_path / name).read_bytes() == lubm_lines
    elif name == "a.nq.gz":
        assert gzip.decompress((tmp_path / name).read_bytes()) == lubm_lines
    elif name == "a.ttl":
        triples = {str(quad.triple) + " ." for quad in parse(path=tmp_path / name)}
        assert triples == set(lubm_lines.decode().splitlines())
    else:
        assert loaded(tmp_path / name) == set(lubm_lines.decode().splitlines())


def test_lines_are_n_triples(lubm_lines):
    assert sum(1 for _ in parse(lubm_lines, format=RdfFormat.N_TRIPLES)) == 100_543


@pytest.mark.parametrize("name", quick_sample(["a.parquet", "a.rdfp"], 2))
@pytest.mark.parametrize(("size", "events"), [slow(1, 100_543), (20, 5_028)])
@pytest.mark.slow
def test_a_stream(name, size, events, tmp_path, lubm_lines, command):
    code, _, _ = command(
        *("generate", "lubm", "--rate", 10_000, "--event-size", size, "--out", tmp_path / name)
    )
    assert code == 0
    first, times, sizes = 0, [], {}
    for batch in read_changes(tmp_path / name):
        assert (batch.diff == 1).all()
        for time, tx in zip(batch.time.tolist(), batch.tx.tolist(), strict=True):
            if tx not in sizes:
                times.append(time)
            sizes[tx] = sizes.get(tx, 0) + 1
        first += len(batch)
    assert first == 100_543 and len(sizes) == events
    # ten triples a millisecond
    assert times == [event * size // 10 for event in range(events)]
    assert list(sizes.values())[:-1] == [size] * (events - 1)
    assert loaded(tmp_path / name) == set(lubm_lines.decode().splitlines())


def test_the_text_of_a_stream(tmp_path, command):
    path = tmp_path / "a.rdfp"
    command("generate", "lubm", "--rate", 4, "--event-size", 2, "--unit", "us", "--out", path)
    with path.open() as file:
        rows = [next(file).split()[:3] for _ in range(9)]
    assert [row[:1] if row[0] in ("A", "TX", "TC") else row for row in rows] == [
        *(["TX"], ["A"], ["A"], ["TC"]),
        *(["TX"], ["H", "time", "500000"], ["A"], ["A"], ["TC"]),
    ]


def test_universities_and_seeds(tmp_path, command):
    _, _, err = command("generate", "lubm", "--universities", 5, "--out", tmp_path / "a.parquet")
    assert "624,532 triples" in err
    _, _, err = command("generate", "lubm", "--seed", 1, "--out", tmp_path / "b.parquet")
    assert "100,543 triples" not in err
    _, _, err = command("generate", "lubm", "--repeats", "--out", tmp_path / "c.parquet")
    assert "100,543 triples" not in err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--universities", "0", "--out", "a.nt"], "invalid number of universities: 0"),
        (["--universities", "x", "--out", "a.nt"], "--universities"),
        (["--seed", "-1", "--out", "a.nt"], "invalid seed -1"),
        (["--out", "a.nope"], "unknown suffix '.nope'"),
        (["--out", "a.trig"], "a model cannot be written as trig"),
        (["--out", "a.parquet.gz"], "compresses its columns itself"),
        (["--out", "no/a.nt"], "cannot be written"),
        (["--rate", "10", "--out", "a.nt"], "a stream with times cannot be written as nt"),
        (["--rate", "0", "--out", "a.rdfp"], "invalid rate 0"),
        (["--rate", "1", "--event-size", "0", "--out", "a.rdfp"], "invalid event size 0"),
        (["--rate", "1", "--unit", "h", "--out", "a.rdfp"], "unknown unit 'h'"),
        (["--event-size", "20", "--out", "a.rdfp"], "need --rate"),
        (["--unit", "ms", "--out", "a.rdfp"], "need --rate"),
        ([], "--out"),
    ],
)
def test_mistakes(command, options, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = command("generate", "lubm", *options)
    assert (code, out) == (2, "")
    assert problem in err
    assert not list(tmp_path.iterdir())

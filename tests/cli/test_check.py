import pytest

from graphtide.rdf.changes import ChangeBatch


def test_sound_files(files, run):
    ran = run("check", "route.rq", "rail.ttl", "log.rdfp", "empty.rdfp")
    assert ran.code == 0
    assert "route.rq: ok, maintained by this plan" in ran.out
    assert "  answer ?route ?sensor" in ran.out
    assert "rail.ttl: ok, 2 changes in 1 transaction\n" in ran.out
    assert "log.rdfp: ok, 2 changes in 2 transactions" in ran.out
    assert "empty.rdfp: ok, 0 changes in 0 transactions" in ran.out


def test_every_problem_is_reported(files, run):
    ran = run("check", "syntax.rq", "broken.rdfp", "random.rq", "prefix.rq", "nope.nt", "log.rdfp")
    assert ran.code == 1
    for place in (
        "syntax.rq:1:25: ",
        "broken.rdfp:3:28: unknown prefix 'oops:'",
        "broken.rdfp:4:1: unknown row 'X'",
        "random.rq:1:9: RAND cannot be maintained",
        "prefix.rq:1:22: the prefix 'foaf:' is not declared",
        "hint: add: PREFIX foaf: <http://xmlns.com/foaf/0.1/>",
        "nope.nt: there is no such file",
        "log.rdfp: ok",
    ):
        assert place in ran.out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder.nt", "is a directory"),
        ("folder.rq", "is a directory"),
        ("empty.rq", "is empty"),
        ("table.csv", "unknown suffix"),
    ],
)
def test_files_that_cannot_be_read(files, run, name, message):
    ran = run("check", name)
    assert ran.code == 1
    assert ran.out.startswith(f"{name}: ")
    assert message in ran.out


def test_a_query_that_is_no_text(files, run):
    (files / "binary.rq").write_bytes(b"\xff\xfe\x00")
    assert "binary.rq: is not a text file" in run("check", "binary.rq").out


def test_times_that_run_backwards(files, run):
    import pyarrow.parquet as pq

    rows = [(time, tx, 1, "<ex:a>", "<ex:p>", f"<ex:{tx}>", None) for tx, time in enumerate((5, 3))]
    pq.write_table(ChangeBatch.of(rows).to_arrow(), files / "back.parquet")
    ran = run("check", "back.parquet")
    assert ran.code == 1
    assert "time runs backwards: a transaction at 3 after one at 5" in ran.out


def test_nothing_to_check(run):
    assert run("check").code == 2

"""Files that are missing, empty or broken give a message and an exit code with every command."""

import pytest

PROGRAM = """QUERY All AS SELECT * { ?s ?p ?o }
GOAL Nothing NONE OF All
FIX Cut ON All THEN DELETE { ?s ?p ?o }
"""
RUN = "--engine", "process"

COMMANDS = {
    "watch a query": ("watch", "{rq}", "--changes", "log.rdfp"),
    "watch changes": ("watch", "all.rq", "--changes", "{rdfp}"),
    "watch data": ("watch", "all.rq", "--changes", "log.rdfp", "--data", "{ttl}"),
    "query": ("query", "{rq}"),
    "query data": ("query", "all.rq", "--data", "{ttl}"),
    "update": ("update", "{ru}"),
    "update data": ("update", "fine.ru", "--data", "{ttl}"),
    "explain a query": ("explain", "{rq}"),
    "explain a program": ("explain", "{tide}"),
    "explain changes": ("explain", "all.rq", "--changes", "{rdfp}"),
    "explain a program's changes": ("explain", "fine.tide", "--changes", "{rdfp}"),
    "check a query": ("check", "{rq}"),
    "check a program": ("check", "{tide}"),
    "check data": ("check", "{ttl}"),
    "check changes": ("check", "{rdfp}"),
    "fmt": ("fmt", "{tide}"),
    "repair": ("repair", "{tide}", "--data", "rail.ttl"),
    "repair data": ("repair", "fine.tide", "--data", "{ttl}"),
    "run": ("run", "{tide}", *RUN, "--changes", "log.rdfp"),
    "run changes": ("run", "fine.tide", *RUN, "--on-error", "raise", "--changes", "{rdfp}"),
    "run data": (
        *("run", "fine.tide", *RUN, "--on-error", "raise", "--changes", "log.rdfp"),
        *("--data", "{ttl}"),
    ),
}
EMPTY_IS_FINE = {name for name in COMMANDS if "data" in name or "changes" in name}
"""A file without triples or changes is a file like any other."""

BROKEN = {
    "rq": "SELECT ?s WHERE { ?s ?p }",
    "ru": "INSERT DATA { ?s",
    "tide": "RULE Broken ON ONLY TEHN",
    "ttl": "<ex:a> <ex:p> .",
    "rdfp": "TX .\nA <ex:a> .\nTC .\n",
}


@pytest.fixture
def folder(files):
    (files / "fine.tide").write_text(PROGRAM)
    (files / "fine.ru").write_text("INSERT DATA { <ex:a> <ex:p> 1 }")
    for suffix, text in BROKEN.items():
        (files / f"broken.{suffix}").write_text(text)
        (files / f"empty.{suffix}").write_text("")
        (files / f"binary.{suffix}").write_bytes(b"\xff\xfe\x00\x80" * 300)
        (files / f"directory.{suffix}").mkdir()
    return files


def tokens(name, stem):
    return [token.format(**{key: f"{stem}.{key}" for key in BROKEN}) for token in COMMANDS[name]]


@pytest.mark.parametrize("stem", ["missing", "broken", "binary", "directory"])
@pytest.mark.parametrize("name", COMMANDS)
def test_it_is_told_with_its_file(folder, run, name, stem):
    if (name, stem) == ("run changes", "directory"):
        return  # a directory without change logs is an empty log
    ran = run(*tokens(name, stem))
    assert ran.code == (1 if name.startswith("check") else 2)
    said = ran.out if name.startswith("check") else ran.err
    assert f"{stem}." in said
    assert "bug" not in said


@pytest.mark.parametrize("name", COMMANDS)
def test_empty_files(folder, run, name):
    ran = run(*tokens(name, "empty"))
    assert "bug" not in ran.err
    if name in EMPTY_IS_FINE:
        assert ran.code == 0
    elif name == "fmt":
        assert ran.code in (0, 2)
    else:
        assert ran.code == (1 if name.startswith("check") else 2)
        assert "empty." in ran.out + ran.err


@pytest.mark.parametrize(
    "words",
    [
        ("update", "fine.ru", "--out", "nowhere/out.nt"),
        ("repair", "fine.tide", "--data", "rail.ttl", "--apply", "1", "--out", "nowhere/out.nt"),
        ("run", "fine.tide", *RUN, "--changes", "log.rdfp", "--out", "rail.ttl"),
        ("run", "fine.tide", *RUN, "--changes", "log.rdfp", "--out", "rail.ttl/out"),
    ],
)
def test_output_that_cannot_be_written(folder, run, words):
    ran = run(*words)
    assert ran.code == 2
    assert "out.nt" in ran.err or "rail.ttl" in ran.err
    assert "bug" not in ran.err

"""A small railway in files, and ways to run the command line on it."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import partial

import pytest

from graphtide.cli.main import main

QUERY = """PREFIX : <http://example.org/>
SELECT ?route ?sensor WHERE {
  ?route :follows ?swP . ?swP :target ?sw . ?sw :monitoredBy ?sensor .
  FILTER NOT EXISTS { ?route :requires ?sensor } }
"""

DATA = """@prefix : <http://example.org/> .
:route1 :follows :swP1 . :swP1 :target :sw1 .
"""

LOG = """PA ex: <http://example.org/> .
H time 17 .
TX .
A ex:sw1 ex:monitoredBy ex:sensor1 .
TC .
H time 18 .
TX .
A ex:route1 ex:requires ex:sensor1 .
TC .
"""

BROKEN = """TX .
A <http://example.org/sw1> <http://example.org/monitoredBy> <http://example.org/sensor1> .
A <http://example.org/sw1> oops:p <http://example.org/sensor1> .
X
TC .
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with a query, data and change logs, made the current one."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "route.rq": QUERY,
        "all.rq": "SELECT ?s ?o WHERE { ?s ?p ?o }",
        "rail.ttl": DATA,
        "log.rdfp": LOG,
        "broken.rdfp": BROKEN,
        "empty.rdfp": "",
        "empty.rq": "",
        "syntax.rq": "SELECT ?s WHERE { ?s ?p }",
        "prefix.rq": "SELECT ?s WHERE { ?s foaf:name ?n }",
        "random.rq": "SELECT (RAND() AS ?n) WHERE { ?s ?p ?o }",
        "table.csv": "a,b",
    }.items():
        tmp_path.joinpath(name).write_text(text)
    tmp_path.joinpath("folder.nt").mkdir()
    tmp_path.joinpath("folder.rq").mkdir()
    return tmp_path


@dataclass
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def objects(self):
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def run(capsys):
    """Run a command in this process."""

    def run(*tokens):
        capsys.readouterr()
        code = main([str(token) for token in tokens])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Ran(code, out, err)

    return run


@pytest.fixture
def start():
    """Start a command in a process of its own, which does not outlive the test."""
    running = []

    def start(*tokens, unbuffered="", **options):
        command = [sys.executable, "-m", "graphtide.cli.main", *map(str, tokens)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        # Who starts the tests in the background may have them ignore interrupts.
        heeding = {"preexec_fn": partial(signal.signal, signal.SIGINT, signal.SIG_DFL)}
        process = subprocess.Popen(command, env=environment, **pipes | heeding | options)
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()

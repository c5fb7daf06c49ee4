"""A forked process has no part of the graph's threads: it is refused, and never hangs."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, tempfile
from pathlib import Path
import graphtide as gt

durability = sys.argv[1]
folder = Path(tempfile.mkdtemp()) / "store"
if durability == "memory":
    graph = gt.LiveGraph()
else:
    graph = gt.LiveGraph.open(folder, durability=durability)
query = graph.watch("SELECT * { ?s ?p ?o }")
graph.insert("<ex:a>", "<ex:p>", "<ex:b>")

def calls():
    yield lambda: graph.insert("<ex:a>", "<ex:p>", "<ex:c>")
    yield lambda: graph.query("SELECT * { ?s ?p ?o }")
    yield lambda: graph.update("CLEAR ALL")
    yield lambda: graph.stream("<ex:s>").push([("<ex:a>", "<ex:p>", "<ex:c>")], time=1)
    yield lambda: graph.advance(5)
    yield lambda: query.close()
    yield lambda: graph.transaction().__enter__().insert("<ex:a>", "<ex:p>", "<ex:c>")

child = os.fork()
if not child:
    wrong = 0
    for call in calls():
        try:
            call()
            wrong += 1
        except gt.GraphtideError as error:
            wrong += f"belongs to process {os.getppid()}" not in str(error)
    own = gt.LiveGraph()
    own.insert("<ex:a>", "<ex:p>", "<ex:b>")
    wrong += len(own) != 1
    os._exit(wrong)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
graph.insert("<ex:a>", "<ex:p>", "<ex:d>")
assert len(graph) == 2
graph.close()
sys.exit(status)
"""


@pytest.mark.parametrize("durability", ["memory", "none", "batch", "transaction"])
def test_a_graph_is_of_the_process_that_made_it(durability):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, durability],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr

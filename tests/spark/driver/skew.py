"""A stream half of which is about one node, what one process answers, and a kill in the switch."""

from __future__ import annotations

from contextlib import contextmanager
from random import Random

from graphtide.graph import LiveGraph
from graphtide.rdf.changes import ChangeBatch
from graphtide.spark import read_output
from graphtide.spark.driver.options import Fingerprint

STAR = "SELECT ?a ?b ?c { ?a <ex:p> ?b . ?a <ex:q> ?c }"
QUADS = 600
"""Of a file."""


def skewed(files):
    """Half of the quads are about one node; some are deleted again, also those of the node."""
    rng, batches, alive = Random(7), [], []
    for tx in range(files):
        rows = []
        for number in range(QUADS):
            node = "<ex:hub>" if rng.random() < 0.5 else f"<ex:n{tx}-{number % 100}>"
            quad = (node, "<ex:p>", f"<ex:o{tx}-{number}>", None)
            if node != "<ex:hub>" and rng.random() < 0.3:
                quad = (node, "<ex:q>", f"<ex:c{number % 5}>", None)
            alive.append(quad)
            rows.append((tx, tx, 1, *quad))
        rows.append((tx, tx, 1, "<ex:hub>", "<ex:q>", f"<ex:c{tx % 2}>", None))
        gone = (alive.pop(rng.randrange(len(alive))) for _ in range(QUADS // 10))
        rows += [(tx, tx, -1, *quad) for quad in gone]
        batches.append(ChangeBatch.of(rows))
    return batches


def expected_deltas(stream):
    """The deltas of the query in one process."""
    graph = LiveGraph()
    query = graph.watch(STAR, history=10**6)
    for batch in stream:
        graph.apply(batch)
    return sorted((r.time, r.tx, r.diff, *map(str, r.row.values())) for r in query.rows())


def written_deltas(out):
    """The deltas of the query `Star` in an output."""
    return sorted(tuple(row.values()) for row in read_output(out, "Star").to_pylist())


class KilledError(Exception):
    """Stands for the end of the process."""


@contextmanager
def killed_in_the_switch(monkeypatch):
    """Kill a run where it switches to other hubs, as late as that can be; the hubs it has found."""
    write, hubs = Fingerprint.write, []

    def killed(self, checkpoint):
        if self.continued is not None:
            hubs.append(self.hubs)
            raise KilledError("killed")
        write(self, checkpoint)

    with monkeypatch.context() as patch:
        patch.setattr(Fingerprint, "write", killed)
        yield hubs

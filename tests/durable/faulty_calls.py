"""Calls on durable graphs into which tests inject faults, and what may be seen afterwards."""

from __future__ import annotations

import os
import shutil
from functools import partial

import graphtide as gt
from graphtide.durable.verify import verify

ALL = os.environ.get("GRAPHTIDE_INTERRUPTS") == "all"
SAMPLE = None if ALL else int(os.environ.get("GRAPHTIDE_INTERRUPTS", "2"))

KNOWS = "SELECT ?a ?b { ?a <ex:knows> ?b }"
COUNT = "SELECT (COUNT(*) AS ?n) { ?a <ex:knows> ?b }"
WINDOW = """REGISTER RSTREAM <ex:out> AS SELECT ?a
    FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE 4 STEP 2] WHERE { WINDOW <ex:w> { ?a <ex:at> ?b } }"""
RULES = """
QUERY Known AS SELECT ?a { ?a <ex:knows> ?b }
EVENT Seen(?x) AS { ?x <ex:at> ?y }
RULE Note ON APPEAR OF Known THEN INSERT { ?a <ex:is> <ex:known> }
RULE Count ON Seen(?x) THEN INSERT { ?x <ex:was> <ex:seen> } ; CALL tell(?x)
"""
MORE_RULES = (
    "EVENT Met(?x) AS { ?x <ex:meets> ?y }\nRULE Meet ON Met(?x) THEN INSERT { ?x <ex:met> 1 }"
)
FUNCTIONS = {"tell": lambda _: None}


def program(text):
    return gt.Program.parse(text)


def transaction(graph):
    with graph.transaction(time=5) as tx:
        tx.insert("<ex:x>", "<ex:knows>", "<ex:y>")
        tx.delete("<ex:a>", "<ex:knows>", "<ex:b>")


def apply_until(graph, last=6):
    graph.apply(
        gt.ChangeBatch.of(
            [(t, t, 1, f"<ex:{t}>", "<ex:knows>", "<ex:y>", None) for t in range(4, last + 1)]
        )
    )


def named(graph, name):
    return next(query for query in graph.queries if query.name == name)


CALLS = {
    "insert": lambda graph: graph.insert("<ex:x>", "<ex:knows>", "<ex:y>"),
    "insert later": lambda graph: graph.insert("<ex:x>", "<ex:knows>", "<ex:y>", time=9),
    "delete": lambda graph: graph.delete("<ex:a>", "<ex:knows>", "<ex:b>"),
    "update": lambda graph: graph.update(
        "DELETE { ?a <ex:knows> ?b } INSERT { ?b <ex:knows> ?a } WHERE { ?a <ex:knows> ?b }"
    ),
    "transaction": transaction,
    "apply": apply_until,
    "watch": lambda graph: graph.watch(COUNT, name="count"),
    "watch a window": lambda graph: graph.watch(WINDOW, name="window"),
    "close a query": lambda graph: named(graph, "known").close(),
    "run": lambda graph: graph.run(program(MORE_RULES), name="more"),
    "push": lambda graph: graph.stream("<ex:s>").push([("<ex:x>", "<ex:at>", "<ex:y>")], time=7),
    "publish": lambda graph: graph.publish([("<ex:x>", "<ex:at>", "<ex:y>")]),
    "advance": lambda graph: graph.advance(20),
    "checkpoint": lambda graph: graph.checkpoint(),
    "flush": lambda graph: graph.flush(),
}
PARTS = {
    "insert later": [lambda graph: graph.advance(9)],
    "transaction": [lambda graph: graph.advance(5)],
    "apply": [
        lambda graph: graph.advance(4),
        partial(apply_until, last=4),
        lambda graph: (apply_until(graph, 4), graph.advance(5)),
        partial(apply_until, last=5),
        lambda graph: (apply_until(graph, 5), graph.advance(6)),
    ],
}
"""What a call may have done before its last transaction: moved the clock, and let windows close."""

WORLDS = {
    "a query": (),
    "windows": ("windows",),
    "rules": ("rules",),
}


def start(folder, durability, world):
    graph = gt.LiveGraph.open(folder, durability=durability)
    graph.watch(KNOWS, name="known")
    if "windows" in world:
        graph.watch(WINDOW, name="old window")
        graph.stream("<ex:s>").push([("<ex:v>", "<ex:at>", "<ex:w>")], time=1)
    if "rules" in world:
        graph.run(program(RULES), functions=FUNCTIONS, name="rules")
    graph.insert("<ex:a>", "<ex:knows>", "<ex:b>", time=2)
    graph.flush()
    graph.insert("<ex:b>", "<ex:knows>", "<ex:c>")
    return graph


def content(graph):
    """What can be seen of a graph that its store has to have."""
    return {
        "quads": {tuple(map(str, quad)) for quad in graph.quads()},
        "clock": graph.clock,
        "transactions": graph.transactions,
        "queries": {
            query.name: sorted(map(str, query.table(terms=True).to_pylist()))
            for query in graph.queries
        },
        "programs": sorted(each.name for each in graph.programs),
    }


def reopened(folder):
    """What another process finds after a crash now; what `verify` says agrees."""
    copy = folder.with_name(f"{folder.name}-copy")
    shutil.copytree(folder, copy)
    try:
        report = verify(copy, gt.LiveGraph)
        assert not report.problems, report.problems
        with gt.LiveGraph.open(copy, functions=FUNCTIONS) as graph:
            found = content(graph)
        with gt.LiveGraph.open(copy, functions=FUNCTIONS) as graph:
            assert content(graph) == found  # from its snapshot
    finally:
        shutil.rmtree(copy)
    return found


def outcomes(folder, durability, world, name):
    """What may be seen after an interrupt: all of a call or nothing, or its first transactions."""
    found = []
    for call in (lambda _: None, *PARTS.get(name, ()), CALLS[name]):
        graph = start(folder / str(len(found)), durability, world)
        call(graph)
        found.append(settled(content(graph)))
        graph.close()
    return found


def settled(found):
    """Without the clock: a call that was interrupted may have moved it."""
    return {name: each for name, each in found.items() if name not in ("clock", "transactions")}

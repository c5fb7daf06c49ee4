"""Warm-up: compile the loops once after an install, so that no first answer waits for it.

What is compiled is what small graphs of each kind need. They run in processes of their own, as many
at once as there are cores: machine code is stored on disk, and found there by all others.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np

from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable

QUERIES: Final = (
    """SELECT ?a ?c { ?a <ex:p> ?b . ?b <ex:q> ?c FILTER (?c > 1)
    FILTER NOT EXISTS { ?a <ex:r> ?c } OPTIONAL { ?c <ex:s> ?d } }""",
    "SELECT DISTINCT ?a { ?a <ex:p> ?b . ?b <ex:q> ?c } ORDER BY ?a LIMIT 3",
    "SELECT ?b (COUNT(*) AS ?n) (SUM(?c) AS ?s) { ?a <ex:p> ?b . ?b <ex:q> ?c } GROUP BY ?b",
    "SELECT ?x ?z { ?x <ex:q> ?y BIND (?y + 1 AS ?z) }",
)
PATHS: Final = (
    "SELECT ?x ?y { ?x <ex:p>+ ?y }",
    "SELECT ?y { <ex:a> <ex:p>* ?y }",
    "SELECT ?x { ?x (<ex:p>|<ex:q>)+ <ex:d> }",
)
WINDOW: Final = """REGISTER ISTREAM <ex:o> AS SELECT ?a FROM NAMED WINDOW <ex:w> ON <ex:s>
[RANGE 10 STEP 5] WHERE { WINDOW <ex:w> { ?a <ex:p> ?b . ?b <ex:q> ?c } }"""
PROGRAM: Final = """
EVENT A(?x) AS { ?x <ex:q> ?y } EVENT B(?x) AS { ?x <ex:r> ?y } EVENT C(?x) AS { ?x <ex:s> ?y }
PATTERN P(?x) AS (A(?x) -> B(?x)) WITHIN 5 CONTEXT CHRONICLE
PATTERN Q(?x) AS A(?x) -> NOT B(?x) WITHIN 5
PATTERN U(?x) AS (A(?x) -> B(?x)) WITHIN 5 CONTEXT UNRESTRICTED
RULE R WHEN FACT { ?x <ex:p> ?z } EVENT a = A(?x) EVENT b = B(?x) AFTER[0,5] a THEN CALL f(?x)
RULE S WHEN EVENT a = A(?x) NO EVENT b = B(?x) AFTER[0,5] a THEN CALL f(?x)
RULE T WHEN EVENT a = P(?x) EVENT c = C(?x) AFTER[0,9] a THEN RETRACT c ; INSERT { ?x <ex:p> ?x }
RULE V WHEN FACT { ?x <ex:p> ?z } EVENT a = A(?x) NO EVENT c = C(?x) AFTER[0,5] a THEN CALL f(?x)
"""
TOP: Final = "SELECT ?x ?y { ?x <ex:q> ?y } ORDER BY ?y LIMIT 3"
STAR: Final = "SELECT ?a ?b ?c { ?a <ex:p> ?b . ?a <ex:q> ?c }"
MANY: Final = 3000
"""Things that make every table grow that holds them."""
NUMBER: Final = '"%d"^^<http://www.w3.org/2001/XMLSchema#integer>'


def warm_up(say: Callable[[str], None]) -> None:
    """Compile all parts, as many at once as there are cores, and say how far it is."""
    begin = perf_counter()
    processes = max(1, min(len(PARTS), cpu_count() or 1))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        parts = {pool.submit(run_part, name): name for name in PARTS}
        for done, part in enumerate(as_completed(parts), 1):
            part.result()
            seconds = perf_counter() - begin
            say(f"{done} of {len(PARTS)}: {parts[part]} compiled, {seconds:.0f} s")


def run_part(name: str) -> None:
    """Compile what one kind of graph needs, or find that it is."""
    PARTS[name]()


def _search() -> None:
    _queries("search")
    graphs = LiveGraph(store="none"), LiveGraph(threads=2), LiveGraph()
    for graph in graphs:
        query = graph.watch(QUERIES[-1])
        star = graph.watch(STAR, strategy="decomposed")
        _change(graph)
        query.delta()
        star.delta()
    for name in (name for kind in "nmlk" for name in _names(kind)):  # terms that are freed again
        graph.insert(name, name, name)
        graph.delete(name, name, name)
    graph.query(STAR)


def _rete() -> None:
    _queries("rete")
    graph = LiveGraph()
    with graph.transaction() as change:
        for number in range(MANY):
            change.insert("<ex:a>", "<ex:q>", number)
    query = graph.watch(TOP)
    _change(graph)
    query.table()


def _counting() -> None:
    graph = LiveGraph()
    query = graph.watch(QUERIES[2], strategy="counting")
    _change(graph)
    query.table()


def _queries(strategy: str) -> None:
    for text in QUERIES:
        graph = LiveGraph()
        query = graph.watch(text, strategy=strategy)  # type: ignore[arg-type] # one of two
        _change(graph)
        query.table()
        query.close()
        graph.query(text)


def _paths() -> None:
    for text in PATHS:
        graph = LiveGraph()
        _change(graph)
        query = graph.watch(text)
        _change(graph)
        query.delta()


def _change(graph: LiveGraph) -> None:
    """Single changes, several at once, and deletes."""
    graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
    graph.insert("<ex:b>", "<ex:q>", 2)
    with graph.transaction() as change:
        for number in range(40):
            change.insert(f"<ex:{number}>", "<ex:p>", f"<ex:{number + 1}>")
            change.insert(f"<ex:{number}>", "<ex:q>", number)
    with graph.transaction() as change:
        change.delete("<ex:3>", "<ex:p>", "<ex:4>")
        change.delete("<ex:b>", "<ex:q>", 2)


def _windows() -> None:
    graph = LiveGraph()
    graph.watch(WINDOW)
    _push(graph)


def _rules() -> None:
    graph = LiveGraph()
    graph.insert("<ex:a>", "<ex:p>", "<ex:b>")
    graph.run(Program.parse(PROGRAM), functions={"f": lambda _: None})
    _push(graph)
    rows = np.zeros((MANY, 4), np.int32)
    for number, name in enumerate("pqq"):  # facts, then events that wait for others, and expire
        rows[:, 0] = graph.terms.encode_column(_names("x"))
        rows[:, 1:3] = graph.terms.encode(f"<ex:{name}>"), graph.terms.encode("<ex:b>")
        if number:
            graph.stream("<ex:s>").push_ids(np.full(MANY, 60 + 20 * number), rows)
        else:
            graph.apply_ids(*rows[:, :3].T)
    graph.advance(200)


def _names(kind: str) -> list[str]:
    return [f"<ex:{kind}{number}>" for number in range(MANY)]


def _push(graph: LiveGraph) -> None:
    """Events one by one, and as arrays."""
    stream, names = graph.stream("<ex:s>"), ("p", "q", "r", "s", "q", "q")
    for time, name in enumerate(names):
        stream.push([("<ex:a>", f"<ex:{name}>", "<ex:b>")], time=time)
    encode = graph.terms.encode
    rows = [(encode("<ex:a>"), encode(f"<ex:{n}>"), encode("<ex:b>"), 0) for n in names]
    stream.push_ids(np.arange(10, 10 + len(rows)), np.array(rows, np.int32))
    graph.advance(60)


def _files() -> None:
    with TemporaryDirectory(prefix="graphtide-warm-") as folder:
        lines = Path(folder) / "data.nt"
        lines.write_text(f"<ex:a> <ex:p> {NUMBER % 1} .\n<ex:b> <ex:p> _:c .\n", encoding="utf-8")
        graph = LiveGraph()
        patch = Path(folder) / "changes.rdfp"
        patch.write_text("TX .\nA <ex:a> <ex:p> <ex:b> .\nTC .\n", encoding="utf-8")
        graph = LiveGraph()
        query = graph.watch("SELECT * { ?a <ex:p> ?b }")
        graph.apply(str(lines))
        graph.apply(str(patch))
        query.table(terms=True)


PARTS: Final[dict[str, Callable[[], None]]] = {
    "search": _search,
    "joins and groups": _rete,
    "counts of joins": _counting,
    "paths": _paths,
    "rules and patterns": _rules,
    "windows": _windows,
    "files": _files,
}
"""What is compiled, by name; those that take longest are first."""

"""Rules on cells: the firings of one process, whatever the cells, cuts and faults.

Spark itself is in `test_in_spark`; here are its stages without it.
"""

from __future__ import annotations

from random import Random

import pytest
from spark.exact.window_streams import on_cells as windows_on_cells
from spark.exact.window_streams import windowed
from spark.react.harness import (
    PREFIX,
    change,
    event,
    fired,
    fired_on_cells,
    in_process,
    iri,
    mark,
    on_cells,
)

from graphtide.spark import cell_engine, rule_cell

EVENTS = """
QUERY Hot AS SELECT ?x ?y { ?x :p ?y . ?y :q ?z }
EVENT A(?x, ?y) AS { ?x :a ?y }
EVENT B(?x, ?y) AS { ?x :b ?y }
EVENT C(?x) AS { ?x :a ?y ; :b ?y }
EVENT Big(?x, ?y) AS { ?x :a ?y } CHECK (?y != :u1)
EVENT Up(?x) ON APPEAR OF Hot(?x)
EVENT Down(?x, ?y) ON DISAPPEAR OF Hot(?x, ?y)
EVENT Other(?x) ON UPDATE OF Hot(?x)
EVENT Turn(?x, ?y) ON CHANGE OF ?x FROM { ?x :p ?y } TO { ?x :q ?y }
"""
RULES = {
    "a pair": "WHEN EVENT a = A(?x, ?y) EVENT b = B(?x, ?z) AFTER[1,4] a",
    "a pair in any order": "WHEN EVENT a = A(?x, ?y) EVENT b = B(?y, ?x) AFTER[-3,3] a",
    "no common variable": "WHEN EVENT a = A(?x, ?y) EVENT b = B(?y, ?z) AFTER[0,4] a "
    "EVENT c = C(?z) AFTER[0,3] b",
    "one type twice": "WHEN EVENT a = A(?x, ?y) EVENT b = A(?y, ?x) AFTER[0,6] a",
    "with facts": "WHEN FACT { ?x :p ?f } EVENT a = A(?x, ?y) EVENT b = B(?x, ?z) AFTER[0,6] a",
    "with facts of a join": "WHEN FACT { ?x :p ?f . ?f :q ?g } EVENT a = A(?x, ?y)",
    "none after": "WHEN EVENT a = A(?x, ?y) NO EVENT b = B(?x, ?z) AFTER[0,5] a",
    "none after, with facts": "WHEN FACT { ?x :p ?f } EVENT a = A(?x, ?y) "
    "NO EVENT b = B(?x, ?z) AFTER[0,5] a",
    "none before": "WHEN EVENT a = A(?x, ?y) NO EVENT b = B(?x, ?z) BEFORE[0,5] a",
    "for ever": "WHEN EVENT a = A(?x, ?y) EVENT b = B(?x, ?y) AFTER[0,*] a",
    "rows and events": "WHEN EVENT u = Up(?x) EVENT a = A(?x, ?y) AFTER[0,5] u",
    "rows that go": "WHEN FACT { ?x :q ?f } EVENT d = Down(?x, ?y) EVENT Up(?x) AFTER[0,9] d",
    "states": "WHEN EVENT t = Turn(?x, ?y) NO EVENT Big(?x, ?z) AFTER[0,3] t",
    "rows that stay": "WHEN EVENT o = Other(?x) EVENT a = A(?x, ?y) AFTER[-2,2] o",
    "values": "WHEN EVENT a = A(?x, ?y) EVENT b = B(?x, ?z) AFTER[0,5] a WHERE FILTER (?y != ?z)",
}


NODES = ("u0", "u1", "u2", "u3")


def program(*names):
    rules = (f"RULE R{at} {RULES[name]} THEN CALL f(?x)\n" for at, name in enumerate(names))
    return PREFIX + EVENTS + "".join(rules)


def random_rows(rng, many):
    """Transactions of the graph, of a stream, or of both."""
    rows, time = [], 0
    for tx in range(many):
        time += rng.choice((0, 0, 1, 1, 2, 5))
        kind = rng.random()
        if kind < 0.6:
            for _ in range(rng.randint(1, 3)):
                diff = rng.choice((1, 1, -1))
                s, o = rng.choice(NODES), rng.choice(NODES)
                rows.append(change(time, tx, diff, s, rng.choice("pq"), o))
        if kind > 0.4:
            for stream in rng.sample("st", rng.choice((1, 1, 2))):
                triples = [
                    (
                        iri(f"u{rng.randrange(4)}"),
                        iri(rng.choice("ab")),
                        iri(f"u{rng.randrange(4)}"),
                    )
                    for _ in range(rng.randint(1, 2))
                ]
                rows += event(time, tx, *triples, stream=stream)
    return rows, time


@pytest.mark.parametrize("shape", RULES)
def test_as_in_one_process(shape, monkeypatch):
    rng = Random(shape)
    names = (shape, rng.choice(list(RULES)))
    monkeypatch.setattr(rule_cell, "SMALL_LOG", rng.choice((0, 5, 1000)))
    monkeypatch.setattr(cell_engine, "SMALL_LOG", rng.choice((0, 1000)))
    rows, last = random_rows(rng, 40)
    end = last + rng.choice((0, 3, 30))
    text = program(*names)
    expected = fired(in_process(text, rows, end))
    for cells in rng.sample((1, 2, 4), 2):
        running = on_cells(text, [*rows, mark(end)], cells, rng)
        assert fired_on_cells(running) == expected, (text, cells)
        assert running.rejects == []


def test_beside_a_query_over_windows():
    """The same reports as without rules, and the same firings as without windows."""
    window = windowed("ISTREAM", "WINDOW :w { ?a :a ?b } ?b :p ?c")
    text = program("none after, with facts", "rows and events")
    both = text.replace("QUERY Hot", f"QUERY W AS {window.removeprefix(PREFIX.strip())}\nQUERY Hot")
    for seed in range(3):
        rng = Random(seed)
        rows, last = random_rows(rng, 40)
        end = last + 20
        expected, _ = windows_on_cells({"W": window}, [*rows, mark(end)], 2, rng)
        running = on_cells(both, [*rows, mark(end)], 2, rng)
        reports = [row for row in running.deltas if row[0] == "W" and row[3] > 0]
        assert {(*row[:3], row[4]): row[3] for row in reports} == expected and expected
        assert fired_on_cells(running) == fired(in_process(text, rows, end))

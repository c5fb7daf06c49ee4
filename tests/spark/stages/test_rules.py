"""Rules on partitions: the firings of one process, whatever the cuts and faults.

Spark itself is in `test_in_spark`; here are its stages without it.
"""

from __future__ import annotations

from random import Random

import pytest
from spark.stages.program_runs import (
    PREFIX,
    change,
    event,
    fired,
    fired_on_partitions,
    in_process,
    iri,
    on_partitions,
    watermark,
)
from spark.stages.window_streams import on_partitions as windows_on_partitions
from spark.stages.window_streams import windowed

from graphtide.spark.state import cache

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
    monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
    rows, last = random_rows(rng, 40)
    end = last + rng.choice((0, 3, 30))
    text = program(*names)
    expected = fired(in_process(text, rows, end))
    for partitions in rng.sample((1, 2, 4), 2):
        running = on_partitions(text, [*rows, watermark(end)], partitions, rng)
        assert fired_on_partitions(running) == expected, (text, partitions)
        assert running.rejected == []


def test_beside_a_query_over_windows():
    """The same reports as without rules, and the same firings as without windows."""
    window = windowed("ISTREAM", "WINDOW :w { ?a :a ?b } ?b :p ?c")
    text = program("none after, with facts", "rows and events")
    both = text.replace("QUERY Hot", f"QUERY W AS {window.removeprefix(PREFIX.strip())}\nQUERY Hot")
    for seed in range(3):
        rng = Random(seed)
        rows, last = random_rows(rng, 40)
        end = last + 20
        expected, _ = windows_on_partitions({"W": window}, [*rows, watermark(end)], 2, rng)
        running = on_partitions(both, [*rows, watermark(end)], 2, rng)
        reports = [row for row in running.deltas if row[0] == "W" and row[3] > 0]
        assert {(*row[:3], row[4]): row[3] for row in reports} == expected and expected
        assert fired_on_partitions(running) == fired(in_process(text, rows, end))


def test_rows_of_no_quad_are_facts_from_the_start_and_no_events():
    text = (
        PREFIX
        + """
QUERY Hot AS SELECT ?x { { VALUES ?x { :u0 :u1 } } UNION { ?x :p ?y } }
EVENT Up(?x) ON APPEAR OF Hot(?x)
EVENT A(?x) AS { ?x :a ?y }
RULE R WHEN EVENT u = Up(?x) THEN CALL f(?x)
RULE S WHEN FACT { VALUES ?x { :u0 :u1 } } EVENT a = A(?x) THEN CALL f(?x)
"""
    )
    rows = [change(3, 0, 1, "u2", "p", "u3"), *event(4, 1, (iri("u0"), iri("a"), iri("u1")))]
    alone = fired(in_process(text, rows, 9))
    assert {rule for rule, *_ in alone} == {"R", "S"}
    for partitions in (1, 2, 4):
        running = on_partitions(text, [*rows, watermark(9)], partitions, Random(partitions))
        assert fired_on_partitions(running) == alone

"""Events, rules and patterns for programs on partitions, and random rows for them."""

from __future__ import annotations

from collections import Counter

from spark.stages.program_runs import change, event, iri

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


PATTERNS = {
    "one after the other": "(?x) AS (A(?x, ?y) -> B(?x, ?z)) WITHIN 6s",
    "no end": "(?x, ?y) AS A(?x, ?y) -> B(?x, ?y)",
    "nothing shared": "(?x, ?z) AS (A(?x, ?y) -> B(?y, ?z)) WITHIN 9s",
    "absence": "(?x, ?y) AS A(?x, ?y) -> NOT B(?x, _) WITHIN 4s",
    "absence between": "(?x) AS A(?x, ?y) -> NOT C(?x) -> B(?x, ?z)",
    "either, or both": "(?x) AS ((A(?x, _) OR C(?x)) -> (A(?x, _) AND B(?x, _))) WITHIN 20s",
    "at the same time": "(?x) AS ALL(A(?x, _) -> C(?x), B(?x, _))",
    "again and again": "(?x) AS (A(?x, _){3}) WITHIN 15s",
    "it lasts": "(?x) AS (A(?x, _) -> B(?x, _)) HOLDS FOR 2s",
    "immediate": "(?x) AS A(?x, _) -> B(?x, _) CONTEXT IMMEDIATE",
    "strict per value": "(?x) AS A(?x, _){+} -> B(?x, _) CONTEXT STRICT PER ?x",
    "strict": "(?x) AS A(?x, _){2} -> B(?y, _) CONTEXT STRICT",
    "a gap in immediate": "(?x) AS A(?x, _) -> NOT C(?x) -> B(?x, _) CONTEXT IMMEDIATE",
    "absence in strict": "(?x, ?y) AS A(?x, ?y) -> NOT B(?x, _) WITHIN 4s CONTEXT STRICT",
    "a gap per value": "(?x) AS A(?x, _) -> NOT C(?x) -> B(?x, _) CONTEXT IMMEDIATE PER ?x",
    "a constant": "(?y) AS A(:u1, ?y) -> B(:u1, ?y)",
    "rows that come and go": "(?x) AS (Up(?x) -> A(?x, _)) WITHIN 9s",
    "every combination": "(?x, ?y) AS (A(?x, ?y) -> B(?x, _)) WITHIN 6s CONTEXT UNRESTRICTED",
    "skip per value": "(?x) AS (A(?x, _) -> B(?x, _)) WITHIN 6s CONTEXT UNRESTRICTED "
    "SKIP PAST LAST PER ?x",
    "skip": "(?x, ?y) AS (A(?x, _) -> B(?y, _)) WITHIN 6s CONTEXT UNRESTRICTED SKIP TO NEXT",
    "in every stream": "(?x, ?y) AS (A(?x, ?y) -> C(?y) -> B(?x, ?y)) WITHIN 20s "
    "CONTEXT CHRONICLE PER ?x",
    "a condition": "(?x) AS (A(?x, _) -> B(?x, _){1,2} AS b WHERE (?b.y != ?A.y) -> C(?x)) "
    "WITHIN 20s",
    "a greedy loop": "(?x) AS A(?x, _){+} GREEDY -> NOT A(?x, _) WITHIN 3s",
    "one that may be missing": "(?x) AS (A(?x, _) -> C(?x)? -> B(?x, _)) WITHIN 9s",
    "two to three, greedy": "(?x) AS (A(?x, _){2,3} GREEDY -> B(?x, _)) WITHIN 20s",
    "rising": "(?x) AS (A(?x, _) -> B(?x, _){2,} AS b WHERE STR(?b.y) > STR(PREV(?b.y)) "
    "-> A(?x, _)) WITHIN 30s CONTEXT UNRESTRICTED NO SKIP",
    "composite absence": "(?x) AS A(?x, _) -> NOT (B(?x, _) -> C(?x)) -> A(?x, :u2)",
}  # fmt: skip


def found_in(running, many):
    return Counter(
        (f"P{at}", each.time, tuple(str(v) for v in each.values.values()))
        for at in range(many)
        for each in running.matches(f"P{at}")
    )

"""A run of many small queries over one stream of changes; prints every delta as JSON lines.

Run as a script, with or without `GRAPHTIDE_NO_JIT=1`: the printed lines must be the same.
"""

from __future__ import annotations

import json
import random
import sys

from graphtide import LiveGraph
from graphtide.kernel import JIT

PREFIX = "PREFIX : <http://example.org/> "
QUERIES = {
    "one pattern": "SELECT * { ?a :knows ?b }",
    "paths": "SELECT ?a ?c { ?a :knows ?b . ?b :knows ?c }",
    "triangles": "SELECT * { ?a :knows ?b . ?b :knows ?c . ?c :knows ?a }",
    "comparison": "SELECT * { ?a :age ?n FILTER(?n > 3 && ?n != 5) }",
    "function": "SELECT * { ?a :age ?n BIND(CONCAT(STR(?n), '!') AS ?t) FILTER(?t > '3') }",
    "optional": "SELECT * { ?a :knows ?b OPTIONAL { ?b :age ?n } }",
    "union": "SELECT ?a { { ?a :knows ?b } UNION { ?b :likes ?a } }",
    "minus": "SELECT * { ?a :knows ?b MINUS { ?b :likes ?a } }",
    "not exists": "SELECT * { ?a :knows ?b FILTER NOT EXISTS { ?b :knows ?x . ?x :likes ?a } }",
    "exists": "SELECT ?a { ?a :age ?n FILTER EXISTS { ?a ?p ?c . ?c :age ?n } }",
    "values": "SELECT * { VALUES ?a { :n1 :n2 :n3 } ?a ?p ?b }",
    "graph": "SELECT * { GRAPH ?g { ?a :knows ?b } ?b :age ?n }",
    "distinct": "SELECT DISTINCT ?b { ?a ?p ?b . ?b ?q ?c }",
}


def node(number: int) -> str:
    return f"<http://example.org/n{number}>"


def change(rng: random.Random) -> tuple[str, ...]:
    predicate = rng.choice(["knows", "knows", "likes", "age"])
    target = str(rng.randint(1, 6)) if predicate == "age" else None
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    o = f'"{target}"^^{integer}' if target else node(rng.randint(1, 6))
    quad = (node(rng.randint(1, 6)), f"<http://example.org/{predicate}>", o)
    return (*quad, "<http://example.org/g>") if rng.random() < 0.2 else quad


def main() -> None:
    rng = random.Random(20)
    graph = LiveGraph()
    watches, present = [], []
    for step in range(60):
        if step % 20 == 0:  # a third of the queries comes with each twenty transactions
            for number, (name, text) in enumerate(QUERIES.items()):
                if number % 3 == step // 20:
                    for strategy in ("rete", "search"):
                        label = f"{name}/{strategy}"
                        watches.append(graph.watch(PREFIX + text, strategy=strategy, name=label))
        with graph.transaction(time=step) as tx:
            for _ in range(rng.randint(1, 4)):
                if present and rng.random() < 0.4:
                    tx.delete(*present.pop(rng.randrange(len(present))))
                else:
                    present.append(change(rng))
                    tx.insert(*present[-1])
    for watch in watches:
        lines = [
            [row.time, row.tx, row.diff, {k: t and str(t) for k, t in row.row.items()}]
            for row in watch.rows()
        ]
        print(json.dumps([watch.name, sorted(lines, key=json.dumps), watch.count()]))
    stats = graph.stats()
    print(json.dumps([stats.quads, stats.inserted, stats.deleted, stats.redundant]))
    print(json.dumps({"compiled": JIT, "numba": "numba" in sys.modules}))


if __name__ == "__main__":
    main()

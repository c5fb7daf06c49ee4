"""Shapes of queries, and streams of random transactions that reach all of them."""

from __future__ import annotations

from random import Random

SHAPES = {
    "star": "?a ?b ?c { ?a :p ?b . ?a :q ?c . ?a :r ?d }",
    "chain": "* { ?a :p ?b . ?b :q ?c . ?c :r ?d . ?d :p ?e }",
    "triangle": "* { ?a :p ?b . ?b :p ?c . ?c :p ?a }",
    "four-cycle": "* { ?a :p ?b . ?b :q ?c . ?c :p ?d . ?d :q ?a }",
    "two stars": "* { ?a :p ?b . ?a :q ?b . ?b :r ?c . ?b :p ?c }",
    "cross product": "* { ?a :p ?b . ?c :r ?d }",
    "self loop": "* { ?a :p ?a }",
    "predicate variable": "* { ?a ?p ?b . ?b ?p ?c }",
    "optional": "* { ?a :p ?b OPTIONAL { ?b :q ?c } }",
    "optional, nested": "* { ?a :p ?b OPTIONAL { ?b :q ?c OPTIONAL { ?c :r ?d } } }",
    "optional, nested, joined past": (
        "* { ?a :p ?b OPTIONAL { ?b :q ?c OPTIONAL { ?c :r ?d . ?a :r ?d } } }"
    ),
    "optional, right only": "* { ?a :p ?b OPTIONAL { ?c :q ?d } }",
    "optional, then joined": "* { ?a :p ?b OPTIONAL { ?b :q ?c } ?c :r ?d }",
    "two optionals, one variable": (
        "* { ?a :p ?b OPTIONAL { ?b :q ?c } OPTIONAL { ?a :r ?c } }"
    ),
    "optional with condition": "* { ?a :p ?b OPTIONAL { ?b :q ?c FILTER(?a != ?c) } }",
    "optional with exists": (
        "* { ?a :p ?b OPTIONAL { ?b :q ?c FILTER EXISTS { ?c :r ?a } } }"
    ),
    "minus": "* { ?a :p ?b MINUS { ?b :q ?c } }",
    "minus, nothing shared": "* { ?a :p ?b MINUS { ?c :q ?d } }",
    "minus, both shared": "* { ?a :p ?b . ?b :q ?c MINUS { ?a :r ?c } }",
    "minus of optional": "* { ?a :p ?b MINUS { ?a :q ?c OPTIONAL { ?c :r ?b } } }",
    "minus in minus": "* { ?a :p ?b MINUS { ?a :q ?c MINUS { ?c :r ?a } } }",
    "union": "* { { ?a :p ?b } UNION { ?a :q ?b } }",
    "union, other variables": "* { { ?a :p ?b } UNION { ?c :q ?d } }",
    "union, one shared": "* { { ?a :p ?b } UNION { ?a :q ?c } ?a :r ?d }",
    "union in optional": "* { ?a :p ?b OPTIONAL { { ?b :q ?c } UNION { ?b :r ?d } } }",
    "exists": "* { ?a :p ?b FILTER EXISTS { ?b :q ?c } }",
    "exists with a range": (
        "* { ?a :p ?b FILTER EXISTS"
        " { ?b :q ?c { SELECT ?a ?c { ?a :r ?c } ORDER BY ?c LIMIT 1 } } }"
    ),
    "exists with a group": (
        "* { ?a :p ?b FILTER EXISTS"
        " { SELECT ?a { ?a :q ?c OPTIONAL { ?c :r ?a } } GROUP BY ?a HAVING(COUNT(*) > 1) } }"
    ),
    "exists, nothing shared": "* { ?a :p ?b FILTER EXISTS { ?c :q ?d } }",
    "not exists": "* { ?a :p ?b FILTER NOT EXISTS { ?b :q ?c . ?c :r ?a } }",
    "not exists, correlated": (
        "* { ?a :p ?b . ?a :q ?d FILTER NOT EXISTS { ?a :r ?c FILTER(?c = ?d) } }"
    ),
    "not exists in exists": (
        "* { ?a :p ?b FILTER EXISTS { ?b :q ?c FILTER NOT EXISTS { ?c :r ?a } } }"
    ),
    "exists or": "* { ?a :p ?b FILTER(?a = :n1 || NOT EXISTS { ?b :q ?c }) }",
    "exists, a name from elsewhere": (
        "* { ?c :r ?d { ?a :p ?b FILTER NOT EXISTS { ?b :q ?c } } }"
    ),
    "union, then minus": "* { { ?a :p ?b } UNION { ?a :q ?c } MINUS { ?a :r ?c } }",
    "union, then optional": "* { { ?a :p ?b } UNION { ?a :q ?c } OPTIONAL { ?a :r ?c } }",
    "exists in bind": "* { ?a :p ?b BIND(EXISTS { ?b :q ?c } AS ?x) }",
    "values": "* { ?a :p ?b VALUES ?b { :n1 :n2 } }",
    "values, undef": "* { VALUES (?a ?c) { (:n1 UNDEF) (UNDEF :n2) } ?a :p ?b . ?b :q ?c }",
    "values left alone": "* { VALUES ?x { 1 2 } OPTIONAL { ?a :p ?b } }",
    "bind": "?a ?x { ?a :p ?b BIND(STR(?b) AS ?x) }",
    "bind joined": "* { ?a :p ?b BIND(?b AS ?c) { ?c :q ?d } }",
    "select expression": "(STRLEN(STR(?b)) AS ?n) { ?a :p ?b . ?b :q ?c }",
    "graph": "* { GRAPH ?g { ?a :p ?b . ?b :q ?c } }",
    "graph, joined outside": "* { GRAPH ?g { ?a :p ?b } ?a :q ?c }",
    "graph, minus": "* { GRAPH ?g { ?a :p ?b MINUS { ?a :q ?c } } }",
    "graph names": "?g { GRAPH ?g {} }",
    "graph, not exists": "* { GRAPH ?g { ?a :p ?b } FILTER NOT EXISTS { GRAPH ?g { ?b :q ?a } } }",
    "two graphs": "* { GRAPH ?g { ?a :p ?b } GRAPH ?h { ?b :p ?a } }",
    "constant graph": "* { GRAPH :g1 { ?a :p ?b } OPTIONAL { ?b :q ?c } }",
    "distinct": "DISTINCT ?a ?b { ?a :p ?b . ?b :q ?c }",
    "distinct, hidden": "DISTINCT ?c { ?a :p ?b OPTIONAL { ?b :q ?c } }",
    "distinct, expression": "DISTINCT (STRLEN(STR(?b)) AS ?n) { ?a :p ?b . ?b :q ?c }",
    "hidden": "?c { ?a :p ?b OPTIONAL { ?b :q ?c } }",
    "hidden in a chain": "?a ?d { ?a :p ?b . ?b :q ?c . ?c :r ?d }",
    "never bound": "?nowhere ?a { ?a :p ?b }",
    "no variables": "* { :n1 :p :n2 }",
    "no variables, negated": "* { :n1 :p :n2 FILTER NOT EXISTS { :n0 :q :n0 } }",
    "blank nodes": "?a { ?a :p _:x . _:x :q ?c }",
    "constants": "?b { :n1 :p ?b . ?b :q :n2 }",
    "no quads": "* { VALUES (?x ?y) { (1 2) (3 UNDEF) } BIND(?x + 1 AS ?z) }",
    "empty group": "* {}",
    "empty group, hidden": "DISTINCT ?x {}",
    "constant until": "* { VALUES ?x { 1 } FILTER NOT EXISTS { ?a :p ?b } }",
    "count": "(COUNT(*) AS ?n) { ?a :p ?b }",
    "count, nothing bound": "(COUNT(?z) AS ?n) { ?a :p ?b . ?b :q ?c }",
    "group": "?a (COUNT(*) AS ?n) (MAX(?b) AS ?m) { ?a :p ?b } GROUP BY ?a",
    "group of a join": "?a (COUNT(DISTINCT ?c) AS ?n) { ?a :p ?b . ?b :q ?c } GROUP BY ?a",
    "group, key hidden": "(COUNT(*) AS ?n) { ?a :p ?b . ?b :q ?c } GROUP BY ?b",
    "group, two keys": "?a ?c (SAMPLE(?b) AS ?s) { ?a :p ?b OPTIONAL { ?b :q ?c } } GROUP BY ?a ?c",
    "group by an expression": "?s (COUNT(*) AS ?n) { ?a :p ?b } GROUP BY (STR(?a) AS ?s)",
    "having": "?a { ?a :p ?b } GROUP BY ?a HAVING(COUNT(*) > 1)",
    "group joined": "* { ?a :r ?d { SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b } GROUP BY ?a } }",
    "group, optional": (
        "* { ?a :r ?d OPTIONAL { SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b } GROUP BY ?a } }"
    ),
    "group, minus": (
        "* { ?a :r ?d MINUS { SELECT ?a { ?a :p ?b } GROUP BY ?a HAVING(COUNT(*) > 1) } }"
    ),
    "count joined": "* { ?a :r ?d { SELECT (COUNT(*) AS ?n) { ?b :p ?c } } FILTER(?n > 1) }",
    "group of a group": (
        "?n (COUNT(*) AS ?m) { SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b } GROUP BY ?a } GROUP BY ?n"
    ),
    "top": "?a ?b { ?a :p ?b } ORDER BY ?b ?a LIMIT 2",
    "top, offset": "?a ?b { ?a :p ?b . ?b :q ?c } ORDER BY DESC(?c) LIMIT 2 OFFSET 1",
    "top, distinct": "DISTINCT ?a { ?a :p ?b } ORDER BY DESC(?a) LIMIT 1",
    "top joined": "* { ?a :q ?c { SELECT ?a ?b { ?a :p ?b } ORDER BY ?b LIMIT 2 } }",
    "top minus": "* { ?a :q ?c MINUS { SELECT ?a { ?a :p ?b } ORDER BY ?a LIMIT 1 } }",
    "top of a group": (
        "?a (COUNT(*) AS ?n) { ?a :p ?b } GROUP BY ?a ORDER BY DESC(?n) ?a LIMIT 1"
    ),
    "top in each graph": "* { GRAPH ?g { SELECT ?a ?b { ?a :p ?b } ORDER BY ?a ?b LIMIT 1 } }",
    "count in each graph": "* { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?a :p ?b } } }",
    "path": "* { ?a :p+ ?b }",
    "path, still": "* { ?a :p* ?b }",
    "path, perhaps": "* { ?a :p? ?b . ?b :q ?c }",
    "path from a constant": "* { :n1 :p* ?b }",
    "path to a constant": "* { ?a (:p/:q)* :n2 }",
    "path to itself": "* { ?a :p+ ?a }",
    "path joined": "* { ?a :p+ ?b . ?b :q ?c }",
    "path, sequence": "* { ?a :p/^:q ?b . ?a :r ?c }",
    "path, alternative": "* { ?a :p|:q ?b }",
    "path, closed alternative": "* { ?a (:p|^:q)+ ?b . ?a :r ?c }",
    "path, negated": "* { ?a !(:p|^:q) ?b }",
    "path, optional": "* { ?a :q ?b OPTIONAL { ?b :p+ ?c } }",
    "path, minus": "* { ?a :q ?b MINUS { ?b :p+ ?a } }",
    "path, not exists": "* { ?a :q ?b FILTER NOT EXISTS { ?b :p* ?a } }",
    "path in a graph": "* { GRAPH :g1 { ?a :p+ ?b } }",
    "path in each graph": "* { GRAPH ?g { ?a :p+ ?b } }",
    "path, still, in each graph": "* { GRAPH ?g { :n1 :p* ?b } }",
    "path between constants, in each graph": "* { GRAPH ?g { :n1 :p* :n1 } }",
    "path from a constant, joined": "* { :n1 :p* ?b . ?b :q ?c }",
    "path to a constant, joined": "* { ?a (:p|^:q)+ :n2 . ?a :r ?c . ?c :q ?d }",
    "path between constants, joined": "* { :n1 :p+ :n2 . ?a :q ?b . ?b :r ?c }",
    "path from a constant, joined in each graph": "* { GRAPH ?g { :n1 :p* ?b } ?b :q ?c }",
    "paths from constants": "* { :n1 :p+ ?b . :n2 :q+ ?b . ?b :r ?c FILTER (?b != :n0) }",
    "path from a constant, optional": "* { ?a :q ?b OPTIONAL { :n1 :p+ ?a . ?a :r ?c } }",
    "path, counted": "?a (COUNT(*) AS ?n) { ?a :p+ ?b . ?a :q ?c } GROUP BY ?a",
    "from": "* FROM :g1 { ?a :p ?b . ?b :q ?c }",
    "from two": "* FROM :g1 FROM :g2 { ?a :p ?b . ?b :q ?c }",
    "from two, path": "* FROM :g1 FROM :g2 { ?a :p+ ?b }",
    "from two, counted": "?a (COUNT(*) AS ?n) FROM :g1 FROM :g2 { ?a :p ?b } GROUP BY ?a",
    "from named": "* FROM :g1 FROM NAMED :g2 { ?a :p ?b GRAPH ?g { ?b :q ?c } }",
    "from named, names": "* FROM NAMED :g2 { GRAPH ?g { } }",
    "sub-select": "* { ?a :p ?b { SELECT DISTINCT ?b { ?b :q ?c } } }",
    "reduced": "REDUCED ?a { ?a :p ?b }",
    "ask": "ASK { ?a :p ?b . ?b :q ?c }",
    "ask, not": "ASK { FILTER NOT EXISTS { ?a :p ?b } }",
    "construct": "CONSTRUCT { ?a :r ?c . ?c :r ?b } { ?a :p ?b . ?b :q ?c }",
    "construct, blank nodes": "CONSTRUCT { ?a :r _:x . _:x :r ?c } { ?a :p ?b . ?b :q ?c }",
    "describe": "DESCRIBE ?a { ?a :p ?b . ?b :q ?c }",
    "describe a constant": "DESCRIBE :n1",
}  # fmt: skip


def query(shape):
    text = SHAPES[shape]
    form = "" if text.startswith(("ASK", "CONSTRUCT", "DESCRIBE")) else "SELECT "
    return f"PREFIX : <http://e/> {form}{text}"


def stream(seed, transactions=10):
    """Few nodes, so that all of them are joined; transactions that take back what they just did."""
    rng = Random(seed)
    rows, time = [], 0
    for tx in range(transactions):
        time += rng.choice((0, 0, 1, 5))
        for _ in range(rng.choice((1, 2, 4, 12))):
            s, o = (f"<http://e/n{rng.randrange(3)}>" for _ in range(2))
            p = f"<http://e/{rng.choice('pqr')}>"
            g = rng.choice((None, None, "<http://e/g1>", "<http://e/g2>"))
            rows.append((time, tx, rng.choice((1, 1, 1, -1)), s, p, o, g))
    return rows

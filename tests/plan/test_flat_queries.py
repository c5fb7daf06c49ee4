"""Flat queries of any length: operators, lists, groups and paths in a row, as generators write.

The long ones have answers that can be worked out by hand; the random ones are compared with
pyoxigraph, and their deltas with evaluation from scratch.
"""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store
from support.sampling import slow

from graphtide import LiveGraph
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.explain import explain_logical

PREFIX = "PREFIX : <http://example.org/> "
LONG = 1100
"""More operands than Python's stack has calls."""


def iri(name: object) -> NamedNode:
    return NamedNode(f"http://example.org/{name}")


def row(sep: str, item: str, n: int) -> str:
    """`item` for each number below n, with `#` replaced by it."""
    return sep.join(item.replace("#", str(i)) for i in range(n))


def signs(first: str, second: str, n: int) -> str:
    return " ".join(f"{first if i % 2 else second} 2" for i in range(n))


def counting_up(n: int) -> str:
    return " ".join(f"BIND(?v{i} + 1 AS ?v{i + 1})" for i in range(n))


# Each query is asked of numbers ?o with a subject ?s; the answer for a number is None, or ?x.
QUERIES = {
    "||": (lambda n: f"FILTER({row(' || ', '?o = #', n)}) BIND(?o AS ?x)", lambda o, n: o),
    "&&": (
        lambda n: f"FILTER({row(' && ', '?o != 1#', n)}) BIND(?o AS ?x)",
        lambda o, n: None if str(o)[0] == "1" and len(str(o)) > 1 else o,
    ),
    "|| with errors": (
        lambda n: f"FILTER({row(' || ', '?none = #', n)} || ?o = 1) BIND(?o AS ?x)",
        lambda o, n: o if o == 1 else None,
    ),
    "+": (lambda n: f"BIND({row(' + ', '?o', n)} AS ?x)", lambda o, n: n * o),
    "+ compared": (
        lambda n: f"FILTER({row(' + ', '?o', n)} > {n}) BIND(?o AS ?x)",
        lambda o, n: o if o > 1 else None,
    ),
    "+ and -": (lambda n: f"BIND(?o {signs('+', '-', n)} AS ?x)", lambda o, n: o - 2 * (n % 2)),
    "*": (lambda n: f"BIND({row(' * ', '?o', n)} AS ?x)", lambda o, n: o**n),
    "* and /": (
        lambda n: f"BIND(xsd:integer(?o {signs('/', '*', n)}) AS ?x)",
        lambda o, n: o * 2 ** (n % 2),
    ),
    "IN": (lambda n: f"FILTER(?o IN ({row(', ', '#', n)})) BIND(?o AS ?x)", lambda o, n: o),
    "FILTER": (
        lambda n: f"BIND(?o AS ?x) {row(' ', 'FILTER(?o != 1#)', n)}",
        lambda o, n: None if str(o)[0] == "1" and len(str(o)) > 1 else o,
    ),
    "VALUES": (lambda n: f"VALUES ?x {{ {row(' ', '#', n)} }} FILTER(?x = ?o)", lambda o, n: o),
    "BIND": (
        lambda n: f"BIND(?o AS ?v0) {counting_up(n - 1)} BIND(?v{n - 1} AS ?x)",
        lambda o, n: o + n - 1,
    ),
    "UNION": (
        lambda n: f"{{ BIND(0 AS ?x) }} UNION {row(' UNION ', '{ ?s :none# ?x }', n)}",
        lambda o, n: 0,
    ),
    "OPTIONAL": (
        lambda n: row(" ", "OPTIONAL { ?s :none# ?x }", n) + " OPTIONAL { ?s :p ?x }",
        lambda o, n: o,
    ),
    "MINUS": (
        lambda n: "BIND(?o AS ?x) " + row(" ", "MINUS { ?s :none# ?y }", n),
        lambda o, n: o,
    ),
    "groups": (lambda n: row(" ", "{ ?s :p ?x }", n), lambda o, n: o),
    "NOT EXISTS": (
        lambda n: "BIND(?o AS ?x) " + row(" ", "FILTER NOT EXISTS { ?s :none# ?y }", n),
        lambda o, n: o,
    ),
    "|": (lambda n: f"?s ({row('|', ':none#', n)}|:p) ?x", lambda o, n: o),
    "(…|…)+": (lambda n: f"?s ({row('|', ':none#', n)}|:p)+ ?x", lambda o, n: o),
    "/": (lambda n: f"?s :p/{row('/', '^:p/:p', n // 2)} ?x", lambda o, n: o),
    "triple patterns": (lambda n: row(" . ", "?s :p ?v#", n) + " . ?s :p ?x", lambda o, n: o),
    "CONCAT": (
        lambda n: f"BIND(STRLEN(CONCAT({row(', ', 'STR(?o)', n)})) AS ?x)",
        lambda o, n: n * len(str(o)),
    ),
    "COALESCE": (lambda n: f"BIND(COALESCE({row(', ', '?none#', n)}, ?o) AS ?x)", lambda o, n: o),
}
SHORTER = {"triple patterns": 300, "groups": 1200, "*": 1100}
"""Lengths where a plan has a wide row for each of many joins, or a number thousands of digits."""


def text_of(kind: str, n: int) -> str:
    body = QUERIES[kind][0](n)
    prefix = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> " + PREFIX
    return f"{prefix} SELECT ?s ?x {{ ?s :p ?o . {body} }}"


def answer(query, sign: int = 1) -> Counter:
    """The rows that the latest transactions added to an answer, or removed from it."""
    return Counter(
        {(r.row["s"].value, int(r.row["x"].value)): sign * r.diff for r in query.delta()}
    )


def run(kind: str, n: int) -> None:
    """One evaluation, a first answer, an insert and a delete; each against the known answer."""
    text, expected = text_of(kind, n), QUERIES[kind][1]
    graph = LiveGraph()
    numbers = {"a": 1, "b": 2}
    for name, number in numbers.items():
        graph.insert(iri(name), iri("p"), Literal(number))

    def rows_of(known: dict[str, int]) -> Counter:
        found = {name: expected(o, n) for name, o in known.items()}
        return Counter({(iri(s).value, x): 1 for s, x in found.items() if x is not None})

    once = graph.query(text, terms=True).to_pylist()
    assert len(once) == len(rows_of(numbers))
    query = graph.watch(text)
    assert answer(query) == rows_of(numbers)
    assert explain_logical(parse_query(text)) and query.explain() and query.explain("mermaid")
    graph.insert(iri("c"), iri("p"), Literal(7))
    assert answer(query) == rows_of({"c": 7})
    graph.delete(iri("a"), iri("p"), Literal(1))
    assert answer(query, -1) == rows_of({"a": 1})
    query.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", QUERIES)
def test_a_flat_query_is_not_limited_by_the_stack(kind):
    run(kind, SHORTER.get(kind, LONG))


@pytest.mark.parametrize("kind", [slow(kind) for kind in QUERIES if kind not in SHORTER])
def test_ten_thousand_operands(kind):
    run(kind, 10_000)


def test_sums_of_floating_point_numbers_are_from_left_to_right():
    # 1e16 + 1 is 1e16 in double precision: the ones vanish one by one, their sum would not.
    graph = LiveGraph()
    text = f"SELECT ({' + '.join(['1e16'] + ['1e0'] * LONG)} - 1e16 AS ?x) {{ }}"
    assert graph.query(text).to_pylist() == [{"x": 0.0}]
    text = f"SELECT ({' + '.join(['1e0'] * LONG + ['1e16'])} - 1e16 AS ?x) {{ }}"
    assert graph.query(text).to_pylist() == [{"x": float(LONG)}]


def test_an_error_of_one_operand_is_an_error_of_the_sum():
    text = f"SELECT (COALESCE({' + '.join(['1'] * LONG)} + ?none, 'error') AS ?x) {{ }}"
    assert LiveGraph().query(text).to_pylist() == [{"x": "error"}]


# --- random operands, against pyoxigraph ---


def random_operand(random: random.Random) -> str:
    """A condition on ?o, ?s or nothing that is bound."""
    number = random.randrange(5)
    kinds = (
        f"?o = {number}",
        f"?o < {number}",
        f"?none = {number}",
        f"STR(?s) = 'http://example.org/{number}'",
        f"EXISTS {{ ?s :q {number} }}",
        f"?o IN ({number}, ?none)",
        f"!(?o > {number})",
    )
    return random.choice(kinds)


def random_query(seed: int) -> str:
    """A flat query of up to 1,000 operands, of one of several kinds."""
    rng = random.Random(seed)
    n = rng.choice((2, 3, 10, 100, 1000))
    conditions = [random_operand(rng) for _ in range(n)]
    joined = rng.choice((" || ", " && ")).join(conditions)
    numbers = " ".join(
        f"{rng.choice('+-')} {rng.choice(('?o', '0.5', '3', '1e0'))}" for _ in range(n)
    )
    predicates = [rng.choice(("p", "q", "none")) for _ in range(n)]
    # Of many, pyoxigraph needs minutes; thousands are checked by calculation above.
    optionals = " ".join(f"OPTIONAL {{ ?s :{p} ?x }}" for p in predicates[:50])
    return PREFIX + rng.choice(
        (
            f"SELECT ?s ?o {{ ?s :p ?o FILTER({joined}) }}",
            f"SELECT ?s ?o {{ ?s :p ?o {' '.join(f'FILTER({c})' for c in conditions[:50])} }}",
            f"SELECT ?s (?o {numbers} AS ?x) {{ ?s :p ?o }}",
            f"SELECT ?s ?o {{ {' UNION '.join(f'{{ ?s :{p} ?o }}' for p in predicates)} }}",
            f"SELECT ?s ?o ?x {{ ?s :p ?o {optionals} }}",
            f"SELECT ?s ?o {{ ?s {'|'.join(f':{p}' for p in predicates)} ?o }}",
        )
    )


def oracle_rows(store: Store, text: str) -> Counter:
    if path := re.search(r"\?s (:\w+(?:\|:\w+)+) \?o", text):
        # By the standard (18.2.2.4), alternatives are a union; pyoxigraph removes duplicates.
        union = " UNION ".join(f"{{ ?s {each} ?o }}" for each in path[1].split("|"))
        text = text.replace(path[0], union)
    found = store.query(text)
    names = [v.value for v in found.variables]
    return Counter(tuple(str(r[name]) if r[name] else None for name in names) for r in found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(12), *map(slow, range(12, 80))])
def test_random_flat_queries_give_the_answer_of_pyoxigraph(seed):
    rng = random.Random(-seed)
    graph, store, text = LiveGraph(), Store(), random_query(seed)
    query = graph.watch(text)
    held: Counter = Counter()
    quads: list[Quad] = []
    for _ in range(6):
        if quads and rng.random() < 0.4:
            quad = quads.pop(rng.randrange(len(quads)))
            store.remove(quad)
            graph.delete(quad.subject, quad.predicate, quad.object)
        else:
            number = Literal(rng.randrange(5))
            quad = Quad(iri(rng.randrange(3)), iri(rng.choice("pq")), number)
            if quad in store:
                continue
            quads.append(quad)
            store.add(quad)
            graph.insert(quad.subject, quad.predicate, quad.object)
        for line in query.delta():
            values = tuple(None if term is None else str(term) for term in line.row.values())
            held[values] += line.diff
        assert +held == oracle_rows(store, text)

"""A transaction much larger than the graph, against its changes one by one and pyoxigraph."""

from collections import Counter

import numpy as np
import pyoxigraph
import pytest

from graphtide import LiveGraph

SPACE = "http://example.org/"
QUERIES = {
    "join": "SELECT ?a ?c { ?a :p ?b . ?b :q ?c }",
    "not": "SELECT ?a ?b { ?a :p ?b FILTER NOT EXISTS { ?b :q ?a } }",
    "one": "SELECT ?a { ?a :q :n1 }",
    "distinct": "SELECT DISTINCT ?b { ?a :p ?b . ?a :q ?c }",
    "count": "SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c } GROUP BY ?a",
    "optional": "SELECT ?a ?c { ?a :p ?b OPTIONAL { ?b :q ?c } }",
}


def iri(name):
    return f"<{SPACE}{name}>"


def transaction(rng, size, nodes):
    """Changes `(diff, s, p, o)`, some of them repeated or taken back."""
    drawn = rng.integers(0, (4, nodes, 2, nodes), (size, 4)).tolist()
    return [
        (-1 if kind == 0 else 1, iri(f"n{s}"), iri("pq"[p]), iri(f"n{o}"))
        for kind, s, p, o in drawn
    ]


def apply(graph, changes, *, together):
    """Apply changes as one transaction, or as one each."""
    encode = graph.terms.encode_column
    s, p, o = (encode([change[k] for change in changes]) for k in (1, 2, 3))
    diff = np.array([change[0] for change in changes], np.int32)
    tx = np.zeros(len(changes), np.int64) if together else np.arange(len(changes))
    first = graph.stats().transactions
    graph.apply_ids(s, p, o, diff=diff, tx=first + tx)


def answer(quads, text):
    """What pyoxigraph answers on some triples: rows of texts, counted."""
    store = pyoxigraph.Store()
    node = pyoxigraph.NamedNode
    store.extend(
        pyoxigraph.Quad(*(node(term[1:-1]) for term in triple)) for triple in sorted(quads)
    )
    found = store.query(f"PREFIX : <{SPACE}> {text}")
    names = [variable.value for variable in found.variables]
    return Counter(
        tuple("" if row[name] is None else str(row[name]) for name in names) for row in found
    )


def rows_of(query):
    """The current answer: rows of texts, counted."""
    table = query.table(terms=True)
    columns = [[text or "" for text in table.column(name).to_pylist()] for name in query.variables]
    return Counter(zip(*columns, strict=True))


@pytest.mark.parametrize("seed", range(2))
def test_one_large_transaction_after_the_other(seed):
    rng = np.random.default_rng(seed)
    at_once, one_by_one = LiveGraph(), LiveGraph()
    graphs = at_once, one_by_one
    early = dict(list(QUERIES.items())[: 3 + 2 * seed])
    queries = {
        name: [graph.watch(f"PREFIX : <{SPACE}> {text}", name=name) for graph in graphs]
        for name, text in early.items()
    }
    present = set()
    for size in (600, 3_000, 12_500):
        changes = transaction(rng, size, 150 + size // 8)
        for graph in graphs:
            apply(graph, changes, together=graph is at_once)
        for diff, *triple in changes:
            (present.add if diff > 0 else present.discard)(tuple(triple))
        for name, text in QUERIES.items():
            if name not in queries:
                full = f"PREFIX : <{SPACE}> {text}"
                queries[name] = [graph.watch(full, name=name) for graph in graphs]
            expected = answer(present, text)
            assert [rows_of(query) for query in queries[name]] == [expected, expected], name
            sums = Counter()
            for delta in queries[name][0].deltas():
                for row in delta:
                    values = ("" if v is None else str(v) for v in row.row.values())
                    sums[tuple(values)] += row.diff
            assert +sums == expected, name
            assert not -sums, name
    assert at_once.stats().inserted == one_by_one.stats().inserted
    assert at_once.stats().redundant == one_by_one.stats().redundant

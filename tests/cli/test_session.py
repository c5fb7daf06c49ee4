"""A log of changes and events in any pieces has the output of the same rows one by one."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from graphtide import LiveGraph
from graphtide.cli.session import ResultOutput, Session
from graphtide.rdf.changes import ChangeBatch

WINDOW = """SELECT * FROM NAMED WINDOW <ex:w> ON <ex:s> [{}] FROM NAMED WINDOW <ex:v> ON <ex:t> [{}]
    {{ {{ WINDOW <ex:w> {{ ?a <ex:p> ?b }} }} UNION {{ WINDOW <ex:v> {{ ?b <ex:p> ?a }} }}
       FILTER NOT EXISTS {{ ?b <ex:p> ?a }} }}"""

extents = st.sampled_from(("RANGE 4 STEP 2", "RANGE 3", "ELEMENTS 2 STEP 1", "ELEMENTS 1 STEP 2"))
names = st.sampled_from(("<ex:a>", "<ex:b>", "<ex:c>"))
places = st.sampled_from(((None, 1), (None, -1), ("<ex:g>", 1), ("<ex:s>", 1), ("<ex:t>", 1)))
rows = st.tuples(names, names, places)
logs = st.lists(st.tuples(st.sampled_from((0, 1, 1, 3)), st.lists(rows, min_size=1, max_size=3)))


@settings(deadline=None, max_examples=60)
@given(extents, extents, logs, st.lists(st.integers(1, 4)))
def test_results_are_those_of_the_rows_one_by_one(first, second, log, sizes):
    text, now, transactions = WINDOW.format(first, second), 0, []
    for tx, (gap, body) in enumerate(log):
        now += gap
        unique = {(a, b, graph): diff for a, b, (graph, diff) in body}
        transactions.append(
            [(now, tx, diff, a, "<ex:p>", b, graph) for (a, b, graph), diff in unique.items()]
        )
    session, outputs, begin = Session(LiveGraph(), {"q": text}), [], 0
    while begin < len(transactions):
        end = begin + (sizes.pop() if sizes else len(transactions))
        batch = ChangeBatch.of(row for part in transactions[begin:end] for row in part)
        outputs += [each for found in session.apply([batch]) for each in found]
        begin = end
    outputs += session.end(now + 5)
    assert results_of(outputs) == one_by_one(text, transactions, now + 5)


def results_of(outputs):
    """Time and rows of each result."""
    results = []
    for each in outputs:
        if isinstance(each, ResultOutput):
            results.append((each.time, Counter()))
        else:
            results[-1][1][tuple(each.row.row.values())] += each.row.diff
    return results


def one_by_one(text, transactions, end):
    graph = LiveGraph()
    query = graph.watch(text)
    for transaction in transactions:
        time = transaction[0][0]
        graph.advance(time)
        with graph.transaction() as tx:
            for *_, diff, s, p, o, g in transaction:
                if g not in ("<ex:s>", "<ex:t>"):
                    (tx.insert if diff > 0 else tx.delete)(s, p, o, g)
        for *_, s, p, o, g in transaction:
            if g in ("<ex:s>", "<ex:t>"):
                graph.stream(g).push([(s, p, o)], time=time)
    graph.advance(end)
    return [(r.time, Counter(tuple(row.values()) for row in r)) for r in query.results()]

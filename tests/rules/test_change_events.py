"""Events caused by changes of the graph, against a brute-force evaluator over all its states."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from pyoxigraph import NamedNode
from rules.brute_force import Event, matches
from support.programs import run

from graphtide import LiveGraph
from graphtide.algebra.expressions import Var
from graphtide.lang.sparql.parse import parse_query
from oracles.reference import evaluate_query

SPACE = "http://example.org/"
DECLARED = f"""
PREFIX : <{SPACE}>
QUERY Near AS SELECT ?a ?b {{ ?a :near ?b . ?a :on :yes FILTER (?a != ?b) }}
EVENT Came(?a)       ON APPEAR OF Near(?a)
EVENT Went(?a, ?b)   ON DISAPPEAR OF Near(?a, ?b)
EVENT Moved(?a, ?b)  ON CHANGE OF ?x FROM {{ ?x :near ?a }} TO {{ ?x :near ?b }}
EVENT Switched(?x)   ON CHANGE OF ?x FROM {{ ?x :on :yes }} TO {{ ?x :on :no }}
EVENT Said(?x, ?y)   AS {{ ?x :says ?y }}
"""
NEAR = parse_query(
    f"PREFIX : <{SPACE}> SELECT ?a ?b {{ ?a :near ?b . ?a :on :yes FILTER (?a != ?b) }}"
)
WIDTHS = {"Came": 1, "Went": 2, "Moved": 2, "Switched": 1, "Said": 2}
FACTS = (
    "",
    "FACT { ?p :on :yes }",
    "FACT { ?p :near ?z FILTER (?z != ?p) }",
    "FACT { ?p :near :w }",
)


def iri(name):
    return NamedNode(SPACE + name)


def rule_text(rng):
    """A rule of one to three events; most of them have something in common."""
    names = rng.choice(("a", "ab", "ab", "abc"))
    lines = []
    for name in names:
        kind = rng.choice(sorted(WIDTHS))
        given = [rng.choice(("?p", "?p", "?q", "?r", ":u")) for _ in range(WIDTHS[kind])]
        low = rng.randint(-4, 2)
        test = f"AFTER[{low},{low + rng.randint(2, 9)}] a" if name != "a" else ""
        lines.append(f"EVENT {name} = {kind}({', '.join(given)}) {test}")
    facts = rng.choice(FACTS) if "?p" in " ".join(lines) else ""
    return "\n".join(["RULE R WHEN", facts, *lines, "THEN CALL tell()"])


def transaction(rng, state):
    """Changes: something moves, is switched, or just any."""
    x = rng.choice("uv")
    near = [o.value[-1] for s, p, o, _ in state if s == iri(x) and p == iri("near")]
    match rng.randrange(4):
        case 0 | 1 if near:
            return [(-1, (x, "near", rng.choice(near))), (1, (x, "near", rng.choice("uvw")))]
        case 2:
            new, old = rng.choice((("yes", "no"), ("no", "yes")))
            return [(1, (x, "on", new)), (-1, (x, "on", old))]
        case _:
            quads = [(x, "near", rng.choice("uvw")), (x, "on", rng.choice(("yes", "no")))]
            return [(rng.choice((1, 1, -1)), rng.choice(quads)) for _ in range(rng.randint(1, 3))]


def rows(query, state):
    return set(evaluate_query(query, state))


def near(state, predicate, subject=None):
    return {(s, o) for s, p, o, _ in state if p == iri(predicate) and subject in (None, s)}


def caused(before, after):
    """The events of a transaction, from the two states by the words of their declarations."""
    old, new = rows(NEAR, before), rows(NEAR, after)
    yield from (("Came", (a,)) for a in {a for a, _ in new} - {a for a, _ in old})
    yield from (("Went", pair) for pair in old - new)
    went = near(before, "near") - near(after, "near")
    came = near(after, "near") - near(before, "near")
    yield from (("Moved", pair) for pair in {(a, b) for x, a in went for y, b in came if x == y})
    for x in map(iri, "uv"):
        was, is_ = near(before, "on", x), near(after, "on", x)
        if (x, iri("yes")) in was - is_ and (x, iri("no")) in is_ - was:
            yield "Switched", (x,)


def play(graph, running, rng, steps):
    """Let things happen; the events and states as the brute force wants them."""
    events, states, now = [], [frozenset()], 0
    for _ in range(steps):
        now += rng.choice((0, 1, 1, 2))
        if rng.random() < 0.4:
            x, y = iri(rng.choice("uv")), iri(rng.choice("uv"))
            graph.publish([(x, iri("says"), y)], time=now)
            events.append(Event("Said", (x, y), now, len(states) - 1))
            continue
        state = set(states[-1])
        with graph.transaction(time=now) as tx:
            for diff, (s, p, o) in transaction(rng, state):
                quad = iri(s), iri(p), iri(o)
                (tx.insert if diff > 0 else tx.delete)(*quad)
                (state.add if diff > 0 else state.discard)((*quad, None))
        states.append(frozenset(state))
        found = caused(states[-2], states[-1])
        events += [Event(kind, values, now, len(states) - 1) for kind, values in found]
    return events, states


def compare(seed):
    """Whether a random rule fires on a random history, having fired as it should."""
    rng = Random(seed)
    text = rule_text(rng)
    graph = LiveGraph()
    running = run(DECLARED + text, graph, functions={"tell": lambda: None})
    (registered,) = running._engine.rules
    rule = registered.matcher.rule
    events, states = play(graph, running, rng, 24)
    found = Counter(
        (
            tuple(firing.events[c.name][1] for c in rule.positive),
            frozenset((Var(v), t) for v, t in firing.values.items()),
        )
        for firing in running.firings()
    )
    assert found == matches(rule, events, states, 10_000), (seed, text)
    return bool(found)


@pytest.mark.slow
def test_rules_over_changes_match_as_defined():
    fired = sum(compare(seed) for seed in range(300))
    assert fired > 60  # enough of them have something to find


def test_a_row_that_appears_is_no_graph_event():
    """Typed events have values and no triples: no pattern of triples matches them."""
    graph = LiveGraph()
    running = run(
        "PREFIX : <http://example.org/> QUERY Near AS SELECT ?x { ?x :near ?y }\n"
        "EVENT Any(?s, ?p, ?o) AS { ?s ?p ?o } EVENT Came(?x) ON APPEAR OF Near(?x)\n"
        "PATTERN Twice(?x) AS Came(?x) -> Came(?x)\n"
        "RULE Anything ON Any(?s, ?p, ?o) THEN CALL tell(?s)\n"
        "RULE Row ON Came(?x) THEN CALL tell(?x)\n"
        "RULE Again ON Twice(?x) THEN CALL tell(?x)",
        graph,
        functions={"tell": lambda _: None},
    )
    for time in (1, 3):
        graph.insert(iri("u"), iri("near"), iri("v"), time=time)
        graph.delete(iri("u"), iri("near"), iri("v"), time=time + 1)
    graph.publish([(iri("u"), iri("says"), iri("v"))], time=5)
    fired = [(firing.rule, firing.time) for firing in running.firings()]
    assert fired == [("Row", 1), ("Row", 3), ("Again", 3), ("Anything", 5)]


def test_rows_of_a_narrow_query_beside_a_rule_over_a_wide_one():
    graph, told = LiveGraph(), []
    text = """PREFIX : <ex:>
    QUERY Narrow AS SELECT ?a ?n { ?a :one ?n }
    QUERY Wide AS SELECT ?a ?b ?c { ?a :two ?b . ?b :three ?c }
    RULE OfNarrow ON APPEAR OF Narrow(?a, ?n) THEN INSERT { ?a :two :b }
    RULE OfWide ON APPEAR OF Wide(?a, ?b, ?c) THEN CALL tell(?a, ?b, ?c)"""
    run(text, graph, functions={"tell": lambda *row: told.append([str(term) for term in row])})
    graph.insert("<ex:b>", "<ex:three>", "<ex:c>")
    with graph.transaction() as change:
        for name in "xyz":
            change.insert(f"<ex:{name}>", "<ex:one>", 1)
    assert told == [[f"<ex:{name}>", "<ex:b>", "<ex:c>"] for name in "xyz"]

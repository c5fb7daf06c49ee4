"""Programs with patterns and actions of any kind: batches of events fire what single ones fire."""

from __future__ import annotations

import random

import numpy as np
import pytest

from graphtide import LiveGraph, Program

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

EVENTS = """PREFIX : <http://example.org/>
EVENT A(?k) AS { ?k a :A }
EVENT B(?k) AS { ?k a :B }
EVENT C(?k) AS { ?k a :C }
PATTERN Pair(?k) AS (A(?k) -> B(?k)) WITHIN 6s CONTEXT CHRONICLE
PATTERN Alone(?k) AS A(?k) -> NOT C(?k) WITHIN 3s
"""

RULES = {
    "unrelated": "RULE R WHEN EVENT c = C(?k) THEN CALL note(?k)",
    "pair": "RULE R WHEN EVENT p = Pair(?k) THEN CALL note(?k)",
    "timer": "RULE R WHEN EVENT p = Alone(?k) THEN CALL note(?k)",
    "fact": "RULE R WHEN FACT { ?k :on :yes } EVENT p = Pair(?k) THEN CALL switch(?k)",
    "loop": """RULE R WHEN EVENT p = Pair(?k) THEN INSERT { ?k :seen :yes }
        RULE S WHEN FACT { ?k :seen :yes } EVENT c = C(?k)
          THEN DELETE { ?k :seen :yes } ; CALL note(?k)""",
    "absence": """RULE R WHEN EVENT p = Pair(?k) NO EVENT c = C(?k) AFTER[0,2] p
          THEN CALL switch(?k)
        RULE S WHEN FACT { ?k :on :yes } EVENT a = Alone(?k) THEN CALL note(?k)""",
    "emit": """EVENT D(?k) AS { ?k a :D }
        RULE R WHEN EVENT p = Pair(?k) THEN EMIT :t { ?k a :D }
        RULE S WHEN EVENT d = D(?k) THEN CALL switch(?k)""",
    "retract": """RULE R WHEN EVENT p = Pair(?k) THEN CALL note(?k)
        RULE S WHEN EVENT c = C(?k) EVENT a = A(?k) BEFORE[0,4] c THEN RETRACT a""",
}


def iri(name):
    return f"<http://example.org/{name}>"


def run(rule, sizes, seed, *, many=90):
    """All that can be seen after events that come in batches of some sizes."""
    rng, graph, calls = random.Random(seed), LiveGraph(), []

    def note(key):
        calls.append((graph.clock, str(key)))

    def switch(key, *, graph):
        note(key)
        there = (str(key), iri("on"), iri("yes")) in graph
        (graph.delete if there else graph.insert)(str(key), iri("on"), iri("yes"))

    text = EVENTS + RULES[rule]
    program = graph.run(Program.parse(text), functions={"note": note, "switch": switch})
    for key in range(2):
        graph.insert(iri(f"k{key}"), iri("on"), iri("yes"))
    encode, time, rows, times = graph.terms.encode, 0, [], []
    for _ in range(many):
        time += rng.choice([0, 0, 0, 1, 1, 5])
        key, type_ = f"k{rng.randrange(4)}", rng.choice("AABBC")
        rows.append([encode(iri(key)), encode(TYPE), encode(iri(type_)), 0])
        times.append(time)
    stream, at = graph.stream(iri("s")), 0
    while at < many:
        end = min(many, at + sizes(rng))
        numbers = np.arange(end - at)
        stream.push_ids(np.array(times[at:end]), np.array(rows[at:end], np.int32), events=numbers)
        at = end
    graph.advance(time + 20)
    firings = [(f.rule, f.number, f.time, str(f.values), f.events) for f in program.firings()]
    matches = [[(m.start, m.time, str(m.values)) for m in program.matches(name)]
               for name in ("Pair", "Alone")]  # fmt: skip
    quads = sorted(map(str, graph.quads()))
    return calls, firings, matches, [program.matched(name) for name in ("Pair", "Alone")], quads


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.slow
def test_batches_fire_as_single_events(rule):
    fired = 0
    for seed in range(3):
        single = run(rule, lambda _: 1, seed)
        fired += len(single[1])
        assert run(rule, lambda _: 90, seed) == single
        assert run(rule, lambda rng: rng.choice([1, 3, 10, 40]), seed) == single
    assert fired


def test_an_unrelated_rule_leaves_events_together(monkeypatch):
    """A rule that calls functions does not make a batch of single events."""
    from graphtide.rules.runtime import RuleEngine

    taken, take = [], RuleEngine.take_events
    monkeypatch.setattr(RuleEngine, "take_events", lambda *a: taken.append(take(*a)) or taken[-1])
    text = EVENTS[: EVENTS.index("PATTERN Alone")] + (
        "EVENT Z(?k) AS { ?k a :Z } RULE R WHEN EVENT z = Z(?k) THEN CALL note(?k)"
    )
    graph = LiveGraph()
    program = graph.run(Program.parse(text), functions={"note": print})
    key, type_, a, b = map(graph.terms.encode, (iri("k"), TYPE, iri("A"), iri("B")))
    rows = np.array([[key, type_, each, 0] for each in (a, b) * 200], np.int32)
    graph.stream(iri("s")).push_ids(np.arange(400), rows)
    assert taken == [400]
    assert program.matched("Pair") == 200


def test_an_interrupt_inside_a_batch_takes_no_event_twice():
    """All events come again with the next call; calls that were finished are not made again."""
    graph, seen = LiveGraph(), []

    def note(key):
        seen.append(str(key))
        if len(seen) == 3:
            raise KeyboardInterrupt

    text = EVENTS[: EVENTS.index("PATTERN Alone")] + RULES["pair"]
    program = graph.run(Program.parse(text), functions={"note": note})
    encode = graph.terms.encode
    rows = [[encode(iri(f"k{n}")), encode(TYPE), encode(iri(t)), 0] for n in range(6) for t in "AB"]
    stream = graph.stream(iri("s"))
    with pytest.raises(KeyboardInterrupt):
        stream.push_ids(np.arange(12), np.array(rows, np.int32))
    graph.advance(20)
    assert seen == [iri(f"k{n}") for n in (0, 1, 2, 2, 3, 4, 5)]  # one was interrupted itself
    assert program.matched("Pair") == program.fired == 6

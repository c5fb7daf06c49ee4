"""Tokens that were dropped, when and why: found by a replay of the journal, when asked."""

from __future__ import annotations

import pytest

import graphtide as gt

TYPES = "".join(f"EVENT {n.upper()}(?x) AS {{ ?x <ex:{n}> ?y }}\n" for n in "abc")
CASES = {
    "(A(?x) -> B(?x)) WITHIN 5": "dropped at 7: its time ran out",
    "A(?x) -> NOT C(?x) -> B(?x)": "dropped at 4: an event came that a NOT forbids",
    "A(?x) -> B(?x) CONTEXT STRICT": "dropped at 4: an event came that it could not use (STRICT)",
    "(A(?x) -> B(?x)) HOLDS FOR 9": "dropped at 9: an event came too early for HOLDS FOR",
}
"""Each sees a at 2, c at 4, b at 9."""


def give(graph):
    for name, time in (("a", 2), ("c", 4), ("b", 9)):
        graph.publish([("<ex:x>", f"<ex:{name}>", 1)], time=time)
    graph.advance(20)


@pytest.mark.parametrize("snapshot", [False, True])
@pytest.mark.parametrize("body", CASES)
def test_when_and_why_a_token_was_dropped(tmp_path, body, snapshot):
    with gt.LiveGraph.open(tmp_path, retain="0s" if snapshot else None) as graph:
        program = graph.run(gt.Program.parse(f"{TYPES}PATTERN P(?x) AS {body}"))
        if snapshot:  # nothing before it is there to be replayed
            graph.publish([("<ex:y>", "<ex:a>", 1)], time=1)
            graph.checkpoint()
            assert graph.store.store.journal.first() > 1
        give(graph)
        assert program.matched("P") == 0
        text = str(program.why_not("P", x="<ex:x>"))
        assert "token since 2" in text
        assert CASES[body] in text
        assert "dropped" not in str(program.why_not("P", x="<ex:z>"))


def test_a_token_that_is_complete_was_not_dropped(tmp_path):
    with gt.LiveGraph.open(tmp_path) as graph:
        program = graph.run(gt.Program.parse(f"{TYPES}PATTERN P(?x) AS A(?x) -> B(?x)"))
        give(graph)
        assert program.matched("P") == 1
        assert "dropped" not in str(program.why_not("P", x="<ex:x>"))


def test_a_graph_in_memory_does_not_know():
    graph = gt.LiveGraph()
    program = graph.run(gt.Program.parse(f"{TYPES}PATTERN P(?x) AS (A(?x) -> B(?x)) WITHIN 5"))
    give(graph)
    assert "dropped tokens are not retained" in str(program.why_not("P", x="<ex:x>"))

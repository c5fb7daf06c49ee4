"""Values of options that are the default: writing one out changes nothing."""

from __future__ import annotations

import pytest

import graphtide as gt

PROGRAM = gt.Program.parse("""PREFIX : <http://example.org/>
QUERY Known AS SELECT ?x { ?x :knows ?y }
RULE Low ON APPEAR OF Known(?x) THEN INSERT { ?x :is :low }
RULE High PRIORITY 2 ON APPEAR OF Known(?x) THEN INSERT { ?x :is :high }
RULE Fails PRIORITY 1 ON APPEAR OF Known(?x) THEN CALL fail(?x)
""")
WINDOWED = (
    "REGISTER RSTREAM <ex:o> AS SELECT ?x FROM NAMED WINDOW <ex:w> ON <ex:s> "
    "[RANGE 10 STEP 10] WHERE { WINDOW <ex:w> { ?x <ex:p> ?y } }"
)


def fail(_):
    raise ValueError("as it shall")


def seen(graph_options, watch_options, run_options, explain_options):
    """All that the options could change: answers, results, firings and their order, errors."""
    graph = gt.LiveGraph(**graph_options)
    knows = "<http://example.org/knows>"
    graph.insert("<ex:before>", knows, "<ex:b>", time=0)
    named = graph.watch("SELECT ?x { ?x <http://example.org/is> ?y }")
    windowed = graph.watch(WINDOWED, **watch_options)
    running = graph.run(PROGRAM, functions={"fail": fail}, **run_options)
    graph.insert("<ex:a>", "<http://example.org/is>", "<ex:b>", "<ex:graph>", time=1)
    with pytest.raises(gt.GraphtideError) as error:
        graph.insert("<ex:a>", knows, "<ex:b>", time=1)
    stream = graph.stream("<ex:s>")
    for time in (5, 10, 11):
        stream.push([(f"<ex:{time}>", "<ex:p>", "<ex:b>")], time=time)
    graph.advance(40)
    return (
        [(firing.time, firing.rule) for firing in running.firings()],
        [(row.time, row.tx, row.diff, row.row) for row in named.rows()],
        [(each.time, len(each)) for each in windowed.results()],
        sorted(map(str, graph.quads())),
        str(error.value),
        named.explain(**explain_options),
    )


DEFAULTS = (
    {"default_graph": "own", "store": "all", "window_alignment": "close"},
    {"report": "close"},
    {"firing": "events", "on_error": "raise", "resolver": "priority", "start": "latest"},
    {"format": "text"},
)


def test_a_default_that_is_written_out_changes_nothing():
    expected = seen({}, {}, {}, {})
    firings, _, results, *_ = expected
    assert [rule for _, rule in firings] == ["High", "Fails", "Low"]
    assert sum(rows for _, rows in results) == 3
    assert expected == seen(*DEFAULTS)

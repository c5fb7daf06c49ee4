"""Durations and numbers of any length in programs and queries are read, or are placed errors."""

import pytest

from graphtide import LiveGraph, Program
from graphtide.errors import GraphtideError

EVENTS = "PREFIX : <ex:> EVENT A(?x) AS { ?x :a ?y } EVENT B(?x) AS { ?x :b ?y } "
WINDOW = """REGISTER RSTREAM <ex:o> AS SELECT * FROM NAMED WINDOW <ex:w> ON <ex:s> [{}]
    {{ WINDOW <ex:w> {{ ?s <ex:p> ?o }} }}"""

LONG = [
    "9" * 25 + "d",
    "9" * 25,
    "9" * 5000 + "d",
    "9" * 5000,
    "P" + "9" * 25 + "D",
    "9" * 18 + "d",
]


@pytest.mark.parametrize("length", LONG, ids=lambda text: f"{text[:8]} of {len(text)}")
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN P(?x) AS (A(?x) -> B(?x)) WITHIN {} RULE R ON P(?x) THEN INSERT { ?x :p ?x }",
        "PATTERN P(?x) AS A(?x) -> NOT B(?x) WITHIN {} RULE R ON P(?x) THEN INSERT { ?x :p ?x }",
        "RULE R WHEN EVENT a=A(?x) EVENT b=B(?x) AFTER[0,{}] a THEN INSERT { ?x :p ?x }",
        "RULE R WHEN EVENT a=A(?x) NO EVENT b=B(?x) AFTER[0,{}] a THEN INSERT { ?x :p ?x }",
    ],
)
def test_a_duration_of_a_program_that_is_too_long_is_an_error(text, length):
    with pytest.raises(GraphtideError, match="expected a duration"):
        Program.parse(EVENTS + text.replace("{}", length))


@pytest.mark.parametrize("length", LONG, ids=lambda text: f"{text[:8]} of {len(text)}")
@pytest.mark.parametrize("window", ["RANGE {}", "RANGE 10 STEP {}", "ELEMENTS {}"])
def test_a_window_that_is_too_long_is_an_error(window, length):
    with pytest.raises(GraphtideError):
        LiveGraph().watch(WINDOW.format(window.format(length)))


@pytest.mark.parametrize("length", [str(2**61), "26000000000d"])
def test_the_longest_durations_work(length):
    graph = LiveGraph()
    text = "RULE R WHEN EVENT a=A(?x) EVENT b=B(?x) AFTER[0,{}] a THEN INSERT { ?x :p ?x }"
    program = graph.run(Program.parse(EVENTS + text.replace("{}", length)))
    window = graph.watch(WINDOW.format(f"RANGE {length}"))
    for time, predicate in ((0, "a"), (5, "b")):
        graph.stream("<ex:s>").push([("<ex:x>", f"<ex:{predicate}>", "<ex:y>")], time=time)
    graph.advance(2**62)
    assert program.fired == 1
    assert window.last_result() is not None


@pytest.mark.parametrize("digits", ["9" * 30, "9" * 5000])
def test_other_numbers_may_be_of_any_length(digits):
    graph = LiveGraph()
    graph.insert("<ex:s>", "<ex:p>", 1)
    assert graph.query(f"SELECT * {{ ?s ?p ?o }} LIMIT {digits}").num_rows == 1
    assert graph.query(f"SELECT * {{ ?s ?p ?o }} OFFSET {digits}").num_rows == 0
    with pytest.raises(GraphtideError, match="invalid priority"):
        Program.parse(EVENTS + f"RULE R PRIORITY {digits} ON A(?x) THEN INSERT {{ ?x :p ?x }}")

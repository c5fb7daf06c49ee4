"""The choice of a layout: what each is expected to cost, and what decides."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from graphtide.errors import GraphtideError
from graphtide.spark import explain
from graphtide.spark.job import JobSpec
from graphtide.spark.layouts import STAGE_MS, choose_layouts, layout_choice
from graphtide.spark.partition.columns import read_quads
from graphtide.spark.partition.grids import route

CHAIN = "SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?d . ?d <ex:s> ?e }"
TRIANGLE = "SELECT * { ?a <ex:p> ?b . ?b <ex:p> ?c . ?c <ex:p> ?a }"
STAR = "SELECT * { ?a <ex:p> ?b . ?a <ex:q> ?c }"
COUNT = "SELECT (COUNT(*) AS ?n) { ?a <ex:p> ?b . ?b <ex:q> ?c }"
WINDOW = (
    "REGISTER ISTREAM <ex:o> AS SELECT ?a FROM NAMED WINDOW <ex:w> ON <ex:s> [RANGE 10 STEP 5] "
    "WHERE { WINDOW <ex:w> { ?a <ex:p> ?b } ?b <ex:q> ?c . ?c <ex:r> ?d }"
)


def copies(text, partitions):
    costs = layout_choice("q", text, partitions).costs
    return {name: cost.copies for name, cost in costs.items()}


def test_copies_by_hand():
    # A quad of the triangle is an edge ab, bc and ca of a cube of 2 x 2 x 2: two partitions each.
    # In the Rete layout it is ab and ca around ?a, and bc around ?b: by subject or by object.
    assert copies(TRIANGLE, 8) == {"grid": 6, "rete": 2}
    assert copies(CHAIN, 64)["rete"] == 1
    assert copies(STAR, 64) == {"grid": 1}


@pytest.mark.parametrize("text", [CHAIN, TRIANGLE])
@pytest.mark.parametrize("layout", ["grid", "rete"])
def test_copies_are_those_of_the_router(text, layout):
    job = JobSpec((("q", text),), 8, layouts=(("q", layout),))
    rng = Random(3)
    predicates = "pqrs" if text == CHAIN else "p"
    texts = [
        (f"<ex:{rng.random()}>", f"<ex:{rng.choice(predicates)}>", f"<ex:{rng.random()}>")
        for _ in range(3000)
    ]
    columns = [pa.array(values) for values in zip(*texts, strict=True)]
    quads, _ = read_quads([*columns, pa.nulls(len(texts), pa.string())])
    rows, _ = route(quads, job.routes[None])
    # Copies for several patterns sometimes go to the same partition, where one is enough.
    expected = copies(text, 8)[layout]
    assert 0.75 * expected <= len(rows) / len(texts) <= expected


def test_a_row_of_an_intermediate_result_is_shuffled_once_per_stage():
    # 4 patterns of 1000 quads each and 500 values per column: a change of one pattern causes
    # two rows of its fragment, and each fragment gets half of the changes.
    cost = layout_choice("q", CHAIN, 8).costs["rete"]
    assert cost.shuffled == cost.copies + 2 * (2 / 2)
    assert cost.stages == 2


def test_few_changes_are_best_in_one_stage_and_many_without_copies():
    chosen = [layout_choice("q", CHAIN, 64, changes=n).layout for n in (1, 10**4, 10**6)]
    assert chosen == ["grid", "grid", "rete"]
    assert layout_choice("q", CHAIN, 1, changes=10**6).layout == "grid"


def test_what_a_grid_cannot_divide():
    choice = layout_choice("q", COUNT, 64, changes=10**6)
    assert choice.costs["grid"].largest == 1
    assert choice.layout == "grid"  # a single group has all rows in either layout
    grouped = COUNT.replace("(COUNT(*) AS ?n)", "?c (COUNT(*) AS ?n)") + " GROUP BY ?c"
    path = "SELECT * { ?a <ex:p>/<ex:q>/<ex:r>/<ex:s> ?b }"
    for text in (grouped, path):
        assert layout_choice("q", text, 64, changes=10**6).costs["rete"].largest < 0.02


def test_sizes_decide_as_well():
    # If nearly all changes are of the pattern that the grid does not copy, it has nothing to save.
    text = "SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?d }"
    options = {"changes": 10**6, "sizes": {"<ex:p>": 10**6, "<ex:q>": 10, "<ex:r>": 10}}
    assert layout_choice("q", text, 16, **options).layout == "grid"
    assert layout_choice("q", text, 16, **options).costs["grid"].copies < 1.01


def test_a_pinned_layout():
    assert choose_layouts({"q": CHAIN, "r": STAR}, 4, layout={"q": "rete"}) == (
        ("q", "rete"),
        ("r", "grid"),
    )
    choice = layout_choice("q", CHAIN, 4, pin="rete")
    assert (choice.layout, choice.reason) == ("rete", "it was asked for")


@pytest.mark.parametrize(
    ("layout", "message"),
    [("star", "the layout 'star' is unknown"), ({"x": "rete"}, "'x', which is no query")],
)
def test_layouts_that_cannot_be(layout, message):
    with pytest.raises(GraphtideError, match=message):
        choose_layouts({"q": CHAIN}, 4, layout=layout)


@pytest.mark.parametrize(
    ("text", "reason"), [(STAR, "all patterns share a variable"), (WINDOW, "windows close in one")]
)
def test_what_has_one_layout_says_why(text, reason):
    choice = layout_choice("q", text, 4, pin="rete", changes=10**9)
    assert choice.layout == "grid"
    assert reason in choice.reason
    assert reason in explain(text, 4)


def test_explain_shows_both_layouts_and_the_stages_of_the_chosen_one():
    text = explain(CHAIN, 64, changes_per_batch=10**6)
    lines = text.splitlines()
    assert lines[:2] == [
        "query: 2 stages over 64 partitions",
        "  layout rete: it is expected to take less time",
    ]
    # ?b and ?d in 8 parts each: every pattern has one of them.
    assert lines[2].startswith("    grid: 8.00 copies and 8.00 shuffled rows per change, 1 stage")
    assert lines[3].startswith("    rete: 1.00 copies and 3.00 shuffled rows per change, 2 stages")
    assert lines[4:] == [
        "  match by ?b: ?a :ex:p ?b . ?b :ex:q ?c",
        "  match by ?d: ?c :ex:r ?d . ?d :ex:s ?e",
        "  join 1",
        "    join on ?c: by ?c",
    ]
    assert "layout grid: it was asked for" in explain(CHAIN, 64, layout="grid")


def test_each_stage_has_its_price():
    cost = layout_choice("q", CHAIN, 8).costs["rete"]
    assert cost.milliseconds(0) == 2 * STAGE_MS

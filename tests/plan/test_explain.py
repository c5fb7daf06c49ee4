"""explain with live counts, and what Mermaid would misread."""

from __future__ import annotations

import html
import re
from xml.etree import ElementTree as ET

import pytest

from graphtide import LiveGraph
from graphtide.algebra.expressions import Var
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.explain import explain, explain_logical, rows

PREFIX = "PREFIX : <http://example.org/> "


def iri(name: str) -> str:
    return f"<http://example.org/{name}>"


@pytest.fixture
def graph():
    """a knows b, c and d; b and c have an age."""
    graph = LiveGraph()
    for name in "bcd":
        graph.insert(iri("a"), iri("knows"), iri(name))
    graph.insert(iri("b"), iri("age"), 1)
    graph.insert(iri("c"), iri("age"), 2)
    return graph


def test_a_rete_join_says_what_it_holds_now(graph):
    watch = graph.watch(PREFIX + "SELECT * { ?a :knows ?b . ?b :age ?n }", strategy="rete")
    assert watch.explain().splitlines() == [
        "strategy rete",
        "answer ?a ?b ?n, 2 rows now",
        "└─ [1] join on ?b: 2 rows (2 expected)",  # 3 * 2 / max(3, 2)
        "   │  stores left rows (3 now) and right rows (2 now)",
        "   ├─ [2] input ?a :knows ?b: 3 rows (3 expected)",
        "   └─ [3] input ?b :age ?n: 2 rows (2 expected)",
    ]
    graph.delete(iri("b"), iri("age"), 1)
    assert "right rows (1 now)" in watch.explain()
    assert "answer ?a ?b ?n, 1 row now" in watch.explain()


def test_a_search_holds_nothing(graph):
    watch = graph.watch(PREFIX + "SELECT * { ?a :knows ?b . ?b :age ?n }", strategy="search")
    assert watch.explain().splitlines() == [
        "strategy search",
        "answer ?a ?b ?n, 2 rows now",
        "└─ [1] search ?a :knows ?b . ?b :age ?n: 2 rows (2 expected)",
    ]


def test_an_antijoin_counts_keys_and_a_distinct_rows(graph):
    query = "SELECT DISTINCT ?a { ?a :knows ?b FILTER NOT EXISTS { ?b :age ?n } }"
    text = graph.watch(PREFIX + query, strategy="rete").explain()
    assert "stores left rows (3 now) and a count per right key (2 now)" in text
    assert "stores a count per row (1 now)" in text  # one row ?a, by way of d


def test_an_empty_graph_raises_no_expectations():
    watch = LiveGraph().watch(PREFIX + "SELECT * { ?a :knows ?b }")
    assert "expected" not in watch.explain()
    assert "input ?a :knows ?b: 0 rows" in watch.explain()


def test_counting_rows_can_be_left_out(graph):
    watch = graph.watch(PREFIX + "SELECT * { ?a :knows ?b }")
    assert "?b: 3 rows (3 expected)" in watch.explain()
    assert "?b: 3 rows expected" in watch.explain(actual=False)


def test_the_picture_shows_every_node_and_every_line(graph, monkeypatch):
    monkeypatch.setenv("PATH", "")  # without Graphviz
    watch = graph.watch(PREFIX + "SELECT * { ?a :knows ?b . ?b :age ?n }", strategy="rete")
    picture = ET.fromstring(watch.explain("svg"))
    svg = "{http://www.w3.org/2000/svg}"
    assert len(picture.findall(f"{svg}rect")) == 4  # two inputs, the join, the answer
    assert len(picture.findall(f"{svg}path")) == 3
    texts = [text.text for text in picture.findall(f"{svg}text")]
    assert "input ?b :age ?n: 2 rows (2 expected)" in texts
    assert "answer ?a ?b ?n, 2 rows now" in texts


def test_a_picture_has_no_two_boxes_at_one_place(graph, monkeypatch):
    monkeypatch.setenv("PATH", "")  # without Graphviz
    query = "SELECT * { ?a :knows ?b OPTIONAL { ?b :age ?n } OPTIONAL { ?b :knows ?c } }"
    picture = ET.fromstring(graph.watch(PREFIX + query).explain("svg"))
    boxes = [
        [float(box.get(key)) for key in ("x", "y", "width", "height")]
        for box in picture.findall("{http://www.w3.org/2000/svg}rect")
    ]
    for i, (x, y, width, height) in enumerate(boxes):
        for x2, y2, width2, height2 in boxes[i + 1 :]:
            apart = x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y
            assert apart


def test_the_diagram_shows_the_same_counts(graph):
    watch = graph.watch(PREFIX + "SELECT * { ?a :knows ?b . ?b :age ?n }", strategy="rete")
    assert watch.explain("mermaid").splitlines() == [
        "flowchart BT",
        '  answer(["answer ?a ?b ?n, 2 rows now"])',
        (
            '  n1["join on ?b: 2 rows (2 expected)'
            '<br/>stores left rows (3 now) and right rows (2 now)"]'
        ),
        '  n2["input ?a :knows ?b: 3 rows (3 expected)"]',
        "  n2 --> n1",
        '  n3["input ?b :age ?n: 2 rows (2 expected)"]',
        "  n3 --> n1",
        "  n1 --> answer",
    ]


def test_a_query_without_columns_says_so():
    query = parse_query(PREFIX + "SELECT * { :a :knows :b }")
    assert "answer no columns" in explain(build_plan(query, "search"))


def test_an_unbound_column_is_a_projection():
    query = parse_query(PREFIX + "SELECT ?nowhere { :a :knows ?b }")
    assert "project ?nowhere" in explain(build_plan(query, "search"))


@pytest.mark.parametrize("count", [0, 1, 2, 1234567])
def test_counts_in_words(count):
    assert rows(count) == {0: "0 rows", 1: "1 row", 2: "2 rows"}.get(count, "1,234,567 rows")


QUOTED = r"""SELECT * { ?a <http://example.org/q?a&b> ?b FILTER(?b != "\"]--> n9[\"<br/>;") }"""


@pytest.mark.parametrize(
    "draw",
    [lambda q: explain(build_plan(q, "rete"), "mermaid"), lambda q: explain_logical(q, "mermaid")],
)
def test_no_sign_of_a_query_breaks_the_diagram(draw):
    diagram = draw(parse_query(QUOTED))
    labels = re.findall(r'\[+"(.*)"\]', diagram)
    assert len(labels) == diagram.count('["')
    for label in labels:
        assert '"' not in label
        assert "&" not in re.sub(r"&(amp|quot|lt|gt);", "", label)
        assert "<" not in label.replace("<br/>", "")
    assert any('"\\"]--> n9[\\"' in html.unescape(label) for label in labels)


def test_columns_of_the_plan_itself_never_reach_the_answer():
    query = parse_query(PREFIX + "SELECT * { ?a :p ?b OPTIONAL { ?b :q ?c } MINUS { ?b :r ?c } }")
    plan = build_plan(query, "search")
    assert plan.variables == (Var("a"), Var("b"), Var("c"))
    assert plan.root.schema == plan.variables

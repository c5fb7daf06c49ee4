"""The page in a real browser: what one sees, with the keyboard too; no errors, no foreign hosts."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest
from serve.page.conftest import EXAMPLES, WRITE_IMAGES, picture, rail, railway
from support.page_server import serving

import graphtide as gt
from graphtide.datasets.railway import PROGRAM, change_stream
from graphtide.serve.app import create_app
from graphtide.serve.host import Host
from graphtide.serve.server import serving as serving_app

pytestmark = pytest.mark.slow

DARK = {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"}
PHONE = {"viewport": {"width": 390, "height": 844}}


def break_switch(graph, switch="switch99", route="route99"):
    """A route whose switch stands wrong: one more row of SwitchSet."""
    with graph.transaction() as tx:
        tx.insert(rail(route), rail("active"), True)
        tx.insert(rail(route), rail("entry"), rail("semaphore99"))
        tx.insert(rail("semaphore99"), rail("signal"), rail("SIGNAL_GO"))
        tx.insert(rail(route), rail("follows"), rail("swP99"))
        tx.insert(rail("swP99"), rail("target"), rail(switch))
        tx.insert(rail("swP99"), rail("position"), rail("POSITION_LEFT"))
        tx.insert(rail(switch), rail("currentPosition"), rail("POSITION_RIGHT"))


def texts(locator):
    return [text.strip() for text in locator.all_text_contents()]


def test_the_overview_shows_every_query_and_follows(page, graph, address):
    page.goto(address)
    page.wait_for_selector(".card")
    assert texts(page.locator(".card h2")) == [query.name for query in graph.queries]
    card = page.locator(".card", has_text="SwitchSet")
    before = graph.queries[2].count()
    assert card.locator(".big").inner_text() == str(before)
    break_switch(graph)
    page.wait_for_function(
        "n => [...document.querySelectorAll('.card')][2].querySelector('.big').innerText == n",
        arg=str(before + 1),
    )
    assert "+ route :route99" in card.locator(".last").inner_text()
    assert card.locator(".spark .plus").count() == 1  # one bar, of this second
    assert page.locator("#numbers dd").nth(2).inner_text() == f"{len(graph):,}"


@pytest.mark.skipif(not os.environ.get(WRITE_IMAGES), reason=f"set {WRITE_IMAGES} for pictures")
def test_a_picture_of_the_railway(page):
    graph = gt.LiveGraph()
    graph.run(gt.Program.parse(PROGRAM))
    with serving(graph) as address:
        page.goto(address)
        for batch in change_stream(150):
            graph.apply(batch, time=graph.clock + 1)
            page.wait_for_timeout(200)
        picture(page, "page-overview", wait=0, height=440)


def test_rows_come_and_go_and_are_fed(page, graph, address):
    query = graph.queries[2]
    page.goto(f"{address}#/query/SwitchSet")
    page.wait_for_selector(".tbody .tr")
    break_switch(graph)
    page.wait_for_selector(".tr.fresh >> text=:route99")
    first = page.locator(".feed .delta").first
    assert "+1 −0" in first.inner_text() and ":switch99" in first.inner_text()
    shown = {tuple(texts(line.locator(".td"))) for line in page.locator(".tbody .tr").all()}
    expected = {
        tuple(":" + value.rsplit("#")[-1].rstrip(">") for value in row.values())
        for row in query.table(terms=True).to_pylist()
    }
    assert shown == expected
    graph.delete(rail("semaphore99"), rail("signal"), rail("SIGNAL_GO"))
    page.wait_for_selector(".tr.gone >> text=:route99")
    page.wait_for_function("() => !document.querySelector('.tbody').innerText.includes(':route99')")
    assert page.locator(".tbody .tr").count() == query.count()


def test_the_plan_is_drawn_with_the_numbers_of_now(page, graph, address):
    page.goto(f"{address}#/query/SwitchSet")
    page.wait_for_selector(".plan .node")
    drawn = " ".join(texts(page.locator(".plan .node")))
    assert "answer" in drawn and "search" in drawn
    assert page.locator(".plan .node.hot").count() == 1
    assert "expected for" in page.locator(".plan .hint").first.inner_text()
    break_switch(graph)
    page.wait_for_function(
        "n => document.querySelector('.plan pre').textContent.includes(n)",
        arg=f"{graph.queries[2].count()} rows now",
    )


def test_why_a_row_is_there_and_why_one_is_not(page, graph, address):
    break_switch(graph)
    page.goto(f"{address}#/query/SwitchSet")
    page.locator(".tbody .tr", has_text=":route99").click()
    page.wait_for_selector(".reasons .picture")
    assert "is in SwitchSet" in page.locator(".reasons h2").inner_text()
    edges = texts(page.locator(".reasons .picture .label"))
    assert sorted(edges) == [
        ":active", ":currentPosition", ":entry", ":follows", ":position", ":signal", ":target",
    ]  # fmt: skip
    assert page.locator(".reasons .fails").count() == 0
    picture(page, "page-why")
    page.get_by_label("Value of ?route").fill(":route1")
    page.get_by_role("button", name="Why not?").click()
    page.wait_for_selector(".reasons .fails")
    assert "is not in SwitchSet" in page.locator(".reasons h2").inner_text()


def test_a_question_can_be_wrong_asked_once_and_subscribed_to(page, graph, address):
    page.goto(f"{address}#/ask")
    area = page.get_by_label("Query", exact=True)
    area.fill(f"SELECT ?s {{\n  ?s a {rail('Route')}\n  FILTER (?s }}")
    page.wait_for_selector(".wrong")
    assert "Line 3, column 14" in page.locator("#said").inner_text()
    assert page.locator(".wrong").inner_text() == "}"
    assert page.get_by_role("button", name="Subscribe").is_disabled()
    picture(page, "page-ask", height=560)
    text = f"SELECT ?s {{ ?s a {rail('Route')} }}"
    area.fill(text)
    page.wait_for_selector("text=This can be subscribed to.")
    area.press("Control+Enter")
    page.wait_for_selector("main section .table")
    rows = graph.query(text).num_rows
    assert f"{rows} rows in" in page.get_by_label("Result").inner_text()
    page.get_by_label("Name of the standing query").fill("Routes")
    page.get_by_role("button", name="Subscribe").click()
    page.wait_for_selector("h1 >> text=Routes")
    page.wait_for_selector(".tbody .tr")
    graph.insert(
        rail("route500"), "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", rail("Route")
    )
    page.wait_for_selector(".feed >> text=:route500")
    page.get_by_role("button", name="Close this query").click()
    page.wait_for_selector(".card")
    page.wait_for_function("() => !document.querySelector('.cards').innerText.includes('Routes')")
    assert "Routes" not in [query.name for query in graph.queries]


@pytest.fixture
def doors():
    graph = gt.LiveGraph()
    graph.run(gt.Program.read(EXAMPLES / "doors.tide"), functions={"warn": lambda *_: None})
    return graph


def door(graph, name, time):
    iri = "<http://example.org/{}>".format
    graph.insert(iri(name), iri("is"), iri("open"), time=time)


def test_tokens_of_a_pattern_wait_and_its_rule_fires(page, doors):
    door(doors, "north", 100)
    door(doors, "south", 105)
    with serving(doors) as address:
        page.goto(f"{address}#/pattern/Left")
        page.wait_for_selector(".picture .token")
        assert page.locator(".picture .token").count() == 2
        lines = texts(page.locator(".tokens tbody tr"))
        assert ":north" in lines[0] and "130 (25 left)" in lines[0] and "Closed" in lines[0]
        picture(page, "page-pattern", height=520)
        doors.advance(131)
        page.wait_for_selector(".feed >> text=:north")
        page.wait_for_function("() => document.querySelectorAll('.picture .token').length == 1")
        page.goto(f"{address}#/rule/Warn")
        page.wait_for_selector(".timeline .mark")
        assert "fired 1 time " in page.locator(".figure").inner_text()
        assert ":north" in page.locator(".feed").inner_text()


def test_the_slider_shows_the_whole_page_as_of_then(page, tmp_path):
    with gt.LiveGraph.open(tmp_path / "store") as graph:
        railway(graph, 10)
        was = graph.at(tx=11)
        then = {query.name: query.count() for query in was.queries}
        break_switch(graph)
        with serving(graph) as address:
            page.goto(address)
            page.wait_for_selector("#time:not([hidden])")
            slider = page.get_by_label("Transaction that is shown")
            assert slider.get_attribute("max") == "12"
            slider.focus()
            slider.press("ArrowLeft")
            page.wait_for_selector(".time.past")
            page.wait_for_function(
                "n => document.querySelectorAll('.card')[2].querySelector('.big').innerText == n",
                arg=str(then["SwitchSet"]),
            )
            page.goto(f"{address}#/query/SwitchSet")
            page.wait_for_selector(".figure >> text=row")
            assert ":route99" not in page.locator("main").inner_text()
            page.get_by_role("button", name="Back to now").click()
            page.wait_for_selector(".tbody >> text=:route99")


REPAIR = """
PREFIX : <http://www.semanticweb.org/ontologies/2015/trainbenchmark#>
QUERY Unset AS SELECT ?sw ?current ?position {
  ?swP :target ?sw ; :position ?position . ?sw :currentPosition ?current
  FILTER (?position != ?current) }
GOAL Set NONE OF Unset
FIX Turn ON Unset(?sw, ?current, ?position)
  THEN DELETE { ?sw :currentPosition ?current } ; INSERT { ?sw :currentPosition ?position }
"""


def test_a_violated_goal_is_repaired(page):
    graph = gt.LiveGraph()
    program = graph.run(gt.Program.parse(REPAIR))
    break_switch(graph)
    with serving(graph) as address:
        page.goto(f"{address}#/repairs")
        page.wait_for_selector(".goals .fails")
        page.get_by_role("button", name="Find repairs").click()
        page.wait_for_selector("article.plan")
        assert "− sw :switch99" in page.locator("article.plan").inner_text().replace("\n", " ")
        picture(page, "page-repairs", height=600)
        page.get_by_role("button", name="Apply").click()
        page.wait_for_selector("text=Applied: 2 quads changed.")
        page.wait_for_selector(".goals .holds")
    assert program.queries["Unset"].count() == 0


def test_a_hundred_thousand_rows_are_drawn_as_far_as_seen(page):
    graph = gt.LiveGraph()
    texts = pa.array([f"<http://example.org/n{i}>" for i in range(100_001)])
    ids = graph.terms.encode_column(texts)
    graph.watch("SELECT ?a ?b { ?a <http://example.org/p> ?b }", name="Many")
    subject, rest = ids[:1], ids[1:]
    predicate = graph.terms.encode("<http://example.org/p>")
    graph.apply_ids(
        np.repeat(subject, len(rest)), np.full(len(rest), predicate, np.int32), rest,
        tx=np.zeros(len(rest), np.int64),
    )  # fmt: skip
    with serving(graph) as address:
        page.goto(f"{address}#/query/Many")
        page.wait_for_selector(".tbody .tr")
        assert "100,000 rows" in page.locator(".figure").inner_text()
        assert page.locator(".tbody .tr").count() < 60
        page.locator(".table").evaluate("each => { each.scrollTop = each.scrollHeight }")
        page.wait_for_selector('[aria-rowindex="100001"]')
        assert page.locator(".tbody .tr").count() < 60


def test_the_keyboard_is_enough(page, graph, address):
    page.goto(address)
    page.wait_for_selector(".entries a")
    page.keyboard.press("/")
    page.keyboard.type("switch")
    assert texts(page.locator(".entries .name")) == ["SwitchMonitored", "SwitchSet"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1 >> text=SwitchSet")
    page.wait_for_selector(".tbody .tr")
    page.locator(".table").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.activeElement.classList.contains('tr')")
    page.keyboard.press("Enter")
    page.wait_for_selector(".reasons .picture")


def test_a_lost_connection_is_said_and_so_is_its_return(page, graph):
    with serving(graph) as address:
        port = int(address.rsplit(":", 1)[1].strip("/"))
        page.goto(address)
        page.wait_for_selector(".card")
    page.wait_for_selector(".banner.lost")
    assert "lost" in page.locator("#banner").inner_text()
    with serving(railway(gt.LiveGraph()), port):
        page.wait_for_selector(".banner.back")
        page.wait_for_selector(".card")


def test_hostile_terms_stay_text(page):
    graph = gt.LiveGraph()
    graph.watch("SELECT * { ?s ?p ?o }", name="<img src=x onerror=alert(1)>")
    graph.insert("<http://e/a>", "<http://e/p>", '"<script>window.hit = 1</script>"')
    with serving(graph) as address:
        page.goto(address)
        page.locator(".card").click()
        page.wait_for_selector(".tbody .tr")
        page.locator(".tbody .tr").first.click()
        page.wait_for_selector(".reasons .picture")
        assert page.evaluate("window.hit") is None
        assert page.locator("main img, main script").count() == 0
        assert "<script>" in page.locator(".tbody").inner_text()


def test_a_token_is_asked_for_once(page, graph, problems):
    asked = []
    page.on("dialog", lambda box: (asked.append(box.message), box.accept("r" * 20)))
    app = create_app(Host(graph), tokens={"r" * 20: "read"})
    with serving_app(app) as server:
        page.goto(f"{server.url}/#/query/SwitchSet")
        page.wait_for_selector(".tbody .tr")
        page.wait_for_selector(".plan .node")
        page.wait_for_selector(".entries a")
    assert asked == ["This server asks for a token"]
    refused = [each for each in problems if "401" in each]
    assert refused  # the browser writes them down
    problems[:] = [each for each in problems if each not in refused]


@pytest.mark.parametrize("page", [DARK, PHONE], indirect=True, ids=["dark", "phone"])
def test_dark_and_narrow(page, graph, address):
    page.goto(f"{address}#/query/RouteSensor")
    page.wait_for_selector(".plan .node")
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0  # nothing sticks out
    ink, ground = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert ink != ground
    width = page.viewport_size["width"]
    picture(page, "page-dark" if width > 1000 else "page-phone")

"""Notebooks: the example runs, and its widgets give a browser what the page shows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import graphtide as gt
from graphtide import notebook
from graphtide.serve.page.data import PageData

EXAMPLE = Path(__file__).parents[1] / "examples" / "notebook.ipynb"
CHROMIUM = shutil.which("chromium")
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def graph():
    graph = gt.LiveGraph()
    graph.watch("SELECT ?a ?b { ?a <http://example.org/p> ?b }", name="P")
    graph.insert("<http://example.org/a>", "<http://example.org/p>", 1)
    return graph


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of the kernel's own libraries
def test_the_example_runs_and_shows_widgets():
    found = nbformat.read(EXAMPLE, as_version=4)
    NotebookClient(found, timeout=120, kernel_name="python3").execute()
    cells = [cell for cell in found.cells if cell.cell_type == "code"]
    shown = [output.get("data", {}) for cell in cells for output in cell.outputs]
    assert sum(WIDGET in data for data in shown) == 2  # a query and a program
    assert shown[-1]["text/plain"] == "(3, 3)"


def test_a_message_is_answered_as_by_a_server(graph):
    data = PageData(graph)
    asked = {"id": 7, "method": "GET", "path": "queries/P/rows?offset=0&limit=5"}
    found = notebook.answered(data, asked)
    assert found == {"id": 7, "found": data.rows("P", 0, 5)}
    wrong = notebook.answered(data, {"id": 8, "method": "GET", "path": "queries/Q"})
    assert wrong["id"] == 8 and "no query named Q" in wrong["error"]["message"]


def test_a_program_and_a_query_know_their_graph(graph):
    program = graph.run(gt.Program.parse("QUERY All AS SELECT * { ?a ?b ?c }"))
    for shown, kind, names in (
        (graph.queries[0], "query", ["P"]),
        (program, "overview", ["All"]),
        (graph, "overview", None),
    ):
        view = notebook.live_view(shown)
        assert (view.kind, view.names) == (kind, names)
        view.close()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")
def test_the_widget_draws_the_query_in_a_browser(graph, tmp_path):
    """The module of the widget, with a model whose kernel is this process."""
    from playwright.sync_api import sync_playwright

    data, errors = PageData(graph), []
    view = notebook.live_view(graph.queries[0])
    state = {
        "kind": "query",
        "names": ["P"],
        "modules": view.modules,
        "style_sheet": view.style_sheet,
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.expose_function("kernel", lambda asked: notebook.answered(data, asked))
        page.set_content("<div id='cell'></div>")
        page.evaluate(
            """async ([source, state]) => {
              const blob = new Blob([source], {type: "text/javascript"});
              const module = await import(URL.createObjectURL(blob));
              let heard = () => {};
              const model = {
                get: (name) => state[name],
                on: (_, callback) => { heard = callback; },
                send: async (asked) => heard(await window.kernel(asked)),
              };
              await module.default.render({ model, el: document.getElementById("cell") });
            }""",
            [view._esm, state],
        )
        page.wait_for_selector(".tbody .tr >> text=:a")
        graph.insert("<http://example.org/b>", "<http://example.org/p>", 2)
        page.wait_for_selector(".tbody .tr >> text=:b")
        page.wait_for_selector(".plan .node")
        browser.close()
    view.close()
    assert errors == []


def test_the_example_has_no_output_in_the_repository():
    cells = json.loads(EXAMPLE.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells)

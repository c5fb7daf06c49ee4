"""A server in a thread with a railway that changes, and a browser that looks at its page."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.page_server import serving

import graphtide as gt
from graphtide.datasets.railway import QUERIES, VOCABULARY, change_stream

EXAMPLES = Path(__file__).parents[3] / "examples"
IMAGES = Path(__file__).parents[3] / "docs" / "images"
CHROMIUM = shutil.which("chromium")
WRITE_IMAGES = "GRAPHTIDE_SCREENSHOTS"
"""With this in the environment, the tests write the pictures of the docs."""


def rail(local: str) -> str:
    return f"<{VOCABULARY}{local}>"


def railway(graph: gt.LiveGraph, transactions: int = 40) -> gt.LiveGraph:
    """A graph with the queries of the demo, after some faults and repairs."""
    for name, text in QUERIES.items():
        graph.watch(text, name=name)
    for batch in change_stream(transactions, seed=3):
        graph.apply(batch)
    return graph


@pytest.fixture
def graph():
    return railway(gt.LiveGraph())


@pytest.fixture
def address(graph):
    with serving(graph) as found:
        yield found


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def problems():
    """Errors of the console and requests to other hosts, which no test may have."""
    return []


@pytest.fixture
def page(browser, problems, request):
    options = getattr(request, "param", {"viewport": {"width": 1280, "height": 860}})
    context = browser.new_context(**options)
    context.set_default_timeout(10_000)
    found = context.new_page()
    # A browser itself writes down that a server has gone; that is not an error of the page.
    found.on(
        "console",
        lambda m: (
            problems.append(m.text) if m.type == "error" and "net::ERR_" not in m.text else None
        ),
    )
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on(
        "request",
        lambda r: (
            None if r.url.startswith(("http://127.0.0.1", "data:")) else problems.append(r.url)
        ),
    )
    yield found
    context.close()
    assert problems == []


def picture(page, name: str, *, wait: int = 1800, height: int | None = None) -> None:
    """Write a picture for the docs, if that was asked for."""
    if os.environ.get(WRITE_IMAGES):
        page.wait_for_timeout(wait)  # colours of new rows fade
        IMAGES.mkdir(exist_ok=True)
        size = page.viewport_size
        clip = {"x": 0, "y": 0, **size, "height": height or size["height"]}
        page.screenshot(path=IMAGES / f"{name}.png", clip=clip)

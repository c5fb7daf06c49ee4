"""A run on Spark on its page, in a real browser: what it says is what the run has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from serve.page.conftest import EXAMPLES, picture
from support.commands import ended, start

from graphtide.cli.spark_engine import missing_for_spark
from graphtide.spark import read_output

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(missing_for_spark() is not None, reason=str(missing_for_spark())),
]


def texts(locator):
    return [text.strip() for text in locator.all_text_contents()]


def test_a_run_is_shown_with_its_output_and_what_it_rejected(page, tmp_path):
    changes = tmp_path / "doors.rdfp"
    log = Path(EXAMPLES / "doors.rdfp").read_text()
    changes.write_text(log.replace("H time 9 .", "A nonsense .\nH time 9 ."))
    out = tmp_path / "out"
    process, url = start(
        "run", str(EXAMPLES / "doors.tide"), "--engine", "spark", "--changes", str(changes),
        "--partitions", "2", "--out", str(out), "--json", "--page",
    )  # fmt: skip
    try:
        page.goto(url)
        page.wait_for_selector(".card")
        assert texts(page.locator(".card h2")) == ["Open", "Left", "Warn"]
        assert not page.locator("#to-ask").is_visible()
        for line in process.stderr:
            if "the page stays" in line:
                break
        deltas = read_output(out, "Open").to_pylist()
        answer = sum(row["diff"] for row in deltas)
        fired = len(read_output(out, "firings"))
        left = len(read_output(out, "Left"))
        assert (fired, left) == (1, 1)
        page.wait_for_function(
            "() => document.querySelector('.card .last').innerText != 'nothing yet'"
        )
        assert texts(page.locator(".card .big")) == [str(answer), str(left), str(fired)]
        page.goto(f"{url}#/query/Open")
        page.wait_for_selector(".feed .delta")
        counts = [text.split("+")[1] for text in texts(page.locator(".feed .delta .when"))]
        shown = sum(sum(map(int, text.replace("−", "").split())) for text in counts)
        assert shown == len(deltas) > 0
        page.goto(f"{url}#/rule/Warn")
        page.wait_for_selector(".timeline .mark")
        page.goto(f"{url}#/pattern/Left")
        page.wait_for_selector(".picture .node")
        page.goto(f"{url}#/run")
        page.wait_for_selector("text=All changes are read.")
        rejected = page.get_by_label("Rejected rows, newest first")
        assert "nonsense" in rejected.inner_text()
        assert f"{len(read_output(out, 'quarantine'))} row" in page.locator("main").inner_text()
        lines = texts(page.get_by_label("Partitions of match").locator("tbody th"))
        assert lines == ["0", "1"]
    finally:
        code, printed = ended(process)
    assert code == 0
    status = json.loads(printed.splitlines()[-1])
    assert status["quarantined"] == len(read_output(out, "quarantine")) > 0


def test_the_demo_on_spark_goes_on_until_it_is_stopped(page):
    process, url = start("demo", "--page", "--engine", "spark")
    try:
        page.goto(f"{url}#/run")
        page.wait_for_function(
            "() => document.querySelectorAll('tbody')[0].rows.length >= 8", timeout=500_000
        )
        numbers = page.get_by_label("Micro-batches, newest first").locator("tbody th")
        batches = [int(text.replace(",", "")) for text in texts(numbers)]
        assert batches == list(range(batches[0], batches[-1] - 1, -1))
        picture(page, "page-run", wait=0, height=640)
        page.goto(f"{url}#/query/RouteSensor")
        page.wait_for_selector(".feed .delta")
    finally:
        code, printed = ended(process)
    assert (code, printed) == (0, "")

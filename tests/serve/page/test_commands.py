"""`--page` of commands: the same output, and a page that shows the same rows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.commands import ended, start

import graphtide as gt
from graphtide.cli.session import Session
from graphtide.datasets.railway import QUERIES, change_stream
from graphtide.serve.page.data import PageData

EXAMPLES = Path(__file__).parents[3] / "examples"
RUN = (
    "run", str(EXAMPLES / "doors.tide"), "--engine", "process",
    "--changes", str(EXAMPLES / "doors.rdfp"), "--json",
)  # fmt: skip


@pytest.mark.slow
def test_a_run_is_shown_and_says_the_same():
    plain = subprocess.run(
        [sys.executable, "-m", "graphtide.cli.main", *RUN],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    process, url = start(*RUN, "--page")
    try:
        for line in process.stderr:
            if "the page stays" in line:
                break
        found = httpx.get(f"{url}api/queries/Open", timeout=30).json()
        assert httpx.get(url).status_code == 200
    finally:
        code, output = ended(process)
    assert code == 0
    assert output == plain.stdout
    assert len(found["deltas"]) == len(re.findall(r'"query": ?"Open"', output)) > 0


@pytest.mark.slow
def test_the_demo_on_a_page_goes_on():
    process, url = start("demo", "--page")
    try:
        with httpx.stream("GET", f"{url}api/overview/events", timeout=60) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data: "))
            first, second = next(lines), next(lines)
        assert first != second
        names = [each["name"] for each in httpx.get(f"{url}api/overview").json()["queries"]]
        assert names == [*QUERIES, "Neglected", "Report"]
    finally:
        code, _ = ended(process)
    assert code == 0


def test_what_is_shown_keeps_its_last_deltas(monkeypatch):
    monkeypatch.setattr("graphtide.cli.session.SHOWN_ROWS", 5)
    shown, plain = (Session(gt.LiveGraph(), QUERIES, shown=each) for each in (True, False))
    data = PageData(shown.graph)
    for batch in change_stream(40, seed=2):
        rows, expected = (
            [str(r) for part in s.apply([batch]) for r in part] for s in (shown, plain)
        )
        assert rows == expected
    for name, query in shown.queries.items():
        tally = shown.tallies[name]
        kept = sum(len(net) for net, _ in query.history())
        assert min(5, tally.added + tally.removed) <= kept < 10  # whole transactions
        found = data.deltas(name, -1, 1)["deltas"][0]
        assert found["seq"] == query.recent(limit=1)[0].seq
    assert plain.queries["SwitchSet"].history() == []

"""--service-allow and --service-refresh: which endpoints SERVICE may ask, and how often."""

from __future__ import annotations

import pytest

CLOSED = "http://127.0.0.1:1/sparql"
ASKS = f"{{ ?s ?p ?o SERVICE SILENT <{CLOSED}> {{ ?s ?q ?r }} }}"
"""With SILENT, an endpoint that does not answer adds nothing to a row."""


@pytest.fixture
def asking(files):
    (files / "asks.rq").write_text(f"SELECT ?s {ASKS}")
    (files / "asks.ru").write_text(f"INSERT {{ ?s <ex:was> <ex:asked> }} WHERE {ASKS}")
    (files / "one.nt").write_text("<ex:a> <ex:p> <ex:b> .\n")


@pytest.mark.parametrize(
    "tokens",
    [
        ("query", "asks.rq", "--data", "one.nt"),
        ("update", "asks.ru", "--data", "one.nt"),
        ("watch", "asks.rq", "--changes", "one.nt"),
        ("watch", "asks.rq", "--changes", "one.nt", "--service-refresh", "60"),
    ],
    ids=" ".join,
)
def test_only_endpoints_that_are_allowed_are_asked(asking, run, tokens):
    for allowed in ((), ("--service-allow", "http://other.example/*")):
        refused = run(*tokens, *allowed)
        assert (refused.code, refused.out) == (2, "")
        assert f"SERVICE <{CLOSED}> is not allowed" in refused.err
    for allowed in (CLOSED, "http://127.0.0.1:1/*"):
        ran = run(*tokens, "--service-allow", allowed)
        assert ran.code == 0 and "ex:a" in ran.out

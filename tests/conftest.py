"""What all tests share: how the W3C suites are summed up at the end of a run."""

from __future__ import annotations

from collections import defaultdict
from textwrap import fill

_INDENT = {"initial_indent": "    ", "subsequent_indent": "    ", "break_on_hyphens": False}


def pytest_terminal_summary(terminalreporter) -> None:
    """Say how many W3C tests passed, and name each excluded one with its reason."""
    counts: dict[str, int] = {}
    excluded: dict[str, list[str]] = defaultdict(list)
    for outcome in ("passed", "failed", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            properties = dict(getattr(report, "user_properties", ()))
            if "w3c" not in properties or (outcome == "passed" and report.when != "call"):
                continue
            counts[outcome] = counts.get(outcome, 0) + 1
            if "w3c-excluded" in properties:
                excluded[properties["w3c-excluded"]].append(properties["w3c"])
    if not counts:
        return
    terminalreporter.section("W3C SPARQL query evaluation tests")
    ran = counts.get("passed", 0) + counts.get("failed", 0)
    left = sum(map(len, excluded.values()))
    terminalreporter.write_line(
        f"{counts.get('passed', 0)} of {ran} passed, each three ways; {left} excluded:"
    )
    for reason, names in sorted(excluded.items(), key=lambda item: -len(item[1])):
        terminalreporter.write_line(f"  {reason} ({len(names)}):")
        terminalreporter.write_line(fill(", ".join(sorted(names)), 100, **_INDENT))

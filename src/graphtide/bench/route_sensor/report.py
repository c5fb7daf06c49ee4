"""The figures of the RouteSensor benchmark as one JSON object, and as a table with ratios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from graphtide.bench.route_sensor.run import Results

PEER_KEYS = {
    "clipspy": ("load_calls_per_s", "update_us_median", "rss_mb", "matches"),
    "duckdb": ("update_us_median", "matches"),
}


def to_object(results: Results) -> dict[str, Any]:
    """One object for programs to read. `scaling.cost_ratio`: an edge's cost, large over small."""
    ids = results.ours["ids"]
    return {
        "edges": ids["edges"],
        "load_ids_per_s": ids["load_per_s"],
        "load_strings_per_s": results.ours["strings"]["load_per_s"],
        "load_calls_per_s": results.ours["calls"]["load_per_s"],
        "update_us_median": ids["update_us_median"],
        "update_us_p95": ids["update_us_p95"],
        "rss_mb": ids["rss_mb"],
        "matches": ids["matches"],
        "peers": {
            name: {key: figures[key] for key in PEER_KEYS[name]}
            for name, figures in results.peers.items()
        },
        "scaling": {
            "edges": results.small["edges"],
            "load_ids_per_s": results.small["load_per_s"],
            "cost_ratio": cost_ratio(results),
        },
    }


def cost_ratio(results: Results) -> float:
    """How much dearer an edge is in the large graph than in one of a tenth of the edges."""
    return round(results.small["load_per_s"] / results.ours["ids"]["load_per_s"], 2)


def to_table(results: Results) -> Table:
    """A table for people: our figures, the peers', and how we compare with clipspy."""
    ids = results.ours["ids"]
    clips, duck = (results.peers.get(name, {}) for name in ("clipspy", "duckdb"))
    title = f"RouteSensor, {ids['edges']:,.0f} edges (ratio: against clipspy)"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in ("", "graphtide", "clipspy", "DuckDB", "ratio", "aim"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    clips_load = clips.get("load_calls_per_s")
    for way, aim in (("ids", "≥ 10×"), ("strings", ""), ("calls", "≥ 4×")):
        rate = results.ours[way]["load_per_s"]
        peer = _number(clips_load) if way == "calls" else ""
        table.add_row(
            f"load from {way}, edges/s", _number(rate), peer, "", _times(rate, clips_load), aim
        )
    for key, label, aim in (
        ("update_us_median", "update, median µs", "< 0.5×"),
        ("update_us_p95", "update, p95 µs", ""),
        ("rss_mb", "peak memory, MB", "< 1×"),
        ("matches", "matches", "equal"),
    ):
        peers = [clips.get(key), duck.get(key)]
        against = _times(ids[key], peers[0])
        table.add_row(label, _number(ids[key]), *map(_number, peers), against, aim)
    for way in ("strings", "calls"):
        table.add_row(f"peak memory from {way}, MB", _number(results.ours[way]["rss_mb"]))
    label = f"cost per edge / at {results.small['edges']:,.0f} edges"
    table.add_row(label, f"{cost_ratio(results):.2f}×", "", "", "", "≤ 2×")
    return table


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def _times(ours: float, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}×" if theirs else ""

"""Compiled loops of the rules: events to conditions, conditions to matches."""

from pathlib import Path

from graphtide.jit import JIT, drop_stale_code

if JIT:
    drop_stale_code(Path(__file__).parent, Path(__file__).parents[2] / "kernel")

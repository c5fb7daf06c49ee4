"""Benchmarks: every figure that we claim, and the data generators behind them."""

from pathlib import Path

from graphtide.jit import JIT, drop_stale_code

if JIT:
    drop_stale_code(Path(__file__).parent)

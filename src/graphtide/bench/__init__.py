"""Benchmarks: every figure that we claim, and the data generators behind them."""

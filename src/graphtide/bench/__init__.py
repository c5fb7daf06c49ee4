"""Benchmarks: every published figure can be measured here, beside other engines."""

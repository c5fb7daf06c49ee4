"""Benchmarks: figures of papers, every kind of change, and other engines on the same workloads."""

"""Compiled loops over texts: lines, terms, values."""

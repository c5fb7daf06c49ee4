"""Helpers for testing standing queries, ours and yours."""

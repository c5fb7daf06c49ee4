"""Deltas of standing queries for those who subscribe to them."""

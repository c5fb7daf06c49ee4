"""Matching of events and facts with the conditions of rules."""

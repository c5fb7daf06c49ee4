"""Matching events and facts with the conditions of a rule."""

"""Compiled loops of the rules: events to conditions, conditions to matches."""

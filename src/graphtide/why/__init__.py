"""Explanations: why a row is in an answer, why not, and which changes made the difference."""

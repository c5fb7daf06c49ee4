"""Tokens of deterministic automata in arrays, and the loops that move them."""

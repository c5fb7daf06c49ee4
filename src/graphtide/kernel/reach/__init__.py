"""Transitive closure, with a tree for each source that is demanded."""

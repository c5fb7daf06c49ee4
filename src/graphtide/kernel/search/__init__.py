"""The search strategy: quad store, search programs, matching from a changed quad outwards."""

"""The `decomposed` strategy: instances of a pattern, as bits and counts."""

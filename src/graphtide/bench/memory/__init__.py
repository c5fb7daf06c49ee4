"""Memory: bytes of a quad and of a term."""

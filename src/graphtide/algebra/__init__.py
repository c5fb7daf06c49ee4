"""The logical algebra: what a standing query means, before anybody decides how to maintain it."""

"""How queries, quads, events and rules are divided among partitions."""

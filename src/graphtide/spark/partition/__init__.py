"""How queries and the graph are divided among partitions."""

"""From what a query means to how it is maintained: the physical plan, and its explanation."""

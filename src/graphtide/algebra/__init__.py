"""The logical algebra of queries: what a query means, independent of how it is maintained."""

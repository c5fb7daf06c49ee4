"""The query planner: algebra to physical plan, cost model, and explain."""

"""Restore: the state of a job from the saved logs of another, with other partitions or queries."""

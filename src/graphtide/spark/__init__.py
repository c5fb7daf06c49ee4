"""The pipeline on Spark: changes in, deltas out, with the answers of the in-process engine."""

from graphtide.spark.explain_cells import explain
from graphtide.spark.pipeline import watch

__all__ = ["explain", "watch"]

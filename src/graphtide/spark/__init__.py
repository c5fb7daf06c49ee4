"""The pipeline on Spark: changes in, deltas out, with the answers of the in-process engine."""

from graphtide.spark.pipeline import watch

__all__ = ["watch"]

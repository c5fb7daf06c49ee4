"""The Spark data source that reads directories of change logs."""

"""The Spark data source of change logs."""

"""The pipeline on Spark, beside the cost of moving the data and beside plain Spark SQL."""

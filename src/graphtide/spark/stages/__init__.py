"""The stages of a job, as functions of one partition."""

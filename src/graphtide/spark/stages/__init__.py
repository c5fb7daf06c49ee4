"""What the stages of a job do in one partition."""

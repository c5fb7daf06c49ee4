"""The planner's choice beside every strategy."""

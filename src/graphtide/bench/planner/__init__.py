"""`graphtide bench planner`: the planner's choice beside every strategy."""

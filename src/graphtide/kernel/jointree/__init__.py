"""The `counting` strategy: weights by key in the nodes of a join tree."""

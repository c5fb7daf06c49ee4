"""How a basic graph pattern falls apart: the definitions behind the `decomposed` strategy.

The concepts are those of M. Gergatsoulis and M. Damigos, "Evaluating Continuous Basic Graph
Patterns over Dynamic Link Data Graphs", by their numbers there, over our triple patterns.
Predicates and graphs may be variables too: such a variable is a node of its pattern, beside subject
and object, and two nodes are neighbours if a pattern has both.
"""

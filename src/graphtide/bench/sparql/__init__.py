"""What one change costs each operator of SPARQL, as its state grows."""

"""SPARQL operators and built-in functions over terms, and the evaluation of expressions."""

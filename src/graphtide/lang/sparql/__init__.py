"""SPARQL 1.1 (query and update) and RSP-QL: a recursive-descent parser in layers."""

"""SPARQL and RSP-QL text to algebra."""

"""Parsers: SPARQL, RSP-QL and .tide texts to algebra and declarations."""

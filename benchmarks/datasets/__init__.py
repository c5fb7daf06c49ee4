"""Generators of the benchmarks' RDF data, of any size, block by block.

A generator works on term codes (integers); whole columns of codes become texts or ids of a term
dictionary.
"""

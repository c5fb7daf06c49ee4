"""Generators of RDF data: the datasets behind the demo, the examples and the benchmarks.

`train`, `lubm`, `seas` and `gesture` generate data of any size, block by block; `railway` is a
small network for demos. A generator works on term codes (integers); whole columns of codes become
texts for a file or ids of a term dictionary.
"""

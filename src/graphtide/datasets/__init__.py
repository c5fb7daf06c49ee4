"""Generators of RDF data: the datasets behind the demo, the examples and the benchmarks.

`train`, `lubm`, `seas` and `gesture` generate data of any size, block by block; `railway` is a
small network for demos. A generator works on term codes (integers); whole columns of codes become
texts for a file or ids of a term dictionary.
"""

from pathlib import Path

from graphtide.jit import JIT, drop_stale_code

if JIT:
    drop_stale_code(Path(__file__).parent)

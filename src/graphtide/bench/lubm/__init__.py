"""LUBM: universities of any number, with the counts and random numbers of its generator, UBA.

LUBM(n, s) is n universities made from seed s. The seven queries of paper 5 come with it.
"""

from pathlib import Path

from graphtide.jit import JIT, drop_stale_code

if JIT:
    drop_stale_code(Path(__file__).parent, Path(__file__).parents[1])

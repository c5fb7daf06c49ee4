"""Power measurements of a house, like those of the SEAS project: one star of triples each.

The data set that paper 5 measures with is not public. This one has its shape: meters of a house,
each read every five minutes, and for each reading an observation of the RDF Data Cube.
"""

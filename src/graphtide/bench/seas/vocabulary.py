"""The terms of power measurements."""

from __future__ import annotations

from typing import Final

SEAS: Final = "http://purl.org/NET/seas#"
MEASURES: Final = "http://purl.org/NET/seas/measures#"
CUBE: Final = "http://purl.org/linked-data/cube#"
DIMENSION: Final = "http://purl.org/linked-data/sdmx/2009/dimension#"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
DATA: Final = "http://example.org/seas/"
RDF_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

MEASURED: Final = ("V_RMS", "V_THD", "V_CF", "W", "Wh", "DPF")
"""Voltage: effective value, distortion in percent, crest factor. Power, energy since the reading
before, and displacement power factor."""

CONSTANTS: Final = (
    RDF_TYPE,
    f"<{CUBE}dataSet>",
    f"<{SEAS}meter>",
    f"<{DIMENSION}timePeriod>",
    *(f"<{MEASURES}{name}>" for name in MEASURED),
    f"<{CUBE}Observation>",
    f"<{DATA}power>",
)
"""The predicates of an observation, in order, and what the first two point to."""

PREDICATES: Final = 4 + len(MEASURED)
"""Triples of an observation: one for each predicate."""

OBSERVATION, DATA_SET = PREDICATES, PREDICATES + 1

"""The terms of the body model: twenty control points, with six attributes each."""

from __future__ import annotations

from typing import Final

BODY: Final = "http://example.org/body#"
DATA: Final = "http://example.org/stage/"
XSD_INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"
RDF_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

POINTS: Final = (
    "head",
    "shoulderCentre",
    "spine",
    "hipCentre",
    *(
        f"{side}{part}"
        for side in ("left", "right")
        for part in ("Shoulder", "Elbow", "Wrist", "Hand", "Hip", "Knee", "Ankle", "Foot")
    ),
)
"""The control points of a body; its references to them have the same names."""

ATTRIBUTES: Final = ("x", "y", "z", "screenX", "screenY", "distance")
"""What is known of each point, in whole millimetres; the first two are measured in every frame."""

MEASURED: Final = ATTRIBUTES[:2]

CHANGES: Final = len(POINTS) * len(MEASURED)
"""Attributes of a body that change from frame to frame."""

FORWARD_START, FORWARD_END, BACKWARD_START = "ForwardStart", "ForwardEnd", "BackwardStart"
POSTURES: Final = (FORWARD_START, FORWARD_END, BACKWARD_START)
"""What the queries find: two postures of the gesture, and one that is noise for it."""

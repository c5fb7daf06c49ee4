"""The terms of a railway model as codes: constants, then lengths, then vertices.

A model is made of codes and turned into texts or ids block by block, whole columns at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from graphtide.kernel.batch import Longs
    from graphtide.rdf.term_tables import Strings

NAMESPACE: Final = "http://www.semanticweb.org/ontologies/2015/trainbenchmark#"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

Scenario: TypeAlias = Literal["batch", "inject", "repair"]
SCENARIOS: Final[tuple[Scenario, ...]] = ("batch", "inject", "repair")

NAMES: Final = (
    "Region", "Route", "Segment", "Semaphore", "Sensor", "Switch", "SwitchPosition",
    "TrackElement",
    "connectsTo", "elements", "entry", "exit", "follows", "monitoredBy", "requires", "semaphores",
    "sensors", "target",
    "active", "currentPosition", "length", "position", "signal",
    "SIGNAL_GO", "POSITION_FAILURE", "POSITION_STRAIGHT", "POSITION_DIVERGING",
)  # fmt: skip
"""Types, edges, attributes and values; the code of each is its place here."""

(
    REGION, ROUTE, SEGMENT, SEMAPHORE, SENSOR, SWITCH, SWITCH_POSITION,
    TRACK_ELEMENT,
    CONNECTS_TO, ELEMENTS, ENTRY, EXIT, FOLLOWS, MONITORED_BY, REQUIRES, SEMAPHORES,
    SENSORS, TARGET,
    ACTIVE, CURRENT_POSITION, LENGTH, POSITION, SIGNAL,
    SIGNAL_GO, POSITION_FAILURE, POSITION_STRAIGHT, POSITION_DIVERGING,
    TYPE, TRUE,
) = range(len(NAMES) + 2)  # fmt: skip

LEAST_LENGTH: Final = -998
MOST_LENGTH: Final = 1000

LENGTH_0: Final = len(NAMES) + 2 - LEAST_LENGTH
"""The code of a length is this plus the length."""

VERTEX_0: Final = LENGTH_0 + MOST_LENGTH + 1
"""The code of a vertex is this plus its number; vertices are numbered from 1."""

VERTEX_START: Final = f"<{NAMESPACE}_"


def check_scenario(text: str) -> Scenario:
    """The scenario of that name.

    >>> check_scenario("repair")
    'repair'
    """
    for scenario in SCENARIOS:
        if scenario == text:
            return scenario
    known = ", ".join(SCENARIOS)
    raise GraphtideError(f"scenario {text!r} is unknown", hint=f"choose from {known}")


def name(local: str) -> str:
    """An IRI of the vocabulary, in N-Triples syntax.

    >>> name("Route")
    '<http://www.semanticweb.org/ontologies/2015/trainbenchmark#Route>'
    """
    return f"<{NAMESPACE}{local}>"


def vertex(number: int) -> str:
    """The IRI of a vertex.

    >>> vertex(17)
    '<http://www.semanticweb.org/ontologies/2015/trainbenchmark#_17>'
    """
    return f"{VERTEX_START}{number}>"


def length_literal(value: int) -> str:
    """A length as a literal.

    >>> length_literal(-5)
    '"-5"^^<http://www.w3.org/2001/XMLSchema#int>'
    """
    return f'"{value}"^^<{XSD}int>'


def length_value(text: str) -> int:
    """The length that a literal stands for.

    >>> length_value(length_literal(-5))
    -5
    """
    return int(text[1 : text.index('"', 1)])


def constant_texts() -> Strings:
    """The texts of all codes below the vertices.

    >>> len(constant_texts()) == VERTEX_0
    True
    """
    lengths = map(length_literal, range(LEAST_LENGTH, MOST_LENGTH + 1))
    texts = [*map(name, NAMES), RDF_TYPE, f'"true"^^<{XSD}boolean>', *lengths]
    return pa.array(texts, pa.string())


def vertex_texts(numbers: Longs) -> Strings:
    """The IRIs of many vertices.

    >>> import numpy as np
    >>> vertex_texts(np.array([17])).to_pylist() == [vertex(17)]
    True
    """
    join: Any = pc.binary_join_element_wise
    texts: Strings = join(VERTEX_START, pa.array(numbers).cast(pa.string()), ">", "")
    return texts


def vertex_numbers(texts: Strings) -> Longs:
    """The numbers of vertices, from their IRIs.

    >>> vertex_numbers(pa.array([vertex(17)]))
    array([17])
    """
    digits = pc.utf8_slice_codeunits(texts, len(VERTEX_START), -1)
    numbers: Longs = digits.cast(pa.int64()).to_numpy()
    return numbers

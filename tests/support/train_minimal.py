"""The smallest models with one violation each."""

from benchmarks.datasets.train import RDF_TYPE, length_literal, name, vertex

TRUE = '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'


def edge(s, p, o):
    """A triple: numbers are vertices, other words names; `a` is the type."""
    ends = [vertex(end) if isinstance(end, int) else end for end in (s, o)]
    ends = [end if end[0] in '<"' else name(end) for end in ends]
    return ends[0], RDF_TYPE if p == "a" else name(p), ends[1]


def triples(text):
    """Triples of words, three each."""
    words = [int(word) if word.isdecimal() else word for word in text.split()]
    return [edge(*words[at : at + 3]) for at in range(0, len(words), 3)]


def segments(*numbers):
    return [edge(number, "a", kind) for number in numbers for kind in ("Segment", "TrackElement")]


CHAIN = range(2, 8)

MINIMAL = {
    "PosLength": [*segments(1), edge(1, "length", length_literal(-1))],
    "SwitchMonitored": triples("1 a Region  2 a Switch  2 a TrackElement  1 elements 2"),
    "RouteSensor": triples("""
        1 a Route  2 a SwitchPosition  3 a Switch  3 a TrackElement  4 a Sensor
        1 follows 2  2 target 3  3 monitoredBy 4"""),
    "SwitchSet": [
        *triples("""
        1 a Semaphore  1 signal SIGNAL_GO  2 a Route  2 entry 1  2 follows 3
        3 a SwitchPosition  3 position POSITION_STRAIGHT  3 target 4
        4 a Switch  4 a TrackElement  4 currentPosition POSITION_DIVERGING"""),
        edge(2, "active", TRUE),
    ],
    "SemaphoreNeighbor": [
        *segments(6, 7),
        *triples("""
        1 a Semaphore  2 a Route  3 a Route  4 a Sensor  5 a Sensor
        2 exit 1  2 requires 4  3 requires 5
        6 monitoredBy 4  7 monitoredBy 5  6 connectsTo 7  6 semaphores 1"""),
    ],
    "ConnectedSegments": [
        edge(1, "a", "Sensor"),
        *segments(*CHAIN),
        *[edge(number, "monitoredBy", 1) for number in CHAIN],
        *[edge(number, "connectsTo", number + 1) for number in CHAIN[:-1]],
    ],
}

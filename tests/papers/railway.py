"""The example graph of paper 1 (figure 1, section 3.1.2) and how tests look at it.

An edge `⟨source, edge, target⟩` is a triple in a named graph, and the graph's name is the edge's
identifier; a vertex label is a class.
"""

from graphtide import LiveGraph

VERTICES = {
    "Route": [2, 4],
    "Segment": [8, 10, 11, 13],
    "Semaphore": [1, 3],
    "Sensor": [5, 6, 7],
    "Switch": [9, 12],
    "SwitchPosition": [14, 15],
    "TrackElement": [8, 9, 10, 11, 12, 13],
}

EDGES = {
    "connectsTo": [(8, "m", 9), (9, "n", 10), (10, "o", 11), (11, "p", 12), (12, "q", 13)],
    "entry": [(2, "a", 1)],
    "exit": [(2, "b", 3)],
    "follows": [(2, "c", 14), (4, "e", 15)],
    "requires": [(2, "d", 6), (4, "f", 7)],
    "monitoredBy": [
        (8, "g", 5),
        (9, "h", 5),
        (10, "i", 6),
        (11, "j", 6),
        (12, "k", 7),
        (13, "l", 7),
    ],
    "target": [(14, "r", 9), (15, "s", 12)],
}

EXAMPLE = "http://example.org/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def iri(name):
    return f"<{EXAMPLE}{name}>"


def quad(label, edge):
    source, name, target = edge
    return iri(source), iri(label), iri(target), iri(name)


def ids(edge):
    """An edge as a row of numbers; letters become numbers above all vertices."""
    return tuple(100 + ord(value) if isinstance(value, str) else value for value in edge)


class Railway:
    """The example graph with one standing query on it."""

    def __init__(self, query, strategy, *, variables):
        self.graph = LiveGraph()
        with self.graph.transaction() as tx:
            for label, vertices in VERTICES.items():
                for vertex in vertices:
                    tx.insert(iri(vertex), TYPE, iri(label))
            for label, edges in EDGES.items():
                for edge in edges:
                    tx.insert(*quad(label, edge))
        text = f"PREFIX : <{EXAMPLE}> SELECT {variables} {{ {query} }}"
        self.watch = self.graph.watch(text, strategy=strategy)

    def answer(self):
        """The match set, row by row as the production node hands it out."""
        table = self.watch.table(terms=True)
        columns = [table[name].to_pylist() for name in self.watch.variables]
        return sorted(tuple(map(_short, row)) for row in zip(*columns, strict=True))

    def insert(self, label, edge):
        """A positive update of one input node; the change of the answer."""
        self.graph.insert(*quad(label, edge))
        return self.delta()

    def delete(self, label, edge):
        """A negative update of one input node; the change of the answer."""
        self.graph.delete(*quad(label, edge))
        return self.delta()

    def delta(self):
        """{row: diff} of the last transaction."""
        return {
            tuple(_short(str(term)) for term in row.row.values()): row.diff
            for row in self.watch.delta()
        }


def _short(text):
    name = text.removeprefix(f"<{EXAMPLE}").removesuffix(">")
    return int(name) if name.isdigit() else name

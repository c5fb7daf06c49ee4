"""Network: the operators of one query, wired as its plan says. Equal sub-plans are one node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.engine.operators import Operator, constant_batch, make_operator
from graphtide.kernel.batch import Ints, empty_batch
from graphtide.plan.physical import Constant, Physical, Search, children

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.rdf.dictionary import TermDictionary


class Network:
    """Operators in an order where every node comes after its inputs."""

    def __init__(self, root: Physical, terms: TermDictionary) -> None:
        self.nodes: list[Physical] = []
        self._places: dict[Physical, int] = {}
        self._wire(root)
        self._operators: list[Operator] = [make_operator(node, terms) for node in self.nodes]
        self._steps = [
            (place, self._operators[place].step, [self._places[c] for c in children(node)])
            for place, node in enumerate(self.nodes)
            if children(node)
        ]
        self._nothing = [empty_batch(len(node.schema)) for node in self.nodes]
        self._constants = {
            place: constant_batch(node, terms)
            for place, node in enumerate(self.nodes)
            if isinstance(node, Constant)
        }

    def _wire(self, node: Physical) -> None:
        if node in self._places:
            return
        for child in children(node):
            self._wire(child)
        self._places[node] = len(self.nodes)
        self.nodes.append(node)

    def searches(self) -> list[tuple[int, Search]]:
        """The places and nodes that need a batch from the quad store."""
        return [(i, node) for i, node in enumerate(self.nodes) if isinstance(node, Search)]

    def start(self, leaves: Mapping[int, Ints]) -> Ints:
        """The first answer, from the searches' first batches and the constants."""
        return self.step({**self._constants, **leaves})

    def step(self, leaves: Mapping[int, Ints]) -> Ints:
        """The change of the root for changes of some leaves, by place."""
        outputs = self._nothing.copy()
        for place, batch in leaves.items():
            outputs[place] = batch
        for place, step, inputs in self._steps:
            if len(inputs) == 1:
                if len(outputs[inputs[0]]):
                    outputs[place] = step(outputs[inputs[0]])
            elif len(outputs[inputs[0]]) or len(outputs[inputs[1]]):
                outputs[place] = step(outputs[inputs[0]], outputs[inputs[1]])
        return outputs[-1]

    def sizes(self) -> dict[Physical, dict[str, int]]:
        """The rows that each node holds now."""
        return {node: op.sizes() for node, op in zip(self.nodes, self._operators, strict=True)}

    @property
    def nbytes(self) -> int:
        """Bytes held by all nodes."""
        return sum(operator.nbytes for operator in self._operators)

"""Triple terms in patterns: matched as variables, then taken apart.

A triple term with variables, as in `?r rdf:reifies <<( ?s :p ?o )>>`, is a variable in its triple
pattern. The rows of that pattern are filtered to triple terms that fit, and extended with the parts
that have variables, before they are joined with the rest: so a join on a part is a join like every
other, and nothing new has to be maintained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyoxigraph import BlankNode

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Const, Expression, Var
from graphtide.algebra.traverse import walk
from graphtide.algebra.trees import balanced
from graphtide.algebra.variables import PARTS_OF_TRIPLES, pattern_variables, schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphtide.rdf.terms import Term, TripleTerm


def match_parts(
    triples: Sequence[alg.TriplePattern],
    paths: Sequence[alg.Node],
    terms: Mapping[Var, TripleTerm],
) -> alg.Node:
    """Join triple patterns and paths in which some variables stand for triple terms with parts."""
    whole = [triple for triple in triples if terms.keys() & set(pattern_variables(triple))]
    plain = tuple(triple for triple in triples if triple not in whole)
    taken: set[Var] = set()
    nodes: list[alg.Node] = [alg.Bgp(plain)] if plain else []
    nodes += [_taken_apart(alg.Bgp((triple,)), terms, taken) for triple in whole]
    nodes += [_taken_apart(path, terms, taken) for path in paths]
    return balanced(alg.Join, nodes)


def is_ground(term: TripleTerm) -> bool:
    """Whether a triple term of a template has neither variables nor blank nodes.

    >>> from pyoxigraph import NamedNode
    >>> from graphtide.rdf.terms import TripleTerm
    >>> a = NamedNode("ex:a")
    >>> is_ground(TripleTerm(a, a, a)), is_ground(TripleTerm(a, a, Var("x")))
    (True, False)
    """
    return not any(isinstance(part, Var | BlankNode) for part in walk(term))


def _taken_apart(node: alg.Node, terms: Mapping[Var, TripleTerm], taken: set[Var]) -> alg.Node:
    """The rows of a node with the parts of its triple terms, those inside others included."""
    while found := [var for var in schema(node) if var in terms and var not in taken]:
        taken.add(found[0])
        node = _with_parts(node, found[0], terms[found[0]])
    return node


def _with_parts(node: alg.Node, var: Var, term: TripleTerm) -> alg.Node:
    conditions: list[Expression] = [Call("ISTRIPLE", (var,))]
    bound = set(schema(node))
    parts: tuple[Var | Term, ...] = (term.subject, term.predicate, term.object)
    for name, part in zip(PARTS_OF_TRIPLES, parts, strict=True):
        value = Call(name, (var,))
        if not isinstance(part, Var):
            conditions.append(Call("SAMETERM", (value, Const(part))))
        elif part in bound:
            conditions.append(Call("SAMETERM", (value, part)))
        else:
            node = alg.Extend(node, part, value)
            bound.add(part)
    condition = conditions[0] if len(conditions) == 1 else Call("&&", tuple(conditions))
    return alg.Filter(condition, node)

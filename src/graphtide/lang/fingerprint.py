"""Fingerprint text: a text of syntax trees, to compare declarations; checkpoints store it.

Node types have names of their own here, and fields stand by position. So renaming a class or a
field changes no fingerprint. A checkpoint of another version is rejected if a name or the order
changes.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from graphtide.algebra import nodes as alg
from graphtide.algebra import paths
from graphtide.algebra.expressions import Call, Const, Exists, Var
from graphtide.lang.durations import WrittenDuration
from graphtide.lang.tide import ast as tide
from graphtide.rdf.terms import TERM_TYPES

NODE_NAMES: Final[dict[type[Any], str]] = {
    Var: "var",
    Const: "const",
    Call: "call",
    Exists: "exists",
    alg.DefaultGraph: "default-graph",
    alg.MergedGraph: "merged-graph",
    alg.TriplePattern: "triple",
    alg.Bgp: "bgp",
    alg.Join: "join",
    alg.LeftJoin: "left-join",
    alg.Filter: "filter",
    alg.Union: "union",
    alg.Minus: "minus",
    alg.Extend: "extend",
    alg.Values: "values",
    alg.GraphNames: "graph-names",
    alg.Project: "project",
    alg.Distinct: "distinct",
    alg.Path: "path",
    alg.Aggregate: "aggregate",
    alg.Group: "group",
    alg.OrderKey: "order-key",
    alg.Slice: "slice",
    alg.Dataset: "dataset",
    alg.SelectQuery: "select",
    paths.Link: "link",
    paths.NegatedSet: "negated-set",
    paths.ToBlank: "to-blank",
    paths.Inverse: "inverse",
    paths.Sequence: "sequence",
    paths.Alternative: "alternative",
    paths.ZeroOrOne: "zero-or-one",
    paths.ZeroOrMore: "zero-or-more",
    paths.OneOrMore: "one-or-more",
    tide.GraphPattern: "graph-event",
    tide.QueryChange: "query-change",
    tide.QueryUpdate: "query-update",
    tide.StateChange: "state-change",
    tide.PatternSource: "pattern-event",
    tide.EventDeclaration: "event",
    tide.EventUse: "event-use",
    tide.TimeTest: "time-test",
    tide.ValueTest: "value-test",
    tide.Combined: "tests",
    tide.Insert: "insert",
    tide.Delete: "delete",
    tide.Emit: "emit",
    tide.CallFunction: "call-function",
    tide.Retract: "retract",
    tide.RuleDeclaration: "rule",
    WrittenDuration: "duration",
    tide.Atom: "atom",
    tide.Follows: "follows",
    tide.Either: "either",
    tide.Both: "both",
    tide.Interleaved: "interleaved",
    tide.Repeat: "repeat",
    tide.Not: "not",
    tide.Within: "within",
    tide.HoldsFor: "holds-for",
    tide.PatternDeclaration: "pattern",
}

_LINE: Final = "line"
"""The field for the line of a declaration, which changes nothing."""

_ADDED: Final = {"alias": "", "fields": (), "condition": None, "greedy": False,
                 "skip": "NO SKIP", "computed": (), "interval": False, "group": ""}  # fmt: skip
"""Fields of patterns and rules that came later: with these values, the text is that of before."""

_GROWN: Final = (tide.Atom, tide.Repeat, tide.PatternDeclaration, tide.RuleDeclaration)


def fingerprint_text(part: object) -> str:
    """The text of a syntax tree: the same in every process, and for equal trees only.

    >>> from graphtide.algebra.expressions import Var
    >>> fingerprint_text((1, frozenset((Var("b"), Var("a"))), None))
    "(1,{var('a'),var('b')},None)"
    """
    if isinstance(part, tuple | list):
        return f"({','.join(map(fingerprint_text, part))})"
    if isinstance(part, frozenset | set):
        return f"{{{','.join(sorted(map(fingerprint_text, part)))}}}"
    if isinstance(part, TERM_TYPES):
        return str(part)
    if part is None or isinstance(part, str | int | float):
        return repr(part)
    found = {f.name: getattr(part, f.name) for f in fields(part) if f.name != _LINE}  # type: ignore[arg-type]
    added = _ADDED if type(part) in _GROWN else {}
    values = [v for name, v in found.items() if name not in added or v != added[name]]
    return f"{NODE_NAMES[type(part)]}({','.join(map(fingerprint_text, values))})"

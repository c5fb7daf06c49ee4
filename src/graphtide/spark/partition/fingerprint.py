"""Fingerprint text: a text of syntax trees that checkpoints store and compare.

Node types have names of their own here, and fields stand by position. So renaming a class or a
field changes no fingerprint. A checkpoint of another version is rejected if a name or the order
changes.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from graphtide.algebra.expressions import Call, Const, Exists, Var
from graphtide.algebra.nodes import (
    Aggregate,
    Bgp,
    Dataset,
    DefaultGraph,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    MergedGraph,
    Minus,
    OrderKey,
    Path,
    Project,
    SelectQuery,
    Slice,
    TriplePattern,
    Union,
    Values,
)
from graphtide.algebra.paths import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Sequence,
    ToBlank,
    ZeroOrMore,
    ZeroOrOne,
)
from graphtide.lang.durations import WrittenDuration
from graphtide.lang.tide.ast import (
    Atom,
    Both,
    CallFunction,
    Combined,
    Delete,
    Either,
    Emit,
    EventDeclaration,
    EventUse,
    Follows,
    GraphPattern,
    HoldsFor,
    Insert,
    Interleaved,
    Not,
    PatternDeclaration,
    PatternSource,
    QueryChange,
    QueryUpdate,
    Repeat,
    Retract,
    RuleDeclaration,
    StateChange,
    TimeTest,
    ValueTest,
    Within,
)
from graphtide.rdf.terms import TERM_TYPES

NODE_NAMES: Final[dict[type[Any], str]] = {
    Var: "var",
    Const: "const",
    Call: "call",
    Exists: "exists",
    DefaultGraph: "default-graph",
    MergedGraph: "merged-graph",
    TriplePattern: "triple",
    Bgp: "bgp",
    Join: "join",
    LeftJoin: "left-join",
    Filter: "filter",
    Union: "union",
    Minus: "minus",
    Extend: "extend",
    Values: "values",
    GraphNames: "graph-names",
    Project: "project",
    Distinct: "distinct",
    Path: "path",
    Aggregate: "aggregate",
    Group: "group",
    OrderKey: "order-key",
    Slice: "slice",
    Dataset: "dataset",
    SelectQuery: "select",
    Link: "link",
    NegatedSet: "negated-set",
    ToBlank: "to-blank",
    Inverse: "inverse",
    Sequence: "sequence",
    Alternative: "alternative",
    ZeroOrOne: "zero-or-one",
    ZeroOrMore: "zero-or-more",
    OneOrMore: "one-or-more",
    GraphPattern: "graph-event",
    QueryChange: "query-change",
    QueryUpdate: "query-update",
    StateChange: "state-change",
    PatternSource: "pattern-event",
    EventDeclaration: "event",
    EventUse: "event-use",
    TimeTest: "time-test",
    ValueTest: "value-test",
    Combined: "tests",
    Insert: "insert",
    Delete: "delete",
    Emit: "emit",
    CallFunction: "call-function",
    Retract: "retract",
    RuleDeclaration: "rule",
    WrittenDuration: "duration",
    Atom: "atom",
    Follows: "follows",
    Either: "either",
    Both: "both",
    Interleaved: "interleaved",
    Repeat: "repeat",
    Not: "not",
    Within: "within",
    HoldsFor: "holds-for",
    PatternDeclaration: "pattern",
}

_LINE: Final = "line"
"""The field for the line of a declaration, which changes nothing."""


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
    values = [getattr(part, f.name) for f in fields(part) if f.name != _LINE]  # type: ignore[arg-type]
    return f"{NODE_NAMES[type(part)]}({','.join(map(fingerprint_text, values))})"

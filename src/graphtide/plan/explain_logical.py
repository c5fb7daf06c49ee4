"""Explain the logical plan: the algebra of a query as a tree of text, or as a Mermaid diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Path,
    Project,
    Slice,
    Union,
    Values,
)
from graphtide.plan.describe_modifiers import aggregate_text, path_text, slice_text
from graphtide.plan.explain import rows
from graphtide.plan.wording import expression_text, names, patterns_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.algebra.nodes import SelectQuery

LogicalFormat = Literal["text", "mermaid"]

Child = tuple[str, Node]
"""An input of a node, and the part it plays there if it is not plainly an input."""


def explain_logical(query: SelectQuery, format: LogicalFormat = "text") -> str:  # noqa: A002
    """A query's algebra: what it means, before anybody decides how to maintain it.

    >>> from graphtide.lang.sparql import parse_query
    >>> print(explain_logical(parse_query("SELECT ?s { ?s <ex:p> ?o FILTER(?o > 1) }")))
    project ?s
    └─ filter (?o > "1"^^<http://www.w3.org/2001/XMLSchema#integer>)
       └─ pattern ?s :ex:p ?o
    """
    match format:
        case "text":
            return "\n".join(_text(("", query.root), "", ""))
        case "mermaid":
            return "\n".join(["flowchart BT", *_mermaid(query.root)])
        case _:
            assert_never(format)


def describe_logical(node: Node) -> str:
    """One line on what a node means."""
    match node:
        case Bgp(patterns):
            return f"pattern {patterns_text(patterns)}" if patterns else "one empty row"
        case Join() | Union() | Minus() | Distinct():
            return type(node).__name__.lower()
        case LeftJoin(_, _, condition):
            only = "" if condition is None else f" if {expression_text(condition)}"
            return f"left join{only}"
        case Filter(condition):
            return f"filter {expression_text(condition)}"
        case Extend(_, var, expression):
            return f"bind {var} to {expression_text(expression)}"
        case Values(variables, data):
            return f"values of {names(variables)}, {rows(len(data))}"
        case GraphNames(var):
            return f"graph names {var}"
        case Project(_, variables):
            return f"project {names(variables)}"
        case Path():
            return f"path {path_text(node)}"
        case Group(_, keys, aggregates):
            by = f" by {names(keys)}" if keys else ""
            return f"group{by}: {', '.join(map(aggregate_text, aggregates)) or 'nothing'}"
        case Slice():
            return slice_text(node)
        case _:
            assert_never(node)


def logical_children(node: Node) -> tuple[Child, ...]:
    """A node's inputs; the patterns of its (NOT) EXISTS come last."""
    match node:
        case Join(left, right) | Union(left, right):
            return ("", left), ("", right)
        case LeftJoin(left, right, condition):
            tested = () if condition is None else _tested(condition)
            return ("", left), ("optional: ", right), *tested
        case Minus(left, right):
            return ("", left), ("without: ", right)
        case Filter(condition, child):
            return ("", child), *_tested(condition)
        case Extend(child, _, expression):
            return ("", child), *_tested(expression)
        case Project(child) | Distinct(child) | Group(child) | Slice(child):
            return (("", child),)
        case Bgp() | Values() | GraphNames() | Path():
            return ()
        case _:
            assert_never(node)


def _tested(expression: Expression) -> tuple[Child, ...]:
    match expression:
        case Exists(pattern):
            return (("exists: ", pattern),)
        case Call("!", (Exists(pattern),)):
            return (("not exists: ", pattern),)
        case Call(_, args):
            return tuple(child for arg in args for child in _tested(arg))
        case Var() | Const():
            return ()
        case _:
            assert_never(expression)


def _text(child: Child, branch: str, below: str) -> Iterator[str]:
    role, node = child
    yield f"{branch}{role}{describe_logical(node)}"
    inputs = logical_children(node)
    for number, part in enumerate(inputs, start=1):
        last = number == len(inputs)
        yield from _text(
            part, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        )


def _mermaid(root: Node) -> Iterator[str]:
    count = 0

    def walk(child: Child) -> Iterator[str]:
        nonlocal count
        count += 1
        number, node = count, child[1]
        yield f'  n{number}["{_escape(describe_logical(node))}"]'
        for part in logical_children(node):
            edge = f"-- {part[0].rstrip(': ')} -->" if part[0] else "-->"
            below = count + 1
            yield from walk(part)
            yield f"  n{below} {edge} n{number}"

    yield from walk(("", root))


def _escape(label: str) -> str:
    """Mermaid reads a label as HTML."""
    for sign, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        label = label.replace(sign, entity)
    return label

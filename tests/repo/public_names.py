"""Print what users can import and call, sorted, one name a line, with signatures and types.

python tests/repo/public_names.py > tests/repo/public_names.txt
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import sys
import textwrap
from functools import cached_property
from importlib import import_module

import graphtide
import graphtide.spark
import graphtide.testing


class Text(str):
    """The text of an annotation, which a signature shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def public_names() -> list[str]:
    """The names of the package, of `graphtide.spark` and of the modules of `graphtide.testing`."""
    found = set()
    for package in (graphtide, graphtide.spark):
        for name in package.__all__:
            found |= set(lines_of(f"{package.__name__}.{name}", getattr(package, name)))
    for each in pkgutil.iter_modules(graphtide.testing.__path__, "graphtide.testing."):
        module = import_module(each.name)
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", None) == each.name and not name.startswith("_"):
                found |= set(lines_of(f"{each.name}.{name}", thing))
    return sorted(found)


def lines_of(name: str, thing: object):
    """The line of a function or value; of a class, those of what it and its bases have, too."""
    if not isinstance(thing, type):
        yield name + (signature(thing) if inspect.isroutine(thing) else "")
        return
    yield name + (signature(thing) if own_bases(thing) else "")
    for base in own_bases(thing):
        for attribute, kind in inspect.get_annotations(base).items():
            if not attribute.startswith("_"):
                yield f"{name}.{attribute}: {kind}"
        for attribute in assigned_in_init(base):
            yield f"{name}.{attribute}"
        for attribute, member in vars(base).items():
            if not attribute.startswith("_"):
                yield from member_lines(f"{name}.{attribute}", member)


def own_bases(thing: type) -> list[type]:
    """A class and those of its bases that are part of the package."""
    return [base for base in thing.__mro__ if base.__module__.startswith("graphtide")]


def member_lines(name: str, member: object):
    """The line of a method or property; none of an attribute, which its annotation describes."""
    if isinstance(member, classmethod | staticmethod):
        member = member.__func__
    if isinstance(member, property | cached_property):
        getter = member.fget if isinstance(member, property) else member.func
        yield f"{name}: {inspect.get_annotations(getter).get('return')}"
    elif inspect.isfunction(member):
        yield name + signature(member)


def signature(thing) -> str:
    """The parameters and the result of a function, or of the constructor of a class."""
    try:
        found = inspect.signature(thing)
    except ValueError:  # written in another language than Python
        return "(…)"
    parameters = [
        each.replace(annotation=Text(each.annotation)) if isinstance(each.annotation, str) else each
        for each in found.parameters.values()
    ]
    result = found.return_annotation
    if isinstance(thing, type):
        result = found.empty
    elif isinstance(result, str):
        result = Text(result)
    return str(found.replace(parameters=parameters, return_annotation=result))


def assigned_in_init(thing: type) -> set[str]:
    """The public attributes that the `__init__` of a class assigns without an annotation there."""
    init = vars(thing).get("__init__")
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(init)))
    except (OSError, TypeError):  # there is none, or a dataclass has made it
        return set()
    targets = [t for node in ast.walk(tree) if isinstance(node, ast.Assign) for t in node.targets]
    targets += [node.target for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    return {
        target.attr
        for target in targets
        if isinstance(target, ast.Attribute)
        and getattr(target.value, "id", "") == "self"
        and not target.attr.startswith("_")
    }


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in public_names()))

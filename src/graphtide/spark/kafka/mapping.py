"""Mapping: how the rows of relational tables become triples.

    {
      "train": {
        "subject": "http://example.org/train/{id}",
        "type": "http://example.org/Train",
        "columns": {
          "name": "http://example.org/name",
          "speed": {"predicate": "http://example.org/speed", "datatype": "http://…#integer"},
          "track": {"predicate": "http://example.org/on", "iri": "http://example.org/track/{track}"}
        }
      }
    }

A template has names of columns in braces; their values are percent-encoded. Where one is null,
there is no triple.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from graphtide.errors import GraphtideError, TermError
from graphtide.rdf.terms import canonical_text

Tables = Mapping[str, Any] | Path
"""A mapping as an object of JSON, or the file that holds it."""

_PART: Final = re.compile(r"\{([^{}]+)\}")
_TABLE_FIELDS: Final = {"subject", "type", "graph", "columns"}
_COLUMN_FIELDS: Final = {"predicate", "datatype", "language", "iri"}
_HINT: Final = "docs/kafka.md shows a mapping"


@dataclass(frozen=True, slots=True)
class IriTemplate:
    """Constant parts of an IRI, and names of columns between them.

    >>> IriTemplate.parse("http://example.org/{line}/{number}", "subject").columns
    ('line', 'number')
    """

    constants: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def parse(cls, text: object, where: str) -> IriTemplate:
        """Parse a template, or raise `GraphtideError`."""
        if not isinstance(text, str):
            raise GraphtideError(f"{where}: {text!r} is not a template of an IRI", hint=_HINT)
        pieces = _PART.split(text)
        _checked("x".join(pieces[::2]), where)
        return cls(tuple(pieces[::2]), tuple(pieces[1::2]))


@dataclass(frozen=True, slots=True)
class ColumnMapping:
    """The predicate of a column, and what its values are: literals, or IRIs."""

    predicate: str
    datatype: str | None = None
    language: str | None = None
    iri: IriTemplate | None = None


@dataclass(frozen=True, slots=True)
class TableMapping:
    """The subject of a row, perhaps its class and its graph, and its columns."""

    subject: IriTemplate
    type: str | None
    graph: IriTemplate | None
    columns: Mapping[str, ColumnMapping]


def read_mapping(tables: Tables) -> dict[str, TableMapping]:
    """Check a mapping, or raise `GraphtideError` that says what is wrong where."""
    if isinstance(tables, Path):
        try:
            tables = json.loads(tables.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise GraphtideError(f"{tables} is not a mapping: {error}", hint=_HINT) from None
    if not isinstance(tables, Mapping) or not tables:
        raise GraphtideError("the mapping has no tables", hint=_HINT)
    return {
        name: _table(name, _fields(name, table, _TABLE_FIELDS)) for name, table in tables.items()
    }


def _table(name: str, table: Mapping[str, Any]) -> TableMapping:
    columns = table.get("columns", {})
    if not isinstance(columns, Mapping):
        raise GraphtideError(f"{name}: columns is not an object", hint=_HINT)
    subject = IriTemplate.parse(table.get("subject"), f"{name}: subject")
    if not subject.columns:
        raise GraphtideError(f"{name}: the subject is the same for all rows", hint=_HINT)
    type_, graph = table.get("type"), table.get("graph")
    return TableMapping(
        subject,
        None if type_ is None else _checked(type_, f"{name}: type"),
        None if graph is None else IriTemplate.parse(graph, f"{name}: graph"),
        {column: _column(f"{name}.{column}", value) for column, value in columns.items()},
    )


def _column(name: str, value: object) -> ColumnMapping:
    if isinstance(value, str):
        return ColumnMapping(_checked(value, name))
    found = _fields(name, value, _COLUMN_FIELDS)
    if sum(found.get(field) is not None for field in ("datatype", "language", "iri")) > 1:
        raise GraphtideError(f"{name}: give one of datatype, language and iri", hint=_HINT)
    datatype, language, iri = (found.get(field) for field in ("datatype", "language", "iri"))
    if language is not None and not re.fullmatch(
        r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", str(language)
    ):
        raise GraphtideError(f"{name}: {language!r} is not a language tag", hint=_HINT)
    return ColumnMapping(
        _checked(found.get("predicate"), f"{name}: predicate"),
        None if datatype is None else _checked(datatype, f"{name}: datatype"),
        language,
        None if iri is None else IriTemplate.parse(iri, f"{name}: iri"),
    )


def _fields(name: str, value: object, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise GraphtideError(f"{name}: {value!r} is not an object", hint=_HINT)
    if unknown := sorted(set(value) - known):
        fields = ", ".join(sorted(known))
        raise GraphtideError(f"{name}: no field {unknown[0]!r}", hint=f"there are {fields}")
    return value


def _checked(iri: object, where: str) -> str:
    """An IRI as it is, or `GraphtideError`."""
    try:
        return canonical_text(f"<{iri if isinstance(iri, str) else ''}>")[1:-1]
    except TermError:
        raise GraphtideError(f"{where}: {iri!r} is not an IRI", hint=_HINT) from None

"""Well-known prefixes: declared where a text uses them and does not declare them itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, get_args

from graphtide.arguments import check_choice, check_type
from graphtide.lang.sparql.scanner import WELL_KNOWN_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator

Prefixes = Literal["none", "common"]

_IN_FILES: ContextVar[Prefixes] = ContextVar("prefixes of files", default="none")

_DECLARED = re.compile(r"\bPREFIX\s+([\w.-]*):", re.IGNORECASE)


def with_prefixes(text: str, prefixes: Mapping[str, str] | Prefixes = "common") -> str:
    """A query, update or program with declarations of the prefixes that it lacks.

    `prefixes` are IRIs by prefix, or `"common"`: rdf, rdfs, owl, xsd, foaf, skos and others.
    Declarations of the text take precedence. Those that are added stand in its first line, so that
    errors name the right line.

    >>> with_prefixes("SELECT * { ?x foaf:name ?name }")
    'PREFIX foaf: <http://xmlns.com/foaf/0.1/> SELECT * { ?x foaf:name ?name }'
    >>> with_prefixes("PREFIX : <ex:> SELECT * { ?x :p ?y }", {"": "http://example.org/"})
    'PREFIX : <ex:> SELECT * { ?x :p ?y }'
    """
    check_type(text, "text", str)
    if not isinstance(prefixes, Mapping):
        check_choice(prefixes, "prefixes", get_args(Prefixes))
    if prefixes == "none":
        return text
    text = text.removeprefix("\ufeff")
    known = WELL_KNOWN_PREFIXES if prefixes == "common" else prefixes
    declared = {found[1] for found in _DECLARED.finditer(text)}
    lacking = [
        f"PREFIX {prefix}: <{iri}> "
        for prefix, iri in known.items()
        if prefix not in declared and re.search(rf"(?<![\w:.\-]){re.escape(prefix)}:", text)
    ]
    return "".join([*lacking, text])


@contextmanager
def known_in_files(prefixes: Prefixes) -> Iterator[None]:
    """What `file_text` declares, until the end of the context."""
    token = _IN_FILES.set(prefixes)
    try:
        yield
    finally:
        _IN_FILES.reset(token)


def file_text(text: str) -> str:
    """The text of a file with the declarations that `known_in_files` asks for."""
    return with_prefixes(text, _IN_FILES.get())

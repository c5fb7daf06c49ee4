"""Resolving a relative IRI reference against a base: RFC 3986, section 5.2."""

from __future__ import annotations

import re
from typing import Final

_PARTS: Final = re.compile(
    r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL
)


def resolve_iri(base: str, reference: str) -> str:
    """The IRI that `reference` means in a document at `base`.

    >>> resolve_iri("http://a/b/c/d;p?q", "../g?y#s")
    'http://a/b/g?y#s'
    """
    scheme, authority, path, query, fragment = _split(reference)
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if scheme is None:
        scheme = base_scheme
        if authority is None:
            authority = base_authority
            if not path:
                path, query = base_path, base_query if query is None else query
            elif not path.startswith("/"):
                path = _merge(base_path, path, has_authority=base_authority is not None)
    return _join(scheme, authority, _without_dots(path), query, fragment)


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    if match is None:
        return None, None, iri, None, None
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path, query, fragment


def _merge(base_path: str, path: str, *, has_authority: bool) -> str:
    if has_authority and not base_path:
        return f"/{path}"
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    output: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            if len(output) > 1 or (output and output[0] != ""):
                output.pop()
        elif segment != ".":
            output.append(segment)
    if segments[-1] in (".", ".."):
        output.append("")
    return "/".join(output)


def _join(
    scheme: str | None, authority: str | None, path: str, query: str | None, fragment: str | None
) -> str:
    result = f"{scheme}:" if scheme is not None else ""
    result += f"//{authority}" if authority is not None else ""
    result += path
    result += f"?{query}" if query is not None else ""
    return result + (f"#{fragment}" if fragment is not None else "")

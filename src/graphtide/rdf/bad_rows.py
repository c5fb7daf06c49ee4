"""Find every bad row of a columnar change log, so that the others can be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from graphtide.errors import TermError
from graphtide.rdf.change_checks import POSITION_RULES, wrong_rows
from graphtide.rdf.changes import CHANGE_SCHEMA, column_of_strings
from graphtide.rdf.term_text import canonical_text

BadChange = tuple[int, str, str]
"""Column (from 1), text and reason."""


def bad_rows(table: pa.Table) -> dict[int, BadChange]:
    """Return the bad rows of a table: nulls, diffs, misplaced terms and texts that are no terms.

    >>> rows = {"time": [0, 0], "tx": [0, 0], "diff": [1, 3], "s": ["<a b>", "<ex:a>"]}
    >>> bad_rows(pa.table(rows | {"p": ["<ex:p>"] * 2, "o": ['"x"'] * 2}))[1]
    (3, '3', 'diff is 3, not +1 or -1')
    """
    found: dict[int, BadChange] = {}
    for place, name in enumerate(CHANGE_SCHEMA.names, 1):
        if name not in table.schema.names:
            continue
        if name in {"time", "tx", "diff"}:
            for row in np.flatnonzero(table.column(name).is_null()).tolist():
                found.setdefault(row, (place, "null", f"{name} has no value"))
        else:
            for row, text, reason in _bad_terms(table, name):
                found.setdefault(row, (place, text, reason))
    if "diff" in table.schema.names and pa.types.is_integer(table.column("diff").type):
        column: Any = table.column("diff")
        diffs = column.fill_null(1).to_numpy()
        for row in np.flatnonzero(abs(diffs) != 1).tolist():
            reason = f"diff is {diffs[row]}, not +1 or -1"
            found.setdefault(row, (3, str(diffs[row]), reason))
    return dict(sorted(found.items()))


def _bad_terms(table: pa.Table, name: str) -> list[tuple[int, str, str]]:
    column: Any = column_of_strings(table, name)
    misplaced = wrong_rows(column, name)
    found = [
        (row, column[row].as_py() or "null", POSITION_RULES[name])
        for row in np.flatnonzero(misplaced).tolist()
    ]
    encoded = column.dictionary_encode()
    reasons = _reasons(encoded.dictionary.to_pylist())
    if reasons:
        codes = encoded.indices.fill_null(-1).to_pylist()
        found += [
            (row, *reasons[code])
            for row, code in enumerate(codes)
            if code in reasons and not misplaced[row]
        ]
    return found


def _reasons(texts: list[str]) -> dict[int, tuple[str, str]]:
    """Return the texts that are no terms, by place, with the reason."""
    found = {}
    for place, text in enumerate(texts):
        if text:
            try:
                canonical_text(text)
            except TermError as error:
                found[place] = (text, error.message)
    return found

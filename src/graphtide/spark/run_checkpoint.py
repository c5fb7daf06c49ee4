"""Whose checkpoint it is: a checkpoint goes on only with the queries and cells that made it."""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from graphtide.errors import GraphtideError
from graphtide.spark.sink import holds_something, replace_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FILE: Final = "graphtide.json"
_HINT: Final = "start anew with another --checkpoint and --out, or go on with the program as it was"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a checkpoint depends on, and a name for its run."""

    run: str
    queries: Mapping[str, str]
    cells: int
    changes: str


def read_fingerprint(checkpoint: Path) -> Fingerprint | None:
    """What a checkpoint says of itself; None if there is none yet."""
    path = checkpoint / _FILE
    try:
        if path.exists():
            return Fingerprint(**json.loads(path.read_text(encoding="utf-8")))
        strange = checkpoint.is_dir() and holds_something(checkpoint)
    except (OSError, ValueError, TypeError) as error:
        raise GraphtideError(f"{path} cannot be read: {error}", hint=_HINT) from None
    if strange:
        raise GraphtideError(
            f"{checkpoint} is not empty, and not a checkpoint of graphtide run",
            hint="choose another --checkpoint",
        )
    return None


def claim_checkpoint(
    checkpoint: Path, queries: Mapping[str, str], cells: int, changes: str
) -> Fingerprint:
    """Take a checkpoint for this program, or refuse one that was made by another."""
    wanted = Fingerprint(uuid.uuid4().hex, dict(queries), cells, changes)
    found = read_fingerprint(checkpoint)
    if found is None:
        try:
            checkpoint.mkdir(parents=True, exist_ok=True)
            replace_text(checkpoint / _FILE, json.dumps(asdict(wanted), indent=1))
        except OSError as error:
            raise GraphtideError(f"{checkpoint} cannot be written: {error.strerror}") from None
        return wanted
    differences = _differences(found, wanted)
    if differences:
        raise GraphtideError(
            f"{checkpoint} was made by another program: {'; '.join(differences)}", hint=_HINT
        )
    return found


def _differences(old: Fingerprint, new: Fingerprint) -> list[str]:
    """What is not as it was, in words.

    >>> old = Fingerprint("a", {"A": "x", "B": "y"}, 2, "in")
    >>> _differences(old, Fingerprint("b", {"B": "z", "C": "x"}, 4, "in"))
    ['query A is missing', 'query B has changed', 'query C is new', 'it has 2 cells and not 4']
    """
    said = [f"query {name} is missing" for name in old.queries if name not in new.queries]
    said += [
        f"query {name} has changed"
        for name, text in old.queries.items()
        if new.queries.get(name, text) != text
    ]
    said += [f"query {name} is new" for name in new.queries if name not in old.queries]
    if not said and list(old.queries) != list(new.queries):
        said.append("the queries have another order")
    if old.cells != new.cells:
        said.append(f"it has {old.cells} cells and not {new.cells}")
    if old.changes != new.changes:
        said.append(f"it reads {old.changes} and not {new.changes}")
    return said

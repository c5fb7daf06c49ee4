"""Write the changes of a stage to a file, or to a folder together with the program for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from graphtide.bench.gesture.queries import program_text
from graphtide.bench.gesture.texts import Coder
from graphtide.bench.write_triples import CHANGE_FORMATS, check_target, open_packed
from graphtide.rdf.formats.columnar import write_columnar
from graphtide.rdf.formats.patch import write_patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from graphtide.bench.gesture.model import Stage
    from graphtide.rdf.changes import ChangeBatch

CHANGES: Final = "changes"
PROGRAM: Final = "gesture.tide"


def check_gesture_target(out: Path, format_name: str | None) -> tuple[Path, str]:
    """The file that changes go to, and its format; a path without suffix is a folder.

    >>> from pathlib import Path
    >>> check_gesture_target(Path("stage"), None)
    (PosixPath('stage/changes.rdfp'), 'rdfp')
    >>> check_gesture_target(Path("stage.rdfp.gz"), None)
    (PosixPath('stage.rdfp.gz'), 'rdfp')
    """
    if not out.suffix or out.is_dir():
        chosen = format_name or "rdfp"
        out = out / f"{CHANGES}.{chosen}"
    return out, check_target(out, format_name, CHANGE_FORMATS, "a stream of frames")


def write_stage(
    stage: Stage,
    out: Path,
    format_name: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the model and its frames, a transaction each; how many changes there were."""
    path, chosen = check_gesture_target(out, format_name)
    if path != out:
        out.mkdir(parents=True, exist_ok=True)
        (out / PROGRAM).write_text(program_text(), encoding="utf-8")
    written = 0

    def batches() -> Iterator[ChangeBatch]:
        nonlocal written
        for frame in Coder(stage).frames():
            yield frame.changes()
            written += len(frame)
            progress(1)

    with open_packed(path) as file:
        if chosen == "rdfp":
            write_patch(batches(), file)
        else:
            write_columnar(batches(), file, chosen)  # type: ignore[arg-type]
    return written

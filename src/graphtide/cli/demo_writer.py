"""Somebody who changes a railway: writes change logs into a directory, file by file."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING

from graphtide.datasets.railway import change_stream
from graphtide.rdf import write_changes

if TYPE_CHECKING:
    from pathlib import Path


class DemoWriter(Thread):
    """Writes the network at once; then, when told to go on, a transaction every now and then."""

    def __init__(self, directory: Path, transactions: int, seed: int, pause: float) -> None:
        super().__init__(name="demo-writer", daemon=True)
        self.go_on = Event()
        self.hurry = Event()
        self.last = f"{transactions:06}.rdfp"
        self._directory = directory
        self._batches = change_stream(transactions, seed=seed)
        self._pause = pause

    def run(self) -> None:
        """Write all files; each has its name only when it is complete."""
        for number, batch in enumerate(self._batches):
            path = self._directory / f"{number:06}.rdfp"
            unfinished = path.with_name(f"_{path.name}")
            write_changes(batch, unfinished, format="rdfp")
            unfinished.replace(path)
            if number == 0:
                self.go_on.wait()
            self.hurry.wait(self._pause)

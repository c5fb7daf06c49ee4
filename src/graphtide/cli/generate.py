"""`graphtide generate`: write a generated dataset to a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from graphtide.cli.options import SeedOption

if TYPE_CHECKING:
    from graphtide.datasets.triples import IndexedTriples, StreamRate, TripleColumns

app = App(name="generate", help="Generate datasets of any size.")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Options that write a stream, with times; its format is .rdfp or columnar."""

    rate: int | None = None
    """Write a stream with this many triples per second, as changes with times."""

    event_size: int | None = None
    """Triples per event of the stream, which is one transaction; the default is 1."""

    unit: str | None = None
    """Unit of the stream's times: s, ms, us or ns; the default is ms."""

    def stream_rate(self) -> StreamRate | None:
        """The rate of the stream; None if no option is given."""
        from graphtide.datasets.triples import StreamRate, ticks_per_second
        from graphtide.errors import GraphtideError

        if self.rate is None:
            if self.event_size is None and self.unit is None:
                return None
            raise GraphtideError(
                "--event-size and --unit need --rate",
                hint="give the triples per second: --rate 10000",
            )
        event = 1 if self.event_size is None else self.event_size
        return StreamRate(self.rate, event, ticks=ticks_per_second(self.unit or "ms"))


@app.command
def train(
    *,
    out: Path,
    size: str = "1",
    scenario: str = "batch",
    format_name: Annotated[str | None, Parameter(name="--format")] = None,
) -> None:
    """A railway model of the Train Benchmark; size 1 has about 4,000 triples, 1024 has 9 million.

    Example: `graphtide generate train --size 64 --scenario repair --out rail.nt.gz`

    Parameters
    ----------
    out
        Where to write the output. A file: .nt, .nq or .ttl, plain or .gz; .parquet, .arrow or
        .arrows.
    size
        Size of the model; the number of triples grows with it.
    scenario
        Scenario of the Train Benchmark: batch has no errors, inject has few, repair has many.
    format_name
        Output format. By default that of the file's suffix: nt, nq, ttl, parquet, arrow, arrows.
    """
    from graphtide.datasets.train import (
        FORMATS,
        TrainModel,
        check_scenario,
        parse_size,
        write_model,
    )
    from graphtide.datasets.triples import check_target

    model = TrainModel(parse_size(size), check_scenario(scenario))
    check_target(out, format_name, FORMATS)
    start = perf_counter()
    with _progress(out, model.routes) as advance:
        triples = write_model(
            model, out, format=format_name, progress=lambda block: advance(block.routes)
        )
    _print_summary(out, triples, start)


@app.command
def lubm(
    *,
    out: Path,
    universities: int = 1,
    seed: SeedOption = 0,
    repeats: bool = False,
    stream: Annotated[StreamOptions | None, Parameter(name="*")] = None,
    format_name: Annotated[str | None, Parameter(name="--format")] = None,
) -> None:
    """Universities of the Lehigh University Benchmark; each has about 130,000 triples.

    Example: `graphtide generate lubm --universities 10 --out lubm.nt.gz`

    Example: `graphtide generate lubm --rate 10000 --event-size 20 --repeats --out lubm.rdfp`

    Parameters
    ----------
    out
        Where to write the output. A file: .nt, .nq or .ttl, plain or .gz; .rdfp, .parquet, .arrow
        or .arrows.
    universities
        Number of universities.
    repeats
        Declare a university again at each degree from it, as the original generator does.
    format_name
        Output format. By default that of the file's suffix: nt, nq, ttl, rdfp, parquet, arrow,
        arrows.
    """
    from graphtide.datasets.lubm import Lubm

    model = Lubm(universities, seed, repeats)
    parts = ((block.indexed(), len(block.departments)) for block in model.blocks())
    _write(parts, model.departments, out, format_name, stream)


@app.command
def seas(
    *,
    out: Path,
    days: int = 1,
    meters: int = 20,
    seed: SeedOption = 0,
    stream: Annotated[StreamOptions | None, Parameter(name="*")] = None,
    format_name: Annotated[str | None, Parameter(name="--format")] = None,
) -> None:
    """Power measurements of a house, ten triples each; one meter has 2,880 triples per day.

    In a change log, each measurement is a transaction at the time of the measurement.

    Example: `graphtide generate seas --days 7 --out power.nt.gz`

    Example: `graphtide generate seas --rate 10000 --event-size 20 --out power.parquet`

    Parameters
    ----------
    out
        Where to write the output. A file: .nt, .nq or .ttl, plain or .gz; .rdfp, .parquet, .arrow
        or .arrows.
    days
        Number of days; each meter is read every five minutes.
    meters
        Number of meters.
    format_name
        Output format. By default that of the file's suffix: nt, nq, ttl, rdfp, parquet, arrow,
        arrows.
    """
    from graphtide.datasets.seas import Seas

    model = Seas(days, meters, seed)
    parts = ((block.indexed(), len(block.number)) for block in model.blocks())
    _write(parts, model.observations, out, format_name, stream)


@app.command
def gesture(
    *,
    out: Path,
    bodies: int = 25,
    cycles: int = 4,
    format_name: Annotated[str | None, Parameter(name="--format")] = None,
) -> None:
    """Bodies before a camera that turn their right arms: 25 frames per second, 40 values per body.

    Each frame is a transaction that replaces the old coordinates. Every turn of an arm is
    one match of the program, which is written beside the changes.

    Example: `graphtide generate gesture --bodies 25 --cycles 4 --out stage`

    Parameters
    ----------
    out
        Where to write the output. A directory, for the changes and the program; or a file, for the
        changes only: .rdfp, .parquet, .arrow or .arrows.
    bodies
        Number of bodies.
    cycles
        Turns of the arm per body; a turn takes twelve frames.
    format_name
        Output format. By default that of the file's suffix: rdfp, parquet, arrow, arrows.
    """
    from graphtide.datasets.gesture import check_gesture_target, write_scene
    from graphtide.datasets.gesture_scene import GestureScene

    scene = GestureScene(bodies, cycles)
    path, _ = check_gesture_target(out, format_name)
    start = perf_counter()
    with _progress(path, scene.frames + 1) as advance:
        changes = write_scene(scene, out, format_name, advance)
    _print_summary(path, changes, start, "changes")


def _write(
    blocks: Iterable[tuple[IndexedTriples, int]],
    total: int,
    out: Path,
    format_name: str | None,
    stream: StreamOptions | None,
) -> None:
    """Write blocks; each has a share of the total, for the progress bar."""
    from graphtide.datasets.triples import check_stream_target, write_triples

    rate = None if stream is None else stream.stream_rate()
    chosen = check_stream_target(out, format_name, rate)
    start = perf_counter()
    with _progress(out, total) as advance:

        def parts() -> Iterator[TripleColumns]:
            for block, share in blocks:
                yield block.columns()
                advance(share)

        triples = write_triples(parts(), out, chosen, rate)
    _print_summary(out, triples, start)


@contextmanager
def _progress(out: Path, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal; yields the function that advances it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    screen = Console(stderr=True, highlight=False)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(f"writing {out}", total=total)
        yield lambda share: bar.advance(task, share)


def _print_summary(out: Path, count: int, start: float, what: str = "triples") -> None:
    print(f"{out}: {count:,} {what} in {perf_counter() - start:.1f} s", file=sys.stderr)

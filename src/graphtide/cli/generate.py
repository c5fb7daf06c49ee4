"""`graphtide generate`: data to try things out with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

if TYPE_CHECKING:
    from graphtide.bench.coded import Coded
    from graphtide.bench.pace import Pace
    from graphtide.bench.triples import Triples

app = App(name="generate", help="Make data to try things out with.")


@dataclass(frozen=True, slots=True)
class Stream:
    """When triples come: these options make a stream, which needs .rdfp or a columnar format."""

    rate: int | None = None
    """Write a stream of so many triples a second, as changes with times."""

    event_size: int | None = None
    """Of a stream: how many triples come together, in one transaction; 1 without it."""

    unit: str | None = None
    """Of a stream: the unit of its times, s, ms, us or ns; ms without it."""

    def pace(self) -> Pace | None:
        """The same for the writer."""
        from graphtide.bench.pace import Pace, find_ticks
        from graphtide.errors import GraphtideError

        if self.rate is None:
            if self.event_size is None and self.unit is None:
                return None
            raise GraphtideError(
                "only a stream has events and a unit of time",
                hint="give the triples a second as well: --rate 10000",
            )
        event = 1 if self.event_size is None else self.event_size
        return Pace(self.rate, event, ticks=find_ticks(self.unit or "ms"))


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
        The file to write: .nt, .nq or .ttl, also packed (.gz); .parquet, .arrow or .arrows.
    size
        The size of the model; its triples grow with it.
    scenario
        batch is without errors, inject has few and repair has many.
    format_name
        The format, if the file's suffix does not tell it: nt, nq, ttl, parquet, arrow, arrows.
    """
    from graphtide.bench.train.model import Model, parse_size
    from graphtide.bench.train.vocabulary import check_scenario
    from graphtide.bench.train.write import FORMATS, write_model
    from graphtide.bench.write_triples import check_target

    model = Model(parse_size(size), check_scenario(scenario))
    check_target(out, format_name, FORMATS)
    start = perf_counter()
    with _progress(out, model.routes) as advance:
        triples = write_model(
            model, out, format=format_name, progress=lambda block: advance(block.routes)
        )
    _tell(out, triples, start)


@app.command
def lubm(
    *,
    out: Path,
    universities: int = 1,
    seed: int = 0,
    repeats: bool = False,
    stream: Annotated[Stream | None, Parameter(name="*")] = None,
    format_name: Annotated[str | None, Parameter(name="--format")] = None,
) -> None:
    """Universities of the Lehigh University Benchmark; each has about 130,000 triples.

    Example: `graphtide generate lubm --universities 10 --out lubm.nt.gz`

    Example: `graphtide generate lubm --rate 10000 --event-size 20 --repeats --out lubm.rdfp`

    Parameters
    ----------
    out
        The file to write: .nt, .nq or .ttl, also packed (.gz); .rdfp, .parquet, .arrow or .arrows.
    universities
        How many universities.
    seed
        Where the random numbers start.
    repeats
        Declare a university again at each degree from it, as the original generator does.
    format_name
        The format, if the file's suffix does not tell it: nt, nq, ttl, rdfp, parquet, arrow,
        arrows.
    """
    from graphtide.bench.lubm.model import Lubm
    from graphtide.bench.lubm.texts import coded_block

    model = Lubm(universities, seed, repeats)
    parts = ((coded_block(block), len(block.departments)) for block in model.blocks())
    _write(parts, model.departments, out, format_name, stream)


@app.command
def seas(
    *,
    out: Path,
    days: int = 1,
    meters: int = 20,
    seed: int = 0,
    stream: Annotated[Stream | None, Parameter(name="*")] = None,
    format_name: Annotated[str | None, Parameter(name="--format")] = None,
) -> None:
    """Power measurements of a house, ten triples each; a day of one meter has 2,880 triples.

    In a format of changes, each measurement is a transaction at the time when it was made.

    Example: `graphtide generate seas --days 7 --out power.nt.gz`

    Example: `graphtide generate seas --rate 10000 --event-size 20 --out power.parquet`

    Parameters
    ----------
    out
        The file to write: .nt, .nq or .ttl, also packed (.gz); .rdfp, .parquet, .arrow or .arrows.
    days
        How many days; each meter is read every five minutes.
    meters
        How many meters the house has.
    seed
        Where the random numbers start.
    format_name
        The format, if the file's suffix does not tell it: nt, nq, ttl, rdfp, parquet, arrow,
        arrows.
    """
    from graphtide.bench.seas.model import Seas
    from graphtide.bench.seas.texts import coded_block

    model = Seas(days, meters, seed)
    parts = ((coded_block(block), len(block.number)) for block in model.blocks())
    _write(parts, model.observations, out, format_name, stream)


@app.command
def gesture(
    *,
    out: Path,
    bodies: int = 25,
    cycles: int = 4,
    format_name: Annotated[str | None, Parameter(name="--format")] = None,
) -> None:
    """Bodies that turn their right arms before a camera: 25 frames a second, 40 values per body.

    Each frame is a transaction in which old coordinates go and new ones come. Every turn of an arm
    is one gesture of the program that is written beside the changes.

    Example: `graphtide generate gesture --bodies 25 --cycles 4 --out stage`

    Parameters
    ----------
    out
        A folder, for the changes and the program; or a file for the changes alone: .rdfp, .parquet,
        .arrow or .arrows.
    bodies
        How many bodies there are.
    cycles
        How often each of them turns its arm; a turn takes twelve frames.
    format_name
        The format, if the file's suffix does not tell it: rdfp, parquet, arrow, arrows.
    """
    from graphtide.bench.gesture.model import Stage
    from graphtide.bench.gesture.write import check_gesture_target, write_stage

    stage = Stage(bodies, cycles)
    path, _ = check_gesture_target(out, format_name)
    start = perf_counter()
    with _progress(path, stage.frames + 1) as advance:
        changes = write_stage(stage, out, format_name, advance)
    _tell(path, changes, start, "changes")


def _write(
    blocks: Iterable[tuple[Coded, int]],
    total: int,
    out: Path,
    format_name: str | None,
    stream: Stream | None,
) -> None:
    """Write blocks, each with its share of the total."""
    from graphtide.bench.write_triples import check_stream_target, write_triples

    pace = None if stream is None else stream.pace()
    chosen = check_stream_target(out, format_name, pace)
    start = perf_counter()
    with _progress(out, total) as advance:

        def parts() -> Iterator[Triples]:
            for block, share in blocks:
                yield block.texts()
                advance(share)

        triples = write_triples(parts(), out, chosen, pace)
    _tell(out, triples, start)


@contextmanager
def _progress(out: Path, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on the screen, if there is one; what moves it on."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    screen = Console(stderr=True, highlight=False)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(f"writing {out}", total=total)
        yield lambda share: bar.advance(task, share)


def _tell(out: Path, count: int, start: float, what: str = "triples") -> None:
    print(f"{out}: {count:,} {what} in {perf_counter() - start:.1f} s", file=sys.stderr)

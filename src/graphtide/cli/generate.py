"""`graphtide generate`: data to try things out with."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated

from cyclopts import App, Parameter

app = App(name="generate", help="Make data to try things out with.")


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
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from graphtide.bench.train.model import Block, Model, parse_size
    from graphtide.bench.train.vocabulary import check_scenario
    from graphtide.bench.train.write import check_target, write_model

    model = Model(parse_size(size), check_scenario(scenario))
    check_target(out, format_name)
    screen = Console(stderr=True, highlight=False)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    start = perf_counter()
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as bar:
        task = bar.add_task(f"writing {out}", total=model.routes)

        def progress(block: Block) -> None:
            bar.advance(task, block.routes)

        triples = write_model(model, out, format=format_name, progress=progress)
    print(f"{out}: {triples:,} triples in {perf_counter() - start:.1f} s", file=sys.stderr)

"""`graphtide rescale` and `graphtide evolve`: another number of partitions, another program."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from graphtide.cli import options as opt
from graphtide.cli.run import DEFAULT_MASTER
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def rescale(
    checkpoint: Path,
    /,
    *,
    partitions: Annotated[
        int, Parameter(help="Number of partitions from now on, such as the cores of the executors.")
    ],
    master: opt.MasterOption = None,
) -> int:
    """Rescale a checkpoint.

    Parameters
    ----------
    checkpoint
        The --checkpoint of a run that is stopped, as a path or a URI.
    """
    opt.at_least("--partitions", partitions, 1)
    with session_for(master) as spark:
        from graphtide.spark.driver.rescale import rescale as rescaled

        done = rescaled(spark, checkpoint, partitions=partitions)
    print(
        f"{checkpoint}: {done.before} partitions before, {done.partitions} from now on; "
        f"the same graphtide run goes on with micro-batch {done.batch}",
        file=sys.stderr,
    )
    return 0


def evolve(checkpoint: Path, program: Path, /, *, master: opt.MasterOption = None) -> int:
    """Evolve a checkpoint.

    Parameters
    ----------
    checkpoint
        The --checkpoint of a run that is stopped, as a path or a URI.
    program
        The new program: a .tide file, or a .rq file with one query.
    """
    parsed = Program.read(program)
    with session_for(master) as spark:
        from graphtide.spark.driver.evolve import evolve as evolved

        done = evolved(spark, checkpoint, parsed)
    said = {
        "new": done.added,
        "changed": done.changed,
        "removed": done.removed,
        "without earlier events": done.begin_empty,
    }
    parts = [f"{what}: {', '.join(names)}" for what, names in said.items() if names]
    print(f"{checkpoint}: {'; '.join(parts) or 'no query has changed'}", file=sys.stderr)
    print(f"graphtide run {program} goes on with micro-batch {done.batch}", file=sys.stderr)
    return 0


@contextmanager
def session_for(master: str | None) -> Iterator[SparkSession]:
    """A session to read and write checkpoints with."""
    from graphtide.cli.spark_engine import check_needs, temporary_directory
    from graphtide.cli.watch import stoppable

    check_needs()
    from graphtide.spark.session import open_session

    with stoppable(), temporary_directory("graphtide-rescale-") as home:
        used = master or DEFAULT_MASTER
        with open_session(used, 2, Path(home, "spark.log")) as spark:
            yield spark

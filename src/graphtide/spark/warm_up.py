"""Make the next start fast: `python -m graphtide.spark.warm_up`, once after an installation.

It runs a program on Spark, so that all loops are compiled, and stores the classes that Java has
loaded meanwhile. Sessions of this machine use them as long as they are there. With `--once` it does
nothing if they are.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark.driver.options import RunOptions
from graphtide.spark.driver.run import start
from graphtide.spark.files import Location
from graphtide.spark.session import BRIEF_JAVA, DRIVER_JAVA, class_archive, open_session

PROGRAM: Final = "QUERY Warm AS SELECT ?a ?c { ?a <ex:p> ?b . ?b <ex:q> ?c }"
STORE_SECONDS: Final = 300.0


def warm_up(archive: Path) -> None:
    """Run a small program, and store Java's classes when its session ends."""
    unfinished = archive.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    java = f"{BRIEF_JAVA} -Xlog:cds*=off -XX:ArchiveClassesAtExit={unfinished}"
    with TemporaryDirectory(prefix="graphtide-warm-") as folder:
        home = Path(folder)
        (home / "changes.rdfp").write_text(
            "TX .\nA <ex:a> <ex:p> <ex:b> .\nA <ex:b> <ex:q> <ex:c> .\nTC .\n", encoding="utf-8"
        )
        places = (Location.of(home / name) for name in ("changes.rdfp", "out", "checkpoint"))
        changes, out, checkpoint = places
        options = RunOptions(changes, out, checkpoint, 2, once=True)
        java_of = {DRIVER_JAVA: java}
        with open_session("local[2,4]", 2, home / "spark.log", java_of, brief=True) as spark:
            gateway = spark.sparkContext._gateway  # noqa: SLF001 - PySpark shows Java nowhere else
            for _ in start(spark, Program.parse(PROGRAM), options).statuses():
                pass
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(STORE_SECONDS)
    if not unfinished.exists():
        raise GraphtideError("Java has not stored its classes", hint="it needs 200 MB of disk")
    unfinished.replace(archive)


def main(*options: str) -> int:
    """Warm up, and say what it brought."""
    archive = class_archive()
    if archive is None:
        raise GraphtideError(
            "there is no directory to store classes in",
            hint="set NUMBA_CACHE_DIR to a directory of your own, without spaces in its name",
        )
    if "--once" in options and archive.exists():
        return 0
    begin = time.monotonic()
    warm_up(archive)
    size = archive.stat().st_size / 2**20
    print(f"{archive}: {size:.0f} MiB, in {time.monotonic() - begin:.0f} s", file=sys.stderr)  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))

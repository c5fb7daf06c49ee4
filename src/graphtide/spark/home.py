"""A home of Spark from which Python processes import PySpark as it is installed.

In its own home Spark has PySpark once more, as a zip, and puts that first in the path of every
Python process that it starts. Nothing compiled can be stored in it, so each process compiles
PySpark's sources again: 0.65 s of processor time, for about ten processes that come one after the
other when a query starts. Where the zip is not there, they import the installed package.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import find_spark_home

from graphtide.code_cache import code_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE: Final = "SPARK_HOME"
LINKED: Final = ("bin", "conf", "jars", "sbin")
"""What Spark needs of its home, beside the zip."""


@contextmanager
def home_without_zip() -> Iterator[None]:
    """Java that is started in here uses such a home, unless the user's environment names one."""
    home = None if VARIABLE in os.environ else linked_home()
    if home is None:
        yield
        return
    os.environ[VARIABLE] = str(home)
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def linked_home() -> Path | None:
    """A folder with links to the parts of Spark's home; None if workers need the zip, or no room.

    They need it if they run in another Python, which may have no PySpark.
    """
    folder = code_folder(Path(__file__), os.environ.get("NUMBA_CACHE_DIR", ""))
    if folder is None or os.environ.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        return None
    own = Path(find_spark_home._find_spark_home()).absolute()  # noqa: SLF001 - no public name
    # Beside the code of modules, which is removed when their sources change: Java may still run.
    home = folder.with_name(f"spark-home-{hashlib.sha256(str(own).encode()).hexdigest()[:12]}")
    try:
        home.mkdir(exist_ok=True)
        for name in LINKED:
            if (own / name).exists():
                with suppress(FileExistsError):
                    (home / name).symlink_to(own / name)
    except OSError:
        return None
    return home

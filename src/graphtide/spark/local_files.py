"""A file system of Hadoop for checkpoints on this machine that starts no processes.

Without Hadoop's native library, each file of a checkpoint costs a process that runs `chmod`: most
of the time of a small micro-batch. `LocalFiles.java` leaves permissions to the umask. It is
compiled once, by the compiler that Spark brings along, and stored beside the machine code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from logging import getLogger
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from zipfile import ZipFile

from pyspark import SparkContext, find_spark_home

from graphtide.code_cache import code_folder

CLASS: Final = "graphtide.LocalFiles"
SOURCE: Final = Path(__file__).with_name("LocalFiles.java")
COMPILER: Final = "org.codehaus.commons.compiler.samples.CompilerDemo"
COMPILE_SECONDS: Final = 60.0

SETTINGS: Final = {
    "spark.hadoop.fs.file.impl": CLASS,
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
CLASS_PATHS: Final[tuple[str, ...]] = (
    "spark.driver.extraClassPath",
    "spark.executor.extraClassPath",
)

log = getLogger(__name__)


def local_file_settings() -> dict[str, str]:
    """The settings that make a session use it; none where it cannot be compiled or loaded."""
    jar = compiled_jar()
    if jar is None or not _is_loadable():
        return {}
    return {**SETTINGS, **dict.fromkeys(CLASS_PATHS, str(jar))}


def compiled_jar() -> Path | None:
    """The jar with the class, compiled if it is not there yet; None if that fails."""
    folder = code_folder(Path(__file__), os.environ.get("NUMBA_CACHE_DIR", ""))
    if folder is None:
        return None
    jar = folder / "local-files.jar"
    if jar.exists() and jar.stat().st_mtime >= SOURCE.stat().st_mtime:
        return jar
    try:
        with TemporaryDirectory(dir=folder) as temporary:
            _compile(Path(temporary)).replace(jar)
    except (OSError, subprocess.SubprocessError) as error:
        log.info("checkpoints use Hadoop's own local files: %s", error)
        return None
    return jar


def _compile(folder: Path) -> Path:
    """Compile the class into a folder; a jar there."""
    jars = Path(find_spark_home._find_spark_home(), "jars")  # noqa: SLF001 - no public name
    hadoop = os.pathsep.join(map(str, jars.glob("hadoop-client-api-*.jar")))
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java") or "java"
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(jars / "*"), COMPILER]
    subprocess.run(  # noqa: S603 - only our own source is compiled
        [java, *options, "-d", str(folder), "-classpath", hadoop, str(SOURCE)],
        check=True,
        capture_output=True,
        timeout=COMPILE_SECONDS,
    )
    classes = sorted(folder.rglob("*.class"))
    if not classes:
        raise OSError(f"{SOURCE.name} was not compiled")
    made = folder / "local-files.jar"
    with ZipFile(made, "w") as file:
        for path in classes:
            file.write(path, path.relative_to(folder))
    return made


def _is_loadable() -> bool:
    """Whether a session finds the class: if Java runs already, its class path is what it is."""
    context: Any = SparkContext
    if context._gateway is None:  # noqa: SLF001 - PySpark shows Java nowhere else
        return True
    try:
        context._jvm.java.lang.Class.forName(CLASS)  # noqa: SLF001
    except Exception:  # noqa: BLE001 - whatever Java says, it has no such class
        return False
    return True

"""Spark sessions with the settings that the pipeline is measured with."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from graphtide.code_cache import code_folder, directory_for_workers
from graphtide.errors import GraphtideError
from graphtide.spark.home import home_without_zip
from graphtide.spark.local_files import CLASS_PATHS, local_file_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphtide.spark.files import Location

STATELESS_WORKERS: Final = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"

SETTINGS: Final = {
    # Stateful Python operators need RocksDB; a change log per batch is cheaper than a snapshot.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Workers are forked with the engine loaded, and speak through sockets without TCP's delays.
    "spark.python.daemon.module": "graphtide.spark.stages.worker",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    # Only stateless stages use this. Spark pools workers by their settings, so the workers that
    # hold engines do not run other stages, and a partition finds its engine again.
    STATELESS_WORKERS: "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The partitions of a shuffle must stay as they are.
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings for every master. `docs/deploy.md` gives the reasons and the measurements."""

DRIVER_JAVA: Final = "spark.driver.extraJavaOptions"
EXECUTOR_JAVA: Final = "spark.executor.extraJavaOptions"
JAVA: Final = "-XX:+UseSerialGC"
"""Java on one machine with few cores: a collector without threads."""

BRIEF_JAVA: Final = f"{JAVA} -XX:TieredStopAtLevel=1"
"""Without the compiler that optimises: sooner done, but twice the work in bulk."""

BRIEF_SETTINGS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Without Java code for each plan, which takes longer to compile than it saves in a brief run."""

LOCAL_SETTINGS: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""More settings where driver and executors share this machine."""

WORKER_ENVIRONMENT: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""For processes that fork: libraries must not start threads while they are loaded."""


ENGINE_PROCESSES: Final = "spark.executorEnv.GRAPHTIDE_ENGINE_PROCESSES"
"""How many processes an executor has for engines (`stages.engine_processes`): one for each core."""

HADOOP: Final = "spark.hadoop."
"""What settings of Hadoop begin with in a session."""

HADOOP_LIBRARIES: Final = {
    "s3a": "org.apache.hadoop:hadoop-aws",
    "abfs": "org.apache.hadoop:hadoop-azure",
    "abfss": "org.apache.hadoop:hadoop-azure",
}
"""Java libraries that Spark needs to write a checkpoint there, and does not bring along."""


def make_session(
    *,
    master: str = "local[*,4]",
    partitions: int = 2,
    name: str = "graphtide",
    settings: Mapping[str, str] | None = None,
    brief: bool = False,
) -> SparkSession:
    """A session whose shuffles have so many partitions; `settings` override ours.

    On this machine, Java of a `brief` session compiles less: for jobs of a minute or two.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        for key, value in worker_environment().items():
            os.environ.setdefault(key, value)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in all_settings(master, partitions, settings or {}, brief=brief).items():
        builder = builder.config(key, value)
    with home_without_zip() if master.startswith("local") else nullcontext():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def worker_environment() -> dict[str, str]:
    """The environment of workers; with a read-only package, also where their machine code is."""
    compiled = directory_for_workers(os.environ.get("NUMBA_CACHE_DIR", ""))
    return {
        **WORKER_ENVIRONMENT,
        **({} if compiled is None else {"NUMBA_CACHE_DIR": str(compiled)}),
    }


def class_archive() -> Path | None:
    """Where Java's classes are stored (see `graphtide.spark.warm_up`); None if there is no room.

    Java ignores it if it is of another version of Java or of Spark's libraries.
    """
    folder = code_folder(Path(__file__), os.environ.get("NUMBA_CACHE_DIR", ""))
    found = None if folder is None else folder / f"java-{pyspark.__version__}.jsa"
    return None if found is None or re.search(r"\s", str(found)) else found


def local_settings(*, brief: bool) -> dict[str, str]:
    """Settings of this machine, with Java's classes from where they are stored."""
    java, archive = BRIEF_JAVA if brief else JAVA, class_archive()
    stored = f" -XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds*=off"
    driver = java + (stored if archive is not None and archive.exists() else "")
    return {
        **LOCAL_SETTINGS,
        **(BRIEF_SETTINGS if brief else {}),
        **local_file_settings(),
        DRIVER_JAVA: driver,
        EXECUTOR_JAVA: java,
    }


def all_settings(
    master: str, partitions: int, settings: Mapping[str, str], *, brief: bool = False
) -> dict[str, str]:
    """Our settings for a master, with the given ones on top; class paths have both.

    >>> all_settings("local[2]", 4, {})["spark.sql.shuffle.partitions"]
    '4'
    >>> "spark.driver.host" in all_settings("spark://head:7077", 4, {})
    False
    """
    ours = {
        **SETTINGS,
        **(local_settings(brief=brief) if master.startswith("local") else {}),
        **{f"spark.executorEnv.{key}": value for key, value in worker_environment().items()},
        ENGINE_PROCESSES: str(executor_cores(master, settings)),
        "spark.sql.shuffle.partitions": str(partitions),
    }
    both = {
        key: os.pathsep.join((ours[key], settings[key]))
        for key in CLASS_PATHS
        if key in ours and key in settings
    }
    return {**ours, **settings, **both}


def executor_cores(master: str, settings: Mapping[str, str]) -> int:
    """How many cores an executor has, and so how many workers; 1 if that is not said.

    >>> executor_cores("local[3,4]", {}), executor_cores("local-cluster[2,5,1024]", {})
    (3, 5)
    >>> executor_cores("spark://head:7077", {"spark.executor.cores": "4"})
    4
    """
    cluster = re.fullmatch(r"local-cluster\[\s*\d+\s*,\s*(\d+)\s*,\s*\d+\s*\]", master)
    if cluster is not None:
        return int(cluster[1])
    return _local_cores(master) or int(settings.get("spark.executor.cores", "1"))


def default_partitions(master: str) -> int:
    """One partition per core of a local master; the cores of a cluster are not known yet.

    >>> default_partitions("local[3]")
    3
    """
    found = _local_cores(master)
    if found is None:
        raise GraphtideError(
            f"--partitions is needed with the master {master}",
            hint="give the number of cores that the executors have together",
        )
    return found


def _local_cores(master: str) -> int | None:
    """The cores of a local master; None of another one."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if found is None:
        return None
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


def is_connect(given: object) -> bool:
    """Whether a session or a DataFrame is one of Spark Connect, which has no Java at this end."""
    return type(given).__module__.startswith("pyspark.sql.connect.")


def check_classic(session: SparkSession) -> None:
    """Reject a session of Spark Connect, for what needs Spark's driver."""
    if is_connect(session):
        raise GraphtideError(
            "run needs Spark's driver in this process, and this session is one of Spark Connect",
            hint="make the session with make_session or SparkSession.builder.master(…), and submit "
            "the program with spark-submit; watch works on Spark Connect",
        )


def storage_settings(session: SparkSession) -> dict[str, str]:
    """The settings of remote file systems in a session, with Hadoop's names."""
    found = session.sparkContext.getConf().getAll()
    return {
        key.removeprefix(HADOOP): value for key, value in found if key.startswith(f"{HADOOP}fs.")
    }


def check_hadoop(session: SparkSession, checkpoint: Location) -> None:
    """Check that Spark itself can write to a remote checkpoint, which takes Java libraries."""
    if checkpoint.local is not None:
        return
    context: Any = session.sparkContext
    java = context._jvm  # noqa: SLF001 - PySpark shows Java nowhere else
    try:
        where = java.java.net.URI.create(str(checkpoint))
        java.org.apache.hadoop.fs.FileSystem.get(where, context._jsc.hadoopConfiguration())  # noqa: SLF001
    except Py4JError as error:
        lines = [line for line in str(error).splitlines() if not line.startswith("\tat ")]
        library = HADOOP_LIBRARIES.get(checkpoint.scheme)
        version = java.org.apache.hadoop.util.VersionInfo.getVersion()
        hint = f"start Spark with spark.jars.packages={library}:{version}, or " if library else ""
        raise GraphtideError(
            f"Spark cannot write its checkpoint to {checkpoint}: {lines[-1].strip()}",
            hint=f"{hint}choose a checkpoint that is a path; changes and out may be remote",
        ) from None


@contextmanager
def open_session(
    master: str,
    partitions: int,
    log: Path,
    settings: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
) -> Iterator[SparkSession]:
    """A session that is stopped at the end."""
    with _output_to(log):
        try:
            session = make_session(
                master=master,
                partitions=partitions,
                settings={"spark.log.level": "ERROR", **(settings or {})},
                brief=brief,
            )
        except Exception as error:
            raise GraphtideError(
                f"Spark does not start: {str(error).strip().splitlines()[0]}",
                hint=f"{log} has what it printed; is the master {master} right?",
            ) from error
    if master.startswith("local"):
        Thread(target=start_workers, args=(session,), daemon=True).start()
    try:
        yield session
    finally:
        session.stop()


def start_workers(session: SparkSession) -> None:
    """Start the processes that fork workers, of both kinds, while Spark plans the first query."""
    with suppress(Exception):  # the session is stopped before they are up
        for stateless in ("true", "false"):
            apart = session.newSession()
            apart.conf.set(STATELESS_WORKERS, stateless)
            apart.range(1, numPartitions=1).mapInArrow(lambda rows: rows, "id long").collect()


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Redirect the output of processes that are started in here to a file, as long as they live."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    with log.open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)

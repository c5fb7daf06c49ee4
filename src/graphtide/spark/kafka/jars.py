"""The jars that PySpark lacks: Spark's Kafka connector; and a Kafka broker, for tests and demos.

`jars.lock` has their versions and checksums. They are fetched once, into a cache directory.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal
from urllib.error import URLError
from urllib.request import urlopen

from graphtide.errors import GraphtideError

JarSet = Literal["connector", "broker"]

MAVEN_CENTRAL: Final = "https://repo.maven.apache.org/maven2"
SECONDS: Final = 60.0
_LOCK: Final = Path(__file__).with_name("jars.lock")
_HINT: Final = (
    "set GRAPHTIDE_MAVEN to the URL of a Maven repository that can be reached, or put the jars "
    "that jars.lock names into a directory yourself, and set GRAPHTIDE_JARS to it"
)


def kafka_settings() -> dict[str, str]:
    """Settings of a Spark session that reads from Kafka and writes to it (`make_session`).

    The first call fetches four jars. Where they are on the class path already, say by
    `spark-submit --packages`, they are not needed.
    """
    return {"spark.jars": ",".join(map(str, fetch_jars("connector")))}


def fetch_jars(wanted: JarSet) -> list[Path]:
    """The files of a set of jars, those that are missing fetched and checked."""
    directory = jar_directory()
    return [_fetched(directory / path.rsplit("/", 1)[1], path, sum_) for sum_, path in jars(wanted)]


def jar_directory() -> Path:
    """Where jars are stored: `GRAPHTIDE_JARS`, or in the user's cache."""
    if named := os.environ.get("GRAPHTIDE_JARS"):
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "graphtide" / "jars"


@cache
def jars(wanted: JarSet) -> tuple[tuple[str, str], ...]:
    """Checksums and paths of a set of jars.

    >>> [path.rsplit("/")[-1] for _, path in jars("connector")][0]
    'spark-sql-kafka-0-10_2.13-4.2.0.jar'
    """
    section = _LOCK.read_text(encoding="utf-8").split(f"[{wanted}]\n", 1)[1].split("\n[", 1)[0]
    found = [line.split() for line in section.splitlines() if line]
    return tuple((sum_, path) for sum_, path in found)


def _fetched(target: Path, path: str, checksum: str) -> Path:
    if target.exists() and sha256(target.read_bytes()).hexdigest() == checksum:
        return target
    url = f"{os.environ.get('GRAPHTIDE_MAVEN', MAVEN_CENTRAL).rstrip('/')}/{path}"
    try:
        with urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 - a URL of the user's choice
            data: bytes = answer.read()
    except (URLError, OSError, ValueError) as error:
        raise GraphtideError(f"{url} cannot be fetched: {error}", hint=_HINT) from None
    found = sha256(data).hexdigest()
    if found != checksum:
        raise GraphtideError(
            f"{url} is not the jar that it should be: its SHA-256 is {found}", hint=_HINT
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Several processes may fetch the same jar: each writes a file of its own.
        with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
            file.write(data)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(target)
    except OSError as error:
        raise GraphtideError(f"{target} cannot be written: {error.strerror}", hint=_HINT) from None
    return target

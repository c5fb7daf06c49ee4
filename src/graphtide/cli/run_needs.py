"""What the pipeline needs on this machine: PySpark and Java, with a word on how to get them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from graphtide.errors import GraphtideError

OLDEST_JAVA: Final = 17
_MODULES: Final = {"pyspark": "pyspark", "pandas": "pandas", "google.protobuf": "protobuf"}
_JAVA_HINT: Final = (
    f"install Java {OLDEST_JAVA} or later (such as openjdk-{OLDEST_JAVA}-jre-headless), "
    "or point JAVA_HOME to it"
)


def check_needs() -> None:
    """Raise `GraphtideError` that says what is missing and how to get it."""
    missing = [name for module, name in _MODULES.items() if not _is_there(module)]
    if missing:
        raise GraphtideError(
            f"the pipeline needs {', '.join(missing)}", hint='pip install "graphtide[spark]"'
        )
    version = java_version(_report(_java()))
    if version < OLDEST_JAVA:
        raise GraphtideError(
            f"Spark needs Java {OLDEST_JAVA}, and this is Java {version}", hint=_JAVA_HINT
        )


def java_version(report: str) -> int:
    """The major version in what `java -version` prints.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('version "1.8.0_392"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', report)
    if found is None:
        raise GraphtideError("java does not tell its version", hint=_JAVA_HINT)
    return int(found[1])


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.exists():
            raise GraphtideError(f"JAVA_HOME is {home}, and there is no bin/java", hint=_JAVA_HINT)
        return str(java)
    found = shutil.which("java")
    if found is None:
        raise GraphtideError("Spark needs Java, and there is none here", hint=_JAVA_HINT)
    return found


def _report(java: str) -> str:
    try:
        ran = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GraphtideError(f"{java} cannot be run: {error}", hint=_JAVA_HINT) from None
    return ran.stderr + ran.stdout

"""Files: what a run reads and writes, on this machine or on a remote file system.

A `Location` is named by a path or by a URI as Hadoop writes it: `file:///…`, `s3a://bucket/…`,
`hdfs://…`, `abfss://…`, `gs://…`. Spark reads and writes its own checkpoint; everything else goes
through `pyarrow.fs`. A `Location` travels to workers with the settings that it needs there.
"""

from __future__ import annotations

import io
import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from pyarrow import ArrowException, fs

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Settings = tuple[tuple[str, str], ...]
"""Settings of a file system, with Hadoop's names."""

BUFFER_BYTES: Final = 1 << 20
CONNECT_SECONDS: Final = 10.0
REQUEST_SECONDS: Final = 30.0

# A drive of Windows has one letter. Paths fold the slashes of a URI, and Hadoop prints one.
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/.*)", re.DOTALL)
_S3: Final = frozenset({"s3", "s3a", "s3n"})
_AZURE: Final = frozenset({"abfs", "abfss"})
_GOOGLE: Final = frozenset({"gs", "gcs"})
_AZURE_KEY: Final = "fs.azure.account.key."
OBJECT_STORES: Final = _S3 | _AZURE | _GOOGLE
"""Where an object appears as a whole, has no directory, and is not renamed."""

_ENVIRONMENT: Final = {
    "fs.s3a.endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    "fs.s3a.endpoint.region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "fs.s3a.access.key": ("AWS_ACCESS_KEY_ID",),
    "fs.s3a.secret.key": ("AWS_SECRET_ACCESS_KEY",),
    "fs.s3a.session.token": ("AWS_SESSION_TOKEN",),
    _AZURE_KEY: ("AZURE_STORAGE_KEY",),
}
_HINTS: Final = {
    **dict.fromkeys(
        _S3,
        "set spark.hadoop.fs.s3a.endpoint, .endpoint.region, .access.key and .secret.key, or "
        "AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    "hdfs": "install Hadoop's client, and set JAVA_HOME, HADOOP_HOME and "
    "CLASSPATH=$(hadoop classpath --glob)",
    **dict.fromkeys(
        _AZURE,
        "set spark.hadoop.fs.azure.account.key.ACCOUNT.dfs.core.windows.net or AZURE_STORAGE_KEY, "
        "or AZURE_CLIENT_ID and what Azure's identity library needs beside it",
    ),
    **dict.fromkeys(_GOOGLE, "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account"),
}


class Entry(NamedTuple):
    """A file or directory in a directory: its name, size in bytes, and time of its last write."""

    name: str
    size: int
    modified: float
    is_file: bool


@dataclass(frozen=True, slots=True)
class Location:
    """A file or a directory, which may be remote.

    >>> data = Location.of("s3a://rail/logs/")
    >>> str(data / "a.rdfp"), (data / "a.rdfp").name, str(data.parent)
    ('s3a://rail/logs/a.rdfp', 'a.rdfp', 's3a://rail')
    >>> str(Location.of("file:///tmp/out")), str(Location.of(Path("out")))
    ('/tmp/out', 'out')
    """

    scheme: str
    path: str
    settings: Settings = field(default=(), repr=False, compare=False)

    @classmethod
    def of(
        cls, place: str | Path | Location, settings: Mapping[str, str] | None = None
    ) -> Location:
        """The location that a path or a URI names; `settings` come before the environment."""
        if isinstance(place, Location):
            return place
        found = _URI.fullmatch(str(place))
        if found is None:
            return cls("", str(Path(place)))
        scheme, rest = found[1].lower(), found[2]
        if scheme == "file":
            return cls("", str(Path("/" + rest.lstrip("/"))))
        known = {**_from_environment(), **(settings or {})}
        return cls(scheme, rest.strip("/"), tuple(sorted(known.items())))

    @property
    def local(self) -> Path | None:
        """The path on this machine; None if it is remote."""
        return None if self.scheme else Path(self.path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """What the name ends with, from its last dot on."""
        return PurePosixPath(self.path).suffix

    @property
    def parent(self) -> Location:
        """The directory that it is in."""
        return replace(self, path=str(PurePosixPath(self.path).parent))

    @property
    def is_object(self) -> bool:
        """Whether it is in an object store."""
        return self.scheme in OBJECT_STORES

    def absolute(self) -> Location:
        """The same location, wherever a process is started."""
        return self if self.local is None else replace(self, path=str(self.local.resolve()))

    def __truediv__(self, name: str) -> Location:
        joined = os.path.join(self.path, name) if not self.scheme else f"{self.path}/{name}"  # noqa: PTH118
        return replace(self, path=joined)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.path}" if self.scheme else self.path

    # --- looking ---

    def entries(self) -> list[Entry]:
        """What is in a directory, by name; nothing, if it is not there."""
        with self._reached() as (system, path):
            selector = fs.FileSelector(path, allow_not_found=True)
            found = [_entry(info) for info in system.get_file_info(selector)]
        return sorted(found)

    def info(self) -> Entry | None:
        """What is known of it; None if it is not there."""
        with self._reached() as (system, path):
            info = system.get_file_info(path)
        return None if info.type == fs.FileType.NotFound else _entry(info)

    def exists(self) -> bool:
        """Whether it is there."""
        return self.info() is not None

    def is_file(self) -> bool:
        """Whether it is a file that is there."""
        found = self.info()
        return found is not None and found.is_file

    def is_dir(self) -> bool:
        """Whether it is a directory; in an object store, one may be empty."""
        found = self.info()
        return self.is_object if found is None else not found.is_file

    def check(self) -> None:
        """Raise `GraphtideError` if its file system cannot be reached."""
        top = replace(self, path=self.path.split("/")[0]) if self.is_object else self
        if top.info() is None and self.is_object:
            raise GraphtideError(
                f"{self} cannot be reached: there is no {top}", hint="make the bucket first"
            )

    # --- reading and writing ---

    def open(self) -> IO[bytes]:
        """Open a file to be read at any position."""
        if self.local is not None:
            return self.local.open("rb")
        with self._reached() as (system, path):
            raw = _RemoteFile(system.open_input_file(path), self)
        return cast("IO[bytes]", io.BufferedReader(raw, BUFFER_BYTES))

    def read_text(self) -> str:
        """The text of a file."""
        with self.open() as file:
            return file.read().decode("utf-8")

    def write_bytes(self, data: bytes | memoryview) -> None:
        """Write a file: readers see the old one, or the new one as a whole.

        When this returns, the file survives a loss of power.
        """
        if self.local is not None:
            _write_local(self.local, data)
            return
        with self._reached() as (system, path):
            if self.is_object:
                with system.open_output_stream(path, compression=None) as stream:
                    stream.write(data)
                return
            unfinished = f"{path}.tmp"
            system.create_dir(os.path.dirname(path), recursive=True)  # noqa: PTH120
            with system.open_output_stream(unfinished, compression=None) as stream:
                stream.write(data)
            with suppress(FileNotFoundError):
                system.delete_file(path)
            system.move(unfinished, path)

    def write_text(self, text: str) -> None:
        """Write a file of text as `write_bytes` does."""
        self.write_bytes(text.encode())

    def make_directory(self) -> None:
        """Make a directory if there is none; an object store needs none."""
        if self.local is not None:
            self.local.mkdir(parents=True, exist_ok=True)
            sync_directory(self.local.parent)
        elif not self.is_object:
            with self._reached() as (system, path):
                system.create_dir(path, recursive=True)

    def delete(self) -> None:
        """Delete a file, if it is there."""
        with self._reached() as (system, path), suppress(FileNotFoundError):
            system.delete_file(path)

    @contextmanager
    def _reached(self) -> Iterator[tuple[fs.FileSystem, str]]:
        """The file system and the path there; a remote one that fails is no fault of a file."""
        if not self.scheme:
            yield _LOCAL, self.path
            return
        authority, _, rest = self.path.partition("/")
        try:
            system, base = _file_system(self.scheme, authority, self.settings)
            yield system, f"{base.rstrip('/')}/{rest}" if rest else base
        except FileNotFoundError:
            raise
        except (OSError, ArrowException) as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: Exception) -> GraphtideError:
        """The error of a remote file system that fails; what it was doing can be done again."""
        reason = str(error).strip().splitlines()[0]
        hint = _HINTS.get(self.scheme, "see the documentation of pyarrow.fs")
        return GraphtideError(f"{self} cannot be reached: {reason}", hint=hint)


_LOCAL: Final = fs.LocalFileSystem()


class _RemoteFile(io.RawIOBase):
    """A remote file: a connection that fails is not taken for a file that is damaged."""

    def __init__(self, file: Any, where: Location) -> None:  # noqa: ANN401 - Arrow's file
        self._file = file
        self._where = where

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._file.seek(offset, whence)
        return self.tell()

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - as of RawIOBase
        try:
            return int(self._file.readinto(buffer))
        except (OSError, ArrowException) as error:
            raise self._where.unreachable(error) from error

    def close(self) -> None:
        self._file.close()
        super().close()


def _entry(info: fs.FileInfo) -> Entry:
    modified = (info.mtime_ns or 0) / 1e9
    return Entry(info.base_name, info.size or 0, modified, info.type == fs.FileType.File)


def _write_local(path: Path, data: bytes | memoryview) -> None:
    """Write beside the file, and rename; both the file and its name are on the disk then."""
    unfinished = path.with_name(f"_{path.name}.tmp")
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory survive a loss of power."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _from_environment() -> dict[str, str]:
    """Settings in the environment, for workers that have another one."""
    found = {
        key: next((os.environ[name] for name in names if os.environ.get(name)), None)
        for key, names in _ENVIRONMENT.items()
    }
    return {key: value for key, value in found.items() if value is not None}


@lru_cache(maxsize=64)
def _file_system(scheme: str, authority: str, settings: Settings) -> tuple[fs.FileSystem, str]:
    """The file system of a URI, and the path of its top there."""
    if scheme in _S3:
        return fs.S3FileSystem(**s3_options(dict(settings))), authority
    if scheme in _AZURE:
        return _azure(authority, dict(settings))
    if scheme in _GOOGLE:
        return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=REQUEST_SECONDS)), authority
    try:
        return fs.FileSystem.from_uri(f"{scheme}://{authority}/")
    except ArrowException as error:
        if "Unrecognized filesystem type" not in str(error):
            raise
        raise GraphtideError(
            f"there is no file system {scheme}://",
            hint="use a path, or a URI that begins with file, s3a, hdfs, abfss or gs",
        ) from None


def _azure(authority: str, settings: Mapping[str, str]) -> tuple[fs.FileSystem, str]:
    """A container of Azure, which is named by `CONTAINER@ACCOUNT.dfs.core.windows.net`."""
    container, _, host = authority.partition("@")
    key = settings.get(_AZURE_KEY + host) or settings.get(_AZURE_KEY)
    # Arrow ends the whole process if it finds no identity to sign in with.
    if key is None and "AZURE_CLIENT_ID" not in os.environ:
        raise PermissionError("there is neither a key of the account nor an identity")
    return fs.AzureFileSystem(host.partition(".")[0], account_key=key), container


def s3_options(settings: Mapping[str, str]) -> dict[str, Any]:
    """Options of Arrow's S3 for settings of Hadoop's.

    >>> options = s3_options({"fs.s3a.endpoint": "http://127.0.0.1:9000"})
    >>> options["endpoint_override"], options["scheme"]
    ('127.0.0.1:9000', 'http')
    """
    options: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "request_timeout": REQUEST_SECONDS,
        "background_writes": False,
    }
    names = {
        "access_key": "fs.s3a.access.key",
        "secret_key": "fs.s3a.secret.key",
        "session_token": "fs.s3a.session.token",
        "region": "fs.s3a.endpoint.region",
    }
    options |= {name: settings[key] for name, key in names.items() if key in settings}
    if endpoint := settings.get("fs.s3a.endpoint"):
        parts = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
        secure = settings.get("fs.s3a.connection.ssl.enabled", "true") != "false"
        options |= {
            "endpoint_override": parts.netloc,
            "scheme": parts.scheme or ("https" if secure else "http"),
        }
    if "Anonymous" in settings.get("fs.s3a.aws.credentials.provider", ""):
        options["anonymous"] = True
    return options

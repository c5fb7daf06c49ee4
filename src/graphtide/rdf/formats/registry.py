"""The formats of quads and change logs, by name and by suffix; opening of files."""

from __future__ import annotations

import bz2
import gzip
import zlib
from dataclasses import dataclass
from io import BufferedReader, TextIOBase
from pathlib import Path
from typing import IO, Any, Final, Literal, TypeAlias, cast

import pyarrow as pa
from pyoxigraph import RdfFormat

from graphtide.errors import DataError
from graphtide.limits import Limits
from graphtide.rdf.formats.guards import UnpackedFile

Family: TypeAlias = Literal["lines", "rdf", "patch", "messages", "parquet", "arrow", "arrows"]

PACKED: Final = (".gz", ".bz2", ".zst")
"""Suffixes of files that are unpacked while they are read."""

Source: TypeAlias = "str | Path | IO[bytes]"
"""A path, or a file object that reads (or writes) bytes."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, file suffixes, family of readers, and pyoxigraph's format."""

    name: str
    suffixes: tuple[str, ...]
    family: Family
    rdf: RdfFormat | None = None

    @property
    def has_graphs(self) -> bool:
        """Whether it can hold named graphs."""
        return self.rdf is None or self.rdf.supports_datasets


FORMATS: Final = (
    Format("nt", (".nt",), "lines", RdfFormat.N_TRIPLES),
    Format("nq", (".nq",), "lines", RdfFormat.N_QUADS),
    Format("ttl", (".ttl",), "rdf", RdfFormat.TURTLE),
    Format("trig", (".trig",), "rdf", RdfFormat.TRIG),
    Format("rdf", (".rdf", ".xml"), "rdf", RdfFormat.RDF_XML),
    Format("jsonld", (".jsonld",), "rdf", RdfFormat.JSON_LD),
    Format("rdfp", (".rdfp", ".patch"), "patch"),
    Format("updates", (".updates",), "messages"),
    Format("parquet", (".parquet",), "parquet"),
    Format("arrow", (".arrow", ".feather"), "arrow"),
    Format("arrows", (".arrows",), "arrows"),
)


def find_format(source: Source, name: str | None = None) -> Format:
    """Return the format of that name, or of the source's suffix.

    >>> find_format("log.rdfp.gz").name
    'rdfp'
    >>> find_format("data.csv")
    Traceback (most recent call last):
        ...
    graphtide.errors.DataError: data.csv: unknown suffix '.csv'
      hint: known are .nt .nq .ttl .trig .rdf .xml .jsonld .rdfp .patch .updates .parquet .arrow
      .feather .arrows (and .gz, .bz2 or .zst after them), or name a format
    """
    wanted = _suffix(source) if name is None else "." + name.lower().removeprefix(".")
    for candidate in FORMATS:
        if wanted in candidate.suffixes or wanted == "." + candidate.name:
            return candidate
    suffixes = " ".join(suffix for known in FORMATS for suffix in known.suffixes)
    what = f"unknown suffix {wanted!r}" if name is None else f"unknown format {name!r}"
    raise DataError(
        what,
        source=source_name(source),
        hint=f"known are {suffixes} (and .gz, .bz2 or .zst after them), or name a format",
    )


def source_name(source: Source) -> str:
    """Return the name of a path or file object, for messages.

    >>> source_name("a/b.nt")
    'a/b.nt'
    """
    if isinstance(source, str | Path):
        return str(source)
    return str(getattr(source, "name", "<stream>"))


def open_source(source: Source, limits: Limits | None = None) -> IO[bytes]:
    """Open a source for reading, unpacking it up to a limit; a file object stays as it is.

    >>> open_source("no/such/file.nt")
    Traceback (most recent call last):
        ...
    graphtide.errors.DataError: no/such/file.nt: there is no such file
    """
    if isinstance(source, TextIOBase):
        raise DataError("open the file in binary mode", source=source_name(source))
    if not isinstance(source, str | Path):
        return source
    path = Path(source)
    if path.is_dir():
        raise DataError("is a directory, not a file", source=str(path))
    try:
        stored = path.open("rb")
        return unpacked(stored, str(path), limits or Limits()) if path.suffix in PACKED else stored
    except FileNotFoundError:
        raise DataError("there is no such file", source=str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", source=str(path)) from None


def unpacked(stored: IO[bytes], name: str, limits: Limits) -> BufferedReader:
    """What a packed file unpacks to, up to a limit; it is closed with the file."""
    suffix = Path(name).suffix
    if suffix == ".gz":
        packed = cast("IO[bytes]", gzip.GzipFile(fileobj=stored))
    elif suffix == ".bz2":
        packed = cast("IO[bytes]", bz2.BZ2File(stored))
    else:
        packed = cast("IO[bytes]", pa.CompressedInputStream(cast("Any", stored), "zstd"))
    return BufferedReader(UnpackedFile(packed, stored, name, limits))


def open_text_source(source: Source, limits: Limits | None = None) -> IO[bytes]:
    """Open a source of a textual format; raise `DataError` if it is binary."""
    file = open_source(source, limits)
    if not isinstance(file, BufferedReader | gzip.GzipFile):
        return file
    try:
        if b"\0" not in cast("Any", file).peek(512)[:512]:
            return file
        reason = "is a binary file, not RDF text"
    except (OSError, EOFError, zlib.error) as error:
        reason = f"cannot be read: {error}"
    if file is not source:
        file.close()
    raise DataError(
        reason, source=source_name(source), hint="check that its suffix matches its format"
    )


def open_target(target: Source) -> IO[bytes]:
    """Open a target for writing, compressing `.gz`; a file object is returned as it is."""
    if not isinstance(target, str | Path):
        return target
    path = Path(target)
    try:
        if path.suffix == ".gz":
            return cast("IO[bytes]", gzip.open(path, "wb"))
        if path.suffix in PACKED:
            hint = f"omit {path.suffix}, or pack it as .gz"
            raise DataError("cannot be written packed like this", source=str(path), hint=hint)
        return path.open("wb")
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", source=str(path)) from None


def _suffix(source: Source) -> str:
    path = Path(source_name(source))
    return (path.with_suffix("") if path.suffix in PACKED else path).suffix

"""Where the compiled loops' machine code is stored, and that none of it is stale or a stranger's.

Numba's cache notices changes of the file that holds a function, but not of the files whose helpers
or constants were inlined into it. So the code of a module is in a folder that is named after a
digest of the module's source and of every source of this package that it imports, directly or not.
Folders of the same module with other digests are removed.

Machine code is executed, so it is only read from a folder that belongs to this user and that nobody
else can write to.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

log = getLogger(__name__)

PACKAGE: Final = Path(__file__).parent

_MODULE_FOLDER: Final = re.compile(r"[\w.]+-[0-9a-f]{16}")

_IMPORT: Final = re.compile(
    r"^\s*from graphtide\b([\w.]*) import (\([^)]*\)|[^\n#]*)", re.MULTILINE
)


@cache
def code_folder(source: Path, numba_cache_dir: str = "") -> Path | None:
    """The folder for the machine code of a module; None if there is no folder to trust.

    It is made in the first of these that can be written to: `NUMBA_CACHE_DIR`, the package's own
    folder, the user's cache directory, the directory of temporary files.
    """
    if not source.is_file():  # inside a zip, of which no digest is taken
        return None
    for root in _roots(numba_cache_dir):
        with suppress(OSError):
            return _folder_below(root, source)
    _warn_once()
    return None


def directory_for_workers(numba_cache_dir: str = "") -> Path | None:
    """What `NUMBA_CACHE_DIR` should be where other processes of this package run.

    None if they find the same directory by themselves: the package's own folder. Otherwise they may
    have another home and another directory of temporary files, and would each compile for itself.
    """
    for root in _roots(numba_cache_dir):
        with suppress(OSError):
            _package_folder(root)
            return None if root == PACKAGE / "__pycache__" else root.absolute()
    return None


def digest(source: Path) -> str:
    """A digest of a source and of every source of this package that is imported by it.

    >>> digest(PACKAGE / "code_cache.py") == digest(PACKAGE / "jit.py")
    False
    """
    seen: set[Path] = set()
    ahead = [source]
    while ahead:
        if (path := ahead.pop()) not in seen:
            seen.add(path)
            ahead.extend(_imports(path))
    total = hashlib.sha256()
    for path in sorted(seen):
        total.update(f"{path.name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return total.hexdigest()[:16]


def folder_name(source: Path) -> str:
    """The name of the folder for the machine code of a module, wherever that is."""
    module = ".".join(source.with_suffix("").parts[len(PACKAGE.parts) :])
    return f"{module}-{digest(source)}"


def is_module_folder(folder: Path) -> bool:
    """Whether a folder is named as one for the machine code of a module.

    >>> is_module_folder(Path(folder_name(PACKAGE / "code_cache.py"))), is_module_folder(PACKAGE)
    (True, False)
    """
    return _MODULE_FOLDER.fullmatch(folder.name) is not None


@cache
def _imports(source: Path) -> tuple[Path, ...]:
    return tuple(_modules(source.read_text(encoding="utf-8")))


def _modules(text: str) -> Iterator[Path]:
    """The files that the `from graphtide… import …` lines of a source name."""
    for module, names in _IMPORT.findall(text):
        folder = PACKAGE.joinpath(*module.split(".")[1:])
        for name in re.findall(r"(\w+)(?: as \w+)?", names):
            choices = (folder / f"{name}.py", folder.with_suffix(".py"), folder / "__init__.py")
            yield from [path for path in choices if path.is_file()][:1]


def _roots(numba_cache_dir: str) -> Iterator[Path]:
    if numba_cache_dir:
        yield Path(numba_cache_dir)
    yield PACKAGE / "__pycache__"
    with suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    with suppress(OSError):  # not even a directory of temporary files
        yield Path(tempfile.gettempdir())


def _package_folder(root: Path) -> Path:
    """Make this package's folder; OSError if it cannot be written to or is not to be trusted."""
    root.mkdir(parents=True, exist_ok=True)
    user = root / f"graphtide-{_user()}"
    with suppress(FileExistsError):
        user.mkdir(mode=0o700)
    if not _private(user):
        raise PermissionError(user)
    # Copies of the package, as in several environments, do not share a folder: each removes what is
    # stale by its own sources.
    copy = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:12]
    folder = user / copy
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    return folder


def _folder_below(root: Path, source: Path) -> Path:
    """Make a module's folder, and remove those of its other sources."""
    name = folder_name(source)
    folder, module = _package_folder(root) / name, name.rpartition("-")[0]
    folder.mkdir(exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    for other in folder.parent.glob(f"{module}-*"):
        if other != folder:
            log.debug("removed stale machine code: %s", other)
            shutil.rmtree(other, ignore_errors=True)
    return folder


def _user() -> int | str:
    return os.geteuid() if hasattr(os, "geteuid") else "user"


@cache
def _private(folder: Path) -> bool:
    """Whether a folder belongs to this user alone, and cannot be replaced by others."""
    if not hasattr(os, "geteuid"):  # Windows: directories of users are theirs
        return True
    itself, above = folder.lstat(), folder.parent.stat()
    replaceable = above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX
    ours = stat.S_ISDIR(itself.st_mode) and itself.st_uid == os.geteuid()
    private = ours and not itself.st_mode & 0o077 and not replaceable
    if not private:
        log.warning("%s is not used for machine code: others can write to it", folder)
    return private


@cache
def _warn_once() -> None:
    log.warning(
        "machine code is not stored: no directory can be written to; every start compiles again. "
        "Set NUMBA_CACHE_DIR to a directory of your own"
    )

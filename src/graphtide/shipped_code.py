"""Machine code inside the package: with a wheel that has it, a first answer waits for no compiler.

`scripts/machine_code.py` compiles loops for a processor that most machines have, and the build puts
their code into the wheel. It is found there by the same digest of sources as code that was stored
(see `code_cache`), and used where the system is that of the wheel and the processor has every
feature that the code was made for. Otherwise, or with another version of Numba or Python, loops are
compiled as they are without it.
"""

from __future__ import annotations

import json
import shutil
from functools import cache
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from graphtide import code_cache

if TYPE_CHECKING:
    from pathlib import Path

log = getLogger(__name__)

FOLDER: Final = "machine_code"
"""The folder of the package that has the machine code of a wheel."""

STAMP: Final = "sources by digest"
"""What Numba compares with the time of a source: the folder's name has a digest of it already."""

CHECKED: Final = "checked"
"""The folder of a module for code that checks its indexes."""

BASELINES: Final = {
    "x86_64": ("x86-64", "+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.2"),
    "aarch64": ("generic", "+neon"),
}
"""Processor and features that wheels are made for, by machine: those of nearly all since 2015."""


class Target(NamedTuple):
    """What machine code was made for, as Numba names it."""

    system: str
    processor: str
    features: str

    def runs_on(self, host: Target) -> bool:
        """Whether another machine has the same system and every feature.

        >>> old, new = Target("linux", "a", "+avx,-avx2"), Target("linux", "b", "+avx,+avx2")
        >>> old.runs_on(new), new.runs_on(old)
        (True, False)
        """
        return self.system == host.system and _present(self.features) <= _present(host.features)


def _present(features: str) -> set[str]:
    return {feature for feature in features.split(",") if feature.startswith("+")}


@cache
def shipped_target(package: Path) -> Target | None:
    """What the machine code in a package was made for; None if there is none."""
    try:
        return Target(**json.loads((package / FOLDER / "target.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, TypeError, ValueError) as error:
        log.warning("the machine code in %s cannot be used: %r", package / FOLDER, error)
        return None


class ShippedCode:
    """The machine code of one loop that came with the package."""

    def __init__(self, file: Any, target: Target) -> None:  # noqa: ANN401 - of Numba
        self._file = file
        self._target = target

    def load(self, cache: Any, signature: object, context: Any) -> object:  # noqa: ANN401
        """The code for a signature, if it was shipped and this machine can run it."""
        codegen = context.codegen()
        if not self._target.runs_on(Target(*codegen.magic_tuple())):
            _say_once(self._target)
            return None
        key = cache._index_key(signature, codegen)  # noqa: SLF001 - as Numba does
        data = self._file.load((key[0], tuple(self._target), *key[2:]))
        return None if data is None else cache._impl.rebuild(context, data)  # noqa: SLF001


@cache
def _say_once(target: Target) -> None:
    log.info(
        "the machine code of the package is for %s with other features than this processor has: "
        "loops are compiled when they are first used",
        target.processor,
    )


def shipped_code(source: Path, numba_cache: Any) -> ShippedCode | None:  # noqa: ANN401 - of Numba
    """The code that was shipped for a loop of a module, found by the name of its Numba cache."""
    target = shipped_target(code_cache.PACKAGE)
    if target is None:
        return None
    folder = code_cache.PACKAGE / FOLDER / code_cache.folder_name(source)
    name = numba_cache._impl.filename_base  # noqa: SLF001 - as Numba does
    if not (folder / f"{name}.nbi").is_file():
        return None
    from numba.core.caching import IndexDataCacheFile  # noqa: PLC0415 - not without a compiler

    files: Any = IndexDataCacheFile
    return ShippedCode(files(str(folder), name, STAMP), target)


def collect(numba_cache_dir: Path, destination: Path, target: Target) -> int:
    """Gather what was stored below a cache directory for a target; how many loops that are.

    The code of a module is in one folder, whatever folders Numba made. Code that checks its indexes
    is for tests, and not gathered.
    """
    loops = 0
    destination.mkdir(parents=True, exist_ok=True)
    for index in sorted(numba_cache_dir.rglob("*.nbi")):
        module = next(path for path in index.parents if code_cache.is_module_folder(path))
        if CHECKED in index.relative_to(module).parts:
            continue
        folder = destination / module.name
        folder.mkdir(exist_ok=True)
        for file in index.parent.glob(f"{index.name.removesuffix('.nbi')}.*"):
            shutil.copyfile(file, folder / file.name)
        loops += 1
    text = json.dumps(target._asdict(), indent=2)
    (destination / "target.json").write_text(f"{text}\n", encoding="utf-8")
    shipped_target.cache_clear()
    return loops

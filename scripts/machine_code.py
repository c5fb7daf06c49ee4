"""Compile loops before they are needed: `python scripts/machine_code.py demo|first|all`.

`make demo` and `make setup` compile for this machine, and store the machine code where the package
finds it. A build compiles for a wheel (`--wheel FOLDER`): for a processor that nearly all machines
have (`BASELINES` of `graphtide.shipped_code`). Neither has more than Numba and NumPy installed when
it begins: packages are entered without their `__init__`.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

SOURCES = Path(__file__).resolve().parents[1] / "src"

for name in ("graphtide", "graphtide.rdf", "graphtide.rules", "graphtide.spark"):
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = [str(SOURCES.joinpath(*name.split(".")))]

from graphtide import shipped_code, warm  # noqa: E402 - of the packages above


def main() -> None:
    """Compile the loops that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loops", choices=["demo", "first", "all"])
    parser.add_argument("--wheel", type=Path, metavar="FOLDER", help="gather machine code here")
    options = parser.parse_args()
    names = {"demo": warm.DEMO, "first": warm.FIRST}.get(options.loops) or warm.all_loops()
    if options.wheel is None:
        warm.compile_loops(names, warm.to_stderr)
        return
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if machine not in shipped_code.BASELINES:
        sys.exit(f"graphtide: no processor is chosen for wheels of {machine}: see BASELINES")
    processor, features = shipped_code.BASELINES[machine]
    with TemporaryDirectory(prefix="graphtide-code-") as stored:
        os.environ |= {
            "NUMBA_CACHE_DIR": stored,
            "NUMBA_CPU_NAME": processor,
            "NUMBA_CPU_FEATURES": features,
        }
        warm.compile_loops(names, warm.to_stderr)
        count = shipped_code.collect(Path(stored), options.wheel, this_target())
    print(f"graphtide: the machine code of {count} loops", file=sys.stderr)


def this_target() -> shipped_code.Target:
    """What Numba compiles for with the settings of this process."""
    from numba.core import config  # noqa: PLC0415 - it reads the settings when it is imported
    from numba.core.registry import cpu_target  # noqa: PLC0415

    config.reload_config()
    return shipped_code.Target(*cpu_target.target_context.codegen().magic_tuple())


if __name__ == "__main__":
    main()

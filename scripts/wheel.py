"""Build a wheel for this platform with the compiled loops in it: `python scripts/wheel.py`.

Who installs it has the first answer after a second instead of a minute. The loops are compiled for
a processor that nearly all machines have (`BASELINES` of `graphtide.shipped_code`). With
`--stored`, what this machine has compiled already is taken, and runs on processors like its own.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from graphtide.code_cache import PACKAGE, directory_for_workers
from graphtide.shipped_code import BASELINES, Target, collect

ROOT = Path(__file__).resolve().parents[1]
WARM_UP = "from graphtide.warm import warm_up; warm_up(print)"
HOST = (
    "from numba.core.registry import cpu_target\n"
    "print(*cpu_target.target_context.codegen().magic_tuple())"
)


def main() -> None:
    """Compile or take what is stored, then build the wheel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="dist", help="the directory for the wheel [dist]")
    parser.add_argument("--stored", action="store_true", help="take what is compiled already")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="graphtide-wheel-") as folder:
        stored, code = Path(folder, "stored"), Path(folder, "machine_code")
        settings = {}
        if options.stored:
            stored = directory_for_workers() or PACKAGE / "__pycache__"
        else:
            stored.mkdir(mode=0o700)
            settings = baseline() | {"NUMBA_CACHE_DIR": str(stored)}
            run(["-c", WARM_UP], settings)
        target = Target(*run(["-c", HOST], settings, stdout=subprocess.PIPE).split())
        print(f"the machine code of {collect(stored, code, target)} loops")
        build = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        built = {"GRAPHTIDE_MACHINE_CODE": str(code)}
        run([*build, "--wheel-dir", options.out, str(ROOT)], built)


def run(arguments: list[str], settings: dict[str, str], stdout: int | None = None) -> str:
    """Run Python with some settings in its environment; what it prints, if that is asked for."""
    done = subprocess.run(  # noqa: S603 - commands of this file
        [sys.executable, *arguments], env=os.environ | settings, check=True, stdout=stdout
    )
    return done.stdout.decode() if done.stdout else ""


def baseline() -> dict[str, str]:
    """The settings of Numba for the processor that wheels of this platform are made for."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if machine not in BASELINES:
        sys.exit(
            f"no processor is chosen for wheels of {machine}: add one to BASELINES, or --stored"
        )
    processor, features = BASELINES[machine]
    return {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": features}


if __name__ == "__main__":
    main()

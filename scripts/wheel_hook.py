"""A hook of the build: machine code goes into the wheel, so that a first answer compiles nothing.

`GRAPHTIDE_MACHINE_CODE` says of which loops: `first` (what README, demo and tutorial use; the
default), `all` (releases), or `none` (a wheel for all machines).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCodeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds a folder to the package, and makes the wheel one for this platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is built; an editable install has no wheel."""
        wanted = os.environ.get("GRAPHTIDE_MACHINE_CODE", "first")
        if version == "editable" or wanted == "none":
            return
        folder = mkdtemp(prefix="graphtide-machine-code-")
        script = str(Path(self.root, "scripts", "machine_code.py"))
        command = [sys.executable, script, wanted, "--wheel", folder]
        if subprocess.run(command, check=False).returncode:  # noqa: S603 - this project's script
            self.app.display_warning("graphtide: the loops are compiled when they are first used")
            return
        build_data["force_include"][folder] = "graphtide/machine_code"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

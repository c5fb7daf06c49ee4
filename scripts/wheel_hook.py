"""A hook of the build: machine code that `scripts/wheel.py` has made goes into the wheel.

Without `GRAPHTIDE_MACHINE_CODE` the wheel is the same for all machines, and has none.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCodeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds a folder to the package, and makes the wheel one for this platform."""

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        """Hatchling calls this before it builds."""
        folder = os.environ.get("GRAPHTIDE_MACHINE_CODE")
        if folder:
            build_data["force_include"][folder] = "graphtide/machine_code"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

"""The OpenAPI description of the server."""

from __future__ import annotations

from typing import Any, Final

DESCRIPTION: Final[dict[str, Any]] = {}

"""What a standing query may not say yet: each part of SPARQL with its name and a way out.

A part that can be maintained is simply not listed here any more.
"""

from __future__ import annotations

from typing import Final

NOT_YET: Final[dict[str, tuple[str, str]]] = {}
"""By part: what the refusal calls it, and what to do instead. All of SPARQL 1.1 is maintained."""

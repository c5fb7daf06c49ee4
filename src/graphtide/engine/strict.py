"""Strict mode: find a change that would have no effect, before anything happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.errors import StrictError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel import QuadStore
    from graphtide.rdf.dictionary import TermDictionary


def first_redundant(
    changes: Sequence[tuple[int, tuple[int, ...]]], store: QuadStore, terms: TermDictionary
) -> tuple[int, StrictError] | None:
    """Walk the changes in order, as if they were applied; the place of the first redundant one."""
    quads = list({ids for _, ids in changes})
    present = dict(
        zip(quads, store.contains(np.array(quads, np.int32).reshape(-1, 4)), strict=True)
    )
    for place, (diff, ids) in enumerate(changes):
        if bool(present[ids]) == (diff > 0):
            what = "insert of a quad that is present" if diff > 0 else "delete of an absent quad"
            text = " ".join(terms.text(i) for i in ids if i)
            return place, StrictError(
                f"{what}: {text}",
                hint="nothing of this transaction was applied; LiveGraph(strict=False) ignores it",
            )
        present[ids] = diff > 0
    return None

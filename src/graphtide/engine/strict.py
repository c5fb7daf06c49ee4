"""Strict mode: refuse a transaction with a change that has no effect, before anything happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.errors import StrictError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel import QuadStore
    from graphtide.rdf.dictionary import TermDictionary


def check_strict(
    changes: Sequence[tuple[int, tuple[int, ...]]], store: QuadStore, terms: TermDictionary
) -> None:
    """Walk the changes in order, as if they were applied; raise at the first redundant one."""
    quads = list({ids for _, ids in changes})
    present = dict(
        zip(quads, store.contains(np.array(quads, np.int32).reshape(-1, 4)), strict=True)
    )
    for diff, ids in changes:
        if bool(present[ids]) == (diff > 0):
            what = "insert of a quad that is present" if diff > 0 else "delete of an absent quad"
            text = " ".join(terms.text(i) for i in ids if i)
            raise StrictError(
                f"{what}: {text}",
                hint="nothing of this transaction was applied; LiveGraph(strict=False) ignores it",
            )
        present[ids] = diff > 0

"""How compiled loops index arrays: no index counts from the end, so none is compared with zero.

Numba lets a negative index count from the end, as Python does. The comparison and the choice with
every access took a quarter of the time of loops that do little else, such as those over tokens. No
loop of this package has negative indexes, and Numba has no option for it: so the function that
lowers an index is replaced by one that leaves this out in functions of this package. In all others
it does what it did.

With `GRAPHTIDE_CHECK_INDEXES=1` an index that is negative or too large raises IndexError instead.
The tests of the kernels, the random cases and the W3C suites can be run so: slower, but nothing
outside of an array is read or written unnoticed.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Final

CHECKED: Final = os.environ.get("GRAPHTIDE_CHECK_INDEXES", "0") not in ("", "0")
"""Whether indexes are checked."""

OURS: Final = "graphtide."
"""What the modules begin with whose functions have no negative indexes."""


@cache
def lower_indexes() -> None:
    """Replace Numba's lowering of integer indexes, once; before anything is compiled."""
    from numba.core import types  # noqa: PLC0415 - the twins run where Numba is not installed
    from numba.np import arrayobj  # noqa: PLC0415

    arrays: Any = arrayobj
    original = arrays.fix_integer_index

    def fix_integer_index(context: Any, builder: Any, idxty: Any, idx: Any, size: Any) -> Any:  # noqa: ANN401 - of Numba
        lowered = getattr(context, "fndesc", None)
        if lowered is None or not lowered.modname.startswith(OURS):
            return original(context, builder, idxty, idx, size)
        index = context.cast(builder, idx, idxty, types.intp if idxty.signed else types.uintp)
        if CHECKED:
            _check(context, builder, index, size)
        return index

    arrays.fix_integer_index = fix_integer_index


def _check(context: Any, builder: Any, index: Any, size: Any) -> None:  # noqa: ANN401 - of Numba
    """Raise IndexError from a compiled loop if an index is outside of its array."""
    from numba.core import cgutils  # noqa: PLC0415 - as above

    build: Any = cgutils
    # As an unsigned number, a negative index is larger than any size.
    message = f"an index is outside of its array in the compiled {context.fndesc.qualname}"
    with build.if_unlikely(builder, builder.icmp_unsigned(">=", index, size)):
        context.call_conv.return_user_exc(builder, IndexError, (message,))

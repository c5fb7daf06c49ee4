"""The table of operators and functions: name, implementation, number of arguments.

`check_call` rejects a call at registration: an unknown function, a wrong number of arguments, or a
non-deterministic function, which a standing query cannot have.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from graphtide.algebra.expressions import is_calculation
from graphtide.algebra.queries import TEMPLATE_NODE
from graphtide.algebra.variables import PARTS_OF_TRIPLES
from graphtide.errors import UnsupportedError
from graphtide.functions import arithmetic, comparison, datetimes, logic, strings, templates, terms
from graphtide.functions.casts import CASTS
from graphtide.functions.extensions import geo, mathematics
from graphtide.functions.user import USER_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphtide.functions.logic import Compiled
    from graphtide.rdf.terms import Term


@dataclass(frozen=True, slots=True)
class Function:
    """A strict function of terms: an error in an argument is an error of the call."""

    apply: Callable[..., Term]
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Form:
    """A functional form: it decides which arguments to evaluate, and what their errors mean."""

    build: Callable[[Sequence[Compiled]], Compiled]
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class BoundForm:
    """BOUND, whose only argument is a variable and not an expression."""

    least: int = 1
    most: int | None = 1


_OPERATIONS: Final = {
    "+": arithmetic.op_add,
    "-": arithmetic.op_subtract,
    "*": arithmetic.op_multiply,
    "/": arithmetic.op_divide,
}

FUNCTIONS: Final[dict[str, Function | Form | BoundForm]] = {
    "=": Function(comparison.op_equal, 2, 2),
    "!=": Function(comparison.op_unequal, 2, 2),
    "<": Function(comparison.op_less, 2, 2),
    "<=": Function(comparison.op_at_most, 2, 2),
    ">": Function(comparison.op_greater, 2, 2),
    ">=": Function(comparison.op_at_least, 2, 2),
    "SAMETERM": Function(comparison.same_term, 2, 2),
    "&&": Form(logic.build_and, 1, None),
    "||": Form(logic.build_or, 1, None),
    "!": Form(logic.build_not, 1, 1),
    "IN": Form(logic.build_in, 1, None),
    "NOT IN": Form(logic.build_not_in, 1, None),
    "IF": Form(logic.build_if, 3, 3),
    "COALESCE": Form(logic.build_coalesce, 0, None),
    "BOUND": BoundForm(),
    TEMPLATE_NODE: Form(templates.build_template_node, 1, None),
    **{sign: Function(operation, 2, 2) for sign, operation in _OPERATIONS.items()},
    "UMINUS": Function(arithmetic.op_negate, 1, 1),
    "UPLUS": Function(arithmetic.op_plus, 1, 1),
    "ABS": Function(arithmetic.absolute, 1, 1),
    "ROUND": Function(arithmetic.round_half_up, 1, 1),
    "CEIL": Function(arithmetic.ceiling, 1, 1),
    "FLOOR": Function(arithmetic.floor, 1, 1),
    "STR": Function(terms.str_of, 1, 1),
    "LANG": Function(terms.lang, 1, 1),
    "DATATYPE": Function(terms.datatype, 1, 1),
    "IRI": Function(terms.iri, 1, 2),
    "URI": Function(terms.iri, 1, 2),
    "STRDT": Function(terms.strdt, 2, 2),
    "STRLANG": Function(terms.strlang, 2, 2),
    "ISIRI": Function(terms.is_iri, 1, 1),
    "ISURI": Function(terms.is_iri, 1, 1),
    "ISBLANK": Function(terms.is_blank, 1, 1),
    "ISLITERAL": Function(terms.is_literal, 1, 1),
    "ISNUMERIC": Function(terms.is_numeric, 1, 1),
    "ISTRIPLE": Function(terms.is_triple, 1, 1),
    "TRIPLE": Function(terms.triple, 3, 3),
    **{
        spelling: Function(terms.part_function(part, strict=spelling == part.upper()), 1, 1)
        for part, unspelt in zip(("subject", "predicate", "object"), PARTS_OF_TRIPLES, strict=True)
        for spelling in (part.upper(), unspelt)
    },
    "HASLANG": Function(terms.has_lang, 1, 1),
    "HASLANGDIR": Function(terms.has_lang_dir, 1, 1),
    "LANGDIR": Function(terms.lang_dir, 1, 1),
    "STRLANGDIR": Function(terms.strlangdir, 3, 3),
    "STRLEN": Function(strings.strlen, 1, 1),
    "SUBSTR": Function(strings.substr, 2, 3),
    "UCASE": Function(strings.ucase, 1, 1),
    "LCASE": Function(strings.lcase, 1, 1),
    "STRSTARTS": Function(strings.strstarts, 2, 2),
    "STRENDS": Function(strings.strends, 2, 2),
    "CONTAINS": Function(strings.contains, 2, 2),
    "STRBEFORE": Function(strings.strbefore, 2, 2),
    "STRAFTER": Function(strings.strafter, 2, 2),
    "ENCODE_FOR_URI": Function(strings.encode_for_uri, 1, 1),
    "CONCAT": Function(strings.concat, 0, None),
    "LANGMATCHES": Function(strings.lang_matches, 2, 2),
    "REGEX": Function(strings.regex, 2, 3),
    "REPLACE": Function(strings.replace, 3, 4),
    "YEAR": Function(datetimes.year, 1, 1),
    "MONTH": Function(datetimes.month, 1, 1),
    "DAY": Function(datetimes.day, 1, 1),
    "HOURS": Function(datetimes.hours, 1, 1),
    "MINUTES": Function(datetimes.minutes, 1, 1),
    "SECONDS": Function(datetimes.seconds, 1, 1),
    "TIMEZONE": Function(datetimes.timezone, 1, 1),
    "TZ": Function(datetimes.tz, 1, 1),
    **{
        name: Function(strings.hash_function(name.lower()), 1, 1)
        for name in ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")
    },
    **{f"<{target}>": Function(cast, 1, 1) for target, cast in CASTS.items()},
    **{
        name: Function(apply, arity, arity)
        for calls in (mathematics.CALLS, geo.CALLS)
        for name, (apply, arity) in calls.items()
    },
}
"""Every operator and function that an expression can call, by the name it has in a `Call`; besides
these, the functions of the user."""

_FRESH: Final = "gives another value at every call, so its result cannot be maintained"
_NEW_NODE: Final = (
    "makes a new blank node for every row, so a row could not be recognised when deleted"
)
VOLATILE: Final[dict[str, str]] = {
    "RAND": f"RAND {_FRESH}",
    "UUID": f"UUID {_FRESH}",
    "STRUUID": f"STRUUID {_FRESH}",
    "NOW": "NOW changes with the clock; compare with it in a FILTER of a standing query",
    "BNODE": f"BNODE {_NEW_NODE}",
}
"""Non-deterministic functions, each with the reason why a standing query cannot have it."""


def entry_of(name: str) -> Function | Form | BoundForm | None:
    """What a name stands for: an entry of the table, a user's function, or signs in a row."""
    entry = FUNCTIONS.get(name)
    if entry is None and (own := USER_FUNCTIONS.get(name)) is not None:
        return Function(own.apply, own.least, own.most)
    if entry is None and is_calculation(name):
        steps = [_OPERATIONS[sign] for sign in name]
        return Function(arithmetic.calculation(steps), len(steps) + 1, len(steps) + 1)
    return entry


def check_call(name: str, n_args: int) -> None:
    """Raise `UnsupportedError` for a call that cannot be evaluated, with the reason and a hint.

    >>> check_call("STRLENGTH", 1)
    Traceback (most recent call last):
    ...
    graphtide.errors.UnsupportedError: unknown function STRLENGTH
      hint: did you mean STRLEN?
    """
    if name in VOLATILE:
        raise UnsupportedError(f"{name} cannot be maintained: {VOLATILE[name]}")
    if name in geo.CALLS and not geo.is_available():
        raise UnsupportedError(
            f"the function {name} needs shapely, which is not installed",
            hint="pip install graphtide[geo]",
        )
    entry = entry_of(name)
    if entry is None:
        close = get_close_matches(name, FUNCTIONS, n=1) or get_close_matches(
            name.upper(), FUNCTIONS, n=1
        )
        hint = f"did you mean {close[0]}?" if close else None
        raise UnsupportedError(f"unknown function {name}", hint=hint)
    if n_args < entry.least or (entry.most is not None and n_args > entry.most):
        raise UnsupportedError(f"{name} takes {_arity(entry.least, entry.most)}, not {n_args}")


def _arity(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least} argument{'' if least == 1 else 's'}"
    if least == most:
        return f"{least} argument{'' if least == 1 else 's'}"
    return f"{least} to {most} arguments"

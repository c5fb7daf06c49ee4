"""Loops over the texts of terms: which are canonical and of which kind, and typed values.

A text that is not obviously canonical (an escape, an upper-case language tag, an IRI with an IPv6
host, or an invalid text) gets the code `ODD`, and `rdf.terms.canonical_text`, the twin of these
loops, decides about it. A literal whose value needs more than one exact operation (over 15 digits,
large exponents, INF) gets the kind `PENDING`, and the twin `rdf.terms.typed_value` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from graphtide.jit import compiled, inlined, subroutine
from graphtide.rdf import kinds
from graphtide.rdf.kernels.words import equal_bytes
from graphtide.rdf.kinds import EXACT_DIGITS, EXACT_NUMBER, INTEGER_RANGES, XSD

if TYPE_CHECKING:
    from graphtide.arrays import Kinds1, Longs1, ReadBytes1

# ruff: noqa: PLR1714, SIM110 - a kernel is loops and comparisons over bytes, which Numba
# compiles best as they stand.


Bytes = NDArray[np.uint8]

ODD: Final = -1
"""Not obviously canonical: `canonical_text` decides."""

TYPED: Final = 32
"""Codes from here on are `TYPED` + the index of the datatype in `VALUE_DATATYPES`."""

VALUE_DATATYPES: Final = (*INTEGER_RANGES, "decimal", "double", "boolean", "dateTime")
"""Local names of the XML Schema datatypes that have values in the typed side columns."""

_XSD_STRING: Final = len(VALUE_DATATYPES)
_NAMES: Final = (*VALUE_DATATYPES, "string")
_NAME_BYTES = np.frombuffer("".join(_NAMES).encode(), np.uint8)
_NAME_ENDS = np.cumsum([len(name) for name in _NAMES])
_PREFIX = np.frombuffer(XSD.encode(), np.uint8)


def _character_table() -> Bytes:
    """Return the classes of each byte, as bits.

    They are 1 in a scheme, 2 in a host, 4 in the rest of an IRI, 8 in a blank node label, 16 in a
    literal as it stands, 32 a hexadecimal digit.
    """
    table = np.zeros(256, np.uint8)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    digits = "0123456789"
    members = {
        1: letters + digits + "+-.",
        2: letters + digits + "-._~",
        4: letters + digits + "-._~!$&'()*+,;=:@/?",
        8: letters + digits + "_-.",
        16: "".join(map(chr, range(0x20, 0x7F))).replace('"', "").replace("\\", ""),
        32: digits + "abcdefABCDEF",
    }
    for bit, characters in members.items():
        for character in characters:
            table[ord(character)] |= bit
    table[0x80:] |= 16
    return table


_CLASS = _character_table()


@subroutine
def _is_wide(data: ReadBytes1, at: int) -> bool:
    """Tell whether a byte >= 0x80 belongs to a character that an IRI may hold (U+A0 to U+D7FF)."""
    byte = int(data[at])
    if byte < 0xC0:  # inside a character; its first byte has been looked at
        return True
    return 0xC2 < byte < 0xEE or (byte == 0xC2 and int(data[at + 1]) >= 0xA0)


@subroutine
def _host_end(data: ReadBytes1, at: int, end: int) -> int:
    """Return where `//host:port` ends, or -1 if it is odd."""
    while at < end and _CLASS[data[at]] & 2:
        at += 1
    if at < end and data[at] == 0x3A:  # :
        at += 1
        while at < end and 0x30 <= data[at] <= 0x39:
            at += 1
    if at < end and data[at] != 0x2F and data[at] != 0x3F and data[at] != 0x23:  # / ? #
        return -1
    return at


@subroutine
def _plain_path(data: ReadBytes1, at: int, end: int, fragment: bool) -> bool:  # noqa: FBT001 - a kernel
    """Tell whether data[at:end] obviously ends an IRI whose fragment has begun or not."""
    while at < end:
        byte = data[at]
        if byte >= 0x80:
            if not _is_wide(data, at):
                return False
        elif byte == 0x23:  # '#' only once
            if fragment:
                return False
            fragment = True
        elif byte == 0x25:  # '%' and two hexadecimal digits
            if at + 2 >= end or not (_CLASS[data[at + 1]] & _CLASS[data[at + 2]] & 32):
                return False
            at += 2
        elif not _CLASS[byte] & 4:
            return False
        at += 1
    return True


@subroutine
def _plain_iri(data: ReadBytes1, at: int, end: int) -> bool:
    """Tell whether data[at:end], without its angle brackets, is obviously an absolute IRI."""
    first = data[at] if at < end else 0
    if not (0x61 <= first <= 0x7A or 0x41 <= first <= 0x5A):
        return False
    while at < end and _CLASS[data[at]] & 1:
        at += 1
    if at >= end or data[at] != 0x3A:  # the scheme ends with ':'
        return False
    at += 1
    if at + 1 < end and data[at] == 0x2F and data[at + 1] == 0x2F:
        at = _host_end(data, at + 2, end)
        if at < 0:
            return False
    return _plain_path(data, at, end, False)


BEGIN, SIZE, FRAGMENT = 0, 1, 2
"""Cells of a start that IRIs share, up to a `/` or `#` after the host: where it is in the data, its
size (0: there is none), and whether it is the start of the fragment."""


@inlined
def note_start(data: Bytes, at: int, end: int, like: NDArray[np.int64]) -> None:
    """Note up to where a plain IRI, with its angle brackets, may be like the next ones."""
    last = end - 2
    while last > at and data[last] != 0x2F and data[last] != 0x23:  # / #
        last -= 1
    like[BEGIN], like[SIZE], like[FRAGMENT] = at, last + 1 - at, 0
    # There is none, or it is one of the slashes before the host: what follows them is no path.
    slash = data[last] == 0x2F and (data[last - 1] == 0x2F or data[last - 1] == 0x3A)
    if last == at or slash:
        like[SIZE] = 0
    for index in range(at, last + 1):
        like[FRAGMENT] |= data[index] == 0x23


@inlined
def shares_start(data: Bytes, at: int, end: int, like: NDArray[np.int64]) -> bool:
    """Whether a text has the noted start."""
    size = like[SIZE]
    return 0 < size < end - at and equal_bytes(data, at, data, like[BEGIN], size)


@inlined
def plain_rest(data: Bytes, at: int, end: int, like: NDArray[np.int64]) -> bool:
    """Whether a text with the noted start is obviously an absolute IRI."""
    return data[end - 1] == 0x3E and _plain_path(
        data, at + like[SIZE], end - 1, like[FRAGMENT] != 0
    )


@subroutine
def _plain_blank(data: ReadBytes1, at: int, end: int) -> bool:
    """Tell whether data[at:end], starting with '_', is obviously a blank node."""
    if end - at < 3 or data[at + 1] != 0x3A:
        return False
    first, last = data[at + 2], data[end - 1]
    if first == 0x2D or first == 0x2E or last == 0x2E:
        return False
    for index in range(at + 2, end):
        if not _CLASS[data[index]] & 8:
            return False
    return True


@subroutine
def _closing_quote(data: ReadBytes1, at: int, end: int) -> int:
    """Return the index of the quote that closes the literal, or -1 if it is odd."""
    while at < end:
        byte = data[at]
        if _CLASS[byte] & 16:
            at += 1
        elif byte == 0x22:
            return at
        elif byte == 0x5C and at + 1 < end:  # the escapes that stay: \t \b \n \r \f \" \\
            escaped = data[at + 1]
            if not (
                escaped == 0x74
                or escaped == 0x62
                or escaped == 0x6E
                or escaped == 0x72
                or escaped == 0x66
                or escaped == 0x22
                or escaped == 0x5C
            ):
                return -1
            at += 2
        else:
            return -1
    return -1


@subroutine
def _plain_language(data: ReadBytes1, at: int, end: int) -> bool:
    """Tell whether data[at:end] is a lower-case tag of the form `en`, `gsw` or `en-gb`."""
    size = end - at
    if size == 5 or size == 6:
        if data[end - 3] != 0x2D:
            return False
    elif size != 2 and size != 3:
        return False
    for index in range(at, end):
        if not (0x61 <= data[index] <= 0x7A) and not (size >= 5 and index == end - 3):
            return False
    return True


@subroutine
def _datatype_code(data: ReadBytes1, at: int, end: int) -> int:
    """Return the code of the datatype IRI data[at:end]."""
    # rdf:langString and rdf:dirLangString are not allowed after ^^; leave what ends in "ngString"
    # to canonical_text.
    if end - at > 8 and data[end - 8] == 0x6E and data[end - 7] == 0x67 and data[end - 6] == 0x53:
        return ODD
    known = end - at > _PREFIX.size
    index = 0
    while known and index < _PREFIX.size:
        known = data[at + index] == _PREFIX[index]
        index += 1
    if not known:
        return kinds.OTHER if _plain_iri(data, at, end) else ODD
    start = 0
    for name in range(_NAME_ENDS.size):
        size = _NAME_ENDS[name] - start
        if size == end - at - _PREFIX.size:
            index = 0
            while index < size and _NAME_BYTES[start + index] == data[end - size + index]:
                index += 1
            if index == size:
                return ODD if name == _XSD_STRING else TYPED + name
        start = _NAME_ENDS[name]
    return kinds.OTHER if _plain_iri(data, at, end) else ODD


@subroutine
def term_code(data: ReadBytes1, at: int, end: int) -> tuple[int, int]:
    """Return the code of one text and, for a typed literal, where its lexical form ends."""
    if end - at < 3:
        # Even "" needs two bytes; it is the one plain text shorter than three.
        if end - at == 2 and data[at] == 0x22 and data[at + 1] == 0x22:
            return kinds.STRING, at + 1
        return ODD, at
    first, last = data[at], data[end - 1]
    if first == 0x3C:
        plain = last == 0x3E and _plain_iri(data, at + 1, end - 1)
        return (kinds.IRI if plain else ODD), at
    if first == 0x5F:
        return (kinds.BLANK if _plain_blank(data, at, end) else ODD), at
    if first != 0x22:
        return ODD, at
    close = _closing_quote(data, at + 1, end)
    if close < 0:
        return ODD, at
    if close == end - 1:
        return kinds.STRING, close
    if data[close + 1] == 0x40:
        plain = _plain_language(data, close + 2, end)
        return (kinds.LANG if plain else ODD), close
    typed = end - close > 5 and data[close + 1] == 0x5E and data[close + 2] == 0x5E
    if typed and data[close + 3] == 0x3C and last == 0x3E:
        return _datatype_code(data, close + 4, end - 1), close
    return ODD, at


@compiled
def check_texts(
    data: ReadBytes1,
    offsets: Longs1,
    rows: Longs1,
    codes: Kinds1,
    closes: Longs1,
) -> int:
    """Fill in the code and the closing quote of the given rows; return how many are `ODD`."""
    odd = 0
    for index in range(rows.size):
        row = rows[index]
        code, close = term_code(data, offsets[row], offsets[row + 1])
        codes[index] = code
        closes[index] = close
        odd += code == ODD
    return odd


# --- typed values ---

# ruff: noqa: SIM102 - a kernel is loops and comparisons over bytes, which Numba
# compiles best as they stand.


PENDING: Final = -1
"""The kind of a literal that is left to `typed_value`."""

# Up to 15 digits everything fits below 10**15, so wider ranges need no check.
_WIDE: Final = 10**EXACT_DIGITS
_LOWS = np.array([max(-_WIDE, -_WIDE if r[0] is None else r[0]) for r in INTEGER_RANGES.values()])
_HIGHS = np.array([min(_WIDE, _WIDE if r[1] is None else r[1]) for r in INTEGER_RANGES.values()])
_DECIMAL: Final = VALUE_DATATYPES.index("decimal")
_DOUBLE: Final = VALUE_DATATYPES.index("double")
_BOOLEAN: Final = VALUE_DATATYPES.index("boolean")
_POWERS = 10.0 ** np.arange(23)
_DAYS_BEFORE = np.cumsum([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30])
_MONTH_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@subroutine
def _integer(data: ReadBytes1, at: int, end: int, datatype: int) -> tuple[int, float]:
    negative = at < end and data[at] == 0x2D
    if at < end and (data[at] == 0x2D or data[at] == 0x2B):
        at += 1
    if at >= end:
        return kinds.OTHER, 0.0
    value = 0
    digits = 0
    while at < end:
        digit = data[at] - 0x30
        if digit < 0 or digit > 9:
            return kinds.OTHER, 0.0
        digits += digits > 0 or digit > 0
        if digits <= EXACT_DIGITS:
            value = value * 10 + digit
        at += 1
    if digits > EXACT_DIGITS:
        return PENDING, 0.0
    value = -value if negative else value
    if value < _LOWS[datatype] or value > _HIGHS[datatype]:
        return kinds.OTHER, 0.0
    return kinds.EXACT, float(value)


@subroutine
def _exponent(data: ReadBytes1, at: int, end: int) -> tuple[int, bool]:
    """Return the exponent written in data[at:end] and whether it is well-formed and small."""
    negative = at < end and data[at] == 0x2D
    if at < end and (data[at] == 0x2D or data[at] == 0x2B):
        at += 1
    if at >= end or end - at > 4:
        return 0, False
    value = 0
    while at < end:
        digit = data[at] - 0x30
        if digit < 0 or digit > 9:
            return 0, False
        value = value * 10 + digit
        at += 1
    return (-value if negative else value), True


@subroutine
def _number(data: ReadBytes1, at: int, end: int, double: int) -> tuple[int, float]:
    """Read a decimal or double of at most 15 digits.

    Such digits times or divided by a power of ten up to 10**22 are one correctly rounded operation
    on exact numbers, thus the nearest float64.
    """
    kind = kinds.DOUBLE if double else kinds.EXACT
    negative = at < end and data[at] == 0x2D
    if at < end and (data[at] == 0x2D or data[at] == 0x2B):
        at += 1
    value, digits, seen, scale, point = 0, 0, 0, 0, False
    while at < end:
        byte = data[at]
        if byte == 0x2E and not point:
            point = True
        elif 0x30 <= byte <= 0x39:
            seen += 1
            scale -= point
            digits += digits > 0 or byte > 0x30
            if digits <= EXACT_DIGITS:
                value = value * 10 + (byte - 0x30)
        else:
            break
        at += 1
    if at < end and double and seen and (data[at] == 0x65 or data[at] == 0x45):
        power, good = _exponent(data, at + 1, end)
        if not good:
            return PENDING, 0.0
        scale += power
        at = end
    if at < end or not seen:  # INF and NaN have letters too
        return (PENDING if double else kinds.OTHER), 0.0
    if digits > EXACT_DIGITS or scale < -22 or scale > 22:
        return PENDING, 0.0
    number = value * _POWERS[scale] if scale >= 0 else value / _POWERS[-scale]
    if negative and (double or value):
        number = -number
    return kind, number


@subroutine
def _boolean(data: ReadBytes1, at: int, end: int) -> tuple[int, float]:
    size = end - at
    if size == 1 and (data[at] == 0x30 or data[at] == 0x31):
        return kinds.BOOLEAN, float(data[at] - 0x30)
    if size == 4 and data[at] == 0x74 and data[at + 1] == 0x72:
        if data[at + 2] == 0x75 and data[at + 3] == 0x65:
            return kinds.BOOLEAN, 1.0
    if size == 5 and data[at] == 0x66 and data[at + 1] == 0x61 and data[at + 2] == 0x6C:
        if data[at + 3] == 0x73 and data[at + 4] == 0x65:
            return kinds.BOOLEAN, 0.0
    return kinds.OTHER, 0.0


@subroutine
def _digits(data: ReadBytes1, at: int, count: int) -> int:
    """Return the number written in so many digits, or a very negative number."""
    value = 0
    for index in range(at, at + count):
        digit = data[index] - 0x30
        if digit < 0 or digit > 9:
            return -(10**9)
        value = value * 10 + digit
    return value


@subroutine
def _days(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date, or a very negative number for no date."""
    if year < 1 or month < 1 or month > 12 or day < 1:
        return -(10**9)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > _MONTH_DAYS[month - 1] + (1 if leap and month == 2 else 0):
        return -(10**9)
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400 - 719162
    return days + int(_DAYS_BEFORE[month - 1]) + (1 if leap and month > 2 else 0) + day - 1


@subroutine
def _fraction(data: ReadBytes1, at: int, end: int) -> tuple[int, int]:
    """Return the microseconds of `.ddd…` at this place and where it ends; -1 when inexact."""
    micros, place = 0, 100_000
    start = at
    while at < end and 0x30 <= data[at] <= 0x39:
        digit = data[at] - 0x30
        if place == 0 and digit > 0:
            return -1, at
        micros += digit * place
        place //= 10
        at += 1
    return (micros if at > start else -1), at


@subroutine
def _zone(data: ReadBytes1, at: int, end: int) -> int:
    """Return the minutes of the timezone in data[at:end], or a very negative number."""
    if end - at == 1 and data[at] == 0x5A:
        return 0
    if end - at != 6 or data[at + 3] != 0x3A or (data[at] != 0x2B and data[at] != 0x2D):
        return -(10**9)
    hours, minutes = _digits(data, at + 1, 2), _digits(data, at + 4, 2)
    total = hours * 60 + minutes
    if hours < 0 or minutes < 0 or minutes > 59 or total > 840:
        return -(10**9)
    return total if data[at] == 0x2B else -total


@subroutine
def _datetime(data: ReadBytes1, at: int, end: int) -> tuple[int, float]:
    if end - at < 19 or data[at + 4] != 0x2D or data[at + 7] != 0x2D or data[at + 10] != 0x54:
        return kinds.OTHER, 0.0
    if data[at + 13] != 0x3A or data[at + 16] != 0x3A:
        return kinds.OTHER, 0.0
    days = _days(_digits(data, at, 4), _digits(data, at + 5, 2), _digits(data, at + 8, 2))
    hour, minute = _digits(data, at + 11, 2), _digits(data, at + 14, 2)
    second = _digits(data, at + 17, 2)
    micros, rest = 0, at + 19
    if rest < end and data[rest] == 0x2E:
        micros, rest = _fraction(data, rest + 1, end)
    zone = _zone(data, rest, end) if rest < end else 0
    good = days > -(10**8) and minute >= 0 and second >= 0 and micros >= 0 and zone > -(10**8)
    end_of_day = hour == 24 and minute == 0 and second == 0 and micros == 0
    if not good or hour < 0 or (hour > 23 and not end_of_day) or minute > 59 or second > 59:
        return kinds.OTHER, 0.0
    total = ((days * 24 + hour) * 60 + minute - zone) * 60 + second
    total = total * 1_000_000 + micros
    if total >= EXACT_NUMBER or total <= -EXACT_NUMBER:
        return kinds.OTHER, 0.0
    return (kinds.DATETIME if rest < end else kinds.LOCAL_DATETIME), float(total)


@subroutine
def typed_literal(data: ReadBytes1, at: int, end: int, code: int) -> tuple[int, float]:
    """The kind and the number of the lexical form data[at:end] with a `TYPED` code."""
    datatype = code - TYPED
    if datatype < _DECIMAL:
        return _integer(data, at, end, datatype)
    if datatype <= _DOUBLE:
        return _number(data, at, end, int(datatype == _DOUBLE))
    if datatype == _BOOLEAN:
        return _boolean(data, at, end)
    return _datetime(data, at, end)

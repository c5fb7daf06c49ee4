r"""Recognise canonical texts of terms in bulk, and their kinds.

A text that is not obviously canonical (an escape such as `\\u0041`, an upper-case language tag, an
IRI with an IPv6 host, or an invalid text) gets the code `ODD`, and `rdf.terms.canonical_text`, the
twin of these loops, decides about it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from graphtide.jit import allocating
from graphtide.rdf import kinds
from graphtide.rdf.kinds import INTEGER_RANGES, XSD

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


@allocating
def _is_wide(data: Bytes, at: int) -> bool:
    """Tell whether a byte >= 0x80 belongs to a character that an IRI may hold (U+A0 to U+D7FF)."""
    byte = int(data[at])
    if byte < 0xC0:  # inside a character; its first byte has been looked at
        return True
    return 0xC2 < byte < 0xEE or (byte == 0xC2 and int(data[at + 1]) >= 0xA0)


@allocating
def _host_end(data: Bytes, at: int, end: int) -> int:
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


@allocating
def _plain_iri(data: Bytes, at: int, end: int) -> bool:
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
    fragment = False
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


@allocating
def _plain_blank(data: Bytes, at: int, end: int) -> bool:
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


@allocating
def _closing_quote(data: Bytes, at: int, end: int) -> int:
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


@allocating
def _plain_language(data: Bytes, at: int, end: int) -> bool:
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


@allocating
def _datatype_code(data: Bytes, at: int, end: int) -> int:
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


@allocating
def _term_code(data: Bytes, at: int, end: int) -> tuple[int, int]:
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


@allocating
def check_texts(
    data: Bytes,
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    codes: NDArray[np.int8],
    closes: NDArray[np.int64],
) -> int:
    """Fill in the code and the closing quote of the given rows; return how many are `ODD`."""
    odd = 0
    for index in range(rows.size):
        row = rows[index]
        code, close = _term_code(data, offsets[row], offsets[row + 1])
        codes[index] = code
        closes[index] = close
        odd += code == ODD
    return odd

"""Which characters have variants of case: all that Python knows, found block by block."""

import sys

import pytest

from graphtide.functions.regex.characters import _variants


@pytest.mark.slow
def test_no_cased_character_is_left_out():
    everything = (chr(code) for code in range(sys.maxunicode + 1))
    cased = {ord(each) for each in everything if each.lower() != each.upper()}
    assert set(_variants()) == cased
    assert {chr(code) for code in _variants()[ord("k")]} == {"k", "K", "\u212a"}

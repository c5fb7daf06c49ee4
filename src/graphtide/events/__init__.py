"""The event algebra (paper 4): patterns compiled to automata, and tokens that run in them."""

from __future__ import annotations

from graphtide.events.automaton import Automaton
from graphtide.events.compile import compile_pattern
from graphtide.events.token import Found, Token
from graphtide.events.token_engine import Detector

__all__ = ["Automaton", "Detector", "Found", "Token", "compile_pattern"]

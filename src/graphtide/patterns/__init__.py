"""The event algebra (paper 4): patterns compiled to automata, and their detectors."""

from __future__ import annotations

from graphtide.patterns.automaton import Automaton
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.general import Detector
from graphtide.patterns.tokens import PatternMatch, Token

__all__ = ["Automaton", "Detector", "PatternMatch", "Token", "compile_pattern"]

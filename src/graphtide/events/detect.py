"""Which detector a pattern gets: the kernel's if it can run it, or else the general one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.events.determine import determine
from graphtide.events.kernel_detector import KernelDetector
from graphtide.events.kernel_tables import why_no_kernel
from graphtide.events.token_engine import Detector
from graphtide.jit import JIT

if TYPE_CHECKING:
    from graphtide.events.automaton import Automaton

AnyDetector = Detector | KernelDetector


def make_detector(automaton: Automaton) -> AnyDetector:
    """A detector for a pattern; without a compiler always the general one.

    >>> from graphtide.events.compile import compile_pattern
    >>> from graphtide.lang.event_algebra import Atom, Follows, PatternDeclaration
    >>> body = Follows((Atom("A", ()), Atom("B", ())))
    >>> pattern = PatternDeclaration("P", (), body, "CHRONICLE", (), 1)
    >>> type(make_detector(compile_pattern(pattern, {"A": 0, "B": 1}, lambda term: 1))).__name__
    'KernelDetector'
    """
    form = determine(automaton)
    return KernelDetector(form) if JIT and not why_no_kernel(form) else Detector(automaton)

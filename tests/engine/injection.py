"""Faults at every place: an exception at the n-th call of a function of the package.

A signal is handled when a function of Python is called, and when one in C has returned. With
`returns`, the latter are places, too, in functions of the package.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import contextmanager
from pathlib import Path

import graphtide

PACKAGE = str(Path(graphtide.__file__).parent)
GENERATOR = inspect.CO_GENERATOR


class InjectedFault(BaseException):
    """Like KeyboardInterrupt, it is no `Exception`, and may come anywhere."""


class Injection:
    """Counts the calls of functions of the package; `done` tells whether the fault was raised."""

    def __init__(self, at, error=InjectedFault, *, returns=False):
        self.at = at
        self.error = error
        self.events = ("call", "c_return") if returns else ("call",)
        self.calls = 0
        self.done = False

    def hook(self):
        """The function for `sys.setprofile`.

        A function is called faster than an object; and of what happens, calls are a small part.
        """

        def profile(frame, event, _):
            if event not in self.events:
                return
            code = frame.f_code
            # A generator is called as well when it is closed, where an exception goes nowhere.
            if (
                not code.co_filename.startswith(PACKAGE)
                or code.co_flags & GENERATOR
                or code.co_name == "__del__"
            ):
                return
            self.calls += 1
            if self.calls == self.at:
                self.done = True
                sys.setprofile(None)
                name = f"{Path(code.co_filename).stem}.{code.co_qualname}"
                raise self.error(f"{event} {self.calls}, {name}, line {frame.f_lineno}")

        return profile


@contextmanager
def fault_at(number, error=InjectedFault, *, returns=False):
    """Raise an error at a call, counted from 1; with 0, only count."""
    injection = Injection(number, error, returns=returns)
    before = sys.getprofile()
    sys.setprofile(injection.hook())
    try:
        yield injection
    finally:
        sys.setprofile(before)


def places(calls, most):
    """The numbers of the calls to fail at: all of them, or evenly spread ones."""
    if most is None or calls <= most:
        return range(1, calls + 1)
    return sorted({1 + round(at * (calls - 1) / (most - 1)) for at in range(most)})


@contextmanager
def after_fault(fault):
    """Say after which fault something is wrong."""
    try:
        yield
    except Exception as problem:
        raise AssertionError(f"after a fault at {fault}: {problem!r}") from problem


class LineFaults:
    """Raises an error at the n-th line of methods of modules, counted from 1; with 0, only counts.

    Between two lines of a method a signal may come, or an array cannot be allocated. Functions are
    left out: compiled loops are some, in which no signal comes.
    """

    def __init__(self, at, modules, error=InjectedFault):
        self.at, self.error = at, error
        self.modules = tuple(f"{PACKAGE}/{module}" for module in modules)
        self.lines, self.done = 0, False

    def _called(self, frame, event, _):
        code = frame.f_code
        if "." not in code.co_qualname or code.co_flags & GENERATOR:
            return None
        return self._line if code.co_filename.startswith(self.modules) else None

    def _line(self, frame, event, _):
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                self.done = True
                sys.settrace(None)
                raise self.error(f"line {frame.f_lineno} of {Path(frame.f_code.co_filename).name}")
        return self._line

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)

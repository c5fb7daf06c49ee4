"""Metrics: named numbers with labels, and their text in Prometheus' format."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["counter", "gauge"]
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Family:
    """One metric: what it says, and its value for each set of labels."""

    kind: Kind
    description: str
    values: dict[Labels, float] = field(default_factory=dict)


class Metrics:
    """All metrics of a process; any thread may add and read.

    >>> metrics = Metrics()
    >>> metrics.add("graphtide_rows_total", "Rows read.", 3, query="sensors")
    >>> metrics.add("graphtide_rows_total", "Rows read.", 4, query="sensors")
    >>> print(metrics.text(), end="")
    # HELP graphtide_rows_total Rows read.
    # TYPE graphtide_rows_total counter
    graphtide_rows_total{query="sensors"} 7
    """

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        self._lock = threading.Lock()

    def add(self, name: str, description: str, amount: float, **labels: str) -> None:
        """Let a counter grow."""
        with self._lock:
            values = self._family(name, description, "counter").values
            key = tuple(sorted(labels.items()))
            values[key] = values.get(key, 0) + amount

    def set(
        self, name: str, description: str, value: float, kind: Kind = "gauge", **labels: str
    ) -> None:
        """Set a value; `kind` is "counter" for one that is counted elsewhere."""
        with self._lock:
            values = self._family(name, description, kind).values
            values[tuple(sorted(labels.items()))] = value

    def value(self, name: str, **labels: str) -> float:
        """What a metric says of these labels; 0 if nothing."""
        with self._lock:
            found = self._families.get(name)
            return found.values.get(tuple(sorted(labels.items())), 0) if found else 0

    def text(self) -> str:
        """Everything in Prometheus' text format, version 0.0.4."""
        lines: list[str] = []
        with self._lock:
            for name, family in sorted(self._families.items()):
                if family.values:
                    lines.append(f"# HELP {name} {_escaped(family.description)}")
                    lines.append(f"# TYPE {name} {family.kind}")
                    lines += [_line(name, *item) for item in sorted(family.values.items())]
        return "".join(f"{line}\n" for line in lines)

    def _family(self, name: str, description: str, kind: Kind) -> Family:
        return self._families.setdefault(name, Family(kind, description))


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_quoted(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {_number(value)}" if shown else f"{name} {_number(value)}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def number_at(report: Mapping[str, object], *path: str) -> float | None:
    """A number inside a report of nested dicts, or None if there is none.

    >>> number_at({"sink": {"numOutputRows": 3}}, "sink", "numOutputRows")
    3
    >>> number_at({"sink": None}, "sink", "numOutputRows")
    """
    found: object = report
    for key in path:
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found if isinstance(found, (int, float)) else None

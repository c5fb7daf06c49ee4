"""Programs as tests write them: a text, or the path of a file."""

from __future__ import annotations

from pathlib import Path

from graphtide import Program


def run(program, graph, **options):
    """Run a program on a graph."""
    if isinstance(program, Path):
        program = Program.read(program)
    elif isinstance(program, str):
        program = Program.parse(program)
    return graph.run(program, **options)


def firings(graph):
    """The firings of all programs that run on a graph, oldest first."""
    return sorted((each for p in graph.programs for each in p.firings()), key=lambda f: f.time)

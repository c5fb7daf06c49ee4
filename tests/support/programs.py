"""Programs as tests write them: a text, or the path of a file."""

from __future__ import annotations

from pathlib import Path

from graphtide import Program


def program_of(program):
    """A program that is given as a text, by its path, or as it is."""
    if isinstance(program, Path):
        return Program.read(program)
    return Program.parse(program) if isinstance(program, str) else program


def run(program, graph, **options):
    """Run a program on a graph."""
    return graph.run(program_of(program), **options)


def find_repairs(graph, program, *fixes, **options):
    """Search for repair plans of a graph, however slow the machine is."""
    return graph.repairs(program_of(program), *fixes, **{"max_seconds": 600, **options})


def firings(graph):
    """The firings of all programs that run on a graph, oldest first."""
    return sorted((each for p in graph.programs for each in p.firings()), key=lambda f: f.time)


def publish(running, events):
    """Publish a batch of events to one program."""
    running._connection.publish(events, running._engine)
